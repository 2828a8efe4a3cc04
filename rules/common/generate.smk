# generate: each generator's kind, settings and inputs.
from compclip.generate.generator import GENERATOR_KINDS, load_kind


def one_of(names):
    """A pattern of these names; without names, one that never matches and has no ?, which
    addresses use.
    """
    return "|".join(names) or "$."


def kind_of(generator):
    """The kind that makes the images of ``generator``."""
    return load_kind(GENERATORS[generator].kind)


# Generators of a known skill, which are not ranked; those that record what they draw; those that
# run a model by torch.
CONTROLS = [
    name for name, generator in GENERATORS.items() if generator.kind not in ("folder", "diffusers")
]
WITH_SCENES = [name for name in GENERATORS if kind_of(name).SCENES]
WITH_MODEL = [name for name in GENERATORS if kind_of(name).MODEL]


def generator_tables(wildcards):
    """The tables that the generator's kind reads."""
    of_composition = dict.fromkeys(
        ("splits", "swapped", "prompts", "variants"), f"{DATA}/{wildcards.composition}"
    )
    files = {name: f"{folder}/{name}.parquet" for name, folder in of_composition.items()}
    files["pairs"] = pairs_table(wildcards)
    return [
        files.get(name, f"{DATA}/{name}.parquet") for name in kind_of(wildcards.generator).TABLES
    ]


def kind_settings(wildcards):
    """The settings of the generator's kind for a composition."""
    return GENERATORS[wildcards.generator].settings(wildcards.composition)


def generator_contents(wildcards):
    """A fingerprint of the user's files that the generator reads."""
    has_files = kind_of(wildcards.generator).fingerprint
    return (
        kind_contents(wildcards.generator, kind_settings(wildcards).model_dump_json())
        if has_files
        else ""
    )


@cache
def kind_contents(generator, settings):
    """The same, once for compositions with equal settings: a folder may contain a million
    images.
    """
    kind = kind_of(generator)
    return kind.fingerprint(kind.Settings.model_validate_json(settings), CONFIG.cache)
