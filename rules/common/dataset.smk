# dataset: the chosen source, its settings, its tables.
from compclip.dataset.source import SOURCES, load_source

SOURCE = load_source(CONFIG.dataset.source)
SOURCE_SETTINGS = getattr(CONFIG.dataset, CONFIG.dataset.source)
# The user's files that the source reads.
SOURCE_FILES = (
    [str(file) for file in SOURCE_SETTINGS.reads() if file]
    if hasattr(SOURCE_SETTINGS, "reads")
    else []
)
# Tables that the source makes besides captions and images.
SOURCE_TABLES = SOURCE.TABLES
# Whether a noun has one value of a kind, so that all adjectives of a composition exclude each
# other.
ONE_VALUE = SOURCE.ONE_VALUE
# Images are not scored: the source has captions but no images, or there are no generators.
CAPTIONS_ALONE = not CONFIG.scored
