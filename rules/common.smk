# Everything of the rules that is Python: the checked config, paths, and who depends on what.
import json
import os
import sys
from functools import cache

# Torch's threads otherwise spin while they wait, and on shared cores a step takes ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, workflow.basedir)

from workflow_scripts.common import plugins
from workflow_scripts.common.code import code_hash
from workflow_scripts.common.config import load_config
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.fingerprint import fingerprint
from workflow_scripts.common.tables import TESTS
from workflow_scripts.compun.drawn.world import TRAININGS
from workflow_scripts.dataset.config import SOURCES
from workflow_scripts.generate.config import KINDS
from workflow_scripts.generate.generator import reads
from workflow_scripts.report.labels import PART_NAMES, SPLIT_NAMES, WORD_KINDS
from workflow_scripts.score.config import Fid
from workflow_scripts.workflow.storage import follow_constraints

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


if CONFIG.container:

    containerized: CONFIG.container


wildcard_constraints:
    composition="|".join(CONFIG.compositions),
    generator="|".join(GENERATORS),
    dataset=DATASET,


def torch_slots():
    """Of the one slot for steps whose threads share the cores; those of one thread run side by side."""
    return 1 if CONFIG.threads > 1 else 0


def growing(amount):
    """The megabytes or minutes that a scheduler is asked for: ``amount``, and as much again for each retry."""
    return lambda wildcards, attempt: amount * attempt


# object storage

follow_constraints(workflow.storage_registry.default_storage_provider)


def of_project(*paths):
    """Files that are read and not made: with a default storage they stay where they are."""
    return [local(path) for path in paths]


def on_disk(path):
    """Where a step finds what the workflow makes as ``path``: with a default storage, in Snakemake's local copy."""
    if workflow.storage_settings.default_storage_provider is None:
        return path
    return str(workflow.modifier.path_modifier.apply_default_storage(path))


def stored(settings):
    """Every s3:// address in a section of the config, for the input of the rule that reads it."""
    if isinstance(settings, str):
        return [storage(settings)] if settings.startswith("s3://") else []
    parts = settings.values() if isinstance(settings, dict) else settings if isinstance(settings, list) else []
    return [address for part in parts for address in stored(part)]


def retrieved(settings):
    """The section with the place of the local copy instead of each s3:// address."""
    if isinstance(settings, dict):
        return {key: retrieved(part) for key, part in settings.items()}
    if isinstance(settings, list):
        return [retrieved(part) for part in settings]
    return str(storage(settings)) if stored(settings) else settings


# dataset


def results_folder(wildcards):
    """The folder that the paths inside artifacts are relative to."""
    return on_disk(RESULTS)


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
    return [f"<results>/{{dataset}}/{name}.parquet" for name in source_table_names()]


def source_contents(wildcards):
    """A text that changes when the files of the user's that the source reads do."""
    source = plugins.load(SOURCES, CONFIG.dataset.source)
    settings = getattr(CONFIG.dataset, CONFIG.dataset.source)
    return source.fingerprint(settings) if hasattr(source, "fingerprint") else ""


def adjective_lexicons(wildcards):
    """The lexicon of one composition, or of all where the rule knows none."""
    names = [wildcards.composition] if hasattr(wildcards, "composition") else CONFIG.compositions
    return of_project(*(f"lexicons/adjectives/{name}.yaml" for name in names))


def noun_lexicon(wildcards):
    """The noun lexicon, or nothing where any noun goes."""
    return of_project(f"lexicons/nouns/{CONFIG.pairs.nouns}.yaml") if CONFIG.pairs.nouns else []


# split


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
PUBLISHED_REPORTS = [f"<results>/{{dataset}}/{{composition}}/{name}.json" for name in ("heldout", "splits", "swapped")]


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


# divergence


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


def divergence_tables(wildcards):
    """The divergences of all compositions."""
    return [f"{RESULTS}/{DATASET}/{composition}/divergence.parquet" for composition in CONFIG.compositions]


def all_adjective_lexicons(wildcards):
    """The lexicons with which all captions were parsed."""
    return of_project(*(f"lexicons/adjectives/{name}.yaml" for name in CONFIG.compositions))


def subgraph_options(wildcards):
    """The option that asks for subgraphs of the parse, or none."""
    sizes = CONFIG.divergence.subgraphs
    return ["--subgraphs", sizes.nodes, sizes.branching, sizes.keep] if sizes else []


# judge


def judge_files():
    """The files, outside installed packages, that decide what the judge starts from."""
    return of_project(*CONFIG.judge.files())


def training_resources(judge):
    """What a scheduler is asked for to train ``judge``; a machine without a GPU trains all the same.

    Of several hosts in the words of the plugin for Slurm, of which `mpi` leaves it to the step to start on each; GPUs
    are then of each host, as `gres`, for `gpu` counts those of all.
    """
    gpus = 0 if judge.device == "cpu" else judge.gpus
    if judge.hosts == 1:
        return {"gpu": gpus}
    hosts = {"nodes": judge.hosts, "tasks": judge.hosts, "tasks_per_gpu": 0, "mpi": "srun"}
    return {**hosts, "gres": f"gpu:{gpus}"} if gpus else hosts


def judge_gpu():
    """How many GPUs a step asks for that runs the trained judge, or another model on its device: one is enough."""
    return 0 if CONFIG.judge.device == "cpu" else 1


def launch(judge):
    """What starts a training: several GPUs want a process each."""
    if judge.processes == 1:
        return "python -m"
    return f"python -m workflow_scripts.judge.launch --hosts {judge.hosts} --gpus {judge.gpus} --"


# generate


def one_of(names):
    """A pattern of these names alone; of nothing where there are none, without the ? that ends an address's path."""
    return "|".join(names) or "$."


def kind_of(generator):
    """The module that makes the images of ``generator``."""
    return plugins.load(KINDS, GENERATORS[generator].kind)


def generators(scenes=False, model=False):
    """The names of the generators that say what they drew, or do not, and that run a model by torch, or do not."""
    is_of = {
        name: (getattr(kind_of(name), "SCENES", False), getattr(kind_of(name), "MODEL", False)) for name in GENERATORS
    }
    return [name for name in GENERATORS if is_of[name] == (scenes, model)]


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
    settings = retrieved(checked_options(wildcards.generator).model_dump(mode="json"))
    return json.dumps(settings, separators=(",", ":"), ensure_ascii=False)


def generator_stored(wildcards):
    """What of it lies on object storage."""
    return stored(checked_options(wildcards.generator).model_dump(mode="json"))


def generator_compute(wildcards):
    """The options of a kind that runs a model; of any other none, so that nothing reruns for them."""
    is_model = getattr(kind_of(wildcards.generator), "MODEL", False)
    return ["--threads", CONFIG.threads, "--cache", CONFIG.cache] if is_model else []


def generator_gpus(wildcards):
    """How many GPUs a scheduler is asked for; a machine without one draws all the same."""
    return 0 if getattr(checked_options(wildcards.generator), "device", "cpu") == "cpu" else 1


def generator_contents(wildcards):
    """A text that changes when the files of the user's that the generator reads do."""
    return contents_of(wildcards.generator)


@cache
def contents_of(generator):
    """The same by name: one folder may hold a million images, and serve all compositions."""
    kind = kind_of(generator)
    return kind.fingerprint(checked_options(generator)) if hasattr(kind, "fingerprint") else ""


def check_generators():
    """Refuse a generator that reads tables which only another source makes."""
    for name in () if captions_alone() else GENERATORS:
        absent = set(reads(kind_of(name))) & {"scenes", "facts"} - set(source_table_names())
        if absent:
            raise WorkflowError(
                f"generate.generators: {name} reads the {' and '.join(sorted(absent))} of sketches, which dataset "
                f"source {CONFIG.dataset.source} has not; for any data set: photographs, shuffled, folder, diffusers"
            )


check_generators()


# score


def served_splits(wildcards):
    """The splits for which the generator's kind makes images."""
    return list(kind_of(wildcards.generator).SPLITS)


def dominant_pairs(wildcards):
    """How many pairs of this composition balancing cuts."""
    dominant = CONFIG.score.balance.dominant
    return dominant.get(wildcards.composition, 1) if isinstance(dominant, dict) else dominant


def score_options(wildcards):
    """The options that scoring by any judge takes from the config."""
    score = CONFIG.score
    return (
        f"--prompt-rule {CONFIG.split.prompts} --train-on {CONFIG.judge.train_on} --candidates {score.candidates}"
        f" --ties {score.ties} --distractors {' '.join(score.distractors)} --chunks {score.chunks}"
        f" --chunking {score.chunking} --dominant {dominant_pairs(wildcards)} --ratio {score.balance.ratio}"
        f" --seed {CONFIG.seed}"
    )


def image_shards(wildcards):
    """The shards of a generator's embeddings; none where scoring embeds its images itself."""
    shards = CONFIG.score.shards
    folder = f"{RESULTS}/{wildcards.dataset}/{wildcards.composition}/embeddings/{wildcards.generator}"
    return [f"{folder}/{shard}-of-{shards}.parquet" for shard in range(1, shards + 1)] if shards > 1 else []


def fid_options(wildcards):
    """The options of the Fréchet distance, as published where the config has none."""
    fid, score = CONFIG.score.fid or Fid(), CONFIG.score
    return [
        *("--number", fid.images, "--weights", fid.weights, "--dominant", dominant_pairs(wildcards)),
        *("--ratio", score.balance.ratio, "--seed", CONFIG.seed),
    ]


def fid_generators():
    """The generators whose Fréchet distance the config asks for: all or none."""
    return list(GENERATORS) if CONFIG.score.fid else []


def all_fids():
    """The Fréchet distances that the config asks for."""
    place = [f"{RESULTS}/{DATASET}/{composition}/fid" for composition in CONFIG.compositions]
    return [f"{folder}/{name}.json" for folder in place for name in fid_generators()]


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

SHARED_TEMPLATES = [
    "layout.html.j2", "macros.html.j2", "long_captions.html.j2", "compun_section.html.j2", "style.css",
]  # fmt: skip


def page_templates(name):
    """The template of a page, and what all pages share."""
    return of_project(*(f"workflow_scripts/report/templates/{name}" for name in [name, *SHARED_TEMPLATES]))


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
        f"{RESULTS}/figures/{{dataset}}_{{composition}}_{name}.svg",
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
    pages = expand(f"{RESULTS}/figures/{{dataset}}_{{composition}}_examples.pdf", **ALL_COMPOSITIONS)
    made = split_outputs() + tables + choices + all_fids() + pages + [f"{RESULTS}/report.html"]
    return made + specs_outputs() + compun_outputs() + human_outputs()


# specs


def specs_folder(wildcards):
    """Where the tables of one seed go."""
    return f"{RESULTS}/{wildcards.dataset}/specs/{wildcards.seed}"


def specs_gpu():
    """How many GPUs measuring asks a scheduler for; a machine without one does all the same."""
    return 0 if CONFIG.specs.base.device == "cpu" else 1


def stretched_base(wildcards):
    """The judge that is stretched, or the files of the user's that it is made from."""
    base = CONFIG.specs.base
    return [f"{specs_folder(wildcards)}/base"] if base.epochs else of_project(*base.files())


def stretch_options(wildcards):
    """What is stretched: the judge that was trained, or a pretrained model."""
    base = CONFIG.specs.base
    if base.epochs:
        return ["--judge", on_disk(f"{specs_folder(wildcards)}/base")]
    return ["--judge", base.model, *(["--pretrained", base.pretrained] if base.pretrained else [])]


def long_examples(wildcards):
    """The long captions to train on."""
    data = CONFIG.specs.data
    return local(data.examples) if data else f"{specs_folder(wildcards)}/examples.parquet"


def long_steps(wildcards):
    """The growing captions to test on."""
    data = CONFIG.specs.data
    return local(data.increments) if data else f"{specs_folder(wildcards)}/steps.parquet"


def long_images(wildcards):
    """The folder that the paths of the images to train on are relative to."""
    data = CONFIG.specs.data
    return local(data.images or folder_beside(data.examples)) if data else f"{RESULTS}/{DATASET}/images"


def step_images(wildcards):
    """The same of the images to test on."""
    data = CONFIG.specs.data
    return local(data.increment_images or folder_beside(data.increments)) if data else long_images(wildcards)


def folder_beside(path):
    """A folder itself, or that of a file."""
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


def specs_results(wildcards):
    """What was measured, of every seed."""
    return [f"{RESULTS}/{DATASET}/specs/{seed}/intrinsic.json" for seed in CONFIG.specs.seeds]


def specs_outputs():
    """What a training with long captions is for."""
    return [f"{RESULTS}/specs.csv", f"{RESULTS}/specs.html"] if CONFIG.specs else []


def specs_figures():
    """The figures of long captions, by the names that their rule gives them."""
    return {
        name: report(
            f"{RESULTS}/figures/{DATASET}_specs_{name}.svg",
            caption="../workflow_scripts/report/captions/specs.rst",
            category="Long captions",
            labels={"figure": name},
        )
        for name in ("measures", "gains", "growing")
    }


def specs_page_reads():
    """What a page that tells of long captions reads."""
    if CONFIG.specs is None:
        return []
    place = f"{RESULTS}/{DATASET}/specs/{CONFIG.specs.seeds[0]}"
    figures = [f"{RESULTS}/figures/{DATASET}_specs_{name}.svg" for name in ("measures", "gains", "growing")]
    return [f"{RESULTS}/specs.csv", *figures, *(f"{place}/{name}" for name in ("specs", "stretched", "intrinsic.json"))]


def check_specs():
    """Refuse to describe images of which nothing is known."""
    if CONFIG.specs and CONFIG.specs.data is None and "scenes" not in source_table_names():
        raise WorkflowError(
            f"specs.data: null describes sketches, and dataset.source is {CONFIG.dataset.source}: name long captions"
        )


check_specs()

# compun

COMPUN_FIGURES = ("accuracy", "examples", "gains", "kinds")


def compun_folder():
    """Where all of it goes."""
    return f"{RESULTS}/{DATASET}/compun"


def drawn_compounds():
    """Whether the compounds are drawn, and small CLIPs learn from pictures."""
    return CONFIG.compun.compounds is None


def compound_files(wildcards):
    """The list of compounds; of drawn ones the images too."""
    if drawn_compounds():
        return [f"{compun_folder()}/drawn/{name}" for name in ("list.csv", "images")]
    return of_project(CONFIG.compun.compounds.file) if CONFIG.compun.compounds.file else []


def compound_options(wildcards):
    """The list of compounds and the places of their images."""
    if drawn_compounds():
        listed, images = map(on_disk, compound_files(wildcards))
        return ["--file", listed, "--images", images]
    wanted = CONFIG.compun.compounds
    images = [wanted.images] if isinstance(wanted.images, str) else wanted.images
    return [
        *(["--file", wanted.file] if wanted.file else []),
        *("--images", *images),
        # The names in the benchmark's own archive are the authority; of any other, the list selects.
        *(["--take-unlisted"] if "compun" in images else []),
        *(["--sha256", wanted.sha256] if wanted.sha256 else []),
    ]


def compound_contents(wildcards):
    """A text that changes when the user's list or images do."""
    from workflow_scripts.compun.load_compounds import fingerprint

    wanted = CONFIG.compun.compounds
    return fingerprint(wanted.file, wanted.images) if wanted else ""


def compun_texts():
    """The kinds of texts of compounds that there are."""
    wanted = {"captions": CONFIG.compun.captions, "descriptions": CONFIG.compun.descriptions}
    return [kind for kind, texts in wanted.items() if texts or drawn_compounds()]


def texts_wanted(kind):
    """Where the texts of one kind come from; None: from the drawing."""
    return CONFIG.compun.captions if kind == "captions" else CONFIG.compun.descriptions


def text_files(wildcards):
    """The file that holds such texts."""
    wanted = texts_wanted(wildcards.kind)
    if wanted is None:
        return [f"{compun_folder()}/drawn/{wildcards.kind}.json"]
    return of_project(wanted.file) if wanted.file else []


def text_options(wildcards):
    """Where a kind of texts comes from: a file, a language model. Of its key, the variable's name alone."""
    wanted = texts_wanted(wildcards.kind)
    if wanted is None:
        return ["--file", *map(on_disk, text_files(wildcards)), "--count", 1]
    file = [part for file in text_files(wildcards) for part in ("--file", file)]
    if wanted.address is None:
        return [*file, "--count", wanted.count]
    asked = {
        "address": wanted.address, "model": wanted.model, "key": wanted.key, "tries": wanted.tries,
        "at-once": wanted.at_once, "per-minute": wanted.per_minute, "timeout": wanted.timeout,
    }  # fmt: skip
    sent = {"temperature": wanted.temperature, "top-p": wanted.top_p}
    options = [*file, "--count", wanted.count]
    options += [part for name, value in asked.items() if value is not None for part in (f"--{name}", value)]
    return options + [
        part for name, value in sent.items() for part in (f"--{name}", *([] if value is None else [value]))
    ]


def small_clips(wildcards):
    """The folders of the CLIPs that learn from drawn pictures, by what they are called."""
    names = TRAININGS if drawn_compounds() else ()
    return {name: f"{compun_folder()}/judges/{name}" for name in names}


def asked_models(wildcards):
    """All models, as the JSON that their step reads."""
    own = [{"name": name, "judge": on_disk(folder)} for name, folder in small_clips(wildcards).items()]
    return json.dumps(own + [model.model_dump(exclude_none=True) for model in CONFIG.compun.models])


def model_files(wildcards):
    """What models are made of here: the CLIPs that learn from drawn pictures, files and folders of the user's."""
    return [
        *small_clips(wildcards).values(),
        *of_project(*(str(path) for model in CONFIG.compun.models for path in model.places())),
    ]


def text_tables(wildcards):
    """The files of all texts."""
    return [f"{compun_folder()}/{kind}.json" for kind in compun_texts()]


def text_table_options(wildcards):
    """The options that name them."""
    return [part for kind in compun_texts() for part in (f"--{kind}", on_disk(f"{compun_folder()}/{kind}.json"))]


def compun_gpus():
    """How many GPUs a scheduler is asked for; a machine without one does all the same."""
    return 0 if CONFIG.compun.device == "cpu" else 1


def people_answered():
    """What people say of the compounds, where the config names their answers."""
    asked = CONFIG.compun.human
    return [f"{compun_folder()}/human/people.json"] if asked and asked.answers else []


def people_options(wildcards):
    """The options of a sample of tasks for people."""
    asked = CONFIG.compun.human
    return [
        *("--kinds", *asked.kinds, "--batch", asked.batch, "--gold", asked.gold, "--repeats", asked.repeats),
        *("--workers", asked.workers, "--pay", asked.pay, "--seconds", asked.seconds),
    ]


def compun_figures():
    """The figures of compound nouns, by the names that their rule gives them."""
    return {
        name: report(
            f"{RESULTS}/figures/{DATASET}_compun_{name}.svg",
            caption="../workflow_scripts/report/captions/compun.rst",
            category="Compound nouns",
            labels={"figure": name},
        )
        for name in COMPUN_FIGURES
    }


def compun_page_reads():
    """What a page that tells of compound nouns reads."""
    if CONFIG.compun is None:
        return []
    figures = [f"{RESULTS}/figures/{DATASET}_compun_{name}.svg" for name in COMPUN_FIGURES]
    read = ["analysis", "choices", "compounds.parquet", "images.parquet", "images"]
    read += ["drawn/drawn.json"] if drawn_compounds() else []
    return [*figures, *(f"{compun_folder()}/{name}" for name in read)]


def compun_outputs():
    """What asking models of compound nouns is for, and pages to ask people where the config has them."""
    if CONFIG.compun is None:
        return []
    asked = [f"{compun_folder()}/human/pages"] if CONFIG.compun.human else []
    return [f"{RESULTS}/compun.md", f"{RESULTS}/compun.html", *asked]


# human

# Of the pages that ask people, of pictures and of compounds.
PAGE_TEMPLATES = of_project(
    *(f"workflow_scripts/human/templates/{name}" for name in ("page.html.j2", "index.html.j2", "page.css", "page.js"))
)


def shown_generators():
    """The generators whose images people are shown."""
    return CONFIG.human.generators or list(GENERATORS)


def site_base():
    """The address at which a crowd-work site finds the pictures."""
    return CONFIG.human.site.base if CONFIG.human.site else ""


def human_outputs():
    """Pages to ask people and, as far as the config names them, a site's files and what the answers say."""
    if CONFIG.human is None:
        return []
    made = {"pages": True, "tasks.json": True, "site": CONFIG.human.site, "analysis.json": CONFIG.human.answers}
    names = [name for name, asked in made.items() if asked]
    return [f"{RESULTS}/{DATASET}/{composition}/human/{name}" for composition in CONFIG.compositions for name in names]


def check_human():
    """Refuse to ask people about images that there are not."""
    if CONFIG.human is None:
        return
    if captions_alone():
        raise WorkflowError("human: the data set has captions alone: there are no images to ask about")
    for name in CONFIG.human.generators or ():
        if name not in GENERATORS:
            raise WorkflowError(f"human.generators: {name} is not in generate.generators: {', '.join(GENERATORS)}")


check_human()
