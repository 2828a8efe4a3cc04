"""What the Snakefile does before it reads rules: check the config, and name what is wrong."""

import os
from pathlib import Path
from typing import Any

from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.errors import UserError, require
from compclip.core.identity.code import keep_parsed
from workflow_scripts.places import DEFAULT_CONFIG, WORKFLOW_ROOT, check_writable
from workflow_scripts.workflow.config import Config, load_config, read_values


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


def load_checked(workflow: Any, values: dict[str, Any], namespace: str) -> Config:
    """Return the checked config of ``workflow``, or of its module ``namespace``."""
    files = [Path(file) for file in workflow.configfiles]
    prefix = "config"
    try:
        if workflow.is_main_process:
            # Snakemake itself would end with a traceback.
            check_writable(Path(".snakemake").absolute())
        if is_module(workflow):
            prefix = f"module {namespace}"
            is_mapping = isinstance(values, dict)
            remedy = 'give a mapping, such as {"base": "mine.yaml", "results": "results/mine"}'
            require(is_mapping, prefix, f"config: expected keys and values, got {values!r}", remedy)
            require(values, prefix, "has no config", "add `config: config`, or a mapping")
        elif workflow.is_main_process:
            # The files are read again, because Snakemake keeps the last of duplicate keys.
            for file in files:
                read_values(file)
        checked = load_config(values, prefix, files[-1] if files else None)
    except UserError as error:
        raise WorkflowError(str(error)) from None
    # The rules carry the identities of their code.
    keep_parsed(checked.cache)
    return checked
