"""Precision and recall on labelled captions: our own, and real ones where their archives are."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pairs import LEXICON_OF, count, ratios, read_pair_labels, with_texts
from compclip.text.lexicon import load_lexicon
from tests.pairs.conftest import LEXICONS

HERE = Path(__file__).parent
OWN = read_pair_labels(HERE / "labels.jsonl")


@pytest.mark.parametrize("name", ["labels", "labels_cub", "labels_flowers"])
def test_labels_use_the_lexicons_words(name: str) -> None:
    labels = read_pair_labels(HERE / f"{name}.jsonl")
    assert len({(label.get("text"), label.get("image_id"), label.get("caption_id")) for label in labels}) == 150
    adjectives = {word for lexicon in LEXICON_OF.values() for word in lexicon.words}
    for label in labels:
        either = label.get("either", [])
        nouns = label.get("nouns", "flowers" if "flowers" in name else "birds")
        words = load_lexicon(LEXICONS / "nouns" / f"{nouns}.yaml").words if nouns else None
        for adjective, noun in (pair.split("_") for pair in (*label["pairs"], *either)):
            assert adjective in adjectives and (words is None or noun in words)
        assert not {*label["pairs"]} & {*either}


def test_precision_and_recall_of_our_own_captions_and_by_hand() -> None:
    """Of birds, of flowers, and of these and everyday things together."""
    domains = [
        count([label for label in OWN if label["nouns"] == nouns], nouns) for nouns in ("birds", "flowers", None)
    ]
    for composition in LEXICON_OF:
        birds, flowers, everyday = (counts[composition] for counts in domains)
        for numbers in (birds, flowers, np.concatenate([birds, flowers, everyday])):
            (precision, *_), (recall, *_) = ratios(numbers).values()
            assert min(precision, recall) >= 0.95, composition
    (precision, low, high), (recall, *_) = ratios(np.array([[1, 2, 1], [2, 2, 3]])).values()
    assert (precision, recall) == (0.75, 0.75) and low == 0.5 and high == 1


@pytest.mark.parametrize(("name", "nouns"), [("cub", "birds"), ("flowers", "flowers")])
def test_precision_and_recall_of_real_captions(cub_root: Path, name: str, nouns: str) -> None:
    """A part of them (blind) was not looked at in development."""
    captions = {"cub": cub_root / "cub_captions.zip", "flowers": cub_root.parent / "flowers" / "captions.txt.gz"}[name]
    if not captions.is_file():
        pytest.skip(f"optional: {captions} is not there")
    labels = with_texts(read_pair_labels(HERE / f"labels_{name}.jsonl"), captions)
    for part in ("dev", "blind"):
        for numbers in count([label for label in labels if label["part"] == part], nouns).values():
            (precision, *_), (recall, *_) = ratios(numbers).values()
            assert min(precision, recall) >= 0.95
