"""Measure precision and recall of the pair extraction on captions that were labelled by hand."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Step
from workflow_scripts.core.tables import CAPTIONS
from workflow_scripts.dataset.sources.cub import read_captions
from workflow_scripts.pairs.config import Parsing
from workflow_scripts.pairs.engine import Extractor, decode
from workflow_scripts.text.lexicon import Lexicon, load_lexicon

RESAMPLES = 2000


class Evaluate(Step):
    """Measure precision and recall of the pair extraction on captions that were labelled by hand.

    A label names a caption by image and number and lists, as ``adjective_noun``, the pairs of the lexicons that a
    careful reader takes it to state; ``either`` lists those on which readers may differ, which count neither way.
    Disputed pairs do not count as found, since they are not ranked.
    """

    labels: Input = Field(Path("tests/pairs/labels.jsonl"), description="labels, a JSON object per line")
    captions: Input = Field(description="captions.parquet, cub_captions.zip, or a text file with a caption a line")
    adjectives: list[Input] = Field(
        [Path("lexicons/adjectives/color.yaml"), Path("lexicons/adjectives/shape.yaml")],
        min_length=1,
        description="adjective lexicons (YAML)",
    )
    nouns: Input = Field(Path("lexicons/nouns/birds.yaml"), description="noun lexicon (YAML)")
    parsing: Parsing = Parsing()
    errors: str | None = Field(None, description="also list the captions of this part (dev or blind) with an error")


def read_labels(path: Path) -> list[dict[str, Any]]:
    """Return the labels: image_id, caption_id, part (dev or blind), pairs, and optionally either."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_lines(path: Path) -> pd.DataFrame:
    """Return the captions of a text file, gzipped or not: a caption's image_id is its line, from 1."""
    content = path.read_bytes()
    texts = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    return pd.DataFrame({"image_id": [str(n + 1) for n in range(len(texts))], "caption_id": 0, "text": texts})


def read_texts(path: Path, labels: Sequence[dict[str, Any]]) -> list[str]:
    """Return the text of each labelled caption; raises UserError if one is missing."""
    if path.suffix == ".zip":
        captions = read_captions(path)[0]
    else:
        captions = read_lines(path) if path.suffix in (".gz", ".txt") else read_table(path, CAPTIONS)
    labelled = captions[captions["image_id"].isin({label["image_id"] for label in labels})]
    texts = {(row.image_id, row.caption_id): row.text for row in labelled.itertuples()}
    try:
        return [texts[label["image_id"], label["caption_id"]] for label in labels]
    except KeyError as error:
        raise UserError(f"{path}: caption {error} is missing; give the captions that were labelled") from error


def _ratio(hits: np.ndarray, totals: np.ndarray, draws: np.ndarray) -> dict[str, float]:
    """Return the sum of hits over the sum of totals, with the 95 % bootstrap interval over captions."""
    resampled = hits[draws].sum(axis=1) / np.maximum(totals[draws].sum(axis=1), 1)
    values = hits.sum() / max(totals.sum(), 1), *np.percentile(resampled, (2.5, 97.5))
    return {name: round(float(value), 4) for name, value in zip(("value", "low", "high"), values, strict=True)}


def _counted(pairs: set[str], adjectives: set[str], nouns: Lexicon, label: dict[str, Any]) -> set[str]:
    """Return the extracted pairs of these words, without those on which readers may differ."""
    words = {pair: pair.split("_") for pair in pairs}
    counted = {pair for pair, (adjective, noun) in words.items() if adjective in adjectives and noun in nouns.words}
    return counted - set(label.get("either", ()))


def compare(
    labels: Sequence[dict[str, Any]], extracted: Sequence[set[str]], adjectives: Sequence[Lexicon], nouns: Lexicon
) -> dict[str, Any]:
    """Return precision and recall for each composition, of which each has a lexicon of adjectives, and overall.

    ``extracted`` are the pairs of each caption, in the labels' order. Other nouns are not labelled and not counted.
    """
    kinds = {lexicon.name: set(lexicon.words) for lexicon in adjectives}
    kinds["overall"] = set().union(*kinds.values())
    draws = rng(0, "evaluate", len(labels)).integers(0, len(labels), (RESAMPLES, len(labels)))
    report: dict[str, Any] = {"captions": len(labels)}
    for kind, words in kinds.items():
        rows = []
        for label, pairs in zip(labels, extracted, strict=True):
            truth = {pair for pair in label["pairs"] if pair.split("_")[0] in words}
            counted = _counted(pairs, words, nouns, label)
            rows.append((len(truth & counted), len(counted), len(truth)))
        right, found, labelled = np.array(rows).T
        counts = {"labelled": int(labelled.sum()), "found": int(found.sum()), "right": int(right.sum())}
        report[kind] = counts | {"precision": _ratio(right, found, draws), "recall": _ratio(right, labelled, draws)}
    return report


def errors(
    labels: Sequence[dict[str, Any]], extracted: Sequence[set[str]], adjectives: set[str], nouns: Lexicon
) -> list[str]:
    """Return a line for each caption with a wrong or a missed pair."""
    lines = []
    for label, pairs in zip(labels, extracted, strict=True):
        truth = set(label["pairs"])
        counted = _counted(pairs, adjectives, nouns, label)
        wrong, missed = sorted(counted - truth), sorted(truth - counted)
        if wrong or missed:
            lines.append(f"{label['image_id']} {label['caption_id']}: wrong {wrong}, missed {missed}")
    return lines


def evaluate(extractor: Extractor, texts: Sequence[str]) -> list[set[str]]:
    """Return the pairs, as adjective_noun, that are extracted and not disputed in each of the texts."""
    return [
        {f"{o.adjective}_{o.noun}" for o in decode(value) if o.relation != "disputed"}
        for value in extractor.parse(texts)
    ]


def main(step: Evaluate) -> None:
    labels = read_labels(step.labels)
    adjectives, nouns = [load_lexicon(path) for path in step.adjectives], load_lexicon(step.nouns)
    extracted = evaluate(Extractor(step.parsing.model, adjectives, nouns), read_texts(step.captions, labels))
    report, lines = {}, list[str]()
    for part in ("all", *sorted({label["part"] for label in labels})):
        places = [i for i, label in enumerate(labels) if part in ("all", label["part"])]
        part_labels, part_pairs = [labels[i] for i in places], [extracted[i] for i in places]
        report[part] = compare(part_labels, part_pairs, adjectives, nouns)
        if part == step.errors:
            lines = errors(part_labels, part_pairs, {word for each in adjectives for word in each.words}, nouns)
    print(json.dumps(report, indent=2), *lines, sep="\n")


if __name__ == "__main__":
    cli.run(main)
