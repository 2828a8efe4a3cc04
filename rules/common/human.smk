# human: its pages, and what is asked for.

# Of the pages that ask people, of pictures and of compounds.
PAGE_TEMPLATES = of_project(
    *(f"workflow_scripts/human/templates/{name}" for name in ("page.html.j2", "index.html.j2", "page.css", "page.js"))
)


def shown_generators():
    """The generators whose images people are shown."""
    return CONFIG.human.generators or list(GENERATORS)


def site_base():
    """The address at which a crowd-work site finds the pictures."""
    return CONFIG.human.site.base if CONFIG.human.site else ""


def human_outputs():
    """Pages to ask people and, as far as the config names them, a site's files and what the answers say."""
    if CONFIG.human is None:
        return []
    made = {"pages": True, "tasks.json": True, "site": CONFIG.human.site, "analysis.json": CONFIG.human.answers}
    names = [name for name, asked in made.items() if asked]
    return [f"{RESULTS}/{DATASET}/{composition}/human/{name}" for composition in CONFIG.compositions for name in names]


def check_human():
    """Refuse to ask people about images that there are not."""
    if CONFIG.human is None:
        return
    if captions_alone():
        raise WorkflowError("human: the data set has captions alone: there are no images to ask about")
    for name in CONFIG.human.generators or ():
        if name not in GENERATORS:
            raise WorkflowError(f"human.generators: {name} is not in generate.generators: {', '.join(GENERATORS)}")


check_human()
