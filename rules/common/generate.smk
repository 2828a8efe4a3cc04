# generate: each generator's kind, its settings, what it reads.
from functools import cache

from workflow_scripts.generate.config import KINDS
from workflow_scripts.generate.generator import reads


def one_of(names):
    """A pattern of these names; if there are none, one that matches nothing and has no ?, which addresses use."""
    return "|".join(names) or "$."


def kind_of(generator):
    """The module that makes the images of ``generator``."""
    return plugins.load(KINDS, GENERATORS[generator].kind)


def generators(scenes=False, model=False):
    """The names of the generators that do or do not give scenes, and that do or do not run a model by torch."""
    marks = {
        name: (getattr(kind_of(name), "SCENES", False), getattr(kind_of(name), "MODEL", False)) for name in GENERATORS
    }
    return [name for name in GENERATORS if marks[name] == (scenes, model)]


def generator_tables(wildcards):
    """The tables that the generator's kind reads."""
    place = f"{RESULTS}/{DATASET}"
    folder = {"splits": f"{place}/{wildcards.composition}", "swapped": f"{place}/{wildcards.composition}"}
    return [f"{folder.get(name, place)}/{name}.parquet" for name in reads(kind_of(wildcards.generator))]


def generator_code(wildcards):
    """The identity of the code of the generator's kind."""
    return code_hash(kind_of(wildcards.generator).__name__)


def kind_settings(generator):
    """The settings of the generator's kind."""
    return kind_of(generator).Settings.model_validate(GENERATORS[generator].options)


def generator_kind(wildcards):
    return GENERATORS[wildcards.generator].kind


def generator_settings(wildcards):
    """The settings of the generator's kind, with local copies of what lies on object storage."""
    return retrieved(kind_settings(wildcards.generator).model_dump(mode="json"))


def generator_stored(wildcards):
    """What the generator's kind reads from object storage."""
    return stored(kind_settings(wildcards.generator).model_dump(mode="json"))


def for_model(value):
    """``value`` for a kind that runs a model, nothing for any other, which does not rerun when it changes."""
    return lambda wildcards: value if getattr(kind_of(wildcards.generator), "MODEL", False) else None


def generator_gpus(wildcards):
    """How many GPUs a scheduler is asked for; without a GPU, the CPU draws."""
    return 0 if getattr(kind_settings(wildcards.generator), "device", "cpu") == "cpu" else 1


def generator_contents(wildcards):
    """A fingerprint of the user's files that the generator reads."""
    return contents_of(wildcards.generator)


@cache
def contents_of(generator):
    """The same by name, once for all compositions: a folder may contain a million images."""
    kind = kind_of(generator)
    return kind.fingerprint(kind_settings(generator)) if hasattr(kind, "fingerprint") else ""


def check_generators():
    """Refuse a generator that reads tables which only another source makes."""
    for name in () if captions_alone() else GENERATORS:
        absent = set(reads(kind_of(name))) & {"scenes", "facts"} - set(source_table_names())
        if absent:
            raise WorkflowError(
                f"generate.generators: {name} reads the {' and '.join(sorted(absent))} of sketches, which dataset "
                f"source {CONFIG.dataset.source} does not have; use photographs, shuffled, folder or diffusers"
            )


check_generators()
