# The Python of the rules: inputs, params and resources; common/ has a file for each stage.
from functools import cache


include: "common/config.smk"


from compclip.core import plugins
from compclip.core.fingerprint import fingerprint

RESULTS = CONFIG.results
DATASET = CONFIG.dataset.name or CONFIG.dataset.source
DATA = f"{RESULTS}/{DATASET}"
# Params that rules share: the data set's folder, and which images judges have seen. The results
# folder is a function, because the linter mistakes a text at the beginning of an output's path for
# a part of that path.
PLACE = {"dataset": DATASET, "results": lambda wildcards: RESULTS}
SEEN = {"train_on": CONFIG.judge.train_on, "halves": CONFIG.seeds.halves}
# The units of the resource `torch` that a job takes: jobs with several threads run one after
# another.
TORCH_SLOTS = 1 if CONFIG.threads > 1 else 0
# The folder of the judges, shared by all compositions or for each.
JUDGED = DATA if CONFIG.judge.share else f"{DATA}/{{composition}}"
GENERATORS = {generator.name: generator for generator in CONFIG.generate.generators}


# Placeholders in the rules' paths: <dataset> is the data set's folder in <results>, <judged> the
# folder of its judges.
pathvars:
    results=RESULTS,
    dataset=DATA,
    logs=f"{RESULTS}/logs",
    judged=JUDGED,
    training=f"{RESULTS}/logs/judge{JUDGED.removeprefix(DATA)}",


wildcard_constraints:
    composition="|".join(CONFIG.compositions),
    generator="|".join(GENERATORS) or "$.",
    judge="|".join(CONFIG.judges),
    shard="[0-9]+",
    shards="[0-9]+",


def code(script, *modules):
    """Return the identity of the code of ``stage.script``, and of further modules that decide
    its result.
    """
    return code_hash(f"workflow_scripts.{script}", *modules)


def section(model, kind=None):
    """Return a section of the config as a param; with a model ``kind``, only the keys that it
    declares.
    """
    return model.model_dump(mode="json", include=set(kind.model_fields) if kind else None)


def literal(value):
    """Return a param with a text of the user's, in which Snakemake would read words in braces as
    wildcards.
    """
    return lambda wildcards: value


def undecisive(value):
    """Return a param whose change does not rerun a rule: Snakemake does not compare params that
    depend on inputs.
    """
    return lambda wildcards, input: value


@cache
def contents_of(*places):
    """Return a fingerprint of the user's files and folders: as a param, it reruns a rule when
    their content changes.
    """
    return fingerprint(*places, cache=CONFIG.cache)


def contents(*places):
    """Return the same as a param, computed when a job needs it."""
    return lambda wildcards: contents_of(*places)


def inputs(*names):
    """Return common artifacts and lexicons as inputs of these names."""
    return {name: INPUTS[name] for name in names}


def shards(stem, *endings):
    """Return an input: the files of all shards of the images; none in a shard itself, or if
    there is only one.
    """
    most = CONFIG.dataset.shards
    names = [
        f"{DATA}/{stem}/{shard + 1}-of-{most}.{end}"
        for shard in range(most)
        for end in endings
        if most > 1
    ]
    return lambda wildcards: (
        [] if wildcards.get("shard") else [name.format(**wildcards) for name in names]
    )


def of_compositions(*names):
    """Return these files of all compositions."""
    return [f"{DATA}/{composition}/{name}" for composition in CONFIG.compositions for name in names]


def in_report(path, caption, category, subcategory=None, **labels):
    """Return a file that Snakemake's report shows."""
    caption = f"../compclip/report/captions/{caption}.rst"
    return report(path, caption=caption, category=category, subcategory=subcategory, labels=labels)


def growing(amount):
    """Return the memory or time to request: ``amount``, and as much again for each retry."""
    return lambda wildcards, attempt: amount * attempt


include: "common/dataset.smk"
include: "common/pairs.smk"
include: "common/split.smk"
include: "common/judge.smk"
include: "common/generate.smk"
include: "common/score.smk"
include: "common/specs.smk"
include: "common/compun.smk"
include: "common/human.smk"
include: "common/report.smk"


# The inputs that inputs() returns.
INPUTS = dict(
    captions="<dataset>/captions.parquet",
    images="<dataset>/images.parquet",
    files="<dataset>/images",
)
INPUTS |= dict(pairs=pairs_table, forms=noun_forms)
INPUTS |= dict(adjectives=ADJECTIVE_LEXICON, nouns=NOUN_LEXICON, compounds=COMPOUND_LEXICON)
for NAME in ("ranking", "splits", "swapped", "prompts", "variants"):
    INPUTS[NAME] = f"<dataset>/{{composition}}/{NAME}.parquet"
for NAME in ("heldout", "accepted"):
    INPUTS[NAME] = f"<dataset>/{{composition}}/{NAME}.json"
