# dataset: the chosen source, its settings, its tables.
from workflow_scripts.dataset.check import is_scored
from workflow_scripts.dataset.choice import SOURCES

SOURCE = plugins.load(SOURCES, CONFIG.dataset.source)
SOURCE_SETTINGS = getattr(CONFIG.dataset, CONFIG.dataset.source)
# Tables that it makes beside captions and images.
SOURCE_TABLES = getattr(SOURCE, "TABLES", ())
# What it reads, where addresses on object storage are to be replaced.
SOURCE_SECTION = SOURCE_SETTINGS.model_dump(mode="json")


def captions_alone():
    """Whether nothing is scored: the source has captions but no images, or there are no generators."""
    return not is_scored(CONFIG)


def source_contents():
    """A fingerprint of the user's files that the source reads."""
    return contents_of(*SOURCE_SETTINGS.reads()) if hasattr(SOURCE_SETTINGS, "reads") else ""


def source_contents_read(wildcards):
    """The same for the step, which checks it; nothing if it reads local copies of what lies on object storage."""
    return None if stored(SOURCE_SECTION) else source_contents() or None
