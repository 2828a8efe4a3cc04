# split: listed and published pairs, divisions by divergence.
from compclip.split.config import Draw

# The summaries of the steps that read published files.
PUBLISHED_REPORTS = [f"<dataset>/{{composition}}/{name}.json" for name in ("heldout", "splits", "swapped")]


def published_split(wildcards):
    """Return the published split.pkl of this composition, or None."""
    return CONFIG.split.published and CONFIG.split.published.file("split", wildcards.composition)


def published_data(wildcards):
    """Return the published data.pkl of this composition, or None."""
    return CONFIG.split.published and CONFIG.split.published.file("data", wildcards.composition)


def published_contents(wildcards):
    """Return a fingerprint of the published files."""
    return contents_of(published_split(wildcards), published_data(wildcards))


def by_divergence():
    """Return whether the images are divided by divergence, and the held-out pairs follow."""
    return CONFIG.split.method == "divergence"


def split_figures():
    """Return the figures of what the splits contain, by name."""
    return figures(("adjectives", "nouns", "swapped_pairs"))


def split_page_reads():
    """Return what the section of the splits reads."""
    names = ["splits.parquet", "swapped.parquet", "prompts.parquet", "ranking.parquet"]
    names += ["heldout.json", "widths.json", "audit.json"]
    return ["<dataset>/captions.parquet", *of_compositions(*names)]
