# report: what tables, figures and pages read, and what a run is for.
from pathlib import Path

from workflow_scripts.core.layout import Layout


def page_templates(*stages):
    """Return the templates of these stages, and those that all pages share."""
    folders = [Path(workflow.basedir, "workflow_scripts", stage, "templates") for stage in ("plot", *stages)]
    files = sorted(file.relative_to(workflow.basedir) for folder in folders for file in folder.iterdir())
    return of_project(*map(str, files))


# Stages with a section (workflow_scripts/<stage>/section.py) on the page of a run.
SECTIONS = [name for name in ("specs", "compun") if getattr(CONFIG, name)]


def all_generators():
    """Return the generators that the table and the page show: all, those with an oracle's score, with a distance."""
    return {"generators": list(GENERATORS), "oracle": oracle_generators(), "fid": fid_generators()}


def layout(composition=""):
    """Return where the artifacts of a composition are."""
    return Layout(Path("<results>"), DATASET, composition)


def all_scores(wildcards):
    """The folders of scores of every generator, by the trained judge and by the oracle."""
    place = [f"{RESULTS}/{DATASET}/{composition}" for composition in CONFIG.compositions]
    trained = [f"{folder}/scores/{name}" for folder in place for name in GENERATORS]
    return trained + [f"{folder}/scores_oracle/{name}" for folder in place for name in oracle_generators()]


def page_reads():
    """Return what the page reads, apart from its tables and figures: examples, counts and the stages' sections."""
    layouts = [layout(composition) for composition in CONFIG.compositions]
    summaries = [str(one.generated(name) / "summary.json") for one in layouts for name in GENERATORS]
    return [
        *(file for one in layouts for file in one.examples(GENERATORS)),
        *expand("<dataset>/{name}.json", name=["dataset", "pairs"]),
        *of_compositions("splits.json", "swapped.json", "prompts.json"),
        *summaries,
        *all_fids(),
        *split_page_reads(),
        *divergence_page_reads(),
        *score_page_reads(),
        *specs_page_reads(),
        *compun_page_reads(),
    ]


def of_compositions(*names):
    """Return these files of all compositions."""
    return expand("<dataset>/{composition}/{name}", composition=CONFIG.compositions, name=names)


SCORE_FIGURES = ("scores", "gaps", "drops", "comparisons", "loss")


def score_table(name, suffix, label, caption=None):
    """Return a file for all compositions, shown in Snakemake's report with the caption of its name or ``caption``."""
    return report(
        f"<results>/{name}.{suffix}",
        caption=f"../workflow_scripts/report/captions/{caption or name}.rst",
        category="Scores",
        labels={"table": label},
    )


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


def of_all_compositions(drawn):
    """Return the files of these figures of all compositions."""
    return expand(list(map(str, drawn)), composition=CONFIG.compositions)


def captions_figures():
    """Return the figures that need no images."""
    return of_all_compositions(
        [*split_figures().values(), *distribution_figures(), *divergence_figures(), *division_figures()]
    )


def shown_figures(wildcards):
    """Return all figures of the page, apart from those of stages with a section of their own."""
    return captions_figures() + of_all_compositions(figures(SCORE_FIGURES).values())


def split_outputs():
    """What there is to have without images."""
    names = ("splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export", "divergence.parquet")
    return [f"{RESULTS}/{DATASET}/{composition}/{name}" for composition in CONFIG.compositions for name in names]


def final_outputs(wildcards):
    """What a run is for: the table and the report, or, of captions alone, the splits."""
    if captions_alone():
        return split_outputs() + captions_figures() + specs_outputs() + compun_outputs()
    names = ("table.csv", "table.md", "table.tex", "comparisons.csv", "metrics.json")
    tables = [f"{RESULTS}/{name}" for name in names]
    choices = [f"{RESULTS}/{DATASET}/{composition}/adjective_choice.json" for composition in CONFIG.compositions]
    pages = expand(f"{RESULTS}/figures/{DATASET}_{{composition}}_examples.pdf", composition=CONFIG.compositions)
    made = split_outputs() + tables + choices + all_fids() + pages + [f"{RESULTS}/report.html"]
    return made + specs_outputs() + compun_outputs() + human_outputs()
