"""Check the judge's files and device."""

from typing import Any

from workflow_scripts.clip.check import check_model
from workflow_scripts.clip.config import model_file
from workflow_scripts.core.checks import Findings, has_gpu
from workflow_scripts.dataset.check import is_scored

# Bytes of a judge of open_clip, with the state of its training: about those of RN50.
JUDGE = 1_000_000_000


def check(config: Any, findings: Findings) -> None:
    judge = config.judge
    if not is_scored(config):
        findings.plan.append(("judge", "none, because there are no images to judge"))
        return
    about, *_ = [check_model("judge", each, findings) for each in judge.each(config.compositions)]
    if model_file(judge.model) is None:
        findings.bytes += len(config.compositions) * JUDGE
    epochs = f"{judge.epochs} epochs on {judge.train_on}" if judge.epochs else "used as it is"
    device = judge.device if judge.device != "auto" else "a GPU" if has_gpu() else "the CPU (no GPU found)"
    findings.plan.append(("judge", f"{about}, {epochs}; on {device}"))
    findings.device("judge.device", judge.device)
