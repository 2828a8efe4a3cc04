# generate: each generator's kind, its settings, what it reads.
from functools import cache

from workflow_scripts.generate.config import KINDS
from workflow_scripts.generate.generator import reads


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
    place = f"{RESULTS}/{DATASET}"
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
