"""Follow a training in Weights & Biases, if its package is installed and WANDB_API_KEY is set."""

import importlib
import logging
import os
from typing import Any

from workflow_scripts.core.cli import log, one_line
from workflow_scripts.judge.steps import TrainJudge


class Follower(logging.Handler):
    """Sends the ``metrics`` of log lines. If that fails, it warns once, and the training goes on."""

    def __init__(self, step: TrainJudge, first: bool) -> None:
        super().__init__()
        self.run: Any = None
        if first and os.environ.get("WANDB_API_KEY"):  # of several processes, one sends
            try:
                self.run = importlib.import_module("wandb").init(
                    project="compclip", name=str(step.judge), config=step.model_dump(mode="json"), dir=step.cache,
                    settings={"console": "off", "silent": True},
                )  # fmt: skip
            except ModuleNotFoundError:
                pass
            except Exception as error:  # of any class: it is another's package and server
                self.warn(error)

    def emit(self, record: logging.LogRecord) -> None:
        if self.run and hasattr(record, "metrics"):
            try:
                self.run.log(record.metrics)
            except Exception as error:
                self.warn(error)

    def warn(self, error: Exception) -> None:
        self.run = None
        log.warning("warning: Weights & Biases does not follow this training: %s", one_line(error))
