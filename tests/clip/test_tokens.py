"""Tokenizers: every caption keeps its end token, and truncated captions are found."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compclip.clip import tokens
from compclip.clip.vision import open_clip


def test_vocabulary_leaves_rare_words_unknown() -> None:
    words = tokens.make_vocabulary(["A red bird, red!", "a red-winged bird", "rare"])
    assert words == [*tokens.SPECIAL, "red", "a", "bird"]
    ids = tokens.WordTokenizer(words, 6)(["a rare bird"])
    assert ids.tolist() == [[4, tokens.UNKNOWN, 5, tokens.END, tokens.PAD, tokens.PAD]]
    assert tokens.tokenize(tokens.WordTokenizer(words, 5), []).shape == (0, 5)


@given(st.lists(st.text("ab'-_ .\t\u00a0\u2003\u0085\u001c\u0301é")))
def test_words_are_those_of_the_pattern(texts: list[str]) -> None:
    words = ["a", "b", "'", ".", "-", "ab", "é"]
    ids = tokens.WordTokenizer(words, 9)(texts)
    expected = [
        [words.index(w) if w in words else tokens.UNKNOWN for w in tokens.WORD.findall(t)][:8]
        for t in texts
    ]
    assert ids.tolist() == [row + [tokens.END] + [tokens.PAD] * (8 - len(row)) for row in expected]


KINDS = ("words", "open_clip", "bert", "siglip", "clips")


def tokenizer_of(kind: str, length: int, folder: Path) -> tuple[tokens.Tokenizer, int, int, int]:
    """Return a tokenizer that knows ``bird``, its end token, its place in a full row, and how many
    words fit.
    """
    if kind in ("words", "open_clip"):
        words = [*tokens.SPECIAL, "bird"] if kind == "words" else None
        cfg = {"text_cfg": {"context_length": length, **({"tower": "words"} if words else {})}}
        tokenizer = tokens.get_tokenizer(cfg, words)
        return (
            tokenizer,
            tokens.END if words else tokenizer.eot_token_id,
            -1,
            length - (1 if words else 2),
        )
    # As in models on the Hugging Face Hub: with a token before the words; with padding that is also
    # the end token; and in open_clip's mode "clips", in which a special token ends every row.
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("tokenizers")
    names = ["[PAD]", "[CLS]", "[SEP]", "[BOS]", "[UNK]", "bird"]
    inner = library.Tokenizer(
        library.models.WordLevel({name: i for i, name in enumerate(names)}, "[UNK]")
    )
    inner.pre_tokenizer = library.pre_tokenizers.Whitespace()
    if kind != "clips":
        template = "$A [SEP]" if kind == "siglip" else "[CLS] $A [SEP]"
        inner.post_processor = library.processors.TemplateProcessing(
            single=template,
            special_tokens=[(name, names.index(name)) for name in ("[CLS]", "[SEP]")],
        )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[SEP]" if kind == "siglip" else "[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        bos_token="[BOS]",
        eos_token="[SEP]",
    ).save_pretrained(folder)
    text_cfg = {"context_length": length, "hf_tokenizer_name": str(folder)}
    mode = {"tokenizer_mode": "clips"} if kind == "clips" else {}
    tokenizer = tokens.get_tokenizer({"text_cfg": {**text_cfg, **mode}}, None)
    place, fitting = {
        "bert": (-1, length - 2),
        "siglip": (-1, length - 1),
        "clips": (-2, length - 3),
    }[kind]
    return tokenizer, 2, place, fitting


@pytest.mark.parametrize("kind", KINDS)
def test_every_tokenizer_keeps_the_end_of_truncated_captions(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "TOKENIZED_AT_ONCE", 4)
    tokenizer, end, place, fitting = tokenizer_of(kind, 8, tmp_path)
    captions = [" ".join(["Bird"] * n) for n in range(14)]
    ids = tokens.tokenize(tokenizer, captions)
    assert open_clip().tokenizer.DEFAULT_CONTEXT_LENGTH == tokens.DEFAULT_LENGTH
    assert ids.shape == (14, 8) and (ids[fitting:, place] == end).all()
    assert torch.equal(ids[fitting + 1 :], ids[fitting].expand(13 - fitting, 8))
    assert tokens.find_truncated_texts(tokenizer, captions, ids).tolist() == [
        n > fitting for n in range(14)
    ]
    assert tokens.find_truncated_texts(tokenizer, [], ids[:0]).tolist() == []
    assert torch.equal(tokens.tokenize(tokenizer, ["  BIRD bird "])[0], ids[2])
    assert ids[2].tolist().count(end) == (6 if kind == "siglip" else 1)
    for row in range(14):
        assert tokens.find_truncated_texts(
            tokenizer, captions[row : row + 1], ids[[row]]
        ).tolist() == [row > fitting]
    assert tokens.truncated_texts(tokenizer, []) == set()
    assert tokens.truncated_texts(tokenizer, captions * 2) == {
        c for c in captions if len(c.split()) > fitting
    }
