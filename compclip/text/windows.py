"""Compute the token vectors of a spaCy pipeline once for each distinct window of tokens.

A layer of spaCy's window encoder reads a token and its two neighbors, so a vector of the fourth
layer depends on nine tokens. Captions often repeat such windows, above all short ones. The layers
are spaCy's own; a row of their matrix products does not depend on the other rows, so the vectors
equal spaCy's bit for bit, in any batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from thinc.api import Model

# Architectures with known layers; other pipelines are not changed.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "model": {"@architectures": "spacy.Tok2Vec.v2"},
    "embed": {"@architectures": "spacy.MultiHashEmbed.v2", "include_static_vectors": False},
    "encode": {"@architectures": "spacy.MaxoutWindowEncoder.v2", "window_size": 1},
}
MOST_WINDOWS = 1 << 17  # windows that a layer keeps, about 60 MB


class _Layer:
    """The vectors of the distinct inputs of a layer; position 0 is padding.

    Args:
        compute: inputs (n, k) to vectors (n, width).
    """

    def __init__(self, width: int, compute: Callable[[np.ndarray], np.ndarray]) -> None:
        self.compute = compute
        self.positions: dict[bytes, int] = {b"": 0}
        self.vectors = np.zeros((1, width), np.float32)

    def find(self, inputs: np.ndarray) -> np.ndarray:
        """Return the positions (n,) of the vectors of ``inputs`` (n, k), after computing new
        ones.
        """
        known, positions = len(self.positions), self.positions
        size, data = inputs.shape[1] * inputs.itemsize, inputs.tobytes()
        keys = (data[start : start + size] for start in range(0, len(data), size))
        at = np.array([positions.setdefault(key, len(positions)) for key in keys], np.int32)
        if new := len(positions) - known:
            if len(positions) > len(self.vectors):
                self.vectors = np.resize(self.vectors, (2 * len(positions), self.vectors.shape[1]))
            first = np.unique(at, return_index=True)[1][-new:]
            self.vectors[known : known + new] = self.compute(inputs[first])
        return at


def _embed(layers: Sequence[Model], features: np.ndarray) -> np.ndarray:
    """Return the vectors of tokens by their features."""
    vectors: Any = [features]
    for layer in layers:
        vectors = layer.predict(vectors)
    return vectors[0]


def _convolve(below: _Layer, maxout: Model, places: np.ndarray) -> np.ndarray:
    """Return the vectors of windows (n, 3) by the positions of the vectors of the layer below."""
    windows = below.vectors[places]
    return windows[:, 1] + maxout.predict(windows.reshape(len(windows), -1))


class _Windows:
    """The forward pass of a Tok2Vec model."""

    def __init__(self, tok2vec: Model) -> None:
        embed, encode = tok2vec.layers
        self.extract, *self.embedding = embed.layers
        # without expand_window, which finds the neighbors
        self.maxouts = [residual.layers[0].layers[1] for residual in encode.layers[0].layers]
        self.width = tok2vec.get_dim("nO")
        self.clear()

    def clear(self) -> None:
        self.layers = [_Layer(self.width, partial(_embed, self.embedding))]
        for maxout in self.maxouts:
            self.layers.append(_Layer(self.width, partial(_convolve, self.layers[-1], maxout)))

    def __call__(
        self, model: Model, docs: Sequence[Doc], is_train: bool
    ) -> tuple[list[np.ndarray], Callable]:
        if max(len(layer.positions) for layer in self.layers) > MOST_WINDOWS:
            self.clear()
        embedding, *convolutions = self.layers
        gap = [False] * len(convolutions)  # rows of padding between texts, as many as in spaCy
        is_token = np.array([*gap, *(flag for doc in docs for flag in (*[True] * len(doc), *gap))])
        at = np.zeros(len(is_token), np.int32)
        at[is_token] = embedding.find(np.concatenate(self.extract.predict(docs)))
        needed = [is_token]  # of the last layer; a layer below also needs the neighbors
        for _ in convolutions[1:]:
            needed.append(np.convolve(needed[-1], np.ones(3), "same") > 0)
        for layer in convolutions:
            places = np.flatnonzero(needed.pop())
            at[places] = layer.find(np.stack([at[places - 1], at[places], at[places + 1]], axis=1))
        vectors = convolutions[-1].vectors[at[is_token]]
        return np.split(vectors, np.cumsum([len(doc) for doc in docs])[:-1]), lambda gradient: []


def share_windows(nlp: Language) -> None:
    """Make ``nlp`` compute each distinct window once, if its Tok2Vec has the architecture of
    spaCy's small models.
    """
    from thinc.api import Model, NumpyOps

    if "tok2vec" not in nlp.pipe_names:
        return
    pipe: Any = nlp.get_pipe("tok2vec")
    config = nlp.config["components"]["tok2vec"]
    parts = config | config["model"]
    is_known = all(
        known.items() <= parts.get(name, {}).items() for name, known in ARCHITECTURES.items()
    )
    if is_known and type(pipe.model.ops) is NumpyOps:
        pipe.model = Model(
            "windows",
            _Windows(pipe.model),
            layers=[pipe.model],
            dims={"nO": pipe.model.get_dim("nO")},
        )
