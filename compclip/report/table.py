"""The rows of ``table.csv``, one a score: a generator's images of one split, by one judge.

``exact`` is R-precision, ``adjective`` adjective accuracy over the ``adjective_n`` entries whose prompt has variants,
``adjective_corrected`` the same after correction for chance. Their intervals (``_low``, ``_high``) cover images, pairs
and judges; those of ``_fixed_low`` and ``_fixed_high`` only images, for these pairs and judges. ``_se_pairs`` and so on
are standard errors: what each source alone adds to a score's error; ``_se_judges`` needs several judges.
``_normalized`` is relative to the reference (``values.py``). With several judges, the first rows are of their mean,
without ``judge_seed`` and ``judge_hash``, and those of each judge follow.

``prompts`` is ``pairs`` (captions with a pair) or ``all``, as configured, and ``swapped`` for captions that were
swapped: all of test_swapped and, in a second row of test_seen, those that test_swapped swaps. ``sampled_mean`` and
``sampled_std`` are not balanced. ``hubness`` is the fraction of wrong first ranks that the most frequent 1 % of the
captions take.
``balanced`` weights the entries of test_swapped; if there are too few pairs to balance, it equals ``exact``, and the
readable tables say so. ``atom_divergence``, ``compound_divergence`` (of pairs) and ``subgraph_divergence`` compare
train with the split's prompts; they depend on neither generator nor judge.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.errors import UserError
from compclip.core.rounding import DECIMALS
from compclip.core.tables import ORACLE, TESTS
from compclip.divergence import results as divergences
from compclip.report.measures import BY_OTHERS, MEASURES
from compclip.stats import crossed
from compclip.stats.estimates import estimate_score, score_stream
from compclip.stats.interval import Estimate
from compclip.stats.r_precision import sampled

SOURCES = ("pairs", "images", "judges", "residual")


def _columns(name: str) -> list[str]:
    ends = ["", "_low", "_high", "_fixed_low", "_fixed_high"]
    return [f"{name}{end}" for end in ends] + [f"{name}_se_{source}" for source in SOURCES]


def _normalized(name: str) -> list[str]:
    return [f"{name}_normalized{end}" for end in ("", "_low", "_high")]


COLUMNS = [
    "dataset", "composition", "generator", "split", "prompts", "n", "images", "pairs", *_columns("exact"),
    *_normalized("exact"), "adjective_n", *_columns("adjective"), "adjective_chance", "adjective_corrected",
    *_normalized("adjective"), "sampled_mean", "sampled_std", "balanced", "balanced_low", "balanced_high", *BY_OTHERS,
    "judges", "judge", "judge_seed", "judge_hash", "candidates", "class_rule", "distractors", "seed",
    *divergences.COLUMNS,
]  # fmt: skip
# The columns that identify an entry.
ENTRY = ["image_id", "caption_id", "draw"]
Row = dict[str, Any]


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
        for name in (measure.entries for measure in MEASURES.values())
    }
    known = {name: [score.about.get(name) for score in scores] for name in (*BY_OTHERS, "adjective")}
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
    values = [table[MEASURES[name].entries].to_numpy() for table in scored.by_judge]
    if weights is not None:
        return np.array([np.average(of_judge, weights=weights) for of_judge in values])
    return np.array([np.nanmean(of_judge) for of_judge in values])


def measure_columns(scored: Scored, name: str, resamples: int) -> dict[str, float | None]:
    """Return a score's columns; None without entries."""
    column, about = MEASURES[name].entries, scored.summary
    if scored.entries[column].isna().all():
        return dict.fromkeys(_columns(name))
    values = np.stack([table[column].to_numpy(float) for table in scored.by_judge], axis=1)
    stream = score_stream(about["seed"], about["dataset"], about["composition"])
    images, pairs = (scored.entries[key].to_numpy() for key in ("image_id", "pair"))
    score = estimate_score(values, images, pairs, resamples=resamples, seed=stream)
    return {
        **columns_of(name, score),
        f"{name}_fixed_low": score.fixed_low,
        f"{name}_fixed_high": score.fixed_high,
        **{f"{name}_se_{source}": getattr(score.components, source) ** 0.5 for source in SOURCES},
        **({f"{name}_se_judges": None} if len(scored.by_judge) == 1 else {}),
    }


def balanced_columns(scored: Scored) -> dict[str, float | None]:
    """Return the columns of the balanced score; None if there is none."""
    entries = scored.entries
    if scored.split != "test_swapped" or entries.empty:
        return columns_of("balanced", None)
    values, weights = entries["expected_top1"].to_numpy(), entries["weight"].to_numpy()
    cells = crossed.cells(entries["image_id"].to_numpy(), entries["pair"].to_numpy(), values, weights)
    judges = judge_means(scored, "exact", weights)
    return columns_of("balanced", crossed.estimate(cells, judges))


def columns_of(name: str, value: Estimate | None) -> dict[str, float | None]:
    """Return an estimate as the columns ``name``, ``name_low`` and ``name_high``."""
    ends = (value.value, value.low, value.high) if value else (None, None, None)
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def table_row(scored: Scored, measured: pd.DataFrame, chunks: int, resamples: int) -> Row:
    """Return a row of ``table.csv``, by ``COLUMNS``; ``measured`` are ``tables.DIVERGENCE``."""
    about, summary, entries = scored.about, scored.summary, scored.entries
    chance, accuracy = about["adjective_chance"], about["adjective"]
    corrected = None if accuracy is None else (accuracy - chance) / (1 - chance)
    chunking = summary.get("chunking", "even")
    by_judge = [sampled(table["hit"], chunks, summary["seed"], chunking) for table in scored.by_judge]
    known = [means for means in by_judge if means]
    return {
        **{name: summary[name] for name in ("dataset", "composition", "generator")},
        **{name: about[name] for name in ("split", "prompts")},
        "n": len(entries),
        "images": entries["image_id"].nunique(),
        "pairs": entries["pair"].nunique(),
        **measure_columns(scored, "exact", resamples),
        "adjective_n": about["adjective_judged"],
        **measure_columns(scored, "adjective", resamples),
        "adjective_chance": chance,
        "adjective_corrected": corrected,
        "sampled_mean": float(np.mean([mean for mean, _ in known])) if known else None,
        "sampled_std": float(np.mean([deviation for _, deviation in known])) if known else None,
        **balanced_columns(scored),
        **{name: about.get(name) for name in BY_OTHERS},
        "judges": len(scored.by_judge),
        "judge": summary["judge"],
        "judge_seed": scored.judge_seed,
        **{name: summary[name] for name in ("judge_hash", "candidates", "class_rule")},
        "distractors": about["distractors"],
        "seed": summary["seed"],
        **divergences.beside_score(measured, scored.split, about["prompts"]),
    }


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: floats with six decimals, None as an empty cell."""
    table = table.copy()
    for name in table:
        if table[name].map(lambda value: isinstance(value, float) or value is None).all():
            # Adding 0 turns -0.0 into 0.0.
            table[name] = table[name].astype(float).round(DECIMALS) + 0.0
    return table.to_csv(index=False, float_format=f"%.{DECIMALS}f", lineterminator="\n")
