# human: what people see in Label Studio, the generators whose images are shown, targets.
from compclip.human.config import Sampling

LABEL_STUDIO = "compclip/human/templates/label_studio.xml.j2"


def shown_generators():
    """The generators whose images people see."""
    return CONFIG.human.generators or list(GENERATORS)


def of_shown_generators(path):
    """A path of a composition, for each generator whose images people see."""
    return expand(f"<dataset>/{{{{composition}}}}/{path}", generator=shown_generators())


def human_outputs():
    """Tasks and, if the config has answers, the analysis."""
    if CONFIG.human is None:
        return []
    names = ["tasks.json", *(["analysis.json"] if CONFIG.human.answers else [])]
    return [f"{RESULTS}/{DATASET}/{composition}/human/{name}" for composition in CONFIG.compositions for name in names]
