# Everything of the rules that is Python: the checked config, paths, and who depends on what.
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from workflow_scripts.common.code import code_hash
from workflow_scripts.common.config import load_config
from workflow_scripts.common.errors import UserError

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


def source_files(wildcards):
    """Tables that the chosen source makes beside captions and images."""
    extra = {"sketch": ["scenes", "facts"]}.get(CONFIG.dataset.source, [])
    return [f"{RESULTS}/{wildcards.dataset}/{name}.parquet" for name in extra]


def adjective_lexicons(wildcards):
    """The lexicon of one composition, or of all where the rule knows none."""
    names = [wildcards.composition] if hasattr(wildcards, "composition") else CONFIG.compositions
    return [f"lexicons/adjectives/{name}.yaml" for name in names]


def noun_lexicon(wildcards):
    """The noun lexicon, or nothing where any noun goes."""
    return [f"lexicons/nouns/{CONFIG.pairs.nouns}.yaml"] if CONFIG.pairs.nouns else []
