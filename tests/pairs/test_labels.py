"""Precision and recall on real captions, labelled by hand; a part of them was not looked at in development."""

from pathlib import Path

import pytest

from tests.pairs.conftest import LEXICONS, MODEL
from workflow_scripts.pairs.engine import Extractor
from workflow_scripts.pairs.evaluate import compare, evaluate, read_labels, read_texts
from workflow_scripts.text.lexicon import Lexicon, load_lexicon

LABELS = Path(__file__).with_name("labels.jsonl")
LABELS_OF_FLOWERS = Path(__file__).with_name("labels_flowers.jsonl")
FLOWERS = load_lexicon(LEXICONS / "nouns" / "flowers.yaml")


@pytest.mark.parametrize(("file", "lexicon"), [(LABELS, "birds"), (LABELS_OF_FLOWERS, "flowers")])
def test_labels_use_the_lexicons_words(file, lexicon, adjectives):
    words = {word for lexicon in adjectives for word in lexicon.words}
    nouns, labels = load_lexicon(LEXICONS / "nouns" / f"{lexicon}.yaml"), read_labels(file)
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


@pytest.mark.parametrize("part", ["dev", "blind"])
def test_precision_and_recall_of_flowers(cub_root, part, adjectives):
    captions = cub_root.parent / "flowers" / "captions.txt.gz"
    if not captions.is_file():
        pytest.skip("the captions of flowers are not beside those of birds")
    labels = [label for label in read_labels(LABELS_OF_FLOWERS) if label["part"] == part]
    extracted = evaluate(Extractor(MODEL, adjectives, FLOWERS), read_texts(captions, labels))
    report = compare(labels, extracted, adjectives, FLOWERS)
    for composition in ("color", "shape"):
        assert report[composition]["precision"]["value"] >= 0.95
        assert report[composition]["recall"]["value"] >= 0.95


def test_texts_are_found_by_their_line(tmp_path):
    (tmp_path / "texts.txt").write_text("one\ntwo\n")
    assert read_texts(tmp_path / "texts.txt", [{"image_id": "2", "caption_id": 0}]) == ["two"]


def test_counts_by_hand():
    colors, parts = Lexicon("color", {"red": "red", "tan": "tan"}), Lexicon("birds", {"wing": "wing", "eye": "eye"})
    labels = [{"pairs": ["red_wing", "tan_wing"], "either": ["tan_eye"]}, {"pairs": ["red_eye"]}]
    found = [{"red_wing", "tan_eye", "red_bird", "long_wing"}, {"red_eye", "tan_eye"}]
    report = compare(labels, found, [colors], parts)["color"]
    assert (report["labelled"], report["found"], report["right"]) == (3, 3, 2)
    assert report["precision"]["value"] == report["recall"]["value"] == round(2 / 3, 4)
    assert report["precision"]["low"] <= 2 / 3 <= report["precision"]["high"]
