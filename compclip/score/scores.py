"""From judged entries to a table of scores and its summary, for the trained judge and for the oracle."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.rounding import DECIMALS, rounded
from compclip.score.choices import CAPTION, Choices
from compclip.score.config import Scoring
from compclip.score.entries import ENTRY, EntrySet, Numbered, pool_summary
from compclip.stats import balance
from compclip.stats.r_precision import Blocks, Judged, judge, sampled

Prediction = tuple[str, int, str, int]


@dataclass(frozen=True)
class Rules:
    """How entries are scored."""

    scoring: Scoring
    classes: pd.Series  # the class of each image, by image_id
    seed: int = 0
    composition: str = ""  # which dominant pairs are balanced
    prompts: str = "all"  # which captions of test_seen and test_unseen are prompts, for the summaries
    swapped: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=CAPTION))  # the swapped captions

    @property
    def candidates(self) -> int:
        assert self.scoring.candidates is not None, "the pool decides it"
        return self.scoring.candidates


@dataclass(frozen=True)
class SetScores:
    """The scores of one set."""

    table: pd.DataFrame  # columns of ``tables.SCORES``
    summaries: list[dict[str, Any]]  # of all entries and, in test_seen, of those whose caption was swapped
    predictions: list[Prediction]  # as published


def score_table(entry_set: EntrySet, judged: Judged, weight: np.ndarray, choices: Choices) -> pd.DataFrame:
    """Return the columns of ``tables.SCORES``, a row per entry."""
    table = entry_set.entries[[*ENTRY, "pair"]].copy()
    chances = {"similarity": judged.similarity, "p_beaten": judged.beaten, "p_tied": judged.tied}
    for name, values in (chances | {"expected_top1": judged.expected}).items():
        # Adding 0 turns -0.0 into 0.0.
        table[name] = np.round(values.astype(np.float64), DECIMALS) + 0.0
    table["hit"] = judged.hit
    table["weight"] = np.round(weight, DECIMALS)
    table["adjectives"] = choices.adjectives
    table["adjective_first"] = np.round(choices.first, DECIMALS)
    return table


def score_set(
    rules: Rules, entry_set: EntrySet, numbered: Numbered, blocks: Blocks, texts: int, choices: Choices,
    more: Callable[[np.ndarray, Judged], dict[str, Any]],
) -> SetScores:  # fmt: skip
    """Score one set and, of test_seen, the entries whose caption was swapped.

    ``more`` is what a judge adds to the summary of entries, (n,) booleans; it is called after one pass over ``blocks``.
    ``texts`` is the number of distinct captions.
    """
    scoring = rules.scoring
    rule: dict[str, Any] = {"candidates": rules.candidates, "ties": scoring.ties, "seed": rules.seed}
    judged = judge(blocks, texts, numbered.entries, numbered.pool, **rule)
    pairs = list(entry_set.entries["pair"])
    cut, weight, prompts = None, np.ones(len(pairs)), rules.prompts
    if entry_set.split == "test_swapped":
        cut = balance.cut_dominant(pairs, scoring.balance.dominant_of(rules.composition), scoring.balance.ratio)
        weight, prompts = balance.weights(pairs, cut), "swapped"
    table = score_table(entry_set, judged, weight, choices)
    summary = set_summary(rules, entry_set, numbered, table, cut, prompts)
    summaries = [summary | more(np.ones(len(pairs), bool), judged)]
    if entry_set.split == "test_seen":
        captions, swapped = (pd.MultiIndex.from_frame(of[CAPTION]) for of in (entry_set.entries, rules.swapped))
        rows = captions.isin(swapped)
        summary = set_summary(rules, *subset(entry_set, numbered, rows), table[rows], None, "swapped")
        summaries.append(summary | more(rows, judged))
    return SetScores(table, summaries, predictions(entry_set, judged))


def predictions(entry_set: EntrySet, judged: Judged) -> list[Prediction]:
    """Return the sampled hits as published: image_id, caption_id, path, and the index of the candidate ranked first."""
    # One object for equal texts, so that the bytes of the pickle depend only on the content.
    shared: dict[str, str] = {}
    columns = (entry_set.entries[name].tolist() for name in ("image_id", "caption_id", "path"))
    return [
        (shared.setdefault(image, image), int(caption), shared.setdefault(path, path), int(index))
        for image, caption, path, index in zip(*columns, judged.predicted, strict=True)
    ]


def _sampled(rules: Rules, hits: pd.Series) -> dict[str, Any]:
    means = sampled(hits, rules.scoring.chunks, rules.seed, rules.scoring.chunking) or (None, None)
    return {"sampled_mean": rounded(means[0]), "sampled_std": rounded(means[1])}


def adjective_summary(table: pd.DataFrame) -> dict[str, Any]:
    """Return adjective accuracy, its chance level and n, over the entries whose prompt has variants."""
    asked = table[table["adjectives"] > 1]
    if asked.empty:
        return {"adjective": None, "adjective_chance": None, "adjective_judged": 0}
    chance = (1 / asked["adjectives"]).mean()
    accuracy = asked["adjective_first"].mean()
    return {"adjective": rounded(accuracy), "adjective_chance": rounded(chance), "adjective_judged": len(asked)}


def set_summary(
    rules: Rules, entry_set: EntrySet, numbered: Numbered, table: pd.DataFrame, cut: balance.Cut | None, prompts: str
) -> dict[str, Any]:
    """Return the summary of one score; ``prompts`` says which of the split's captions it covers."""
    result: dict[str, Any] = {
        "set": entry_set.name,
        "split": entry_set.split,
        "prompts": prompts,
        "distractors": entry_set.distractors,
        "judged": len(table),
        "images": int(table["image_id"].nunique()),
        "missing": entry_set.failed.get("missing", []),
        "unreadable": entry_set.failed.get("unreadable", []),
        "pool": pool_summary(numbered, rules.candidates),
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


def subset(entry_set: EntrySet, numbered: Numbered, rows: np.ndarray) -> tuple[EntrySet, Numbered]:
    """Return some entries of a set, (n,) booleans, with the same pool; prompts without an image stay with the set."""
    entries = numbered.entries
    keys = list(compress(entries.keys, rows))
    part = replace(entries, own=entries.own[rows], classes=entries.classes[rows], keys=keys)
    kept = replace(entry_set, entries=entry_set.entries[rows].reset_index(drop=True), failed={})
    return kept, replace(numbered, entries=part)
