"""Convert captions to token ids, by the words of the training captions or by open_clip's
tokenizers.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compclip.clip.config import TOKENIZER_FILES, check_model_cfg
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.reading.model_folders import model_folder

# A word with at most one apostrophe inside, or a single punctuation mark.
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[^\w\s]")
PAD, UNKNOWN, END = 0, 1, 2  # positions in SPECIAL
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
    counts = Counter[str]()
    for caption in captions:
        counts.update(WORD.findall(clean(caption)))
    # Words that occur once train the embedding of unknown words.
    frequent = [word for word in counts if counts[word] > 1]
    frequent.sort(key=lambda word: (-counts[word], word))
    return [*SPECIAL, *frequent]


class WordTokenizer:
    """Maps texts to ids (n, context_length), an end token last, then padding; called like
    open_clip's tokenizers.
    """

    def __init__(self, vocabulary: Sequence[str], context_length: int) -> None:
        self.ids = {word: i for i, word in enumerate(vocabulary)}
        self.context_length = context_length

    def __eq__(self, other: object) -> bool:
        """Return whether another tokenizer maps every text to the same ids."""
        if not isinstance(other, WordTokenizer):
            return False
        return self.ids == other.ids and self.context_length == other.context_length

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, texts: Sequence[str], context_length: int | None = None) -> torch.Tensor:
        length = context_length or self.context_length
        # The ids of all texts one after the other.
        row: list[int] = []
        sizes = []
        for text in texts:
            words = WORD.findall(text)[: length - 1]  # one position is for the end token
            row += map(self.ids.get, words, itertools.repeat(UNKNOWN))
            row.append(END)
            sizes.append(len(words) + 1)
        ids = np.full((len(sizes), length), PAD, np.int64)
        is_used = np.arange(length) < np.array(sizes, np.int64)[:, None]
        ids[is_used] = row
        return torch.from_numpy(ids)


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
    if "tower" in text_cfg:  # one of this project, with the words of its training captions
        assert vocabulary is not None
        return WordTokenizer(vocabulary, length)
    kwargs = text_cfg.get("tokenizer_kwargs") or {}
    source = files or text_cfg.get("hf_tokenizer_name")
    try:
        if not source:
            return open_clip().SimpleTokenizer(context_length=length, **kwargs)
        # Downloaded and checked first, since transformers would run code that it finds there.
        folder = model_folder(str(source), list(TOKENIZER_FILES))
        return open_clip().tokenizer.HFTokenizer(
            str(folder),
            trust_remote_code=False,
            **kwargs,
            context_length=length,
            tokenizer_mode=text_cfg.get("tokenizer_mode"),
        )
    except UserError:
        raise
    except Exception as error:  # damaged files can raise almost any exception
        message = " ".join(str(error).split())[:200]
        reason = f"{type(error).__name__}: {message}"
        raise UserError(
            f"judge.model: {source or 'its config'}: no readable tokenizer ({reason}); get it again"
        ) from error


def tokenize(tokenizer: Tokenizer, captions: Sequence[str]) -> torch.Tensor:
    """Return ids (n, context_length) of cleaned captions; long ones are truncated before their end
    token.
    """
    return tokenizer([clean(caption) for caption in captions])


def find_truncated_texts(
    tokenizer: Tokenizer, captions: Sequence[str], ids: torch.Tensor
) -> np.ndarray:
    """Return (n,): whether each caption is truncated in its ``ids`` (n, length)."""
    is_used = _is_used(tokenizer, ids)
    # Some tokenizers end every row with the same token; a caption whose next-to-last position is
    # empty too fits, so only few captions must be tokenized again, with one more position.
    rows = is_used[:, -2:].any(dim=1).nonzero()[:, 0].tolist()
    result = np.zeros(len(captions), bool)
    if rows:
        candidates = [clean(captions[row]) for row in rows]
        longer = tokenizer(candidates, context_length=ids.shape[1] + 1)
        # A truncated caption uses the further position, too.
        needed = _is_used(tokenizer, longer).sum(dim=1)
        result[rows] = (needed > is_used[rows].sum(dim=1)).numpy()
    return result


def _is_used(tokenizer: Tokenizer, ids: torch.Tensor) -> torch.Tensor:
    """Return (n, length): where rows of ids differ from those of an empty caption."""
    return ids != tokenizer([""], context_length=ids.shape[1])


def truncated_texts(tokenizer: Tokenizer, captions: Iterable[str]) -> set[str]:
    """Return the captions that have more tokens than the model reads; they are truncated before
    their end token.
    """
    distinct = list(dict.fromkeys(captions))
    result: set[str] = set()
    for start in range(0, len(distinct), TOKENIZED_AT_ONCE):
        batch = distinct[start : start + TOKENIZED_AT_ONCE]
        ids = tokenize(tokenizer, batch)
        is_truncated = find_truncated_texts(tokenizer, batch, ids)
        result.update(itertools.compress(batch, is_truncated))
    return result


def report_truncated(truncated: int, total: int, what: str = "captions") -> None:
    """Warn of truncated captions; all stages use this message."""
    if truncated:
        log.warning(
            "%d of %d %s are longer than the model reads; truncated before their end token",
            truncated,
            total,
            what,
        )
