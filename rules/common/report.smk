# report: what tables, figures and pages read, and what a run is for.
from pathlib import Path

from compclip.core.layout import Layout


def page_templates(*stages):
    """Return the templates of these stages, and those that all pages share."""
    folders = [Path(workflow.basedir, "compclip", stage, "templates") for stage in ("plot", *stages)]
    files = sorted(file.relative_to(workflow.basedir) for folder in folders for file in folder.iterdir())
    return list(map(str, files))


# Stages with a section (compclip/<stage>/section.py) on the page of a run.
SECTIONS = [name for name in ("specs", "compun") if getattr(CONFIG, name)]


# Sections of the config that a score or a divergence depends on.
DECIDING = {"pairs", "split", "divergence", "judge", "generate", "score"}


def whole_run():
    """Return where the artifacts of all compositions are, and of which generators."""
    generators = [] if captions_alone() else list(GENERATORS)
    return {"results": RESULTS, "dataset": DATASET, "compositions": CONFIG.compositions, "generators": generators}


def readable():
    """Return what table and page show of a whole run."""
    names = {"judges": CONFIG.judges, "fid": fid_generators(), "reference": CONFIG.reference}
    return {**whole_run(), **names, "health": CONFIG.score.health}


def layout(composition=""):
    """Return where the artifacts of a composition are."""
    return Layout(Path("<results>"), DATASET, composition)


def all_scores(wildcards):
    """Return the folders of scores of all generators, by the trained judge and by the oracle."""
    places = [f"{RESULTS}/{DATASET}/{composition}" for composition in CONFIG.compositions]
    folders = [f"scores/{judge}/{name}" for name in GENERATORS for judge in CONFIG.judges]
    folders += [f"scores/oracle/{name}" for name in oracle_generators()]
    return [f"{place}/{folder}" for folder in folders for place in places]


def page_reads():
    """Return what the page reads, apart from its tables and figures: examples, counts and the stages' sections."""
    layouts = [layout(composition) for composition in CONFIG.compositions]
    files = ["<dataset>/dataset.json", *of_compositions("splits.json", "swapped.json", "prompts.json")]
    files += dict.fromkeys(str(of.read / "pairs.parquet") for of in layouts)
    files += [*split_page_reads(), *divergence_page_reads(), *specs_page_reads(), *compun_page_reads()]
    if not captions_alone():
        files += [file for of in layouts for file in of.examples(GENERATORS, CONFIG.judges[0])]
        files += [*all_fids(), *score_page_reads()]
    return files


def entries_read():
    """Return what the page of judged images reads."""
    files = of_compositions("splits.parquet", f"judges/{CONFIG.judges[0]}")
    for of in map(layout, CONFIG.compositions):
        files += [*of.examples(GENERATORS, CONFIG.judges[0]), *of.pictures(GENERATORS), str(of.read / "pairs.parquet")]
    return list(dict.fromkeys(files))


def in_report(path, caption, category, **more):
    """Return a file that Snakemake's report shows."""
    return report(path, caption=f"../compclip/report/captions/{caption}.rst", category=category, **more)


def of_section(stage, name, **labels):
    """Return a file of a stage with a page of its own."""
    category = {"specs": "Long captions", "compun": "Compound nouns"}[stage]
    return in_report(f"{RESULTS}/{name}", stage, category, labels=labels)


def shown_settings(stage):
    """Return the settings that the page of one stage shows."""
    return CONFIG.model_dump(mode="json", include={"seed", "dataset", stage})


def page_tables(name):
    """Return a table of scores that the page reads, if there are scores."""
    return [] if captions_alone() else f"{RESULTS}/{name}"


def of_compositions(*names):
    """Return these files of all compositions."""
    return [f"{RESULTS}/{DATASET}/{composition}/{name}" for composition in CONFIG.compositions for name in names]


SCORE_FIGURES = ("scores", "gaps", "pairs", "loss")


def score_table(name, suffix, label, caption=None):
    """Return a file for all compositions, with the caption of its name or ``caption``."""
    return in_report(f"<results>/{name}.{suffix}", caption or name, "Scores", labels={"table": label})


def figure(name, caption=None):
    """Return a figure of a composition, with the caption of its name or ``caption``."""
    path, labels = f"{RESULTS}/figures/{DATASET}_{{composition}}_{name}.svg", {"figure": name.replace("_", " ")}
    return in_report(path, caption or name, "Figures", subcategory="{composition}", labels=labels)


def figures(names):
    """Return several figures by name."""
    return {name: figure(name) for name in names}


def of_all_compositions(drawn):
    """Return the files of these figures of all compositions."""
    return expand(list(map(str, drawn)), composition=CONFIG.compositions)


def captions_figures():
    """Return the figures that need no images."""
    return of_all_compositions([*split_figures().values(), *divergence_figures()])


def shown_figures(wildcards):
    """Return all figures of the page, apart from those of stages with a section of their own."""
    return captions_figures() + ([] if captions_alone() else of_all_compositions(figures(SCORE_FIGURES).values()))


def split_outputs():
    """Return what every run makes, also of captions alone."""
    names = ("splits.csv", "swapped.parquet", "prompts.jsonl", "widths.json", "audit.json", "export")
    return of_compositions(*names, "divergence.parquet") + [f"{RESULTS}/report.html"]


def final_outputs(wildcards):
    """Return what a run makes: the table and the page or, of captions alone, the splits and the page."""
    if captions_alone():
        return split_outputs() + captions_figures() + specs_outputs() + compun_outputs()
    names = ("scores.parquet", "scores.csv", "table.csv", "table.md", "table.tex", "comparisons.csv", "pairs.csv")
    tables = expand(f"{RESULTS}/{{name}}", name=[*names, "metrics.json"])
    scored = of_compositions(*health_files()) + all_fids()
    made = split_outputs() + scored + tables + [f"{RESULTS}/entries.html"]
    return made + specs_outputs() + compun_outputs() + human_outputs()
