# dataset: the chosen source, its settings, its tables.
from workflow_scripts.dataset.config import SOURCES


def source_section():
    """The settings of the chosen source alone."""
    return getattr(CONFIG.dataset, CONFIG.dataset.source).model_dump(mode="json")


def source_settings(wildcards):
    """The same as the JSON that its step reads."""
    return json.dumps(retrieved(source_section()), separators=(",", ":"), ensure_ascii=False)


def captions_alone():
    """Whether the source's settings say that there are no images."""
    return getattr(getattr(CONFIG.dataset, CONFIG.dataset.source), "images", ...) is None


def source_table_names():
    """Tables that the chosen source makes beside captions and images."""
    return getattr(plugins.load(SOURCES, CONFIG.dataset.source), "TABLES", ())


def source_tables():
    """Their files, for the output of its rule."""
    return [f"<dataset>/{name}.parquet" for name in source_table_names()]


def source_contents(wildcards):
    """A text that changes when the files of the user's that the source reads do."""
    source = plugins.load(SOURCES, CONFIG.dataset.source)
    settings = getattr(CONFIG.dataset, CONFIG.dataset.source)
    return source.fingerprint(settings) if hasattr(source, "fingerprint") else ""
