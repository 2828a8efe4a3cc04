"""What the Snakefile does before it reads rules: check the config, and name what is wrong."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.errors import UserError, require
from compclip.core.identity.code import keep_parsed
from workflow_scripts.places import DEFAULT_CONFIG, WORKFLOW_ROOT, check_writable
from workflow_scripts.workflow.config import Config, load_config, read_values

# Snakemake's own locks do not tell whether their Snakemake is alive; this one ends with it.
LOCK = Path(".snakemake", "running.lock")


def mark_running() -> None:
    """Lock ``LOCK`` until this process ends; runs in the same folder share the lock."""
    # Some file systems have no locks.
    with suppress(OSError):
        LOCK.parent.mkdir(exist_ok=True)
        # A number, which is never closed, not a file, which would be closed when it is collected.
        descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def is_running() -> bool:
    """Whether the Snakemake of a run is alive in the working folder."""
    with suppress(OSError), LOCK.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def is_module(workflow: Any) -> bool:
    """Whether another Snakefile imports the workflow by ``module:``."""
    return not os.path.samefile(workflow.main_snakefile, WORKFLOW_ROOT / "Snakefile")


def needs_default_config(workflow: Any) -> bool:
    """Whether the config is that of the working folder; raise WorkflowError if there is none."""
    if workflow.configfiles or is_module(workflow):
        return False
    if not os.path.exists(DEFAULT_CONFIG):
        raise WorkflowError(
            f"{DEFAULT_CONFIG}: no such config file; write one, or name yours with --configfile"
        )
    return True


def config_name(workflow: Any, namespace: str) -> str:
    """Return what messages call the config of ``workflow``, or of its module ``namespace``."""
    return f"module {namespace}" if is_module(workflow) else "config"


def check_apart(workflow: Any, name: str, results: str) -> None:
    """Raise UserError if another module has the same results folder."""
    # Snakemake reads a module again for each `use rule`.
    folders = vars(workflow).setdefault("_compclip_results", {})
    others = [other for other, folder in folders.items() if folder == results and other != name]
    fault = f"results: {results} is also the folder of {', '.join(others)}"
    require(not others, name, fault, "give each module another one")
    folders[name] = results


def load_checked(workflow: Any, values: dict[str, Any], namespace: str) -> Config:
    """Return the checked config of ``workflow``, or of its module ``namespace``."""
    files = [Path(file) for file in workflow.configfiles]
    prefix = config_name(workflow, namespace)
    try:
        if workflow.is_main_process:
            # Snakemake itself would end with a traceback.
            check_writable(Path(".snakemake").absolute())
            mark_running()
        if is_module(workflow):
            is_mapping = isinstance(values, dict)
            remedy = 'write config: {"base": "mine.yaml", "results": "results/mine"}'
            require(is_mapping, prefix, f"config: expected keys and values, got {values!r}", remedy)
            remedy += ', or config: config with configfile: "mine.yaml" above the module'
            require(values, prefix, "its config is empty", remedy)
        elif workflow.is_main_process:
            # The files are read again, because Snakemake keeps the last of duplicate keys.
            for file in files:
                read_values(file)
        checked = load_config(values, prefix, files[-1] if files else None)
        check_apart(workflow, prefix, checked.results)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    # The rules carry the identities of their code.
    keep_parsed(checked.cache)
    return checked
