# specs: the CLIP that is stretched, its long captions, and what is shown.


def specs_folder(wildcards):
    """The folder of one seed."""
    return f"{RESULTS}/{DATASET}/specs/{wildcards.seed}"


def stretched_base(wildcards):
    """The judge that is stretched, or the user's files that it is made from."""
    base = CONFIG.specs.base
    return [f"{specs_folder(wildcards)}/base"] if base.epochs else of_project(*base.files())


def stretched_model(wildcards):
    """What is stretched: the folder of the trained judge, or the name of a pretrained model."""
    base = CONFIG.specs.base
    return on_disk(f"{specs_folder(wildcards)}/base") if base.epochs else base.model


def stretched_settings():
    """The weights of a pretrained model, and how its images are prepared, if they do not say it."""
    base = CONFIG.specs.base
    return {} if base.epochs else base.model_dump(mode="json", include={"pretrained", "preprocess"}, exclude_none=True)


def long_examples(wildcards):
    """The long captions for training."""
    data = CONFIG.specs.data
    return local(data.examples) if data else f"{specs_folder(wildcards)}/examples.parquet"


def long_steps(wildcards):
    """The growing captions for testing."""
    data = CONFIG.specs.data
    return local(data.increments) if data else f"{specs_folder(wildcards)}/steps.parquet"


def long_images(wildcards):
    """The folder that the paths of the training images are relative to."""
    data = CONFIG.specs.data
    return local(data.images or folder_beside(data.examples)) if data else f"{RESULTS}/{DATASET}/images"


def step_images(wildcards):
    """The folder that the paths of the test images are relative to."""
    data = CONFIG.specs.data
    return local(data.increment_images or folder_beside(data.increments)) if data else long_images(wildcards)


def long_contents(wildcards):
    """A fingerprint of the user's long captions for training, and their images."""
    return contents_of(CONFIG.specs.data.examples, long_images(wildcards)) if CONFIG.specs.data else ""


def step_contents(wildcards):
    """A fingerprint of the user's growing captions for testing, and their images."""
    return contents_of(CONFIG.specs.data.increments, step_images(wildcards)) if CONFIG.specs.data else ""


def folder_beside(path):
    """A folder itself, or the folder of a file."""
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def specs_outputs():
    """The targets of the stage."""
    return [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"] if CONFIG.specs else []


SPECS_FIGURES = {name: f"figures/{DATASET}_specs_{name}.svg" for name in ("measures", "gains", "growing")}


def specs_page_reads():
    """What a page with a section on long captions reads."""
    if CONFIG.specs is None:
        return []
    folder = f"{DATASET}/specs/{CONFIG.specs.seeds[0]}"
    files = [f"{folder}/{name}" for name in ("specs", "stretched", "intrinsic.json")]
    return [f"{RESULTS}/{file}" for file in ["specs.csv", *SPECS_FIGURES.values(), *files]]
