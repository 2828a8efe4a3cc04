# specs: the CLIP that is stretched, its long captions, and inputs of pages.
from compclip.clip.config import ModelConfig

SPECS = f"{DATA}/specs/{{seed}}"
SPECS_FIGURE = f"figures/{DATASET}_specs_measures.svg"
SPECS_OUTPUTS, SPECS_SHOWN = [], []

if CONFIG.specs:
    FIRST = SPECS.format(seed=CONFIG.specs.seeds[0])
    SPECS_OUTPUTS = [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"]
    # inputs of pages with a section on long captions
    SPECS_SHOWN = [f"{RESULTS}/{file}" for file in ["specs.csv", SPECS_FIGURE]]
    SPECS_SHOWN += [f"{FIRST}/{name}" for name in ("specs", "stretched", "intrinsic.json")]


def long_captions():
    """Return training captions, their images, growing test captions and their images: the
    user's, or the sketches'.
    """
    data = CONFIG.specs.data
    if data is None:
        return [
            f"{SPECS}/examples.parquet",
            f"{DATA}/images",
            f"{SPECS}/steps.parquet",
            f"{DATA}/images",
        ]
    pairs = [(data.examples, data.images), (data.increments, data.increment_images or data.images)]
    beside = [images or os.path.dirname(file) or "." for file, images in pairs]
    return [local(path) for (file, _), folder in zip(pairs, beside) for path in (file, folder)]


def users_files(*paths):
    """Return the fingerprint of the paths as a param, if the long captions are the user's."""
    return contents(*paths) if CONFIG.specs.data else ""
