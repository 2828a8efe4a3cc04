"""Report how often people choose the compound's picture, how far they agree, and which compounds confuse them.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), section 5 and appendix A.6.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.human.opinions import TIE, screen, worker_counts
from compclip.human.tasks import COMPOUND_KINDS
from compclip.stats import interval
from compclip.stats.agreement import agreement

ITEM_COLUMNS = ["kind", "compound", "answers", "share", "majority", "right"]


def count_votes(opinions: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return how often each answer was given, (compounds, answers); repeats and gold tasks do not count."""
    study = opinions[(opinions["check"] == "none") & (opinions["kind"] == kind)]
    counts = pd.crosstab(study["image_id"], study["answer"])
    return counts.reindex(columns=list(COMPOUND_KINDS[kind].answers), fill_value=0).sort_index()


def majority(counts: np.ndarray, answers: tuple[str, ...]) -> list[str]:
    """Return the most frequent answer to each task, or TIE; ``counts`` is (tasks, answers)."""
    winners = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1)
    return [TIE if n > 1 else answers[best] for n, best in zip(winners, counts.argmax(axis=1), strict=True)]


def summarize_items(counts: pd.DataFrame, tasks: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return ITEM_COLUMNS of the compounds with an answer; ``counts`` as from ``count_votes``.

    share is the fraction of answers that chose the compound's picture, or find it confusing; majority an answer or TIE;
    right whether the majority is right, None if the task has no right answer.
    """
    study = tasks[(tasks["check"] == "none") & (tasks["kind"] == kind)].set_index("image_id")["right"]
    is_choice = kind == "compound"
    counted = study.reindex(counts.index) if is_choice else pd.Series("yes", index=counts.index)
    table = pd.DataFrame({"kind": kind, "compound": counts.index, "answers": counts.sum(axis=1).to_numpy()})
    table["share"] = [counts.at[compound, answer] for compound, answer in counted.items()] / table["answers"]
    table["majority"] = majority(counts.to_numpy(), COMPOUND_KINDS[kind].answers)
    table["right"] = (table["majority"] == counted.to_numpy()) if is_choice else None
    return table[ITEM_COLUMNS]


def human_accuracy(opinions: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any] | None:
    """Return the mean over workers of their fractions of right answers, and its interval over compounds.

    Answers are weighted so that each worker counts the same. None without such answers.
    """
    study = opinions[(opinions["check"] == "none") & (opinions["kind"] == "compound")]
    if study.empty:
        return None
    weights = 1 / study.groupby("worker")["worker"].transform("size").to_numpy(float)
    compounds, right = study["image_id"].to_numpy(str), study["value"].to_numpy(bool)
    estimate = interval.share(compounds, right, weights, resamples, rng(seed, "analyze_people"))
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "n": int(study["image_id"].nunique())}


def analyze_people(
    tasks: pd.DataFrame, answers: Sequence[Path], *, keep: float = 0.75, resamples: int = 2000, seed: int = 0
) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """Summarize people's answers to tasks about compounds; the arguments are those of ``human.analyze``.

    Returns:
        The summary, with human accuracy; ``ITEM_COLUMNS`` of each kind; and the workers, by number.
    """
    kept, people, records = screen(tasks, answers, keep)
    tables, kinds = [], dict[str, dict[str, Any]]()
    for kind in (kind for kind in COMPOUND_KINDS if (tasks["kind"] == kind).any()):
        counts = count_votes(kept, kind)
        table = summarize_items(counts, tasks, kind)
        tables.append(table)
        drawn = rng(seed, "people", kind)
        kinds[kind] = {
            "tasks": int((tasks["kind"].eq(kind) & tasks["check"].eq("none")).sum()),
            "answered": len(table),
            "answers": int(table["answers"].sum()),
            "ties": int((table["majority"] == TIE).sum()),
            "agreement": agreement(counts.to_numpy(), counts.index.to_numpy(), resamples, drawn),
        }
        if kind == "compound":
            kinds[kind]["majority_right"] = float(table["right"].mean()) if len(table) else None
        else:
            kinds[kind]["confusing"] = table.loc[table["majority"] == "yes", "compound"].tolist()
    accuracy = human_accuracy(kept, resamples, seed)
    if accuracy:
        log.info("people are right in %.1f %%, mean of %d workers", 100 * accuracy["value"], people["kept"].sum())
    if confusing := kinds.get("confusing", {}).get("confusing"):
        log.info("confusing: %s", ", ".join(confusing))
    summary = {
        "seed": seed, "records": records, "workers": worker_counts(people), "keep": keep, "accuracy": accuracy,
        "kinds": kinds,
    }  # fmt: skip
    return summary, pd.concat(tables), people
