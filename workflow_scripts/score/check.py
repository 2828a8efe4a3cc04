"""Check the network of the Fréchet distance."""

from typing import Any

from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    if config.score.fid:
        findings.exists("score.fid.weights", config.score.fid.weights)
