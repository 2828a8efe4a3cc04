"""From a caption to token ids: words of the captions trained on, or open_clip's own tokenizers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch

from workflow_scripts.common.vision import import_torchvision

import_torchvision()

import open_clip  # noqa: E402

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[^\w\s]")
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<end>")

Tokenizer = Callable[..., torch.Tensor]


def clean(caption: str) -> str:
    """A caption as every judge reads it: stripped, lower case (facts of the paper's judge)."""
    return caption.strip().lower()


def make_vocabulary(captions: Iterable[str]) -> list[str]:
    """The words of ``captions``, most frequent first (ties by name), behind the special tokens.

    A word that occurs once is left to ``<unknown>``, which thereby is trained on something.
    """
    counts = Counter(word for caption in captions for word in WORD.findall(clean(caption)))
    return [*SPECIAL, *sorted((w for w in counts if counts[w] > 1), key=lambda w: (-counts[w], w))]


class WordTokenizer:
    """Called like open_clip's tokenizers: texts to (n, context_length) ids, an end token last, then padding."""

    def __init__(self, vocabulary: Sequence[str], context_length: int) -> None:
        self.ids = {word: i for i, word in enumerate(vocabulary)}
        self.context_length = context_length

    def __call__(self, texts: Sequence[str], context_length: int | None = None) -> torch.Tensor:
        length = context_length or self.context_length
        words = [WORD.findall(text)[: length - 1] for text in texts]
        counts = np.array([len(some) for some in words], int)[:, None]
        places = np.arange(length)
        result = np.full((len(texts), length), PAD)
        get = self.ids.get
        result[places < counts] = [get(word, UNKNOWN) for some in words for word in some]
        result[places == counts] = END
        return torch.from_numpy(result)


def get_tokenizer(model_cfg: dict[str, Any], vocabulary: Sequence[str] | None) -> Tokenizer:
    """The tokenizer of an open_clip model config, or of the project's own text tower."""
    text_cfg = model_cfg["text_cfg"]
    length = text_cfg.get("context_length", open_clip.tokenizer.DEFAULT_CONTEXT_LENGTH)
    if "tower" in text_cfg:
        assert vocabulary is not None
        return WordTokenizer(vocabulary, length)
    kwargs = text_cfg.get("tokenizer_kwargs") or {}
    if name := text_cfg.get("hf_tokenizer_name"):
        mode = text_cfg.get("tokenizer_mode")
        return open_clip.tokenizer.HFTokenizer(name, context_length=length, tokenizer_mode=mode, **kwargs)
    return open_clip.SimpleTokenizer(context_length=length, **kwargs)


def tokenize(tokenizer: Tokenizer, captions: Sequence[str]) -> torch.Tensor:
    """Ids of captions, which are cleaned here, (n, context_length).

    A caption that is too long is cut before its end token, not behind it: the pooled feature of CLIP's text
    tower is the end token's.
    """
    return tokenizer([clean(caption) for caption in captions])


def count_truncated(tokenizer: Tokenizer, captions: Sequence[str], ids: torch.Tensor) -> int:
    """How many of ``captions`` are cut in ``ids``: those that one more place would change."""
    longer = tokenizer([clean(caption) for caption in captions], context_length=ids.shape[1] + 1)
    return int((longer[:, :-1] != ids).any(dim=1).sum())
