# human: texts for Label Studio, the generators whose images are shown, targets.
from compclip.human.config import Sampling

LABEL_STUDIO = "compclip/human/templates/label_studio.xml.j2"
HUMAN_OUTPUTS = []

if CONFIG.human:
    # generators whose images are shown
    SHOWN_GENERATORS = CONFIG.human.generators or list(GENERATORS)
    HUMAN_OUTPUTS = of_compositions(
        "human/tasks.json", *(["human/analysis.json"] if CONFIG.human.answers else [])
    )
