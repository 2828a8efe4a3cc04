# human: the generators whose images are shown, templates, targets.


def shown_generators():
    """The generators whose images people see."""
    return CONFIG.human.generators or list(GENERATORS)


def of_shown_generators(path):
    """A path of a composition, for each generator whose images people see."""
    return expand(f"<dataset>/{{{{composition}}}}/{path}", generator=shown_generators())


def human_templates(*names):
    """Templates of what people see."""
    return of_project(*(f"workflow_scripts/human/templates/{name}" for name in names))


def human_outputs():
    """Tasks and pages and, as far as the config asks for them, other files for annotators and the analysis."""
    if CONFIG.human is None:
        return []
    wanted = {
        "tasks.json": True,
        "pages": True,
        "label_studio": CONFIG.human.label_studio,
        "site": CONFIG.human.site,
        "analysis.json": CONFIG.human.answers,
    }
    names = [name for name, asked in wanted.items() if asked]
    return [f"{RESULTS}/{DATASET}/{composition}/human/{name}" for composition in CONFIG.compositions for name in names]
