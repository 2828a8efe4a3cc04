# compun: its compounds, texts and models, and what pages show.
from compclip.compun.config import TRAININGS

COMPUN_FOLDER = f"{RESULTS}/{DATASET}/compun"
COMPUN_FIGURES = {name: f"figures/{DATASET}_compun_{name}.svg" for name in ("accuracy", "examples", "kinds")}

if CONFIG.compun:
    # Whether the compounds are drawn, and small CLIPs trained on pictures of them; the folders of these CLIPs.
    DRAWN = CONFIG.compun.compounds is None
    SMALL_CLIPS = {name: f"{COMPUN_FOLDER}/judges/{name}" for name in TRAININGS if DRAWN}
    # The user's files.
    USER_COMPOUNDS = [] if DRAWN else [CONFIG.compun.compounds.file, CONFIG.compun.compounds.images]
    USER_TEXTS = list(filter(None, (CONFIG.compun.captions, CONFIG.compun.descriptions)))
    USER_MODELS = [str(path) for model in CONFIG.compun.models for path in model.places()]
    ANSWERS = CONFIG.compun.human.answers if CONFIG.compun.human else []


def compound_files():
    """Return the list of compounds and the folder of their images."""
    drawn = [f"{COMPUN_FOLDER}/drawn/{name}" for name in ("list.csv", "images")]
    return dict(zip(("file", "source"), USER_COMPOUNDS or drawn))


def text_file(kind):
    """Return the table of captions or descriptions, if there is one."""
    return getattr(CONFIG.compun, kind) or (f"{COMPUN_FOLDER}/drawn/{kind}.json" if DRAWN else [])


def asked_models():
    """Return all models to ask."""
    small = [{"name": name, "judge": folder} for name, folder in SMALL_CLIPS.items()]
    return small + [model.model_dump(mode="json", exclude_none=True) for model in CONFIG.compun.models]


def compun_results():
    """Return what the page shows, apart from its figures."""
    names = ["analysis.csv", "choices", "compounds.parquet", "images.parquet", *(["drawn/list.csv"] if DRAWN else [])]
    return [f"{COMPUN_FOLDER}/{name}" for name in names]


def compun_page_reads():
    """Return the inputs of pages with a section on compound nouns."""
    figures = [f"{RESULTS}/{file}" for file in COMPUN_FIGURES.values()]
    return figures + compun_results() if CONFIG.compun else []


def compun_outputs():
    """Return the targets of the stage."""
    if CONFIG.compun is None:
        return []
    tasks = [f"{COMPUN_FOLDER}/human/tasks.json"] if CONFIG.compun.human else []
    return [f"{RESULTS}/compun.md", f"{RESULTS}/compun.html", *tasks]
