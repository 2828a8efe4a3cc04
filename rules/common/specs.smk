# specs: the CLIP that is stretched, its long captions, and what is shown.
SPECS = f"{RESULTS}/{DATASET}/specs/{{seed}}"


def specs_base():
    """What is stretched, its settings and the user's files: the trained judge, or a pretrained model."""
    base = CONFIG.specs.base
    if base.epochs:
        return [f"{SPECS}/base"], {"judge": lambda wildcards: on_disk(f"{SPECS}/base".format(seed=wildcards.seed))}
    weights = base.model_dump(mode="json", include={"pretrained", "preprocess"}, exclude_none=True)
    return of_project(*base.files()), {"judge": base.model, **weights}


def long_captions():
    """Training captions, their images, growing test captions and theirs: the user's, or descriptions of the sketches."""
    data = CONFIG.specs.data
    if data is None:
        images = f"{RESULTS}/{DATASET}/images"
        return [f"{SPECS}/examples.parquet", images, f"{SPECS}/steps.parquet", images]
    pairs = [(data.examples, data.images), (data.increments, data.increment_images or data.images)]
    return [local(path) for file, images in pairs for path in (file, images or folder_beside(file))]


def folder_beside(path):
    """A folder itself, or the folder of a file."""
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def specs_outputs():
    """The targets of the stage."""
    return [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"] if CONFIG.specs else []


SPECS_FIGURES = {name: f"figures/{DATASET}_specs_{name}.svg" for name in ("measures", "gains", "growing")}


def specs_judges():
    """The folders that the page describes: the first seed's stretched and trained judges."""
    return [f"{SPECS}/{name}".format(seed=CONFIG.specs.seeds[0]) for name in ("specs", "stretched")]


def specs_page_reads():
    """What a page with a section on long captions reads."""
    if CONFIG.specs is None:
        return []
    result = f"{SPECS}/intrinsic.json".format(seed=CONFIG.specs.seeds[0])
    return [f"{RESULTS}/specs.csv", *(f"{RESULTS}/{file}" for file in SPECS_FIGURES.values()), *specs_judges(), result]
