# Everything of the rules that is Python: the checked config, paths, and who depends on what.
import sys
from pathlib import Path

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


wildcard_constraints:
    composition="|".join(CONFIG.compositions),
    generator="|".join(GENERATORS),
    dataset=DATASET,


def source_settings():
    """The settings of the chosen source alone, as the JSON that its step reads."""
    return getattr(CONFIG.dataset, CONFIG.dataset.source).model_dump_json()


def source_table_names():
    """Tables that the chosen source makes beside captions and images."""
    return getattr(plugins.load(SOURCES, CONFIG.dataset.source), "TABLES", ())


def source_tables():
    """Their files, for the output of its rule."""
    return [RESULTS + "/{dataset}/" + name + ".parquet" for name in source_table_names()]


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


# generate


def one_of(names):
    """A pattern of these names alone; of nothing where there are none."""
    return "|".join(names) or "(?!)"


def generator_module(name):
    """The module of the kind of the generator ``name``."""
    return plugins.load(KINDS, GENERATORS[name].kind)


def generators(scenes):
    """The names of the generators that say what they drew, or of those that do not."""
    return [name for name in GENERATORS if getattr(generator_module(name), "SCENES", False) == scenes]


def generator_tables(wildcards):
    """The tables that the generator's kind reads."""
    place = f"{RESULTS}/{wildcards.dataset}"
    ours = {"splits": wildcards.composition, "swapped": wildcards.composition}
    files = [f"{ours[t]}/{t}.parquet" if t in ours else f"{t}.parquet" for t in reads(generator_module(wildcards.generator))]
    return [f"{place}/{file}" for file in files]


def generator_code(wildcards):
    """A hash of the step and of the generator's kind."""
    kind = GENERATORS[wildcards.generator].kind
    return code_hash("workflow_scripts.generate.generate_images", f"{KINDS}.{kind}")


def generator_kind(wildcards):
    return GENERATORS[wildcards.generator].kind


def generator_settings(wildcards):
    """The settings of the generator's kind, as the JSON that its step reads."""
    module = generator_module(wildcards.generator)
    return module.Settings.model_validate(GENERATORS[wildcards.generator].options).model_dump_json()


def generator_contents(wildcards):
    """A text that changes when the files of the user's that the generator reads do."""
    module = generator_module(wildcards.generator)
    settings = module.Settings.model_validate(GENERATORS[wildcards.generator].options)
    return module.fingerprint(settings) if hasattr(module, "fingerprint") else ""


for name in GENERATORS:
    absent = set(reads(generator_module(name))) & {"scenes", "facts"} - set(source_table_names())
    if absent:
        raise WorkflowError(
            f"generate.generators: {name} reads the {' and '.join(sorted(absent))} of sketches, which "
            f"dataset source {CONFIG.dataset.source} has not; generators of any data set: photographs, shuffled, folder"
        )
