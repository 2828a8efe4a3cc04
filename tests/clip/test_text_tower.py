"""A caption that is read up to its end has the features that it has in the whole context."""

from typing import Any

import numpy as np
import pytest
import torch

from compclip.clip.device import settle
from compclip.clip.model import Judge, construct
from compclip.clip.pixels import Preprocess
from compclip.clip.text_tower import by_length, causal_tower, encode_families, encode_texts
from compclip.clip.tokens import SPECIAL, get_tokenizer, tokenize

from .conftest import PREPROCESS

LONG = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 248, "width": 16, "heads": 2, "layers": 2},
}
CONV = {"tower": "conv", "image_size": 16, "widths": [8], "depths": [0], "features": 16}
WORDS = {
    "tower": "words",
    "context_length": 248,
    "width": 8,
    "hidden": 16,
    "window": 3,
    "vocab_size": 5,
}
SEES_ALL = {**LONG, "custom_text": True, "text_cfg": {**LONG["text_cfg"], "no_causal_mask": True}}
# Texts of 3, 32, 33, 64, 65, 128, 129, 247 and 248 tokens, with repetitions, one too long, one
# empty.
TEXTS = [
    " ".join(["bird"] * (n - 2)) for n in (129, 3, 32, 248, 33, 3, 64, 65, 128, 247, 400, 32, 2, 3)
]


def new_model(cfg: dict[str, Any] = LONG) -> torch.nn.Module:
    torch.manual_seed(0)
    return construct(cfg)


def new_judge(cfg: dict[str, Any] = LONG) -> Judge:
    settle(1)
    vocabulary = [*SPECIAL, "a", "bird"] if "tower" in cfg["text_cfg"] else None
    preprocess = Preprocess(PREPROCESS, None)
    return Judge(new_model(cfg), get_tokenizer(cfg, vocabulary), preprocess, torch.device("cpu"), 1)


FAMILIES = [
    [
        "a bird with a red bill and blue feet",
        "a bird with a red bill",
        "a bird",
        "a bird with a green tail",
    ],
    ["one", "another one", "", "one"],
    ["bird " * 300, "bird " * 200, "bird " * 246 + "feet", "bird " * 247],
    ["", "a", "a bird " * 100, ""],
]


@pytest.mark.parametrize(
    "own", [{}, {"custom_text": True}, {"vision_cfg": CONV}], ids=["clip", "custom", "towers"]
)
def test_texts_are_encoded_as_in_the_whole_context(own: dict[str, Any]) -> None:
    """Features and gradients of texts, and of families that have all, nothing or a truncated
    caption in common.
    """
    cfg = {**LONG, **own}
    model, tokenizer = new_model(cfg), get_tokenizer(cfg, None)
    ids = tokenize(
        tokenizer, ["a bird", "a red bird with a long tail, " * 12, "", "a " * 400, "feet"]
    )
    families = torch.stack(
        [tokenize(tokenizer, list(texts)) for texts in zip(*FAMILIES, strict=True)]
    )
    pairs = [
        (model.encode_text(part), encode_texts(model, part, part.device)) for part in (ids, ids[:1])
    ]
    pairs.append(
        (
            torch.stack([model.encode_text(part) for part in families]),
            encode_families(model, families),
        )
    )
    parameters = [
        p for n, p in model.named_parameters() if "visual" not in n and n != "logit_scale"
    ]
    for whole, found in pairs:
        torch.testing.assert_close(found, whole, atol=1e-5, rtol=1e-5)
        direction = torch.randn(whole.shape, generator=torch.Generator().manual_seed(0))
        plain, ours = (
            torch.autograd.grad((x * direction).sum(), parameters) for x in (whole, found)
        )
        torch.testing.assert_close(ours, plain, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "cfg", [SEES_ALL, {**LONG, "vision_cfg": CONV, "text_cfg": WORDS}], ids=["all", "words"]
)
def test_another_tower_gets_all_its_tokens(cfg: dict[str, Any]) -> None:
    judge = new_judge(cfg)
    ids = tokenize(judge.tokenizer, ["a bird", "a"])
    assert causal_tower(judge.model) is None
    assert torch.equal(encode_texts(judge.model, ids, ids.device), judge.model.encode_text(ids))
    ((rows, whole),) = by_length(judge.model, ids)
    assert rows.tolist() == [0, 1] and whole is ids
    with torch.inference_mode():
        alone = torch.nn.functional.pad(ids, (0, 0, 0, 2))
        expected = judge.model.encode_text(alone, normalize=True)[:2].numpy()
    assert judge.encode_texts(["a bird", "a"], 4).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("context", "ends"), [(248, [32, 64, 128, 248]), (77, [32, 64, 77]), (64, [32, 64]), (26, [26])]
)
def test_an_embedding_does_not_depend_on_the_others(context: int, ends: list[int]) -> None:
    """Its bytes are the same alone, with others of its length or none, in any order."""
    judge = new_judge({**LONG, "text_cfg": {**LONG["text_cfg"], "context_length": context}})
    together = judge.encode_texts(TEXTS, 4)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    assert judge.encode_texts([TEXTS[i] for i in order], 4).tobytes() == together[order].tobytes()
    for text, vector in zip(TEXTS, together, strict=True):
        assert judge.encode_texts([text], 4).tobytes() == vector.tobytes()
    for size in (1, 2, 6):
        assert judge.encode_texts(TEXTS[:size], 4).tobytes() == together[:size].tobytes()
    ids = tokenize(judge.tokenizer, TEXTS)
    assert [part.shape[1] for _, part in by_length(judge.model, ids)] == ends
    with torch.inference_mode():
        whole = judge.model.encode_text(ids, normalize=True)
    torch.testing.assert_close(torch.from_numpy(together), whole, atol=1e-5, rtol=1e-5)


def test_what_a_family_shares_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = new_model()
    ids = torch.stack([tokenize(get_tokenizer(LONG, None), [text]) for text in FAMILIES[0]])
    seen = []
    forward = model.transformer.forward
    monkeypatch.setattr(
        model.transformer,
        "forward",
        lambda x, **more: seen.append(x.shape[1]) or forward(x, **more),
    )
    encode_families(model, ids)
    # The start, nine words and the end; an end; an end; `green tail` and an end, after `a bird with
    # a`.
    assert seen == [11 + 1 + 1 + 3]
