# report: inputs of tables, figures and pages, and the targets of a run.

# Stages with a section (workflow_scripts/<stage>/section.py) on the page of a run.
SECTIONS = [name for name in ("specs", "compun") if getattr(CONFIG, name)]
# Sections of the config that a score or a divergence depends on.
DECIDING = {"pairs", "split", "divergence", "judge", "generate", "score"}
# The folder of the artifacts, all compositions and generators; and settings of the table and the
# page.
WHOLE_RUN = dict(PLACE, compositions=CONFIG.compositions, share=CONFIG.judge.share)
WHOLE_RUN |= {"generators": [] if CAPTIONS_ALONE else list(GENERATORS)}
READABLE = dict(WHOLE_RUN, judges=CONFIG.judges, fid=FID_GENERATORS, reference=CONFIG.reference)
READABLE |= {
    "health": CONFIG.score.health,
    "anchors": CONFIG.anchors,
    "training_data": CONFIG.training_data,
}
FIGURES = f"{RESULTS}/figures/{DATASET}"
SCORE_FIGURES = {
    name: in_report(
        f"{FIGURES}_{{composition}}_{name}.svg", name, "Figures", "{composition}", figure=name
    )
    for name in ("composed", "scores", "pairs", "loss")
}
# All figures of the page, except those in the sections of other stages.
SHOWN_FIGURES = (
    []
    if CAPTIONS_ALONE
    else expand(map(str, SCORE_FIGURES.values()), composition=CONFIG.compositions)
)

# Inputs of pages, except tables and figures: examples, counts and the stages' sections.
LAYOUTS = [
    Layout(Path("<results>"), DATASET, composition, CONFIG.judge.share)
    for composition in CONFIG.compositions
]
PAIRS_READ = list(dict.fromkeys(str(of.read / "pairs.parquet") for of in LAYOUTS))
EXAMPLES = [
    file for of in LAYOUTS for judge in CONFIG.judges for file in of.examples(GENERATORS, judge)
]
EXAMPLES = list(dict.fromkeys(EXAMPLES))
PAGE_READS = ["<dataset>/dataset.json", *of_compositions("prompts.json"), *PAIRS_READ]
PAGE_READS += [
    *SPLIT_SHOWN,
    *of_compositions("divergence.parquet", "divergence.json"),
    *SPECS_SHOWN,
    *COMPUN_SHOWN,
]
PAGE_READS += [] if CAPTIONS_ALONE else [*EXAMPLES, *FIDS, *JUDGES_SHOWN, *ORACLE_SCORES]

# The targets of a run: the table and the page or, for captions alone, the splits and the page.
OUTPUTS = of_compositions(
    "splits.csv", "swapped.parquet", "prompts.jsonl", "widths.json", "audit.json", "export"
)
OUTPUTS += [
    *of_compositions("divergence.parquet"),
    f"{RESULTS}/report.html",
    *SPECS_OUTPUTS,
    *COMPUN_OUTPUTS,
]
if not CAPTIONS_ALONE:
    TABLES = (
        "scores.parquet",
        "scores.csv",
        "metrics.json",
        "comparisons.csv",
        "pairs.csv",
        "entries.html",
    )
    OUTPUTS += [f"{RESULTS}/{name}" for name in TABLES]
    OUTPUTS += (
        [f"{RESULTS}/table.{suffix}" for suffix in ("csv", "md", "tex")]
        + HEALTHS
        + FIDS
        + HUMAN_OUTPUTS
    )


def page_templates(*stages):
    """Return the templates of these stages, and those that all pages share."""
    folders = [
        Path(workflow.basedir, "compclip", stage, "templates") for stage in ("plot", *stages)
    ]
    return sorted(
        str(file.relative_to(workflow.basedir)) for folder in folders for file in folder.iterdir()
    )


def of_section(stage, name, **labels):
    """Return a file of a stage with its own page."""
    category = {"specs": "Long captions", "compun": "Compound nouns"}[stage]
    return in_report(f"{RESULTS}/{name}", stage, category, **labels)


def shown_settings(stage):
    """Return the settings that the page of one stage shows."""
    return CONFIG.model_dump(mode="json", include={"seed", "dataset", stage})
