# dataset: the chosen source, its settings, its tables.
from workflow_scripts.dataset.check import is_scored
from workflow_scripts.dataset.choice import SOURCES


def source_section():
    """The settings of the chosen source."""
    return getattr(CONFIG.dataset, CONFIG.dataset.source).model_dump(mode="json")


def captions_alone():
    """Whether nothing is scored: the source has captions but no images, or there are no generators."""
    return not is_scored(CONFIG)


def source_threads():
    """Cores for the chosen source: several if it draws its images."""
    return 4 if getattr(plugins.load(SOURCES, CONFIG.dataset.source), "PARALLEL", False) else 1


def source_table_names():
    """Tables that the chosen source makes beside captions and images."""
    return getattr(plugins.load(SOURCES, CONFIG.dataset.source), "TABLES", ())


def source_contents():
    """A fingerprint of the user's files that the source reads."""
    settings = getattr(CONFIG.dataset, CONFIG.dataset.source)
    return contents_of(*settings.reads()) if hasattr(settings, "reads") else ""


def source_contents_read(wildcards):
    """The same for the step, which checks it; nothing if it reads local copies of what lies on object storage."""
    return None if stored(source_section()) else source_contents() or None
