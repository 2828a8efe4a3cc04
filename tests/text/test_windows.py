"""Token vectors that are computed once for each distinct window are spaCy's, bit for bit."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.language import Language

from benchmarks.speed.parse import PARSED_BY
from compclip.core.seeds import rng
from compclip.text import windows
from compclip.text.language import installed_name, load_language

WORDS = "a the bird with is has red yellow Small wing bill's don't , . and\n café 3 — x-ray flies over it".split(" ")


@pytest.fixture
def texts() -> list[str]:
    draw = rng(0, "windows")
    return ["", " ", "bird", *(" ".join(draw.choice(WORDS, draw.integers(1, 30))) for _ in range(200)), "café " * 100]


def parses(nlp: Language, texts: list[str], batch: int) -> list[tuple]:
    """All that a parse decides of each token, and its vector."""
    docs = nlp.pipe(texts, batch_size=batch)
    return [(doc.tensor.tobytes(), doc.to_array(["ORTH", "TAG", "HEAD", "DEP", "SENT_START"]).tolist()) for doc in docs]


def test_parses_are_those_of_spacy(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = spacy.load(installed_name(PARSED_BY), disable=["attribute_ruler", "lemmatizer", "ner"])
    nlp = load_language(PARSED_BY)
    assert nlp.get_pipe("tok2vec").model.name == "windows"
    expected = parses(plain, texts, 256)
    for batch, limit in ((256, windows.MOST_WINDOWS), (7, 500)):  # beyond its limit, the memory starts anew
        monkeypatch.setattr(windows, "MOST_WINDOWS", limit)
        assert parses(nlp, texts, batch) == expected
    assert parses(pickle.loads(pickle.dumps(nlp)), texts[:20], 20) == expected[:20]


def test_each_distinct_window_is_computed_once_and_other_architectures_are_left_alone() -> None:
    nlp = load_language(PARSED_BY)
    list(nlp.pipe(["a red bird with a red bill", "a red bird with a red bill", "the bird"]))
    layers = nlp.get_pipe("tok2vec").model._func.layers
    # `bird` with and without a space; padding
    assert len(layers[0].positions) == 1 + 7 and len(layers[-1].positions) == 1 + 7 + 2
    vectors = [layer.vectors.copy() for layer in layers]
    list(nlp.pipe(["a red bird with a red bill"]))
    assert all(np.array_equal(layer.vectors, v) for layer, v in zip(layers, vectors, strict=True))
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {"@architectures": "spacy.HashEmbedCNN.v2", **CNN}})
    nlp.initialize()
    windows.share_windows(nlp)
    assert nlp.get_pipe("tok2vec").model.name != "windows"
    windows.share_windows(spacy.blank("en"))


CNN = {
    "width": 16, "depth": 2, "embed_size": 50, "window_size": 1, "maxout_pieces": 2, "subword_features": True,
    "pretrained_vectors": None,
}  # fmt: skip
