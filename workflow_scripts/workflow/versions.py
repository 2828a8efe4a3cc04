"""Keep artifacts of two versions of compclip apart."""

import shlex
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.errors import UserError
from compclip.core.identity import digests


def check_versions(workflow: Any) -> None:
    """Raise WorkflowError if artifacts that this run keeps were made by other code, or if their
    records are damaged.

    Snakemake makes them again if it made them itself. Those that another working folder made, or
    another machine, are unknown to it.
    """
    for job in workflow.dag.jobs:
        code = getattr(job.params, "code", None)
        if code is None or workflow.dag.needrun(job):
            continue
        for path in job.output:
            try:
                record = digests.read_record(Path(path))
            except UserError as error:
                raise WorkflowError(f"{error}: --forcerun {shlex.quote(path)}") from None
            if record and record.code not in (None, code):
                raise WorkflowError(
                    f"{path}: made by another version of compclip; choose another results folder, "
                    "or make all of it again by Snakemake's option --forceall"
                )
