# report: what tables, figures and pages read, and what a run is for.
from pathlib import Path

from workflow_scripts.core.tables import TESTS
from workflow_scripts.plot.labels import PART_NAMES, SPLIT_NAMES, WORD_KINDS


def page_templates(*stages):
    """Return the templates of these stages, and those that all pages share."""
    folders = [Path(workflow.basedir, "workflow_scripts", stage, "templates") for stage in ("plot", *stages)]
    files = sorted(file.relative_to(workflow.basedir) for folder in folders for file in folder.iterdir())
    return of_project(*map(str, files))


# Stages with a section (workflow_scripts/<stage>/section.py) on the page of a run.
SECTIONS = [name for name in ("specs", "compun") if getattr(CONFIG, name)]


ALL_COMPOSITIONS = {"dataset": DATASET, "composition": CONFIG.compositions}


def all_scores(wildcards):
    """The folders of scores of every generator, by the trained judge and by the oracle."""
    place = [f"{RESULTS}/{DATASET}/{composition}" for composition in CONFIG.compositions]
    trained = [f"{folder}/scores/{name}" for folder in place for name in GENERATORS]
    return trained + [f"{folder}/scores_oracle/{name}" for folder in place for name in oracle_generators()]


EXAMPLES_READ_OF_DATASET = ["captions.parquet", "images.parquet", "images", "pairs.parquet"]
EXAMPLES_READ_OF_COMPOSITION = ["swapped.parquet", "prompts.parquet"]
EXAMPLES_READ_OF_GENERATOR = [
    "generated/{generator}/manifest.parquet",
    "generated/{generator}/images",
    "scores/{generator}",
]
PAGE_READS_OF_DATASET = [*EXAMPLES_READ_OF_DATASET, "dataset.json", "pairs.json"]
PAGE_READS_OF_COMPOSITION = [
    *EXAMPLES_READ_OF_COMPOSITION, "ranking.parquet", "heldout.json", "splits.parquet", "splits.json", "swapped.json",
    "prompts.json", "audit.json", "judge", "adjective_choice.json", "divergence.parquet", "divergence.json",
    *(["division.json"] if by_divergence() else []),
]  # fmt: skip
PAGE_READS_OF_GENERATOR = [*EXAMPLES_READ_OF_GENERATOR, "generated/{generator}/summary.json"]


SPLIT_FIGURES = ("adjectives", "nouns", "swapped_pairs")
SCORE_FIGURES = ("scores", "gaps", "drops", "comparisons", "loss")


def figure(name, caption=None):
    """A figure of a composition, shown in Snakemake's report too, with the words of its own or of ``caption``."""
    return report(
        f"{RESULTS}/figures/{DATASET}_{{composition}}_{name}.svg",
        caption=f"../workflow_scripts/report/captions/{caption or name}.rst",
        category="Figures",
        subcategory="{composition}",
        labels={"figure": name.replace("_", " ")},
    )


def figures(names):
    """The same of several, by their names."""
    return {name: figure(name) for name in names}


def distribution_figures():
    """The distribution of words in each split, a figure each."""
    return [figure(f"{split}_{words}", "distribution") for split in SPLIT_NAMES for words in WORD_KINDS.values()]


def measured_definitions():
    """The definitions of atoms and compounds by which divergence is measured."""
    return ["pairs", "subgraphs"] if CONFIG.divergence.subgraphs else ["pairs"]


def divergence_figures():
    """Atoms and compounds of train beside those of each test split, a figure each, by each definition."""
    parts = [f"{definition}_{kind}" for definition, kind in PART_NAMES if definition in measured_definitions()]
    return [figure(f"{split}_{part}", "parts") for split in TESTS for part in parts]


def division_figures():
    """How the divergences went while the images were divided by them."""
    return [figure("division")] if by_divergence() else []


def of_all_compositions(drawn):
    """The files of these figures, as plain paths."""
    return expand(list(map(str, drawn)), **ALL_COMPOSITIONS)


def split_figures():
    """The figures of what the splits hold: there are no images in them."""
    drawn = [*figures(SPLIT_FIGURES).values(), *distribution_figures(), *divergence_figures(), *division_figures()]
    return of_all_compositions(drawn)


def shown_figures(wildcards):
    """Every figure of every composition that stands on the page."""
    return split_figures() + of_all_compositions(figures(SCORE_FIGURES).values())


def shown_settings(wildcards):
    """The sections of the config that the page shows, as JSON: those that a score or a divergence depends on."""
    return CONFIG.model_dump_json(include={"pairs", "split", "divergence", "judge", "generate", "score"})


def split_outputs():
    """What there is to have without images."""
    names = ("splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export", "divergence.parquet")
    return [f"{RESULTS}/{DATASET}/{composition}/{name}" for composition in CONFIG.compositions for name in names]


def final_outputs(wildcards):
    """What a run is for: the table and the report, or, of captions alone, the splits."""
    if captions_alone():
        return split_outputs() + split_figures() + specs_outputs() + compun_outputs()
    names = ("table.csv", "table.md", "table.tex", "comparisons.csv", "metrics.json")
    tables = [f"{RESULTS}/{name}" for name in names]
    choices = [f"{RESULTS}/{DATASET}/{composition}/adjective_choice.json" for composition in CONFIG.compositions]
    pages = expand(f"{RESULTS}/figures/{DATASET}_{{composition}}_examples.pdf", **ALL_COMPOSITIONS)
    made = split_outputs() + tables + choices + all_fids() + pages + [f"{RESULTS}/report.html"]
    return made + specs_outputs() + compun_outputs() + human_outputs()
