# split: listed and published pairs, divisions by divergence, inputs of the page.
from compclip.split.config import DrawConfig

SPLITTING = {"dataset": DATASET, "seed": CONFIG.seeds.split}
# The steps of a composition are one job of a cluster, unless shards divide them.
TOGETHER = "split" if CONFIG.dataset.shards == 1 else None
# Whether the images are divided by divergence, from which the held-out pairs follow.
BY_DIVERGENCE = CONFIG.split.method == "divergence"
# Whether the settings of the draw are chosen from the captions.
IS_CHOSEN = CONFIG.split.is_chosen
# The summaries of the steps that read published files.
PUBLISHED_REPORTS = [
    f"<dataset>/{{composition}}/{name}.json" for name in ("heldout", "splits", "swapped")
]
# The inputs of the page's section.
SPLIT_SHOWN = of_compositions(
    "splits.parquet", "swapped.parquet", "prompts.parquet", "ranking.parquet"
)
SPLIT_SHOWN += [
    "<dataset>/captions.parquet",
    *of_compositions("heldout.json", "widths.json", "audit.json"),
]


def published(kind):
    """Return a param: the published split.pkl or data.pkl of a composition, or None."""
    return lambda wildcards: CONFIG.split.published and CONFIG.split.published.file(
        kind, wildcards.composition
    )


def published_contents(wildcards):
    """Return a fingerprint of the published files."""
    return contents_of(published("split")(wildcards), published("data")(wildcards))
