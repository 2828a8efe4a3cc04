"""From judged entries to a table of scores and its summary, for the trained judge and for the oracle."""

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from compclip.core.errors import require
from compclip.core.layout import ORACLE
from compclip.core.log import log
from compclip.core.rounding import DECIMALS, rounded
from compclip.core.tables import CAPTIONS, IMAGES, MANIFEST, PROMPTS, SCORES, SPLIT, SWAPPED, VARIANTS
from compclip.io import atomic_folder, read_table, write_json, write_table
from compclip.score.choices import Choices
from compclip.score.entries import ENTRY, EntrySet, Numbered, entry_sets, pool_summary
from compclip.score.steps import ScoreStep
from compclip.split.judged import judged_images
from compclip.split.pools import bounded, class_names, least_distractors
from compclip.stats import balance
from compclip.stats.r_precision import Blocks, Judged, judge, sampled

S = TypeVar("S", bound=ScoreStep)
Prediction = tuple[str, int, str, int]


@dataclass(frozen=True)
class SetScores:
    """The scores of one set."""

    table: pd.DataFrame  # columns of ``tables.SCORES``
    summaries: list[dict[str, Any]]  # of all entries and, in test_seen, of those whose caption was swapped
    predictions: list[Prediction]  # as published


@dataclass(frozen=True)
class Inputs:
    """The tables that the scores of all generators need."""

    tables: dict[str, pd.DataFrame]  # those of ``entry_sets``, apart from a generator's manifest
    classes: pd.Series
    images: pd.DataFrame
    variants: pd.DataFrame  # of the splits that a generator serves
    class_rule: str
    images_without_class: int


def load_inputs(step: S) -> tuple[S, Inputs]:
    """Return the step with the number of candidates that it uses, and its inputs; UserError if there are too few."""
    same = len(step.serves) == len(step.manifests) == len(step.scores)
    require(same, "--serves, --manifests, --scores", "different numbers of generators", "name each in all three")
    captions, images = read_table(step.captions, CAPTIONS), read_table(step.images, IMAGES)
    swapped = read_table(step.swapped, SWAPPED)
    judged = judged_images(read_table(step.splits, SPLIT), images, step.train_on, step.halves)
    prompts = read_table(step.prompts, PROMPTS)
    least = least_distractors(captions, judged, swapped, prompts)
    scoring = step.scoring.model_copy(update={"candidates": bounded(step.scoring.candidates, least, step.where)})
    classes = class_names(captions)
    judged_classes = classes[classes.index.isin(judged["image_id"])]
    alone = int(judged_classes.str.startswith("image ").sum())
    rule = "other image" if alone == len(judged_classes) else "other class"
    variants = read_table(step.variants, VARIANTS)
    variants = variants[variants["split"].isin(served(step))]
    tables = {"prompts": prompts, "captions": captions, "judged": judged, "swapped": swapped}
    inputs = Inputs(tables, classes, images, variants, rule, alone)
    return step.model_copy(update={"scoring": scoring}), inputs


def served(step: ScoreStep) -> set[str]:
    """Return the splits that any generator serves."""
    return {split for splits in step.serves.values() for split in splits}


def all_captions(step: ScoreStep, inputs: Inputs) -> list[str]:
    """Return the distinct captions of all sets, also of prompts without an image, sorted."""
    prompts, captions, judged, swapped = (inputs.tables[name] for name in ("prompts", "captions", "judged", "swapped"))
    texts = {*prompts.loc[prompts["split"].isin(served(step)), "text"].tolist()}
    texts.update(captions.loc[captions["image_id"].isin(judged["image_id"]), "text"].tolist())
    if "swapped" in step.scoring.distractors:
        texts.update(swapped.loc[swapped["image_id"].isin(judged["image_id"]), "swapped_text"].tolist())
    return sorted(texts)


def score_generators(
    step: ScoreStep, inputs: Inputs, score: Callable[[str, list[EntrySet]], tuple[dict[str, SetScores], dict[str, Any]]]
) -> None:
    """Score one generator after the other, and write the scores of each as soon as they are known.

    ``score`` takes a generator's name and sets; it returns the scores by set, and what the summary says of the judge.
    """
    generators = zip(step.serves.items(), step.manifests, step.scores, strict=True)
    for number, ((name, splits), manifest, folder) in enumerate(generators, 1):
        started = time.monotonic()
        made = read_table(manifest, MANIFEST)
        scored, by = score(name, entry_sets(splits, step.scoring.distractors, manifest=made, **inputs.tables))
        write_scores(step, inputs, scored, by, name, folder)
        log.info("generator %d of %d, %s: %.0f s", number, len(step.serves), name, time.monotonic() - started)


def candidates_of(step: ScoreStep) -> int:
    assert step.scoring.candidates is not None, "load_inputs sets it"
    return step.scoring.candidates


def parts(inputs: Inputs, entry_set: EntrySet) -> list[np.ndarray]:
    """Return which entries a summary covers, (n,) booleans: all and, of test_seen, those whose caption was swapped."""
    every = np.ones(len(entry_set.entries), bool)
    if entry_set.split != "test_seen":
        return [every]
    entries, swapped = (
        pd.MultiIndex.from_frame(table[["image_id", "caption_id"]])
        for table in (entry_set.entries, inputs.tables["swapped"])
    )
    return [every, entries.isin(swapped)]


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
    step: ScoreStep,
    inputs: Inputs,
    entry_set: EntrySet,
    numbered: Numbered,
    blocks: Blocks,
    texts: int,
    choices: Choices,
    more: Callable[[np.ndarray, Judged], dict[str, Any]],
) -> SetScores:
    """Score one set, and each of its ``parts``.

    ``more`` is what a judge adds to the summary of a part; it is called after one pass over ``blocks``. ``texts`` are
    distinct captions.
    """
    rule: dict[str, Any] = {"candidates": candidates_of(step), "ties": step.scoring.ties, "seed": step.seed}
    judged = judge(blocks, texts, numbered.entries, numbered.pool, **rule)
    pairs = list(entry_set.entries["pair"])
    is_swapped = entry_set.split == "test_swapped"
    cut, weight = None, np.ones(len(pairs))
    if is_swapped:
        settings = step.scoring.balance
        cut = balance.cut_dominant(pairs, settings.dominant_of(step.composition), settings.ratio)
        weight = balance.weights(pairs, cut)
    table = score_table(entry_set, judged, weight, choices)
    prompts = "swapped" if is_swapped else step.prompt_rule
    summary = set_summary(step, entry_set, numbered, table, cut, prompts)
    every, *others = parts(inputs, entry_set)
    of_all = more(every, judged)
    summaries = [summary | of_all]
    for rows in others:
        summary = set_summary(step, *subset(entry_set, numbered, rows), table[rows], None, "swapped")
        summaries.append(summary | (of_all if rows.all() else more(rows, judged)))
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


def _sampled(step: ScoreStep, hits: pd.Series) -> dict[str, Any]:
    means = sampled(hits, step.scoring.chunks, step.seed, step.scoring.chunking) or (None, None)
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
    step: ScoreStep, entry_set: EntrySet, numbered: Numbered, table: pd.DataFrame, cut: balance.Cut | None, prompts: str
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
        "pool": pool_summary(numbered, candidates_of(step)),
        "exact": rounded(table["expected_top1"].mean()) if len(table) else None,
        **adjective_summary(table),
        **_sampled(step, table["hit"]),
    }
    if cut is not None:
        kept = balance.subsample(list(table["pair"]), cut, step.seed)
        result["balance"] = {
            "rule": cut.rule,
            "pairs": len(cut.counts),
            "cut": {pair: {"of": cut.counts[pair], "kept": n} for pair, n in cut.kept.items()},
            **_sampled(step, table.loc[kept, "hit"]),
        }
    return result


def subset(entry_set: EntrySet, numbered: Numbered, rows: np.ndarray) -> tuple[EntrySet, Numbered]:
    """Return some entries of a set, (n,) booleans, with the same pool; prompts without an image stay with the set."""
    entries = numbered.entries
    keys = list(compress(entries.keys, rows))
    part = replace(entries, own=entries.own[rows], classes=entries.classes[rows], keys=keys)
    kept = replace(entry_set, entries=entry_set.entries[rows].reset_index(drop=True), failed={})
    return kept, replace(numbered, entries=part)


def write_scores(
    step: ScoreStep, inputs: Inputs, scored: dict[str, SetScores], by: dict[str, Any], name: str, to: Path
) -> None:
    """Write and log the scores of generator ``name`` by set; ``by`` tells of the judge."""
    summaries = [summary for scores in scored.values() for summary in scores.summaries]
    head: dict[str, Any] = {"dataset": step.dataset, "composition": step.composition, "generator": name}
    head |= {"train_on": step.train_on, "seed": step.seed}
    head |= {key: getattr(step.scoring, key) for key in ("candidates", "ties", "chunks", "chunking")}
    head |= {"class_rule": inputs.class_rule, "images_without_class": inputs.images_without_class}
    with atomic_folder(to) as folder:
        for set_name, scores in scored.items():
            write_table(scores.table, folder / f"{set_name}.parquet", SCORES)
            (folder / f"{set_name}.predictions.pkl").write_bytes(pickle.dumps(scores.predictions, protocol=2))
        write_json(head | by | {"scores": summaries}, folder / "summary.json")
    log_scores(summaries, f"{name} (oracle)" if by["judge"] == ORACLE else name, candidates_of(step))


def log_scores(summaries: Sequence[dict[str, Any]], name: str, candidates: int) -> None:
    for summary in summaries:
        where = f"{name}, {summary['set']} ({summary['prompts']})"
        log.info("%s: %s of %d entries, exact", where, summary["exact"], summary["judged"])
        for kind in ("missing", "unreadable"):
            if summary[kind]:
                log.warning("warning: %s: %d images %s, first: %s", where, len(summary[kind]), kind, summary[kind][0])
        few = summary["pool"]["entries_with_fewer_than_candidates"]
        if few:
            log.warning(
                "warning: %s: %d entries have fewer than %d eligible captions; the fewest are %d",
                where, few, candidates - 1, summary["pool"]["eligible_least"],
            )  # fmt: skip
        if summary.get("balance") and not summary["balance"]["cut"] and summary["judged"]:
            log.warning("warning: %s: not balanced (%s)", where, summary["balance"]["rule"])
