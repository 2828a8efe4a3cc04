"""Simulated people, whose answers follow planted probabilities that the analysis must recover."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = ["task_id", "annotator", "choice", "lead_time"]


def answer_of(task: Mapping[str, Any]) -> tuple[str, str]:
    """Return the answer that the planted probability is of, and the other one."""
    if task["kind"] == "match":
        return "yes", "no"
    if task["kind"] == "caption":
        return task["right"], {"1": "2", "2": "1"}[task["right"]]
    return "1", "2"


def simulate(
    tasks: pd.DataFrame, chance: Callable[[Mapping[str, Any]], float], workers: int, seed: int = 0, careless: int = 0
) -> pd.DataFrame:
    """Return a row for each answer: each of ``workers`` people answers each task, the last ``careless`` at random.

    ``chance`` is the probability of yes, of the prompt's caption, or of picture_1.
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
                first, second = answer_of(task)
                p = 0.5 if coin else chance(task)
                answer = first if random.random() < p else second
            seconds = round(float(random.gamma(4, 2.5)), 3)
            records.append((task["task_id"], f"person{number:02d}", answer, seconds))
    return pd.DataFrame(records, columns=COLUMNS)
