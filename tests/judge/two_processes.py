"""What test_parallel runs by torchrun: a training, and the same one killed in its second epoch and taken up again.

The argument is a JSON text: the step's options but for --cache and --folder, and ``place``, where these go.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from workflow_scripts.clip.device import settle
from workflow_scripts.core import cli
from workflow_scripts.judge import checkpoint, train_judge, training
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.parallel import Group, joined


class Killed(Exception):
    pass


def main(group: Group, options: dict, place: Path) -> None:
    config = JudgeConfig.model_validate_json(options["settings"])

    def run(name: str) -> None:
        paths = {key: Path(options[key]) for key in ("captions", "images", "splits", "results")}
        named = {**options, **paths, "cache": place / f"{name}_cache", "folder": place / name}
        train_judge.train_judge(argparse.Namespace(**named), config, torch.device("cpu"), group)

    run("whole")
    real, checkpoint.EVERY = training.clip_loss, 0
    losses = 0

    def dying(*arguments: torch.Tensor) -> torch.Tensor:
        nonlocal losses
        losses += 1
        if losses > 10:  # in the second of two epochs of four steps of two losses
            raise Killed
        return real(*arguments)

    training.clip_loss = dying
    try:
        run("cut")
    except Killed:
        group.wait()
    training.clip_loss = real
    assert not (place / "cut").exists()
    run("cut")


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    settle(given["threads"])
    folder = Path(given.pop("place"))
    cli.start_logging(folder / "judge.log")
    with joined(2, torch.device("cpu"), "judge.gpus", "") as together:
        main(together, given, folder)
