"""Run by test_hosts on each host: train_judge, with a checkpoint every epoch and little patience for a silent host.

In the environment, SLOWLY is the least number of seconds that a step takes, and LONG the number that the first
process takes longer, while the others wait, after epochs 1 and 2.
"""

import os
import time
from datetime import timedelta
from typing import Any

from workflow_scripts.core import cli
from workflow_scripts.judge import checkpoint, parallel, train_judge, training

checkpoint.EVERY = 0
parallel.SILENCE = timedelta(seconds=8)
loss, keep = training.clip_loss, checkpoint.Checkpoint.keep


def slow_loss(*arguments: Any) -> Any:
    time.sleep(float(os.environ["SLOWLY"]))
    return loss(*arguments)


def long_keep(kept: checkpoint.Checkpoint, rows: list, last: bool) -> None:
    keep(kept, rows, last)
    if len(rows) < 3:
        time.sleep(float(os.environ["LONG"]))


if __name__ == "__main__":
    if "SLOWLY" in os.environ:
        training.clip_loss = slow_loss
    if "LONG" in os.environ:
        checkpoint.Checkpoint.keep = long_keep  # type: ignore[method-assign]
    cli.run(train_judge.main)
