"""Hard negatives: how often each adjective is drawn, where there is none, and that the loss contains them."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from compclip import io
from compclip.core.tables import NEGATIVES
from compclip.judge import training
from compclip.judge.make_negatives import make_negatives
from compclip.judge.training import clip_loss
from compclip.text.lexicon import Lexicon
from tests.scripts import job
from tests.split.stage import inputs, run
from workflow_scripts.judge.make_negatives import main

FREQUENCY = {"red": 500, "blue": 300, "orange": 200}
FORMS = {word: word for word in FREQUENCY}
Groups = tuple[tuple[str, ...], ...]


def tables(rows: list[tuple[str, int, str, str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Captions and pairs of (image, caption, text, adjective of its wing)."""
    captions = pd.DataFrame(rows, columns=["image_id", "caption_id", "text", "adjective"])
    start = [text.index(word) for text, word in zip(captions["text"], captions["adjective"], strict=True)]
    pairs = captions.assign(noun="wing", adjective_start=start, relation="adjacent")
    pairs["adjective_end"] = pairs["adjective_start"] + pairs["adjective"].str.len()
    pairs["noun_start"] = pairs["text"].str.index("wing")
    return captions, pairs.assign(noun_end=pairs["noun_start"] + 4)


def made(
    captions: pd.DataFrame, pairs: pd.DataFrame, count: int = 1, seed: int = 0, groups: Groups = ()
) -> pd.DataFrame:
    ranked = [f"{word}_wing" for word in FREQUENCY]
    return make_negatives(captions, pairs, ranked, Lexicon("color", FORMS, groups), {"wing"}, count, seed)


def test_no_adjective_is_wrong_more_often_than_right() -> None:
    words = [word for word, n in FREQUENCY.items() for _ in range(n)]
    texts = [f"{'an' if word == 'orange' else 'a'} {word} wing" for word in words]
    captions, pairs = tables(
        [(f"{i:04d}", 0, text, word) for i, (text, word) in enumerate(zip(texts, words, strict=True))]
    )
    negatives = made(captions, pairs)
    own = captions.set_index("image_id")["text"].loc[negatives["image_id"]]
    counts = Counter(zip(own, negatives["text"], strict=True))
    red, blue, orange = "a red wing", "a blue wing", "an orange wing"
    # Of 1000 captions, red becomes blue in 500 * 0.3, and blue becomes red in 300 * 0.5.
    expected = {(red, blue): 150, (red, orange): 100, (blue, orange): 60}
    for (a, b), n in expected.items():
        assert abs(counts[a, b] - n) < 4 * n**0.5 and abs(counts[b, a] - n) < 4 * n**0.5
    assert sum(counts.values()) == sum(counts[pair] + counts[pair[::-1]] for pair in expected)

    assert negatives.equals(made(captions[::-1], pairs[::-1])), "whatever the order"
    assert not negatives.equals(made(captions, pairs, seed=1))


def test_what_is_true_or_shared_is_no_negative() -> None:
    rows = [("a", 0, "a red wing", "red"), ("a", 1, "the wing is blue", "blue"), ("b", 0, "an orange wing", "orange")]
    captions, pairs = tables(rows)
    negatives = made(captions, pairs, count=50)
    assert set(negatives.loc[negatives["image_id"] == "a", "text"]) == {"an orange wing", "the wing is orange"}
    assert set(negatives.loc[negatives["image_id"] == "b", "text"]) == {"a red wing", "a blue wing"}
    assert made(captions, pairs.assign(relation="shared"), count=50).empty
    negatives = made(captions, pairs, count=50, groups=(("red", "orange"),))
    assert set(negatives["text"]) == {"an orange wing", "a red wing"}, "of the group"


def test_the_step_writes_the_table(tmp_path: Path) -> None:
    folder = inputs(tmp_path)
    run("sample_heldout", folder)
    run("make_splits", folder)
    files = {name: folder / f"{name}.parquet" for name in ("captions", "images", "pairs", "ranking", "splits")}
    files["splits"] = [files["splits"]]
    words = {"adjectives": folder / "color.yaml", "nouns": folder / "nouns.yaml"}
    settings = {"dataset": "d", "hard_negatives": 2, "train_on": "all", "halves": 0, "seed": 3, "one_value": False}
    output = {"negatives": folder / "negatives.parquet"}
    main(job(files | words, output, wildcards={"composition": "color"}, **settings))
    assert len(io.read_table(folder / "negatives.parquet", NEGATIVES)) > 20


def test_the_loss_ranks_images_against_negatives_too() -> None:
    draw = torch.Generator().manual_seed(0)
    images, texts, wrong = (torch.nn.functional.normalize(torch.randn(4, 8, generator=draw), dim=1) for _ in range(3))
    scale = torch.tensor(5.0)
    logits = (scale * images @ torch.cat([texts, wrong[:3]]).T).double().numpy()
    of_images = -np.mean([row[i] - np.log(np.exp(row).sum()) for i, row in enumerate(logits)])
    of_texts = -np.mean([row[i] - np.log(np.exp(row).sum()) for i, row in enumerate(logits[:, :4].T)])
    assert clip_loss(images, texts, scale, wrong[:3]).item() == pytest.approx((of_images + of_texts) / 2, rel=1e-5)
    assert clip_loss(images, texts, scale, wrong[:0]).item() == pytest.approx(clip_loss(images, texts, scale).item())


def test_missing_negatives_are_masked() -> None:
    """Of two captions of each image, some have no negative; the first caption's features stand in their places."""
    draw = torch.Generator().manual_seed(0)
    images, *texts = (torch.nn.functional.normalize(torch.randn(4, 8, generator=draw), dim=1) for _ in range(5))
    known, scale = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0]) > 0, torch.nn.Parameter(torch.tensor(1.5))
    loss = training._loss(training.ALONE, images, torch.cat(texts), known, scale, 2)
    alone = [clip_loss(images, texts[k], scale.exp(), texts[2 + k][known[4 * k : 4 * k + 4]]).item() for k in (0, 1)]
    assert loss.item() == pytest.approx(np.mean(alone), rel=1e-6)


def test_a_training_has_the_negatives_of_its_captions(train: Any, squares: Path, monkeypatch: Any) -> None:
    """Only first captions have one, and one caption of each image is drawn: some steps lack some."""
    counts, real = [], clip_loss

    def counted(*arguments: torch.Tensor) -> torch.Tensor:
        counts.append(len(arguments[3]))
        return real(*arguments)

    monkeypatch.setattr(training, "clip_loss", counted)
    train("judge", epochs=1, negatives=[squares / "negatives.parquet"])
    assert len(counts) == 4 and all(0 < n < 28 for n in counts)
