"""Precision and recall of the extraction on captions that were labelled by hand.

A label names a caption by image and number and lists, as ``adjective_noun``, the pairs of the lexicons that a
careful reader takes it to state; ``either`` lists those on which readers may differ, which count neither way.
Captions come from captions.parquet or from the archive of the birds' captions. Disputed pairs are not counted
as found: what is measured is what is ranked.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS
from workflow_scripts.dataset.sources.cub import read_captions
from workflow_scripts.pairs.engine import Extractor, decode
from workflow_scripts.text.lexicon import Lexicon, load_lexicon

RESAMPLES = 2000


def read_labels(path: Path) -> list[dict[str, Any]]:
    """The labels, a JSON object a line: image_id, caption_id, part (dev or blind), pairs, and perhaps either."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_texts(path: Path, labels: Sequence[dict[str, Any]]) -> list[str]:
    """The text of each labelled caption; UserError where one is missing."""
    captions = read_captions(path)[0] if path.suffix == ".zip" else read_table(path, CAPTIONS)
    wanted = captions[captions["image_id"].isin({label["image_id"] for label in labels})]
    texts = {(row.image_id, row.caption_id): row.text for row in wanted.itertuples()}
    try:
        return [texts[label["image_id"], label["caption_id"]] for label in labels]
    except KeyError as error:
        raise UserError(f"{path}: has no caption {error}: labels and captions belong to different data") from error


def _share(hits: np.ndarray, totals: np.ndarray, draws: np.ndarray) -> dict[str, float]:
    """Sum of hits over sum of totals, with the 95 % bootstrap interval over captions."""
    resampled = hits[draws].sum(axis=1) / np.maximum(totals[draws].sum(axis=1), 1)
    low, high = np.percentile(resampled, (2.5, 97.5))
    value = hits.sum() / max(totals.sum(), 1)
    return {"value": round(float(value), 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def compare(
    labels: Sequence[dict[str, Any]], found: Sequence[set[str]], adjectives: Sequence[Lexicon], nouns: Lexicon
) -> dict[str, Any]:
    """Precision and recall for each composition and overall.

    Args:
        labels: as ``read_labels`` gives them
        found: the pairs found in each caption, in the labels' order
        adjectives: one lexicon a composition
        nouns: other nouns are not labelled and not counted
    """
    kinds = {lexicon.name: set(lexicon.words) for lexicon in adjectives}
    kinds["overall"] = set().union(*kinds.values())
    draws = rng(0, "evaluate", len(labels)).integers(0, len(labels), (RESAMPLES, len(labels)))
    report: dict[str, Any] = {"captions": len(labels)}
    for kind, words in kinds.items():
        rows = []
        for label, pairs in zip(labels, found, strict=True):
            truth = {p for p in label["pairs"] if p.split("_")[0] in words}
            mine = {p for p in pairs if p.split("_")[0] in words and p.split("_")[1] in nouns.words}
            mine -= set(label.get("either", ()))
            rows.append((len(truth & mine), len(mine), len(truth)))
        hits, mine, truth = np.array(rows).T
        report[kind] = {
            "labelled": int(truth.sum()),
            "found": int(mine.sum()),
            "right": int(hits.sum()),
            "precision": _share(hits, mine, draws),
            "recall": _share(hits, truth, draws),
        }
    return report


def errors(labels: Sequence[dict[str, Any]], found: Sequence[set[str]], words: set[str], nouns: Lexicon) -> list[str]:
    """A line for each caption with a wrong or a missed pair."""
    lines = []
    for label, pairs in zip(labels, found, strict=True):
        truth = set(label["pairs"])
        mine = {p for p in pairs if p.split("_")[0] in words and p.split("_")[1] in nouns.words}
        wrong = sorted(mine - truth - set(label.get("either", ())))
        missed = sorted(truth - mine)
        if wrong or missed:
            lines.append(f"{label['image_id']} {label['caption_id']}: wrong {wrong}, missed {missed}")
    return lines


def evaluate(extractor: Extractor, texts: Sequence[str]) -> list[set[str]]:
    """The pairs, as adjective_noun, that are found and not disputed in each of the texts."""
    return [
        {f"{o.adjective}_{o.noun}" for o in decode(value) if o.relation != "disputed"}
        for value in extractor.parse(texts)
    ]


def main(options: argparse.Namespace) -> None:
    labels = read_labels(options.labels)
    adjectives, nouns = [load_lexicon(path) for path in options.adjectives], load_lexicon(options.nouns)
    found = evaluate(Extractor(options.model, adjectives, nouns), read_texts(options.captions, labels))
    report = {"all": compare(labels, found, adjectives, nouns)}
    for part in sorted({label["part"] for label in labels}):
        some = [(label, pairs) for label, pairs in zip(labels, found, strict=True) if label["part"] == part]
        report[part] = compare(*zip(*some, strict=True), adjectives, nouns)
    print(json.dumps(report, indent=2))
    if options.errors:
        words = {word for lexicon in adjectives for word in lexicon.words}
        some = [(label, pairs) for label, pairs in zip(labels, found, strict=True) if label["part"] == options.errors]
        print("\n".join(errors(*zip(*some, strict=True), words, nouns)))


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--labels", type=Path, default=Path("tests/pairs/labels.jsonl"), help="a label a line (JSON)")
    parser.add_argument("--captions", type=Path, required=True, help="captions.parquet, or cub_captions.zip")
    parser.add_argument(
        "--adjectives", type=Path, nargs="+",
        default=[Path("lexicons/adjectives/color.yaml"), Path("lexicons/adjectives/shape.yaml")],
    )  # fmt: skip
    parser.add_argument("--nouns", type=Path, default=Path("lexicons/nouns/birds.yaml"))
    parser.add_argument("--model", default="en_core_web_sm", help="spaCy pipeline")
    parser.add_argument("--errors", metavar="PART", help="also list the captions of this part with an error")
    cli.run(main, parser)
