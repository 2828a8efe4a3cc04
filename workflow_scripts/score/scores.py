"""From judged entries to a table of scores and its summary: what the trained judge and the oracle share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core.cli import log
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.pickles import plain_pickle
from workflow_scripts.core.tables import CAPTIONS, IMAGES, MANIFEST, PROMPTS, SCORES, SPLIT, SWAPPED, TESTS
from workflow_scripts.score.entries import KEYS, EntrySet, Numbered, class_names, entry_sets, pool_summary
from workflow_scripts.split.judged import judged_images
from workflow_scripts.stats import balance
from workflow_scripts.stats.r_precision import Chunking, Judged, Similarities, Ties, judge, sampled

DIGITS = 6


@dataclass(frozen=True)
class Settings:
    """How entries are scored: the config's ``score`` and the seed."""

    candidates: int
    ties: Ties
    chunks: int
    chunking: Chunking
    dominant: int
    ratio: float
    seed: int

    @property
    def candidate_rule(self) -> dict[str, Any]:
        """What ``precision.judge`` needs of them."""
        return {"candidates": self.candidates, "ties": self.ties, "seed": self.seed}

    def sampled(self, hits: pd.Series) -> tuple[float, float] | None:
        """The sampled score of hits, as ``precision.sampled``."""
        return sampled(hits, self.chunks, self.seed, self.chunking)


Prediction = tuple[str, int, str, int]


@dataclass(frozen=True)
class SetScores:
    """table: columns of ``tables.SCORES``. summaries: of each score in it. predictions: as published."""

    table: pd.DataFrame
    summaries: list[dict[str, Any]]
    predictions: list[Prediction]


@dataclass(frozen=True)
class Inputs:
    """The sets to score, and what their scores need to know."""

    sets: list[EntrySet]
    classes: pd.Series
    images: pd.DataFrame
    swapped: pd.DataFrame
    class_rule: str
    images_without_class: int


def load_inputs(options: argparse.Namespace) -> Inputs:
    """Read the tables and make the sets of the generator."""
    captions = read_table(options.captions, CAPTIONS)
    images = read_table(options.images, IMAGES)
    swapped = read_table(options.swapped, SWAPPED)
    judged = judged_images(read_table(options.splits, SPLIT), images, options.train_on, options.seed)
    sets = entry_sets(
        options.serves,
        options.distractors,
        prompts=read_table(options.prompts, PROMPTS),
        manifest=read_table(options.manifest, MANIFEST),
        captions=captions,
        judged=judged,
        swapped=swapped,
    )
    classes = class_names(captions)
    mine = classes[classes.index.isin(judged["image_id"])]
    alone = int(mine.str.startswith("image ").sum())
    rule = "other image" if alone == len(mine) else "other class"
    return Inputs(sets, classes, images, swapped, rule, alone)


def rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS)


def score_table(entry_set: EntrySet, judged: Judged, weight: np.ndarray) -> pd.DataFrame:
    """Columns of ``tables.SCORES``, a row an entry."""
    table = entry_set.entries[[*KEYS, "pair"]].copy()
    columns = {
        "similarity": judged.similarity,
        "p_beaten": judged.beaten,
        "p_tied": judged.tied,
        "expected_top1": judged.expected,
    }
    for name, values in columns.items():
        # Adding 0 turns -0.0 into 0.0.
        table[name] = np.round(values.astype(np.float64), DIGITS) + 0.0
    table["hit"] = judged.hit
    table["weight"] = np.round(weight, DIGITS)
    return table


def cut_of(entry_set: EntrySet, settings: Settings) -> balance.Cut | None:
    """How the entries are balanced; None where only the swapped ones are."""
    if entry_set.split != "test_swapped":
        return None
    return balance.cut_dominant(list(entry_set.entries["pair"]), settings.dominant, settings.ratio)


def weights_of(entry_set: EntrySet, cut: balance.Cut | None) -> np.ndarray:
    """(n,) the balanced weights; 1 where nothing is balanced."""
    return np.ones(len(entry_set.entries)) if cut is None else balance.weights(list(entry_set.entries["pair"]), cut)


def swapped_rows(entry_set: EntrySet, swapped: pd.DataFrame) -> np.ndarray:
    """(n,) which entries of test_seen are of captions that were swapped."""
    keys = pd.MultiIndex.from_frame(entry_set.entries[["image_id", "caption_id"]])
    return keys.isin(pd.MultiIndex.from_frame(swapped[["image_id", "caption_id"]]))


def score_set(
    entry_set: EntrySet,
    numbered: Numbered,
    similarities: Similarities,
    texts: int,
    *,
    swapped: pd.DataFrame,
    prompt_rule: str,
    settings: Settings,
    more: Callable[[np.ndarray, Judged], dict[str, Any]],
) -> SetScores:
    """The scores of one set.

    There is one of all its entries and, of test_seen, one of just those whose caption was swapped. ``more``: what
    a judge adds to a summary of some of the entries, (n,) booleans.
    """
    found = judge(similarities, texts, numbered.entries, numbered.pool, **settings.candidate_rule)
    cut = cut_of(entry_set, settings)
    table = score_table(entry_set, found, weights_of(entry_set, cut))
    prompts = "swapped" if entry_set.split == "test_swapped" else prompt_rule
    everything = np.ones(len(table), bool)
    summaries = [set_summary(entry_set, numbered, table, cut, settings, prompts=prompts) | more(everything, found)]
    if entry_set.split == "test_seen":
        rows = swapped_rows(entry_set, swapped)
        part, part_numbered = subset(entry_set, numbered, rows)
        about = set_summary(part, part_numbered, table[rows], None, settings, prompts="swapped")
        summaries.append(about | more(rows, found))
    return SetScores(table, summaries, predictions(entry_set, found))


def predictions(entry_set: EntrySet, judged: Judged) -> list[Prediction]:
    """The sampled hits in the published format: (image_id, caption_id, path relative to the results, index).

    The index is that of the candidate ranked first: 0 for a hit, and for a miss that of the nearest of the
    distractors that were drawn, in the order of the draw.
    """
    # One object for equal texts, so that the bytes of the pickle depend on the content alone.
    shared: dict[str, str] = {}
    columns = (entry_set.entries[name].tolist() for name in ("image_id", "caption_id", "path"))
    return [
        (shared.setdefault(image, image), int(caption), shared.setdefault(path, path), int(index))
        for image, caption, path, index in zip(*columns, judged.predicted, strict=True)
    ]


def set_summary(
    entry_set: EntrySet,
    numbered: Numbered,
    table: pd.DataFrame,
    cut: balance.Cut | None,
    settings: Settings,
    *,
    prompts: str,
) -> dict[str, Any]:
    """What is to be said of one score; ``prompts``: which of the split's captions it is of."""
    means = settings.sampled(table["hit"])
    result: dict[str, Any] = {
        "set": entry_set.name,
        "split": entry_set.split,
        "prompts": prompts,
        "distractors": entry_set.distractors,
        "judged": len(table),
        "images": int(table["image_id"].nunique()),
        "missing": entry_set.failed.get("missing", []),
        "unreadable": entry_set.failed.get("unreadable", []),
        "pool": pool_summary(numbered, settings.candidates),
        "exact": rounded(table["expected_top1"].mean()) if len(table) else None,
        "sampled_mean": rounded(means[0]) if means else None,
        "sampled_std": rounded(means[1]) if means else None,
    }
    if cut is not None:
        kept = balance.subsample(list(table["pair"]), cut, settings.seed)
        means = settings.sampled(table.loc[kept, "hit"])
        result["balance"] = {
            "rule": cut.rule,
            "pairs": len(cut.counts),
            "cut": {pair: {"of": cut.counts[pair], "kept": n} for pair, n in cut.kept.items()},
            "sampled_mean": rounded(means[0]) if means else None,
            "sampled_std": rounded(means[1]) if means else None,
        }
    return result


def subset(entry_set: EntrySet, numbered: Numbered, rows: np.ndarray) -> tuple[EntrySet, Numbered]:
    """Some entries of a set against the same pool; those without an image are of the whole set, and stay there."""
    entries = numbered.entries
    part = replace(
        entries,
        own=entries.own[rows],
        classes=entries.classes[rows],
        keys=[name for name, kept in zip(entries.keys, rows, strict=True) if kept],
    )
    kept = replace(entry_set, entries=entry_set.entries[rows].reset_index(drop=True), failed={})
    return kept, replace(numbered, entries=part)


def write_scores(found: dict[str, SetScores], folder: Path) -> list[dict[str, Any]]:
    """Write each set's table and its predictions as published; returns the summaries of all."""
    for name, scored in found.items():
        write_table(scored.table, folder / f"{name}.parquet", SCORES)
        (folder / f"{name}.predictions.pkl").write_bytes(plain_pickle(scored.predictions))
    return [summary for scored in found.values() for summary in scored.summaries]


def warn(summaries: Sequence[dict[str, Any]], generator: str, settings: Settings) -> None:
    """Log each score, and what a reader of it should know."""
    for found in summaries:
        where = f"{generator}, {found['set']} ({found['prompts']})"
        log.info("%s: %s of %d entries, exact", where, found["exact"], found["judged"])
        for kind in ("missing", "unreadable"):
            if found[kind]:
                log.warning("warning: %s: %d images %s, %s first", where, len(found[kind]), kind, found[kind][0])
        few = found["pool"]["entries_with_fewer_than_candidates"]
        if few:
            log.warning(
                "warning: %s: %d entries have fewer than %d eligible captions; the fewest are %d",
                where, few, settings.candidates - 1, found["pool"]["eligible_least"],
            )  # fmt: skip
        if found.get("balance") and not found["balance"]["cut"] and found["judged"]:
            log.warning("warning: %s: not balanced (%s)", where, found["balance"]["rule"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that scoring by any judge has."""
    for name in ("captions", "images", "splits", "swapped", "prompts", "manifest"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.parquet")
    parser.add_argument("--results", type=Path, required=True, help="the folder that paths in tables are relative to")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--composition", required=True)
    parser.add_argument("--generator", required=True)
    parser.add_argument("--serves", nargs="+", choices=TESTS, required=True, help="splits that the generator serves")
    parser.add_argument("--prompt-rule", choices=("pairs", "all"), default="pairs", help="as prompts were made")
    parser.add_argument("--train-on", choices=("train", "half", "all"), default="train", help="as the judge did")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--ties", choices=("random", "own_first"), default="random")
    parser.add_argument("--distractors", nargs="+", choices=("original", "swapped", "published"), default=["original"])
    parser.add_argument("--chunks", type=int, default=10)
    parser.add_argument("--chunking", choices=("even", "published"), default="even", help="of the sampled score")
    parser.add_argument("--dominant", type=int, choices=(1, 2), default=1, help="pairs cut by balancing")
    parser.add_argument("--ratio", type=float, default=1.25, help="to this times the next most frequent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True, help="folder of the tables of scores")


def settings_of(options: argparse.Namespace) -> Settings:
    return Settings(
        options.candidates,
        options.ties,
        options.chunks,
        options.chunking,
        options.dominant,
        options.ratio,
        options.seed,
    )  # fmt: skip


def head(options: argparse.Namespace, inputs: Inputs) -> dict[str, Any]:
    """The first lines of a summary: which scores these are."""
    return {
        "dataset": options.dataset,
        "composition": options.composition,
        "generator": options.generator,
        "train_on": options.train_on,
        "seed": options.seed,
        "candidates": options.candidates,
        "ties": options.ties,
        "chunks": options.chunks,
        "chunking": options.chunking,
        "class_rule": inputs.class_rule,
        "images_without_class": inputs.images_without_class,
    }
