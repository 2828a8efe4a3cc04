"""What the Snakefile does before it reads rules: check the config, and name what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.errors import UserError
from compclip.core.identity.code import keep_parsed
from workflow_scripts.workflow.config import Config, load_config, read_values


def load_checked(workflow: Any, values: dict[str, Any]) -> Config:
    """Return the checked config of ``workflow``, one run or several."""
    try:
        if workflow.is_main_process:
            # The files are read again, because Snakemake keeps the last of duplicate keys.
            for file in workflow.configfiles:
                read_values(Path(file))
        checked = load_config(values)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    # The rules carry the identities of their code.
    keep_parsed(checked.cache)
    return checked


@contextmanager
def errors_of_run(name: str) -> Iterator[None]:
    """Name the run in errors of its rules."""
    try:
        yield
    except WorkflowError as error:
        raise WorkflowError(f"runs.{name}: {error}") from None
