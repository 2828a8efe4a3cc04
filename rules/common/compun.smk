# compun: its compounds, texts and models, and what pages show.
from workflow_scripts.compun.config import TRAININGS, Asking

COMPUN_FOLDER = f"{RESULTS}/{DATASET}/compun"
COMPUN_FIGURES = {name: f"figures/{DATASET}_compun_{name}.svg" for name in ("accuracy", "examples", "gains", "kinds")}


def drawn_compounds():
    """Return whether the compounds are drawn, and small CLIPs trained on pictures of them."""
    return CONFIG.compun.compounds is None


def compound_files(wildcards):
    """Return the list of compounds and, if they are drawn, their images."""
    if drawn_compounds():
        return [f"{COMPUN_FOLDER}/drawn/{name}" for name in ("list.csv", "images")]
    return of_project(CONFIG.compun.compounds.file) if CONFIG.compun.compounds.file else []


def compound_origin(wildcards):
    """Return where the list of compounds and their images are."""
    if drawn_compounds():
        return dict(zip(("file", "images"), map(on_disk, compound_files(wildcards))))
    return CONFIG.compun.compounds.model_dump(mode="json")


def compound_contents(wildcards):
    """Return a fingerprint of the user's list and images."""
    from workflow_scripts.compun import load_compounds

    return "" if drawn_compounds() else load_compounds.fingerprint(CONFIG.compun.compounds, CONFIG.cache)


def text_file(wildcards):
    """Return the file of captions or descriptions that exist already."""
    texts = getattr(CONFIG.compun, wildcards.kind)
    if texts is None:
        return [f"{COMPUN_FOLDER}/drawn/{wildcards.kind}.json"]
    return of_project(texts.file) if texts.file else []


def text_contents(wildcards):
    """Return a fingerprint of the user's file of captions or descriptions."""
    texts = getattr(CONFIG.compun, wildcards.kind)
    return contents_of(texts.file) if texts else ""


def asking(wildcards):
    """Return how a language model is asked for captions or descriptions."""
    texts = getattr(CONFIG.compun, wildcards.kind)
    return {"count": 1} if texts is None else texts.model_dump(mode="json", include=set(Asking.model_fields))


def text_table(kind):
    """Return the file of all captions or descriptions, if there are any."""
    return [f"{COMPUN_FOLDER}/{kind}.json"] if drawn_compounds() or getattr(CONFIG.compun, kind) else []


def small_clips():
    """Return the folders of the CLIPs trained on drawn pictures, by name."""
    return {name: f"{COMPUN_FOLDER}/judges/{name}" for name in TRAININGS if drawn_compounds()}


def asked_models(wildcards):
    """Return all models to ask."""
    small = [{"name": name, "judge": on_disk(folder)} for name, folder in small_clips().items()]
    return small + [model.model_dump(mode="json", exclude_none=True) for model in CONFIG.compun.models]


def model_files(wildcards):
    """Return the files and folders of models: the CLIPs trained here, and the user's."""
    places = (str(path) for model in CONFIG.compun.models for path in model.places())
    return [*small_clips().values(), *of_project(*places)]


def compun_page_reads():
    """Return the inputs of pages with a section on compound nouns."""
    if CONFIG.compun is None:
        return []
    read = ["analysis", "choices", "compounds.parquet", "images.parquet"]
    read += ["drawn/drawn.json"] if drawn_compounds() else []
    return [f"{RESULTS}/{file}" for file in COMPUN_FIGURES.values()] + [f"{COMPUN_FOLDER}/{name}" for name in read]


def compun_outputs():
    """Return the targets of the stage."""
    if CONFIG.compun is None:
        return []
    asked = [f"{COMPUN_FOLDER}/human/tasks.json"] if CONFIG.compun.human else []
    return [f"{RESULTS}/compun.md", f"{RESULTS}/compun.html", *asked]
