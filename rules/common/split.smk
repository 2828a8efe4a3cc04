# split: listed and published pairs, divisions by divergence.
from workflow_scripts.core.fingerprint import fingerprint
from workflow_scripts.plot.labels import SPLIT_NAMES, WORD_KINDS


def listed_heldout(wildcards):
    """The pairs that the config lists for this composition; none: they are drawn."""
    listed = CONFIG.split.heldout.pairs
    if isinstance(listed, dict):
        listed = listed.get(wildcards.composition)
    return listed or []


def check_compositions():
    """Refuse settings of a composition that is not run."""
    for key, setting in (
        ("split.heldout.pairs", CONFIG.split.heldout.pairs),
        ("score.balance.dominant", CONFIG.score.balance.dominant),
    ):
        for name in setting if isinstance(setting, dict) else ():
            if name not in CONFIG.compositions:
                raise WorkflowError(f"{key}: {name} is no composition; allowed: {', '.join(CONFIG.compositions)}")


check_compositions()

# What the steps that took published files have to say of them.
PUBLISHED_REPORTS = [f"<dataset>/{{composition}}/{name}.json" for name in ("heldout", "splits", "swapped")]


def published_file(kind, composition):
    """The published split.pkl or data.pkl of a composition, in a list; none where they are not taken."""
    path = CONFIG.split.published and getattr(CONFIG.split.published, kind)
    return [path.replace("{composition}", composition)] if path else []


def published_split(wildcards):
    return published_file("split", wildcards.composition)


def published_data(wildcards):
    return published_file("data", wildcards.composition)


def published_contents(wildcards):
    """A text that changes when the published files do."""
    return fingerprint(*published_split(wildcards), *published_data(wildcards)) if CONFIG.split.published else ""


def check_published():
    """Refuse one published split for several compositions."""
    for kind in ("split", "data"):
        path = CONFIG.split.published and getattr(CONFIG.split.published, kind)
        if path and "{composition}" not in path and len(CONFIG.compositions) > 1:
            raise WorkflowError(
                f"split.published.{kind}: {path}: must hold {{composition}}, since several compositions are run"
            )


check_published()


def by_divergence():
    """Whether the images are divided by divergence, and the held-out pairs follow."""
    return CONFIG.split.method == "divergence"


def division_options(wildcards):
    """The options of such a division."""
    wanted = CONFIG.split.divergence
    return [
        *("--atom", wanted.atom, "--compound", wanted.compound, "--train", wanted.train, "--test", wanted.test),
        *("--restarts", wanted.restarts),
    ]


def division_files(wildcards):
    """What is told of the division of one composition; nothing where pairs are held out first."""
    return [f"{RESULTS}/{DATASET}/{wildcards.composition}/division.json"] if by_divergence() else []


def split_figures():
    """Return the figures of what the splits contain, by name."""
    return figures(("adjectives", "nouns", "swapped_pairs"))


def distribution_figures():
    """Return the figures of the distribution of words in each split."""
    return [figure(f"{split}_{words}", "distribution") for split in SPLIT_NAMES for words in WORD_KINDS.values()]


def split_page_reads():
    """Return what the section of the splits reads."""
    names = ["splits.parquet", "prompts.parquet", "ranking.parquet", "heldout.json", "audit.json"]
    return ["<dataset>/captions.parquet", *of_compositions(*names)]
