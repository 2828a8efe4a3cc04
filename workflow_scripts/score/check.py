"""Check the network of the Fréchet distance."""

from typing import Any

from compclip.dataset.download import is_remote
from workflow_scripts.checks import Findings


def check(config: Any, findings: Findings) -> None:
    if config.score.fid and not is_remote(config.score.fid.weights):
        findings.exists("score.fid.weights", config.score.fid.weights)
