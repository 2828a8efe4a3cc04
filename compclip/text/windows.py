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
        positions = self.positions
        old = len(positions)
        size = inputs.shape[1] * inputs.itemsize
        # The bytes of each row; NumPy makes them several times as fast as slices do.
        keys = np.ascontiguousarray(inputs).view(f"V{size}")[:, 0].tolist()
        for key in dict.fromkeys(keys):
            positions.setdefault(key, len(positions))
        rows = np.fromiter(map(positions.__getitem__, keys), np.int32, len(keys))
        new = len(positions) - old
        if new:
            if len(positions) > len(self.vectors):
                # Doubled, so that the vectors are seldom copied.
                shape = (2 * len(positions), self.vectors.shape[1])
                self.vectors = np.resize(self.vectors, shape)
            # New positions are the highest, in the order in which the inputs first occur.
            _, first = np.unique(rows, return_index=True)
            self.vectors[old : old + new] = self.compute(inputs[first[-new:]])
        return rows


def _embed(layers: Sequence[Model], features: np.ndarray) -> np.ndarray:
    """Return the vectors of tokens by their features."""
    vectors: Any = [features]
    for layer in layers:
        vectors = layer.predict(vectors)
    return vectors[0]


def _convolve(lower: _Layer, maxout: Model, positions: np.ndarray) -> np.ndarray:
    """Return the vectors of windows (n, 3) by the positions of the vectors of the layer below."""
    windows = lower.vectors[positions]
    # The layers are residual: the middle token is added.
    return windows[:, 1] + maxout.predict(windows.reshape(len(windows), -1))


class _Windows:
    """The forward pass of a Tok2Vec model."""

    def __init__(self, tok2vec: Model) -> None:
        embed, encode = tok2vec.layers
        self.extract, *self.embedding = embed.layers
        residuals = encode.layers[0].layers
        # without expand_window, which finds the neighbors
        self.maxouts = [residual.layers[0].layers[1] for residual in residuals]
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
        is_token = _token_rows([len(doc) for doc in docs], len(convolutions))
        # The position of each row's vector in the layer that was computed last; 0 for padding.
        positions = np.zeros(len(is_token), np.int32)
        positions[is_token] = embedding.find(np.concatenate(self.extract.predict(docs)))
        # The rows that each layer needs, the last layer first: a layer below also needs neighbors.
        needed = [is_token]
        for _ in convolutions[1:]:
            needed.append(np.convolve(needed[-1], np.ones(3), "same") > 0)
        for layer in convolutions:
            rows = np.flatnonzero(needed.pop())
            window = [positions[rows - 1], positions[rows], positions[rows + 1]]
            positions[rows] = layer.find(np.stack(window, axis=1))
        vectors = convolutions[-1].vectors[positions[is_token]]
        ends = np.cumsum([len(doc) for doc in docs])
        return np.split(vectors, ends[:-1]), lambda gradient: []


def _token_rows(lengths: Sequence[int], gap: int) -> np.ndarray:
    """Return which rows are tokens; ``gap`` rows of padding surround each text, as in spaCy."""
    flags = [False] * gap
    for length in lengths:
        flags += [True] * length + [False] * gap
    return np.array(flags)


def share_windows(nlp: Language) -> None:
    """Make ``nlp`` compute each distinct window once, if its Tok2Vec has the architecture of
    spaCy's small models.
    """
    from thinc.api import Model, NumpyOps

    if "tok2vec" not in nlp.pipe_names:
        return
    pipe: Any = nlp.get_pipe("tok2vec")
    config = nlp.config["components"]["tok2vec"]
    layers = config | config["model"]
    for name, settings in ARCHITECTURES.items():
        if not settings.items() <= layers.get(name, {}).items():
            return
    # Other ops compute on a GPU or by other kernels.
    if type(pipe.model.ops) is NumpyOps:
        dims = {"nO": pipe.model.get_dim("nO")}
        pipe.model = Model("windows", _Windows(pipe.model), layers=[pipe.model], dims=dims)
