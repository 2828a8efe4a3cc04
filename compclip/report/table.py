"""A generator's scores of one split by one judge or several, and their means with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import UserError
from compclip.core.layout import ORACLE
from compclip.core.seeds import rng
from compclip.core.tables import TESTS
from compclip.report.measures import COMPARED
from compclip.report.rows import Row
from compclip.stats import crossed, interval
from compclip.stats.interval import Estimate

SOURCES = ("pairs", "images", "judges", "residual")
# The columns that identify an entry.
ENTRY = ["image_id", "caption_id", "draw"]


@dataclass(frozen=True)
class Scored:
    """One score: what the generator's summary says of it, the whole summary, and its entries (``tables.SCORES``).

    Of several judges the entries have the means, and ``by_judge`` each judge's own.
    """

    about: Mapping[str, Any]
    summary: Mapping[str, Any]
    entries: pd.DataFrame
    by_judge: tuple[pd.DataFrame, ...]
    judge_seed: str | None = None  # None: several judges, or the oracle
    part: bool = False  # whether it is one judge's score, beside the mean of several

    @property
    def generator(self) -> str:
        return self.summary["generator"]

    @property
    def split(self) -> str:
        return self.about["split"]

    @property
    def trained(self) -> bool:
        """Return whether the trained judge scored, not the oracle."""
        return self.summary["judge"] != ORACLE

    @property
    def main(self) -> bool:
        """Return whether it is compared with others: all trained judges, all prompts, original distractors."""
        all_prompts = self.split == "test_swapped" or self.about["prompts"] != "swapped"
        return self.trained and not self.part and all_prompts and self.about["distractors"] == "original"

    def blind(self, measure: str) -> float | None:
        """Return the score of text alone, if it is known."""
        return self.about.get("blind_control" if measure == "r_precision" else "adjective_chance")

    @property
    def order(self) -> tuple[int, bool, str]:
        """Return the place among the rows of a generator."""
        return TESTS.index(self.split), self.about["prompts"] == "swapped", self.about["distractors"]


def scores_of(summary: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], swapped: pd.DataFrame) -> list[Scored]:
    """Return a generator's scores by one judge.

    Args:
        summary: ``scores/J/G/summary.json``.
        tables: the entries (``tables.SCORES``) of each set that ``summary`` names.
        swapped: image_id and caption_id of the swapped captions.
    """
    scores = []
    for about in summary["scores"]:
        entries = tables[about["set"]]
        if about["split"] == "test_seen" and about["prompts"] == "swapped":
            names = pd.MultiIndex.from_frame(swapped)
            entries = entries[pd.MultiIndex.from_frame(entries[["image_id", "caption_id"]]).isin(names)]
        if len(entries) != about["judged"]:
            where = f"{summary['generator']}, {about['set']}"
            raise UserError(f"{where}: {len(entries)} entries, but summary.json counts {about['judged']}; score again")
        entries = entries.reset_index(drop=True)
        scores.append(Scored(about, summary, entries, (entries,)))
    return scores


def averaged(scores: Sequence[Scored]) -> Scored:
    """Return the mean of the scores of the same entries by several judges."""
    first = scores[0]
    for score in scores[1:]:
        if not score.entries[ENTRY].equals(first.entries[ENTRY]):
            raise UserError(f"{first.generator}: judges scored different images of {first.split}; score again")
    tables = tuple(score.entries for score in scores)
    means = {
        name: np.mean([table[name] for table in tables], axis=0)
        for name in (measure.entries for measure in COMPARED.values())
    }
    names = ("blind_control", "hubness", "adjective")
    known = {name: [score.about.get(name) for score in scores] for name in names}
    about = {name: None if None in values else float(np.mean(np.array(values))) for name, values in known.items()}
    summary = {**first.summary, "judge_hash": None}
    return Scored({**first.about, **about}, summary, first.entries.assign(**means), tables)


def all_scores(judges: Mapping[str, Sequence[Scored]], oracle: Sequence[Scored] = ()) -> list[Scored]:
    """Return a generator's scores by split: of all judges, of each, of the oracle. judges: scores by each, by name."""
    by_judge = [[replace(score, judge_seed=judge) for score in scores] for judge, scores in judges.items()]
    scores = by_judge[0]
    if len(judges) > 1:
        scores = [averaged(group) for group in zip(*by_judge, strict=True)]
        scores += [replace(score, part=True) for of_judge in by_judge for score in of_judge]
    return sorted([*scores, *oracle], key=lambda score: score.order)


def judge_means(scored: Scored, name: str, weights: np.ndarray | None = None) -> np.ndarray | None:
    """Return a score by each judge, (J,); None if there is one judge."""
    if len(scored.by_judge) == 1:
        return None
    values = [table[COMPARED[name].entries].to_numpy() for table in scored.by_judge]
    if weights is not None:
        return np.array([np.average(of_judge, weights=weights) for of_judge in values])
    return np.array([np.nanmean(of_judge) for of_judge in values])


def estimate(cells: crossed.Cells, judges: np.ndarray | None) -> Estimate:
    """Return a score with its interval over images, pairs and judges; without it, if there are too few pairs."""
    value = cells.mean
    if cells.clusters < 2:
        return Estimate(value, None, None)
    variance = crossed.variance(cells) + crossed.of_judges(judges)
    return crossed.fraction(value, variance, cells.images)


def mean_columns(scored: Scored, name: str, resamples: int) -> Row:
    """Return the mean of the entries that have a score, its intervals, and what each source adds to its error.

    ``name`` is the measure. Without entries there is no value.
    """
    rows = scored.entries[scored.entries[COMPARED[name].entries].notna()]
    if rows.empty:
        return {}
    values, weights = rows[COMPARED[name].entries].to_numpy(), np.ones(len(rows))
    images, about = rows["image_id"].to_numpy(), scored.summary
    cells = crossed.cells(images, rows["pair"].to_numpy(), values, weights)
    # The same random numbers for all rows, so that they resample the same images.
    stream = rng(about["seed"], "interval", about["dataset"], about["composition"])
    fixed = interval.share(images, values, weights, resamples, stream)
    judges = judge_means(scored, name)
    parts = crossed.components(cells, judges)
    return {
        **vars(estimate(cells, judges)),
        "fixed_low": fixed.low,
        "fixed_high": fixed.high,
        **{f"se_{source}": getattr(parts, source) ** 0.5 for source in SOURCES},
        **({"se_judges": None} if judges is None else {}),
    }


def balanced(scored: Scored) -> Estimate | None:
    """Return R-precision with the weights of the entries; None if they are not balanced."""
    entries = scored.entries
    if scored.split != "test_swapped" or entries.empty:
        return None
    values, weights = entries["expected_top1"].to_numpy(), entries["weight"].to_numpy()
    cells = crossed.cells(entries["image_id"].to_numpy(), entries["pair"].to_numpy(), values, weights)
    return estimate(cells, judge_means(scored, "r_precision", weights))
