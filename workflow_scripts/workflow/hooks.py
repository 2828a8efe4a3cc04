"""What happens before the first job of a run and after the last: the Snakefile's ``onstart`` and its like."""

import os
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from workflow_scripts.core.cli import UNDER_RUN
from workflow_scripts.workflow import origin
from workflow_scripts.workflow.check import check_config
from workflow_scripts.workflow.config import load_config, run_values
from workflow_scripts.workflow.kept import Kept

_kept: list[Kept] = []
# Jobs whose outputs the user declares to be theirs.
_touched: list[Any] = []


def begin(workflow: Any, values: dict[str, Any]) -> None:
    """Check what jobs need (WorkflowError), unless ``make run`` has done so, and keep what they will replace."""
    runs = {name: load_config(run) for name, run in run_values(values).items()}
    config = load_config(values)
    # A part of the run may not need what is missing.
    if UNDER_RUN not in os.environ and not workflow.dag_settings.targets:
        here = workflow.local_exec and not workflow.deployment_settings.deployment_method
        of_runs = {f"runs.{name}: ": run for name, run in runs.items()} or {"": config}
        errors = [f"{where}{error}" for where, run in of_runs.items() for error in check_config(run, here).errors]
        if errors:
            raise WorkflowError("\n".join(errors))
    if workflow.touch:
        _touched[:] = [job for job in workflow.dag.needrun_jobs() if job.shellcmd]
    else:
        check_origin(workflow)
    _kept[:] = [Kept(workflow, {each.results for each in (config, *runs.values())})]
    _kept[0].keep()


def check_origin(workflow: Any) -> None:
    """Refuse to go on from artifacts that are not this run's own; ``make run`` makes them again."""
    done = [(job.shellcmd or "", job.output) for job in workflow.dag.jobs if not workflow.dag.needrun(job)]
    found = origin.strays(done)
    for path, reason in found.items():
        if reason != origin.UNKNOWN:
            raise WorkflowError(f"{path}: {reason}; `make run` makes it again, or add `--forcerun {path}`")


def end(failed: bool) -> None:
    """Restore the outputs of jobs that failed or did not run."""
    for job in _touched:
        step = origin.made_by(job.shellcmd)
        for output in job.output:
            origin.accept(Path(output), step)
    for kept in _kept:
        kept.restore() if failed else kept.discard()
