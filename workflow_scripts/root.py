"""The folder and the version of the workflow, and the command that runs it."""

import os
import shlex
from pathlib import Path

from compclip.core.identity.installation import INSTALLED_AS, version_in

# The folder of the Snakefile: a checkout's, or one inside an installed package.
WORKFLOW_ROOT = Path(__file__).resolve().parents[1]


def workflow_version() -> str:
    """Return the version of the workflow: that of its checkout or of the package around it."""
    is_installed = WORKFLOW_ROOT.name == INSTALLED_AS
    return version_in(WORKFLOW_ROOT.parents[1] if is_installed else WORKFLOW_ROOT)


def run_command(part: str = "", config: object = "") -> str:
    """Return the command, for use in the working folder, of a run or of a ``part``, such as
    ``check``.
    """
    config = shlex.quote(str(config)) if config else ""
    # In a checkout, compclip need not be installed.
    if os.path.isfile("Makefile") and os.path.samefile(".", WORKFLOW_ROOT):
        words = ["make", part or "run", f"CONFIG={config}" if config else ""]
    else:
        words = ["compclip", "run", part, config]
    return " ".join(filter(None, words))
