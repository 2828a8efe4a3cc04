"""What test_hosts runs on each host: train_judge, which keeps what every epoch learned and soon misses a silent host.

SLOWLY in the environment is how many seconds a step takes at least.
"""

from __future__ import annotations

import os
import time
from typing import Any

from workflow_scripts.core import cli
from workflow_scripts.judge import checkpoint, parallel, train_judge, training

checkpoint.EVERY = 0
parallel.BEAT, parallel.SILENCE = 0.5, 4.0
loss = training.clip_loss


def slow_loss(*arguments: Any) -> Any:
    time.sleep(float(os.environ["SLOWLY"]))
    return loss(*arguments)


if __name__ == "__main__":
    if "SLOWLY" in os.environ:
        training.clip_loss = slow_loss
    cli.run(train_judge.main, train_judge.arguments())
