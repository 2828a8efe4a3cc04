# compun: compounds, texts, models, and inputs of pages.
from compclip.compun.config import TRAININGS

COMPUN = f"{DATA}/compun"
COMPUN_FIGURES = {
    name: f"figures/{DATASET}_compun_{name}.svg" for name in ("accuracy", "examples", "kinds")
}
COMPUN_OUTPUTS, COMPUN_SHOWN = [], []

if CONFIG.compun:
    # Whether the compounds are drawn, and small CLIPs trained on their pictures; the folders of
    # these CLIPs.
    DRAWN = CONFIG.compun.compounds is None
    SMALL_CLIPS = {name: f"{COMPUN}/judges/{name}" for name in TRAININGS if DRAWN}
    # The user's files.
    USER_COMPOUNDS = [] if DRAWN else [CONFIG.compun.compounds.file, CONFIG.compun.compounds.images]
    USER_TEXTS = list(filter(None, (CONFIG.compun.captions, CONFIG.compun.descriptions)))
    USER_MODELS = [str(path) for model in CONFIG.compun.models for path in model.places()]
    ANSWERS = CONFIG.compun.human.answers if CONFIG.compun.human else []
    # The artifacts of the compounds, and all models to ask.
    COMPOUNDS = {name: f"{COMPUN}/{name}.parquet" for name in ("compounds", "images")} | {
        "folder": f"{COMPUN}/images"
    }
    ASKED_MODELS = [{"name": name, "judge": folder} for name, folder in SMALL_CLIPS.items()]
    ASKED_MODELS += [
        model.model_dump(mode="json", exclude_none=True) for model in CONFIG.compun.models
    ]
    # Inputs of the page, except its figures and the analysis.
    COMPUN_RESULTS = [
        f"{COMPUN}/{name}" for name in ("choices", "compounds.parquet", "images.parquet")
    ]
    COMPUN_RESULTS += [f"{COMPUN}/drawn/list.csv"] if DRAWN else []
    COMPUN_SHOWN = [f"{RESULTS}/{file}" for file in COMPUN_FIGURES.values()]
    COMPUN_SHOWN += [f"{COMPUN}/analysis.csv", *COMPUN_RESULTS]
    COMPUN_OUTPUTS = [f"{RESULTS}/compun.md", f"{RESULTS}/compun.html"]
    COMPUN_OUTPUTS += [f"{COMPUN}/human/tasks.json"] if CONFIG.compun.human else []


def text_file(kind):
    """Return the table of captions or descriptions, if there is one."""
    return getattr(CONFIG.compun, kind) or (f"{COMPUN}/drawn/{kind}.json" if DRAWN else [])
