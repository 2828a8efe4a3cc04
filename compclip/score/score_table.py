"""Turn judged entries into a table of scores and its summary, for trained judges and the oracle."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.artifacts.rounding import DECIMALS, rounded
from compclip.core.tables import CAPTION_KEY, are_among, is_further
from compclip.score.choices import Choices
from compclip.score.config import Scoring
from compclip.score.entries import ENTRY, EntrySet, Numbered, pool_summary
from compclip.stats import balance
from compclip.stats.r_precision import Blocks, Entries, Judged, Weights, judge_entries, sampled

Prediction = tuple[str, int, str, int]


@dataclass(frozen=True)
class Rules:
    """How entries are scored."""

    scoring: Scoring
    seed: int = 0
    composition: str = ""  # its name decides how many pairs are dominant (``Balance.dominant_of``)
    # the config's split.prompts, which summaries state
    prompts: str = "all"
    # the swapped captions
    swapped: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CAPTION_KEY))

    @property
    def candidates(self) -> int:
        assert self.scoring.candidates is not None, "the pool decides it"
        return self.scoring.candidates

    def judge(
        self, entry_set: EntrySet, entries: Entries, blocks: Blocks, weights: Weights
    ) -> Judged:
        """Return the results of the entries of a set, from their similarities with all texts.

        entries: those of the set, with the numbers of the texts in ``blocks``.
        """
        draws = entry_set.draws(self.candidates, self.seed)
        return judge_entries(blocks, entries, weights, draws, self.scoring.ties)

    def cap(self, pairs: Sequence[str]) -> balance.Cap:
        """Return how dominant swapped pairs are reduced."""
        settings = self.scoring.balance
        return balance.cap_dominant(pairs, settings.dominant_of(self.composition), settings.ratio)

    def sampled(self, hits: pd.Series) -> dict[str, Any]:
        """Return the sampled score over chunks, for a summary."""
        statistics = sampled(hits, self.scoring.chunks, self.seed, self.scoring.chunking)
        mean, deviation = statistics or (None, None)
        return {"sampled_mean": rounded(mean), "sampled_std": rounded(deviation)}


@dataclass(frozen=True)
class SetScores:
    """The scores of one set."""

    table: pd.DataFrame  # columns of ``tables.SCORES``
    summaries: list[dict[str, Any]]  # of all prompts and, in test_seen, of the swapped captions
    predictions: list[Prediction]  # as published


def score_table(
    entry_set: EntrySet, judged: Judged, weight: np.ndarray, choices: Choices
) -> pd.DataFrame:
    """Return the columns of ``tables.SCORES``, a row per entry; entries without an image come last
    and are wrong.
    """
    keys = [rows[[*ENTRY, "pair"]] for rows in (entry_set.entries, entry_set.failed)]
    # An empty table would change the dtypes of the others.
    table = pd.concat([rows for rows in keys if len(rows)] or keys[:1], ignore_index=True)
    failed = len(entry_set.failed)

    def column(values: np.ndarray, value_of_failed: float) -> np.ndarray:
        padded = np.append(values.astype(np.float64), np.full(failed, value_of_failed))
        # Adding 0 turns -0.0 into 0.0.
        return np.round(padded, DECIMALS) + 0.0

    table["similarity"] = column(judged.similarity, np.nan)
    table["p_beaten"] = column(judged.beaten, 1)
    table["p_tied"] = column(judged.tied, 0)
    table["expected_top1"] = column(judged.expected, 0)
    # A hit is sampled, all other values are exact.
    table["hit"] = np.append(judged.hit, np.zeros(failed, bool))
    table["weight"] = np.round(weight, DECIMALS)
    table["adjectives"] = choices.n_adjectives
    table["adjective_first"] = np.round(choices.first, DECIMALS)
    adjusted = np.nan if choices.adjusted is None else np.round(choices.adjusted, DECIMALS)
    table["adjusted_first"] = adjusted
    chosen = np.full(len(table), None) if choices.chosen is None else choices.chosen
    table["adjective_chosen"] = pd.Series(chosen, index=table.index, dtype="str")
    return table


def score_set(
    rules: Rules,
    entry_set: EntrySet,
    numbered: Numbered,
    judged: Judged,
    choices: Choices,
    controls: Callable[[np.ndarray], dict[str, Any]],
) -> SetScores:
    """Return the scores of one set and, in test_seen, also of the entries whose caption was
    swapped.

    Args:
        judged: as of ``Rules.judge``.
        choices: include entries without an image.
        controls: maps entries with an image, (n,) booleans, to additions to the summary.
    """
    n = len(entry_set.entries)
    # The entries without an image come last, as in the table.
    pairs = entry_set.entries["pair"].tolist() + entry_set.failed["pair"].tolist()
    cap = None
    weight = np.ones(len(pairs))  # only swapped entries are balanced
    prompts = rules.prompts
    if entry_set.split == "test_swapped":
        cap = rules.cap(pairs)
        weight = balance.weights(pairs, cap)
        prompts = "swapped"
    table = score_table(entry_set, judged, weight, choices)
    # Further draws count only in what is drawn of seen pairs (``tables.is_further``).
    first_draws = ~is_further(table)
    summary = set_summary(rules, entry_set, numbered, table, first_draws, cap, prompts)
    summaries = [summary | controls(first_draws[:n])]
    if entry_set.split == "test_seen":
        rows = first_draws & are_among(table, rules.swapped, CAPTION_KEY)
        # Missing images are named in the summary of the whole set.
        without_failed = replace(entry_set, failed=entry_set.failed.iloc[:0])
        summary = set_summary(rules, without_failed, numbered, table, rows, None, "swapped")
        summaries.append(summary | controls(rows[:n]))
    # Sorted like the entries of a set without failed images.
    if len(entry_set.failed):
        table = table.sort_values(ENTRY, ignore_index=True)
    # As in the published files, which have no further draws.
    published = predictions(entry_set, judged, first_draws[:n])
    return SetScores(table, summaries, published)


def predictions(entry_set: EntrySet, judged: Judged, rows: np.ndarray) -> list[Prediction]:
    """Return the sampled hits of the entries ``rows``, (n,), as published: image_id, caption_id,
    path, and the index of the candidate ranked first.
    """
    entries = entry_set.entries[rows]
    # Lists, because iterating over a column of strings takes several times as long. One object for
    # equal texts, so that the pickle's bytes depend only on the content.
    images = map(sys.intern, entries["image_id"].tolist())
    paths = map(sys.intern, entries["path"].tolist())
    predicted = judged.predicted[rows].tolist()
    return list(zip(images, entries["caption_id"].tolist(), paths, predicted, strict=True))


def adjective_summary(table: pd.DataFrame) -> dict[str, Any]:
    """Return adjective accuracy, its chance level and n, over entries whose prompt has variants."""
    with_variants = table[table["adjectives"] > 1]
    if with_variants.empty:
        return {"adjective": None, "adjective_chance": None, "adjective_judged": 0}
    chance = (1 / with_variants["adjectives"]).mean()
    accuracy = with_variants["adjective_first"].mean()
    # A blind choice among k adjectives is right with chance 1 / k.
    return {
        "adjective": rounded(accuracy),
        "adjective_chance": rounded(chance),
        "adjective_judged": len(with_variants),
    }


def set_summary(
    rules: Rules,
    entry_set: EntrySet,
    numbered: Numbered,
    table: pd.DataFrame,
    rows: np.ndarray,
    cap: balance.Cap | None,
    prompts: str,
) -> dict[str, Any]:
    """Return the summary of the entries ``rows``, (n,) booleans; ``prompts`` names the captions
    that they cover.
    """
    table = table[rows]
    failed = entry_set.failed.groupby("status")["file_name"].agg(list)
    classes = numbered.entries.classes[rows[: len(entry_set.entries)]]
    summary: dict[str, Any] = {
        "set": entry_set.name,
        "split": entry_set.split,
        "prompts": prompts,
        "distractors": entry_set.distractors,
        "judged": len(table),
        "images": int(table["image_id"].nunique()),
    }
    for status in ("missing", "broken"):
        summary[status] = failed.get(status, [])
    summary["pool"] = pool_summary(numbered.pool, classes, rules.candidates)
    summary["exact"] = rounded(table["expected_top1"].mean()) if len(table) else None
    summary |= adjective_summary(table)
    summary |= rules.sampled(table["hit"])
    if cap is not None:
        # Weights balance the exact score, a subsample the sampled one.
        kept = balance.subsample(table["pair"].tolist(), cap, rules.seed)
        counts = {pair: {"of": cap.counts[pair], "kept": n} for pair, n in cap.kept.items()}
        settings = {"rule": cap.rule, "pairs": len(cap.counts), "cut": counts}
        summary["balance"] = settings | rules.sampled(table.loc[kept, "hit"])
    return summary
