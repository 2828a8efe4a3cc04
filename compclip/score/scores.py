"""Turn judged entries into a table of scores and its summary, for trained judges and the oracle."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.rounding import DECIMALS, rounded
from compclip.core.tables import CAPTION_KEY, are_among, is_further
from compclip.score.choices import Choices
from compclip.score.config import Scoring
from compclip.score.entries import ENTRY, EntrySet, Numbered, pool_summary
from compclip.stats import balance
from compclip.stats.r_precision import Blocks, Judged, judge_entries, sampled

Prediction = tuple[str, int, str, int]


@dataclass(frozen=True)
class Rules:
    """How entries are scored."""

    scoring: Scoring
    classes: pd.Series  # the class of each image, by image_id
    seed: int = 0
    composition: str = ""  # how dominant pairs are balanced
    prompts: str = (
        "all"  # the captions of test_seen and test_unseen that are prompts, for the summaries
    )
    swapped: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=CAPTION_KEY)
    )  # the swapped captions

    @property
    def candidates(self) -> int:
        assert self.scoring.candidates is not None, "the pool decides it"
        return self.scoring.candidates


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
    parts = [of[[*ENTRY, "pair"]] for of in (entry_set.entries, entry_set.failed) if len(of)]
    table = pd.concat(parts or [entry_set.entries[[*ENTRY, "pair"]]], ignore_index=True)
    for name, values, failed in (
        ("similarity", judged.similarity, np.nan),
        ("p_beaten", judged.beaten, 1),
        ("p_tied", judged.tied, 0),
        ("expected_top1", judged.expected, 0),
    ):
        padded = np.append(values.astype(np.float64), np.full(len(entry_set.failed), failed))
        # Adding 0 turns -0.0 into 0.0.
        table[name] = np.round(padded, DECIMALS) + 0.0
    table["hit"] = np.append(judged.hit, np.zeros(len(entry_set.failed), bool))
    table["weight"] = np.round(weight, DECIMALS)
    table["adjectives"] = choices.adjectives
    table["adjective_first"] = np.round(choices.first, DECIMALS)
    table["adjusted_first"] = (
        np.nan if choices.adjusted is None else np.round(choices.adjusted, DECIMALS)
    )
    chosen = np.full(len(table), None) if choices.chosen is None else choices.chosen
    table["adjective_chosen"] = pd.Series(chosen, index=table.index, dtype="str")
    return table


def score_set(
    rules: Rules,
    entry_set: EntrySet,
    numbered: Numbered,
    blocks: Blocks,
    texts: int,
    choices: Choices,
    more: Callable[[np.ndarray, Judged], dict[str, Any]],
) -> SetScores:
    """Return the scores of one set and, in test_seen, also of the entries whose caption was
    swapped.

    ``more`` maps entries with an image, (n,) booleans, to additions to the summary; it is called
    after one pass over ``blocks``. ``texts`` is the number of distinct captions; ``choices``
    include entries without an image.
    """
    scoring = rules.scoring
    settings: dict[str, Any] = {
        "candidates": rules.candidates,
        "ties": scoring.ties,
        "seed": rules.seed,
    }
    judged = judge_entries(blocks, texts, numbered.entries, numbered.pool, **settings)
    made, pairs = len(entry_set.entries), [*entry_set.entries["pair"], *entry_set.failed["pair"]]
    cut, weight, prompts = None, np.ones(len(pairs)), rules.prompts
    if entry_set.split == "test_swapped":
        cut = balance.cut_dominant(
            pairs, scoring.balance.dominant_of(rules.composition), scoring.balance.ratio
        )
        weight, prompts = balance.weights(pairs, cut), "swapped"
    table = score_table(entry_set, judged, weight, choices)
    every = ~is_further(table)
    summaries = [
        set_summary(rules, entry_set, numbered, table, every, cut, prompts)
        | more(every[:made], judged)
    ]
    if entry_set.split == "test_seen":
        rows = every & are_among(table, rules.swapped, CAPTION_KEY)
        # Missing images are those of the whole set.
        named = replace(entry_set, failed=entry_set.failed.iloc[:0])
        summary = set_summary(rules, named, numbered, table, rows, None, "swapped")
        summaries.append(summary | more(rows[:made], judged))
    table = table.sort_values(ENTRY, ignore_index=True) if len(entry_set.failed) else table
    return SetScores(table, summaries, predictions(entry_set, judged, every[:made]))


def predictions(entry_set: EntrySet, judged: Judged, rows: np.ndarray) -> list[Prediction]:
    """Return the sampled hits of the entries ``rows``, (n,), as published: image_id, caption_id,
    path, and the index of the candidate ranked first.
    """
    columns = (
        entry_set.entries.loc[rows, name].tolist() for name in ("image_id", "caption_id", "path")
    )
    # One object for equal texts, so that the pickle's bytes depend only on the content.
    return [
        (sys.intern(image), int(caption), sys.intern(path), int(index))
        for image, caption, path, index in zip(
            *columns, np.array(judged.predicted)[rows], strict=True
        )
    ]


def _sampled(rules: Rules, hits: pd.Series) -> dict[str, Any]:
    means = sampled(hits, rules.scoring.chunks, rules.seed, rules.scoring.chunking) or (None, None)
    return {"sampled_mean": rounded(means[0]), "sampled_std": rounded(means[1])}


def adjective_summary(table: pd.DataFrame) -> dict[str, Any]:
    """Return adjective accuracy, its chance level and n, over entries whose prompt has variants."""
    asked = table[table["adjectives"] > 1]
    if asked.empty:
        return {"adjective": None, "adjective_chance": None, "adjective_judged": 0}
    chance = (1 / asked["adjectives"]).mean()
    accuracy = asked["adjective_first"].mean()
    return {
        "adjective": rounded(accuracy),
        "adjective_chance": rounded(chance),
        "adjective_judged": len(asked),
    }


def set_summary(
    rules: Rules,
    entry_set: EntrySet,
    numbered: Numbered,
    table: pd.DataFrame,
    rows: np.ndarray,
    cut: balance.Cut | None,
    prompts: str,
) -> dict[str, Any]:
    """Return the summary of the entries ``rows``, (n,) booleans; ``prompts`` names the captions
    that they cover.
    """
    table, made = table[rows], rows[: len(entry_set.entries)]
    failed = entry_set.failed.groupby("status")["file_name"].agg(list)
    result: dict[str, Any] = {
        "set": entry_set.name,
        "split": entry_set.split,
        "prompts": prompts,
        "distractors": entry_set.distractors,
        "judged": len(table),
        "images": int(table["image_id"].nunique()),
        "missing": failed.get("missing", []),
        "unreadable": failed.get("unreadable", []),
        "pool": pool_summary(numbered.pool, numbered.entries.classes[made], rules.candidates),
        "exact": rounded(table["expected_top1"].mean()) if len(table) else None,
        **adjective_summary(table),
        **_sampled(rules, table["hit"]),
    }
    if cut is not None:
        kept = balance.subsample(list(table["pair"]), cut, rules.seed)
        result["balance"] = {
            "rule": cut.rule,
            "pairs": len(cut.counts),
            "cut": {pair: {"of": cut.counts[pair], "kept": n} for pair, n in cut.kept.items()},
            **_sampled(rules, table.loc[kept, "hit"]),
        }
    return result
