"""Check the network of the Fréchet distance."""

from typing import Any

from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.download import is_remote


def check(config: Any, findings: Findings) -> None:
    if config.score.fid and not is_remote(config.score.fid.weights):
        findings.exists("score.fid.weights", config.score.fid.weights)
