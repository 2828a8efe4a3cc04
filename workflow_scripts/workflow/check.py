"""Check everything that a run needs before anything is computed, and say what the run will do: ``make check``.

Every stage of the config contributes ``<stage>/check.py``; here are the folders, the disk and the runs of a config
with several. All problems are listed. Nothing is written, downloaded or computed.
"""

import importlib
import os
import shutil
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import Field
from snakemake_interface_common.exceptions import WorkflowError

from workflow_scripts.core import cli
from workflow_scripts.core.checks import Findings
from workflow_scripts.core.cli import UNDER_RUN, log
from workflow_scripts.core.code import PACKAGE, ROOT, module_file
from workflow_scripts.core.disk import size_text
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.step import Step
from workflow_scripts.workflow.config import Config, load_config, run_values, runs_of

# Keys without which no part of a run works.
NEEDED = ("results: ", "cache: ")


class Check(Step):
    """Check a config's files, models, device and disk, and say what its run will do."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")


def stages() -> list[ModuleType]:
    """Return the modules ``<stage>/check.py``, in the order of the config's sections."""
    names = [f"{PACKAGE}.{section}.check" for section in Config.model_fields]
    return [importlib.import_module(name) for name in names if module_file(name)]


def misfits(config: Config) -> list[str]:
    """Return the sections that do not fit each other, of which rules would miss inputs; no file is looked for."""
    findings = Findings()
    for stage in stages():
        if hasattr(stage, "misfits"):
            stage.misfits(config, findings)
    return findings.errors


def check_config(config: Config, here: bool = True) -> Findings:
    """Return what all stages find; ``here``: steps run on this machine, in this environment."""
    findings = Findings(here=here)
    for stage in stages():
        stage.check(config, findings)
    for key, folder in (("results", config.results), ("cache", config.cache)):
        with findings.errors_of(key):
            check_writable(Path(folder))
            if key == "results":
                _check_disk(config, findings)
    return findings


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
    try:
        tempfile.TemporaryFile(dir=_existing(folder)).close()
    except OSError as error:
        why = (error.strerror or "").lower()
        raise UserError(f"{folder}: not writable ({why}); fix its permissions or choose another folder") from error


def _existing(folder: Path) -> Path:
    """Return the folder, or the first above it that exists."""
    return next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())


def _check_disk(config: Config, findings: Findings) -> None:
    place = Path(config.results)
    free = shutil.disk_usage(_existing(place)).free
    # What a former run wrote is replaced, not added.
    needed = 0 if any(place.glob("*/captions.parquet")) else findings.bytes
    needs = f"about {size_text(findings.bytes)} in {config.results} and {config.cache}"
    findings.plan.append(("disk", f"{needs}; {size_text(free)} free"))
    if needed > free:
        findings.error("disk", f"the run needs {needs}, but {size_text(free)} are free; free some disk space")


def report(path: Path, here: bool = True, strict: bool = True) -> None:
    """Log the plan and the warnings of a config file; raises UserError with a line for each error.

    If not ``strict``, errors are warnings, because a part of the run may not need what is missing.
    """
    errors: list[str] = []
    for name, config in runs_of(path).items():
        findings = check_config(config, here)
        where = f"{path}: runs.{name}" if name else str(path)
        log.info("%s", where)
        for title, text in findings.plan:
            log.info("  %-14s %s", title, text)
        serious = [error for error in findings.errors if strict or error.startswith(NEEDED)]
        for warning in findings.warnings + [error for error in findings.errors if error not in serious]:
            log.warning("warning: %s: %s", where, warning)
        errors += [f"{where}: {error}" for error in serious]
    if errors:
        raise UserError("\nerror: ".join(errors))


def main(step: Check) -> None:
    report(step.config)
    log.info("%s: no problems found; `make run CONFIG=%s` starts the run", step.config, step.config)


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
