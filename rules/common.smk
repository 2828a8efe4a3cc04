# Everything of the rules that is Python: the checked config, paths, and who depends on what.
import os
import sys

# Torch's threads otherwise spin while they wait, and on shared cores a step takes ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, workflow.basedir)

from workflow_scripts.common import plugins
from workflow_scripts.common.code import code_hash
from workflow_scripts.common.config import load_config
from workflow_scripts.common.errors import UserError
from workflow_scripts.dataset.config import SOURCES
from workflow_scripts.generate.config import KINDS
from workflow_scripts.generate.generator import reads

try:
    CONFIG = load_config(config)
except UserError as error:
    raise WorkflowError(str(error))

RESULTS = CONFIG.results
LOGS = f"{RESULTS}/logs"
DATASET = CONFIG.dataset.name or CONFIG.dataset.source
GENERATORS = {generator.name: generator for generator in CONFIG.generate.generators}


# In the rules' paths, <results> and <logs>.
pathvars:
    results=RESULTS,
    logs=LOGS,


wildcard_constraints:
    composition="|".join(CONFIG.compositions),
    generator="|".join(GENERATORS),
    dataset=DATASET,


def results_folder(wildcards):
    """The folder that the paths inside artifacts are relative to."""
    return RESULTS


def source_settings():
    """The settings of the chosen source alone, as the JSON that its step reads."""
    return getattr(CONFIG.dataset, CONFIG.dataset.source).model_dump_json()


def captions_alone():
    """Whether the source's settings say that there are no images."""
    return getattr(getattr(CONFIG.dataset, CONFIG.dataset.source), "images", ...) is None


def source_table_names():
    """Tables that the chosen source makes beside captions and images."""
    return getattr(plugins.load(SOURCES, CONFIG.dataset.source), "TABLES", ())


def source_tables():
    """Their files, for the output of its rule."""
    return [f"<results>/{{dataset}}/{name}.parquet" for name in source_table_names()]


def source_contents(wildcards):
    """A text that changes when the files of the user's that the source reads do."""
    source = plugins.load(SOURCES, CONFIG.dataset.source)
    settings = getattr(CONFIG.dataset, CONFIG.dataset.source)
    return source.fingerprint(settings) if hasattr(source, "fingerprint") else ""


def adjective_lexicons(wildcards):
    """The lexicon of one composition, or of all where the rule knows none."""
    names = [wildcards.composition] if hasattr(wildcards, "composition") else CONFIG.compositions
    return [f"lexicons/adjectives/{name}.yaml" for name in names]


def noun_lexicon(wildcards):
    """The noun lexicon, or nothing where any noun goes."""
    return [f"lexicons/nouns/{CONFIG.pairs.nouns}.yaml"] if CONFIG.pairs.nouns else []


# split


def listed_heldout(wildcards):
    """The pairs that the config lists for this composition; none: they are drawn."""
    listed = CONFIG.split.heldout.pairs
    if isinstance(listed, dict):
        listed = listed.get(wildcards.composition)
    return listed or []


def check_heldout():
    """Refuse held-out pairs of a composition that is not run."""
    listed = CONFIG.split.heldout.pairs
    for name in listed if isinstance(listed, dict) else ():
        if name not in CONFIG.compositions:
            raise WorkflowError(
                f"split.heldout.pairs: {name} is no composition; allowed: {', '.join(CONFIG.compositions)}"
            )


check_heldout()


# judge


def judge_files():
    """The files, outside installed packages, that decide what the judge starts from."""
    return CONFIG.judge.files()


def judge_gpus():
    """How many GPUs a scheduler is asked for; a machine without one trains all the same."""
    return 0 if CONFIG.judge.device == "cpu" else 1


# generate


def one_of(names):
    """A pattern of these names alone; of nothing where there are none."""
    return "|".join(names) or "(?!)"


def kind_of(generator):
    """The module that makes the images of ``generator``."""
    return plugins.load(KINDS, GENERATORS[generator].kind)


def generators(scenes):
    """The names of the generators that say what they drew, or of those that do not."""
    return [name for name in GENERATORS if getattr(kind_of(name), "SCENES", False) == scenes]


def generator_tables(wildcards):
    """The tables that the generator's kind reads."""
    place = f"{RESULTS}/{wildcards.dataset}"
    folder = {"splits": f"{place}/{wildcards.composition}", "swapped": f"{place}/{wildcards.composition}"}
    return [f"{folder.get(name, place)}/{name}.parquet" for name in reads(kind_of(wildcards.generator))]


def generator_code(wildcards):
    """A hash of the step and of the generator's kind."""
    return code_hash("workflow_scripts.generate.generate_images", kind_of(wildcards.generator).__name__)


def generator_kind(wildcards):
    return GENERATORS[wildcards.generator].kind


def checked_options(generator):
    """The settings of the generator's kind."""
    return kind_of(generator).Settings.model_validate(GENERATORS[generator].options)


def generator_settings(wildcards):
    """The settings of the generator's kind, as the JSON that its step reads."""
    return checked_options(wildcards.generator).model_dump_json()


def generator_contents(wildcards):
    """A text that changes when the files of the user's that the generator reads do."""
    kind = kind_of(wildcards.generator)
    return kind.fingerprint(checked_options(wildcards.generator)) if hasattr(kind, "fingerprint") else ""


def check_generators():
    """Refuse a generator that reads tables which only another source makes."""
    for name in () if captions_alone() else GENERATORS:
        absent = set(reads(kind_of(name))) & {"scenes", "facts"} - set(source_table_names())
        if absent:
            raise WorkflowError(
                f"generate.generators: {name} reads the {' and '.join(sorted(absent))} of sketches, which dataset "
                f"source {CONFIG.dataset.source} has not; for any data set: photographs, shuffled, folder"
            )


check_generators()


# score


def served_splits(wildcards):
    """The splits for which the generator's kind makes images."""
    return list(kind_of(wildcards.generator).SPLITS)


def score_options():
    """The options that scoring by any judge takes from the config."""
    score = CONFIG.score
    return (
        f"--prompt-rule {CONFIG.split.prompts} --train-on {CONFIG.judge.train_on} --candidates {score.candidates}"
        f" --ties {score.ties} --distractors {' '.join(score.distractors)} --chunks {score.chunks}"
        f" --dominant {score.balance.dominant} --ratio {score.balance.ratio} --seed {CONFIG.seed}"
    )


def oracle_generators():
    """The generators whose scenes are known: of sketches, those that say what they drew or show the real images."""
    if not {"scenes", "facts"} <= set(source_table_names()):
        return []
    # A kind that reads nothing but the images makes none of its own.
    return [
        name
        for name in GENERATORS
        if getattr(kind_of(name), "SCENES", False) or getattr(kind_of(name), "TABLES", ()) == ("images",)
    ]


def drawn_scenes(wildcards):
    """What the generator says that it drew."""
    place = f"{RESULTS}/{wildcards.dataset}/{wildcards.composition}/generated/{wildcards.generator}"
    return [f"{place}/scenes.parquet"] if getattr(kind_of(wildcards.generator), "SCENES", False) else []


# report

ALL_COMPOSITIONS = {"dataset": DATASET, "composition": CONFIG.compositions}


def all_scores(wildcards):
    """The folders of scores of every generator, by the trained judge and by the oracle."""
    place = [f"{RESULTS}/{DATASET}/{composition}" for composition in CONFIG.compositions]
    trained = [f"{folder}/scores/{name}" for folder in place for name in GENERATORS]
    return trained + [f"{folder}/scores_oracle/{name}" for folder in place for name in oracle_generators()]


PAGE_READS_OF_DATASET = ["captions.parquet", "images.parquet", "images", "pairs.parquet", "dataset.json", "pairs.json"]
PAGE_READS_OF_COMPOSITION = [
    "ranking.parquet", "heldout.json", "splits.parquet", "splits.json", "swapped.parquet", "swapped.json",
    "prompts.parquet", "prompts.json", "audit.json", "judge", "adjective_choice.json",
]  # fmt: skip
PAGE_READS_OF_GENERATOR = [
    "generated/{generator}/manifest.parquet",
    "generated/{generator}/images",
    "generated/{generator}/summary.json",
    "scores/{generator}",
]


def figure(name):
    """A figure of a composition, shown in Snakemake's report too."""
    return report(
        f"{RESULTS}/figures/{{dataset}}_{{composition}}_{name}.svg",
        caption=f"../workflow_scripts/report/captions/{name}.rst",
        category="Figures",
        subcategory="{composition}",
        labels={"figure": name.replace("_", " ")},
    )


def all_figures(wildcards):
    """Every figure of every composition."""
    return [
        f"{RESULTS}/figures/{DATASET}_{composition}_{name}.svg"
        for composition in CONFIG.compositions
        for name in rules.draw_figures.output.keys()
    ]


def shown_settings():
    """The sections of the config that the page shows, as JSON: those that a score depends on."""
    return CONFIG.model_dump_json(include={"pairs", "split", "judge", "generate", "score"})


def split_outputs():
    """What there is to have without images."""
    names = ("splits.csv", "swapped.parquet", "prompts.jsonl", "audit.json", "export")
    return [f"{RESULTS}/{DATASET}/{composition}/{name}" for composition in CONFIG.compositions for name in names]


def final_outputs(wildcards):
    """What a run is for: the table and the report, or, of captions alone, the splits."""
    if captions_alone():
        return split_outputs()
    tables = [f"{RESULTS}/{name}" for name in ("table.csv", "table.md", "table.tex", "comparisons.csv")]
    choices = [f"{RESULTS}/{DATASET}/{composition}/adjective_choice.json" for composition in CONFIG.compositions]
    return split_outputs() + tables + choices + [f"{RESULTS}/report.html"]
