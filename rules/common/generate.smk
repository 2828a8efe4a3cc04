# generate: each generator's kind, settings and inputs.
from compclip.generate.config import GENERATOR_KINDS
from compclip.generate.generator import reads, serves


def one_of(names):
    """A pattern of these names; without names, one that never matches and has no ?, which addresses use."""
    return "|".join(names) or "$."


def kind_of(generator):
    """The module that makes the images of ``generator``."""
    return plugins.load(GENERATOR_KINDS, GENERATORS[generator].kind)


def is_control(generator):
    """Whether the generator has a known skill, and so is not ranked."""
    return GENERATORS[generator].kind not in ("folder", "diffusers")


def gives_scenes(generator):
    """Whether the generator records what it draws."""
    return getattr(kind_of(generator), "SCENES", False)


def runs_model(generator):
    """Whether the generator runs a model by torch."""
    return getattr(kind_of(generator), "MODEL", False)


def generators(scenes=False, model=False):
    """The names of the generators with or without scenes, and with or without a model."""
    return [name for name in GENERATORS if (gives_scenes(name), runs_model(name)) == (scenes, model)]


def generator_tables(wildcards):
    """The tables that the generator's kind reads."""
    of_composition = dict.fromkeys(("splits", "swapped", "prompts", "variants"), f"{DATA}/{wildcards.composition}")
    files = {name: f"{folder}/{name}.parquet" for name, folder in of_composition.items()}
    files["pairs"] = pairs_table(wildcards)
    return [files.get(name, f"{DATA}/{name}.parquet") for name in reads(kind_of(wildcards.generator))]


def kind_settings(wildcards):
    """The settings of the generator's kind for a composition."""
    return GENERATORS[wildcards.generator].settings(wildcards.composition)


def generator_contents(wildcards):
    """A fingerprint of the user's files that the generator reads."""
    has_files = hasattr(kind_of(wildcards.generator), "fingerprint")
    return kind_contents(wildcards.generator, kind_settings(wildcards).model_dump_json()) if has_files else ""


@cache
def kind_contents(generator, settings):
    """The same, once for compositions with equal settings: a folder may contain a million images."""
    kind = kind_of(generator)
    return kind.fingerprint(kind.Settings.model_validate_json(settings), CONFIG.cache)
