"""Run by test_hosts on each host: train_judge, with a checkpoint every epoch and little patience for a silent host.

SLOWLY in the environment is the least number of seconds that a step takes.
"""

import os
import time
from datetime import timedelta
from typing import Any

from workflow_scripts.core import cli
from workflow_scripts.judge import checkpoint, parallel, train_judge, training

checkpoint.EVERY = 0
parallel.STEP = timedelta(seconds=8)
loss = training.clip_loss


def slow_loss(*arguments: Any) -> Any:
    time.sleep(float(os.environ["SLOWLY"]))
    return loss(*arguments)


if __name__ == "__main__":
    if "SLOWLY" in os.environ:
        training.clip_loss = slow_loss
    cli.run(train_judge.main)
