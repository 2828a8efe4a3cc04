# specs: the CLIP that is stretched, its long captions, and what is shown.
from compclip.clip.config import ModelConfig

SPECS = f"{RESULTS}/{DATASET}/specs/{{seed}}"
FIRST = SPECS.format(seed=CONFIG.specs.seeds[0]) if CONFIG.specs else ""
SPECS_FIGURES = {name: f"figures/{DATASET}_specs_{name}.svg" for name in ("measures", "gains", "growing")}


def long_captions():
    """Training captions, their images, growing test captions and theirs: the user's, or descriptions of the sketches."""
    data = CONFIG.specs.data
    if data is None:
        images = f"{RESULTS}/{DATASET}/images"
        return [f"{SPECS}/examples.parquet", images, f"{SPECS}/steps.parquet", images]
    pairs = [(data.examples, data.images), (data.increments, data.increment_images or data.images)]
    beside = [images or (file if os.path.isdir(file) else os.path.dirname(file) or ".") for file, images in pairs]
    return [local(path) for (file, _), folder in zip(pairs, beside) for path in (file, folder)]


def users_files(*paths):
    """Their fingerprint as a param, if the long captions are the user's."""
    return contents(*paths) if CONFIG.specs.data else ""


def specs_outputs():
    """The targets of the stage."""
    return [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"] if CONFIG.specs else []


def specs_page_reads():
    """What a page with a section on long captions reads."""
    files = [f"{RESULTS}/{file}" for file in ["specs.csv", *SPECS_FIGURES.values()]]
    return [*files, *(f"{FIRST}/{name}" for name in ("specs", "stretched", "intrinsic.json"))] if CONFIG.specs else []
