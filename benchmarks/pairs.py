"""Measure precision and recall of the pair extraction on captions that were labelled by hand
(docs/pairs.md).

    python -m benchmarks.pairs cub_captions.zip tests/pairs/labels_cub.jsonl birds
    python -m benchmarks.pairs captions.txt.gz tests/pairs/labels_flowers.jsonl flowers

A label is a JSON object: its caption by text, or by image_id and caption_id (of a text file: the
line, from 1); the ``pairs`` that a careful reader takes it to state, as adjective_noun; and, under
``either``, pairs on which readers may differ, which count neither way. Disputed pairs do not count
as found, since they are not ranked.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compclip.core.identity.code import ROOT
from compclip.dataset.sources.cub import CUB_LAYOUT
from compclip.pairs.engine import Extractor, decode_occurrences
from compclip.text.lexicon import load_lexicon

LABELLED_BY = "en_core_web_sm"
RESAMPLES = 2000
LEXICON_OF = {
    name: load_lexicon(ROOT / "lexicons" / "adjectives" / f"{name}.yaml")
    for name in ("color", "shape")
}


def read_pair_labels(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def with_texts(labels: Sequence[dict[str, Any]], captions: Path) -> list[dict[str, Any]]:
    """Return the labels with the texts of their captions."""
    if captions.suffix == ".zip":
        texts = {
            (row.image_id, row.caption_id): row.text
            for row in CUB_LAYOUT.read_captions(captions)[0].itertuples()
        }
    else:
        lines = gzip.decompress(captions.read_bytes()).decode().splitlines()
        texts = {(str(line), 0): text for line, text in enumerate(lines, 1)}
    return [label | {"text": texts[label["image_id"], label["caption_id"]]} for label in labels]


def count(labels: Sequence[dict[str, Any]], nouns: str | None) -> dict[str, np.ndarray]:
    """Return for each composition the numbers of right, found and labelled pairs of each caption,
    (n, 3).
    """
    lexicon = load_lexicon(ROOT / "lexicons" / "nouns" / f"{nouns}.yaml") if nouns else None
    extractor = Extractor(LABELLED_BY, [*LEXICON_OF.values()], lexicon)
    rows: dict[str, list[tuple[int, int, int]]] = {name: [] for name in LEXICON_OF}
    for label, value in zip(
        labels, extractor.parse([label["text"] for label in labels]), strict=True
    ):
        sure = {
            (o.adjective, o.noun) for o in decode_occurrences(value) if o.relation != "disputed"
        }
        listed = {f"{a}_{n}" for a, n in sure if lexicon is None or n in lexicon.words} - {
            *label.get("either", ())
        }
        for name, adjectives in LEXICON_OF.items():
            found, truth = (
                {p for p in pairs if p.split("_")[0] in adjectives.words}
                for pairs in (listed, label["pairs"])
            )
            rows[name].append((len(found & truth), len(found), len(truth)))
    return {name: np.array(counts) for name, counts in rows.items()}


def ratios(counts: np.ndarray) -> dict[str, list[float]]:
    """Return precision and recall of ``count``, each with its 95 % bootstrap interval over
    captions.
    """
    draws = np.random.default_rng(0).integers(0, len(counts), (RESAMPLES, len(counts)))
    result = {}
    for name, place in (("precision", 1), ("recall", 2)):
        right, total = counts[draws].sum(axis=1).T[[0, place]]
        ends = np.percentile(right / np.maximum(total, 1), (2.5, 97.5))
        values = counts[:, 0].sum() / counts[:, place].sum(), *ends
        result[name] = [round(float(value), 4) for value in values]
    return result


if __name__ == "__main__":
    labelled = with_texts(read_pair_labels(Path(sys.argv[2])), Path(sys.argv[1]))
    for part in ("dev", "blind"):
        for composition, numbers in count(
            [label for label in labelled if label["part"] == part], sys.argv[3]
        ).items():
            print(part, composition, numbers.sum(axis=0).tolist(), ratios(numbers))
