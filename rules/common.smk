# Everything of the rules that is Python: here the checked config, paths, resources and object storage, in common/ a file
# a stage.
import json
import os
import sys

# Torch's threads otherwise spin while they wait, and on shared cores a step takes ten times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, workflow.basedir)

from workflow_scripts.core import plugins
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import command, declaration
from workflow_scripts.workflow.config import load_config
from workflow_scripts.workflow.storage import check_store, follow_constraints

try:
    CONFIG = load_config(config)
except UserError as error:
    raise WorkflowError(str(error))

RESULTS = CONFIG.results
LOGS = f"{RESULTS}/logs"
DATASET = CONFIG.dataset.name or CONFIG.dataset.source
GENERATORS = {generator.name: generator for generator in CONFIG.generate.generators}


# In the rules' paths: <results>, <dataset> (the data set's folder there), <name> (the data set's name) and <logs>.
pathvars:
    results=RESULTS,
    dataset=f"{RESULTS}/{DATASET}",
    name=DATASET,
    logs=LOGS,


if CONFIG.container:

    containerized: CONFIG.container


wildcard_constraints:
    composition="|".join(CONFIG.compositions),
    generator="|".join(GENERATORS),


def step(name, *code, **given):
    """Return the params of a rule that runs step ``stage.module``: the identity of its code, and its command.

    ``code`` names more modules that decide its result. ``given`` has what the step declares and what is neither a path
    of the rule nor a key of the config; a function is called with the wildcards.
    """

    def words(wildcards, input, output):
        named = {"dataset": DATASET, "results": results_folder(wildcards)} | dict(wildcards.items())
        named |= {key: value(wildcards) if callable(value) else value for key, value in given.items()}
        declared = declaration(name).model_fields
        own = {
            key: value for key, value in named.items() if key in declared and key not in {*input.keys(), *output.keys()}
        }
        return command(name, CONFIG, dict(input.items()), dict(output.items()), own)

    return {"code": code_hash(f"workflow_scripts.{name}", *code), "step": words}


def results_folder(wildcards):
    """The folder that the paths inside artifacts are relative to."""
    return on_disk(RESULTS)


def torch_slots():
    """Of the one slot for steps whose threads share the cores; those of one thread run side by side."""
    return 1 if CONFIG.threads > 1 else 0


def growing(amount):
    """The megabytes or minutes that a scheduler is asked for: ``amount``, and as much again for each retry."""
    return lambda wildcards, attempt: amount * attempt


# object storage

follow_constraints(workflow.storage_registry.default_storage_provider)
if workflow.is_main_process:
    try:
        check_store(
            workflow.storage_registry.default_storage_provider, workflow.storage_settings.default_storage_prefix
        )
    except UserError as error:
        raise WorkflowError(str(error))


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


include: "common/dataset.smk"
include: "common/pairs.smk"
include: "common/split.smk"
include: "common/divergence.smk"
include: "common/judge.smk"
include: "common/generate.smk"
include: "common/score.smk"
include: "common/report.smk"
include: "common/specs.smk"
include: "common/compun.smk"
include: "common/human.smk"
