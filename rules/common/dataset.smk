# dataset: the chosen source, its settings, its tables.
from compclip.dataset.choice import SOURCES

SOURCE = plugins.load(SOURCES, CONFIG.dataset.source)
SOURCE_SETTINGS = getattr(CONFIG.dataset, CONFIG.dataset.source)
# Tables that it makes beside captions and images.
SOURCE_TABLES = getattr(SOURCE, "TABLES", ())


def captions_alone():
    """Whether nothing is scored: the source has captions but no images, or there are no generators."""
    return not CONFIG.scored


def source_contents():
    """A fingerprint of the user's files that the source reads."""
    return contents_of(*SOURCE_SETTINGS.reads()) if hasattr(SOURCE_SETTINGS, "reads") else ""
