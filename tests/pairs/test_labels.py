"""Precision and recall on 150 real captions, labelled by hand; 70 of them were not looked at in development."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflow_scripts.pairs.evaluate import compare, evaluate, read_labels, read_texts
from workflow_scripts.text.lexicon import Lexicon

LABELS = Path(__file__).with_name("labels.jsonl")


def test_labels_use_the_lexicons_words(adjectives, nouns):
    words = {word for lexicon in adjectives for word in lexicon.words}
    labels = read_labels(LABELS)
    assert len({(label["image_id"], label["caption_id"]) for label in labels}) == 150
    for label in labels:
        for pair in (*label["pairs"], *label.get("either", ())):
            adjective, noun = pair.split("_")
            assert adjective in words and noun in nouns.words
        assert not set(label["pairs"]) & set(label.get("either", ()))


@pytest.mark.parametrize("part", ["dev", "blind"])
def test_precision_and_recall(cub_root, part, extractor, adjectives, nouns):
    labels = [label for label in read_labels(LABELS) if label["part"] == part]
    texts = read_texts(cub_root / "cub_captions.zip", labels)
    report = compare(labels, evaluate(extractor, texts), adjectives, nouns)
    for composition in ("color", "shape", "overall"):
        assert report[composition]["precision"]["value"] >= 0.95
        assert report[composition]["recall"]["value"] >= 0.95


def test_counts_by_hand():
    colors, parts = Lexicon("color", {"red": "red", "tan": "tan"}), Lexicon("birds", {"wing": "wing", "eye": "eye"})
    labels = [{"pairs": ["red_wing", "tan_wing"], "either": ["tan_eye"]}, {"pairs": ["red_eye"]}]
    found = [{"red_wing", "tan_eye", "red_bird", "long_wing"}, {"red_eye", "tan_eye"}]
    report = compare(labels, found, [colors], parts)["color"]
    assert (report["labelled"], report["found"], report["right"]) == (3, 3, 2)
    assert report["precision"]["value"] == report["recall"]["value"] == round(2 / 3, 4)
    assert report["precision"]["low"] <= 2 / 3 <= report["precision"]["high"]
