"""What two processes of test_training run, in a module that they can import."""

import os
from pathlib import Path
from typing import Any

from tests.judge.conftest import squares_job
from workflow_scripts.judge.train_judge import main


def train_together(rank: int, squares: str, place: str, settings: dict[str, Any]) -> None:
    """Train judge ``two`` in ``place`` as one of two processes, as torchrun starts them."""
    started = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    os.environ.update({name: str(value) for name, value in started.items()})
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517"})
    main(squares_job(Path(squares), Path(place), "two", "cache two", **settings))
