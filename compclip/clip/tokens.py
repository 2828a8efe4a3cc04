"""Convert captions to token ids, by the words of the training captions or by open_clip's
tokenizers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compclip.clip.config import TOKENIZER_FILES, check_model_cfg
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.core.foreign import model_folder
from compclip.core.log import log

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[^\w\s]")
PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unknown>", "<end>")
DEFAULT_LENGTH = 77  # open_clip's default
TOKENIZED_AT_ONCE = 10_000  # captions tokenized together in the search for truncated ones

Tokenizer = Callable[..., torch.Tensor]


def clean(caption: str) -> str:
    """Return a caption stripped and in lower case, as the paper's judge reads it."""
    return caption.strip().lower()


def make_vocabulary(captions: Iterable[str]) -> list[str]:
    """Return the special tokens, then the words that occur more than once, most frequent first
    (ties by name).
    """
    counts = Counter(word for caption in captions for word in WORD.findall(clean(caption)))
    return [*SPECIAL, *sorted((w for w in counts if counts[w] > 1), key=lambda w: (-counts[w], w))]


class WordTokenizer:
    """Maps texts to ids (n, context_length), an end token last, then padding; called like
    open_clip's tokenizers.
    """

    def __init__(self, vocabulary: Sequence[str], context_length: int) -> None:
        self.ids = {word: i for i, word in enumerate(vocabulary)}
        self.context_length = context_length

    def __call__(self, texts: Sequence[str], context_length: int | None = None) -> torch.Tensor:
        length = context_length or self.context_length
        rows, get = [], self.ids.get
        for text in texts:
            ids = [get(word, UNKNOWN) for word in WORD.findall(text)][: length - 1]
            rows.append(ids + [END] + [PAD] * (length - 1 - len(ids)))
        return torch.from_numpy(np.array(rows, np.int64).reshape(len(rows), length))


def get_tokenizer(
    model_cfg: dict[str, Any], vocabulary: Sequence[str] | None, files: Path | None = None
) -> Tokenizer:
    """Return the tokenizer of an open_clip model config, or of the project's text tower.

    Args:
        files: folder of a transformers tokenizer; None loads it from the Hub, by its name in the
            config.

    Raises:
        UserError: the tokenizer is not available or not readable, comes with code, or gets an
            unknown argument.
    """
    check_model_cfg(model_cfg)
    text_cfg = model_cfg["text_cfg"]
    length = text_cfg.get("context_length", DEFAULT_LENGTH)
    if "tower" in text_cfg:
        assert vocabulary is not None
        return WordTokenizer(vocabulary, length)
    kwargs = text_cfg.get("tokenizer_kwargs") or {}
    place = files or text_cfg.get("hf_tokenizer_name")
    try:
        if not place:
            return open_clip().SimpleTokenizer(context_length=length, **kwargs)
        folder = str(model_folder(str(place), list(TOKENIZER_FILES)))
        kwargs = {
            **kwargs,
            "context_length": length,
            "tokenizer_mode": text_cfg.get("tokenizer_mode"),
        }
        return open_clip().tokenizer.HFTokenizer(folder, trust_remote_code=False, **kwargs)
    except UserError:
        raise
    except Exception as error:  # damaged files can raise almost any exception
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UserError(
            f"judge.model: {place or 'its config'}: no readable tokenizer ({reason}); get it again"
        ) from error


def tokenize(tokenizer: Tokenizer, captions: Sequence[str]) -> torch.Tensor:
    """Return ids (n, context_length) of cleaned captions; long ones are truncated before their end
    token.
    """
    return tokenizer([clean(caption) for caption in captions])


def find_cut(tokenizer: Tokenizer, captions: Sequence[str], ids: torch.Tensor) -> np.ndarray:
    """Return (n,): whether each caption is truncated in its ``ids`` (n, length)."""
    blank = tokenizer([""], context_length=ids.shape[1])
    # Some tokenizers end every row with the same token; a caption whose next-to-last place is empty
    # too fits, so only few captions must be tokenized again, with one more place.
    rows = (ids != blank)[:, -2:].any(dim=1).nonzero()[:, 0].tolist()
    result = np.zeros(len(captions), bool)
    if rows:
        length = ids.shape[1] + 1
        longer = tokenizer([clean(captions[row]) for row in rows], context_length=length)
        used = (longer != tokenizer([""], context_length=length)).sum(dim=1)
        result[rows] = (used > (ids[rows] != blank).sum(dim=1)).numpy()
    return result


def cut_texts(tokenizer: Tokenizer, captions: Iterable[str]) -> set[str]:
    """Return the captions that have more tokens than the model reads; they are truncated before
    their end token.
    """
    distinct = iter(dict.fromkeys(captions))
    result: set[str] = set()
    while batch := list(islice(distinct, TOKENIZED_AT_ONCE)):
        is_cut = find_cut(tokenizer, batch, tokenize(tokenizer, batch))
        result.update(text for text, cut in zip(batch, is_cut, strict=True) if cut)
    return result


def say_cut(cut: int, total: int, what: str = "captions") -> None:
    """Warn of truncated captions; all stages use this message."""
    if cut:
        log.warning(
            "%d of %d %s are longer than the model reads; truncated before their end token",
            cut,
            total,
            what,
        )
