"""People whose minds are known: what they answer follows from planted probabilities, so that the analysis can be held
against them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd


def sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def answer_of(task: Mapping[str, Any], chance: float) -> tuple[str, str]:
    """The answer that has ``chance`` and the other one; for perceptual tasks ``chance`` is that of picture_1."""
    if task["kind"] == "match":
        return "yes", "no"
    if task["kind"] == "caption":
        return task["right"], {"1": "2", "2": "1"}[task["right"]]
    return "1", "2"


def simulate(
    tasks: pd.DataFrame,
    chance: Callable[[Mapping[str, Any]], float],
    workers: int,
    seed: int = 0,
    careless: int = 0,
    seconds: float = 10.0,
) -> list[dict[str, Any]]:
    """A record an answer: every one of ``workers`` people answers every task; the last ``careless`` by a coin.

    chance(task): of yes, of the prompt's caption, of picture_1.
    """
    random = np.random.default_rng(seed)
    records = []
    for number in range(workers):
        coin = number >= workers - careless
        for task in tasks.to_dict("records"):
            if task["check"] == "gold":
                options = {"match": ("yes", "no")}.get(task["kind"], ("1", "2"))
                answer = options[int(random.integers(2))] if coin else task["right"]
            else:
                first, second = answer_of(task, 0)
                p = 0.5 if coin else chance(task)
                answer = first if random.random() < p else second
            records.append(
                {
                    "task_id": task["task_id"],
                    "worker": f"person{number:02d}",
                    "answer": answer,
                    "seconds": round(float(random.gamma(4, seconds / 4)), 3),
                    "revision": 0,
                }
            )
    return records
