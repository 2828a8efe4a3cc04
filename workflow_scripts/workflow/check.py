"""Check everything that a run needs before anything is computed: ``make check``.

All problems are listed, also those of each run of a config with several. Only names and kinds of files are checked, not
their content. The check writes, downloads and computes nothing.
"""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import Field
from snakemake_interface_common.exceptions import WorkflowError

from compclip.core import cli, plugins
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.errors import UserError
from compclip.core.log import UNDER_RUN, log
from compclip.dataset.download import FilePlace
from compclip.generate.config import GENERATOR_KINDS
from compclip.text.language import installed_name
from compclip.text.lexicon import lexicons_of, load_lexicon, merge
from workflow_scripts.workflow.check_model import check_model
from workflow_scripts.workflow.config import Config, load_config, run_values, runs_of
from workflow_scripts.workflow.findings import Findings

# Keys without which no part of a run works.
NEEDED = ("results: ", "cache: ")


class Check(Command):
    """Check a config's files, models and device."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")


def check_config(config: Config, here: bool = True) -> Findings:
    """Return what is missing; ``here``: steps run on this machine, in this environment."""
    findings = Findings(here)
    _check_dataset(config, findings)
    _check_language(config, findings)
    if config.scored:
        _check_generators(config, findings)
        for judge in config.judge.each(config.compositions):
            check_model("judge", judge, findings)
        findings.device("judge.device", config.judge.device)
    _check_files(config, findings)
    if specs := config.specs:
        check_model("specs.base", specs.base, findings)
        findings.device("specs.base.device", specs.base.device)
    if compun := config.compun:
        for model in compun.models:
            findings.exists(f"compun.models: {model.title}", model.judge, "folder")
            if model.open_clip:
                check_model(f"compun.models: {model.title}", model.judge_config(), findings)
        findings.device("compun.device", compun.device)
    for key, folder in (("results", config.results), ("cache", config.cache)):
        with findings.errors_of(key):
            check_writable(Path(folder))
    return findings


def _check_dataset(config: Config, findings: Findings) -> None:
    key, settings = f"dataset.{config.dataset.source}", getattr(config.dataset, config.dataset.source)
    for name, places in settings.places().items() if hasattr(settings, "places") else ():
        _check_archive(f"{key}.{name}", places, Path(config.cache), findings)
    if hasattr(settings, "file") or hasattr(settings, "data"):
        for name in ("file", "data", "classes"):
            # The classes of published images may be their numbers.
            if (path := getattr(settings, name, None)) != "number":
                findings.exists(f"{key}.{name}", path)
        if settings.images is not None:
            findings.has_images(f"{key}.images", settings.images)


def _check_archive(key: str, places: list[FilePlace], cache: Path, findings: Findings) -> None:
    """Find out whether one of the places has the file, or can have it."""
    remote = [place for place in places if place.is_remote]
    if any(place.local(cache).is_file() for place in places):
        return
    if remote:
        findings.downloads.append(remote[0].name or remote[0].address)
    else:
        findings.error(key, f"{', '.join(place.address for place in places)}: no such file; correct root or the name")


def _check_language(config: Config, findings: Findings) -> None:
    """Check the lexicons and the spaCy pipeline."""
    folder = Path(os.path.relpath(ROOT / "lexicons"))
    with findings.errors_of("compositions"):
        for composition in config.compositions:
            names = lexicons_of(composition, folder / "adjectives")
            merge([load_lexicon(folder / "adjectives" / f"{name}.yaml") for name in names])
    with findings.errors_of("pairs.nouns"):
        if config.pairs.nouns:
            load_lexicon(folder / "nouns" / f"{config.pairs.nouns}.yaml")
    with findings.errors_of("pairs.model"):
        if findings.here:
            installed_name(config.pairs.model, config.pairs.model)


def _check_generators(config: Config, findings: Findings) -> None:
    """Check folders of images, and models that make some."""
    for generator in config.generate.generators:
        key, kind = f"generate.generators: {generator.name}", plugins.load(GENERATOR_KINDS, generator.kind)
        settings = [generator.settings(composition) for composition in config.compositions]
        for path in dict.fromkeys(each.path for each in settings if hasattr(each, "path")):
            findings.has_images(key, path)
        if getattr(kind, "MODEL", False):
            for model in {each.model for each in settings if each.model.startswith((".", "/", "~"))}:
                findings.exists(f"{key}: model", model, "folder")
            findings.device(f"{key}: device", settings[0].device)
            if findings.here and find_spec("diffusers") is None:
                remedy = "pip install the version of envs/diffusers.yaml"
                findings.error(key, f"the package diffusers is not installed; {remedy}")


def _check_files(config: Config, findings: Findings) -> None:
    """Check the files and folders that other sections name."""
    if published := config.split.published:
        for composition in config.compositions:
            findings.exists("split.published.split", published.file("split", composition))
            findings.exists("split.published.data", published.file("data", composition))
    if config.score.fid and not FilePlace(config.score.fid.weights).is_remote:
        findings.exists("score.fid.weights", config.score.fid.weights)
    if human := config.human:
        for path in human.answers:
            findings.exists("human.answers", path)
        for path in human.scores.values():
            findings.exists("human.scores", path)
    if config.specs and config.specs.data:
        for name, path in config.specs.data:
            findings.exists(f"specs.data.{name}", path, "folder" if "images" in name else "file or folder")
    if compun := config.compun:
        if compun.compounds:
            findings.exists("compun.compounds.file", compun.compounds.file)
            findings.exists("compun.compounds.images", compun.compounds.images, "folder")
        findings.exists("compun.captions", compun.captions)
        findings.exists("compun.descriptions", compun.descriptions)
        for path in compun.human.answers if compun.human else ():
            findings.exists("compun.human.answers", path)


def check_jobs(workflow: Any, values: dict[str, Any]) -> None:
    """Raise WorkflowError for what jobs of a plain ``snakemake`` would miss; ``make run`` has checked before."""
    # A part of the run may not need what is missing.
    if UNDER_RUN in os.environ or workflow.dag_settings.targets:
        return
    here = workflow.local_exec and not workflow.deployment_settings.deployment_method
    runs = {f"runs.{name}: ": run for name, run in run_values(values).items()} or {"": values}
    errors = [f"{name}{error}" for name, run in runs.items() for error in check_config(load_config(run), here).errors]
    if errors:
        raise WorkflowError("\n".join(errors))


def check_writable(folder: Path) -> None:
    """Raise UserError if nothing can be written to ``folder`` or, if it does not exist, to the folder above."""
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        why = (error.strerror or "").lower()
        raise UserError(f"{folder}: not writable ({why}); fix its permissions or choose another folder") from error


def report_findings(path: Path, here: bool = True, strict: bool = True) -> None:
    """Log what a config file's run downloads; raises UserError with a line for each error.

    If not ``strict``, errors are warnings, because a part of the run may not need what is missing.
    """
    errors: list[str] = []
    for name, config in runs_of(path).items():
        findings = check_config(config, here)
        where = f"{path}: runs.{name}" if name else str(path)
        if findings.downloads:
            log.info("%s: the run downloads %s", where, ", ".join(findings.downloads))
        for error in findings.errors:
            if strict or error.startswith(NEEDED):
                errors.append(f"{where}: {error}")
            else:
                log.warning("warning: %s: %s", where, error)
    if errors:
        raise UserError("\nerror: ".join(errors))


def main(command: Check) -> None:
    report_findings(command.config)
    log.info("%s: no problems found; `make run CONFIG=%s` starts the run", command.config, command.config)


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
