"""From a caption to token ids: words of the captions trained on, or open_clip's own tokenizers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core.cli import log

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[^\w\s]")
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<end>")
# Captions whose tokens are held at once when those that are cut are looked for.
AT_ONCE = 10_000

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
    import_torchvision()
    import open_clip  # here, not above: it is slow to import, and most of this is used without it

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


def find_cut(tokenizer: Tokenizer, captions: Sequence[str], ids: torch.Tensor) -> np.ndarray:
    """(n,) which of ``captions`` are cut in their ``ids`` (n, length): those of which one more place holds more."""
    blank = tokenizer([""], context_length=ids.shape[1])
    # Some tokenizers end every row alike; where the place before that is empty too there was room for all, so that
    # few captions need to be tokenized again.
    rows = (ids != blank)[:, -2:].any(dim=1).nonzero()[:, 0].tolist()
    result = np.zeros(len(captions), bool)
    if rows:
        length = ids.shape[1] + 1
        longer = tokenizer([clean(captions[row]) for row in rows], context_length=length)
        said = (longer != tokenizer([""], context_length=length)).sum(dim=1)
        result[rows] = (said > (ids[rows] != blank).sum(dim=1)).numpy()
    return result


def cut_texts(tokenizer: Tokenizer, captions: Iterable[str]) -> set[str]:
    """Those of ``captions`` that have more tokens than the model reads; they are cut before their end token."""
    distinct, result = iter(dict.fromkeys(captions)), set()
    while part := list(islice(distinct, AT_ONCE)):
        cut = find_cut(tokenizer, part, tokenize(tokenizer, part))
        result.update(text for text, is_cut in zip(part, cut, strict=True) if is_cut)
    return result


def say_cut(cut: int, total: int, what: str = "captions") -> None:
    """Warn of captions that were cut, in every stage in the same words."""
    if cut:
        log.warning("%d of %d %s are longer than the model reads: cut before their end token", cut, total, what)
