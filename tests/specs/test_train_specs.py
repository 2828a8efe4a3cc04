"""The training of SPECS: what is drawn, short texts, several processes, kills, the step."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load_file

from compclip.clip.device import settle
from compclip.clip.model import Judge, construct, load_judge
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import find_truncated_texts, get_tokenizer, tokenize
from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError
from compclip.core.seeds import rng
from compclip.judge import checkpoint
from compclip.specs import train_specs as library
from compclip.specs.config import SpecsTraining
from compclip.specs.data import LongExample
from compclip.specs.train_specs import chunk_numbers, count_fitting, draw_triples, train_specs
from tests.clip.conftest import PREPROCESS
from tests.clip.test_text_tower import LONG
from tests.project import Project

COLORS = {
    "red": (220, 30, 30),
    "green": (30, 180, 60),
    "blue": (40, 70, 220),
    "white": (240, 240, 240),
}
CFG = {**LONG, "text_cfg": {**LONG["text_cfg"], "context_length": 44}}
SETTINGS = {
    "epochs": 2,
    "batch": 6,
    "accumulation": 2,
    "lr": 1e-3,
    "warmup": 0.25,
    "precision": "fp32",
}


def example(text: str, image: str | Path = "a") -> LongExample:
    """Return a caption whose chunks end before its commas and at its end."""
    return LongExample(
        Path(image), text, [*(k for k, letter in enumerate(text) if letter == ","), len(text)]
    )


@pytest.fixture(scope="module")
def quarters(tmp_path_factory: pytest.TempPathFactory) -> list[LongExample]:
    """Draw thirty pictures of four squares, described quarter by quarter."""
    folder = tmp_path_factory.mktemp("quarters")
    result = []
    for number, names in enumerate(np.random.default_rng(0).choice(list(COLORS), (30, 4))):
        file = folder / f"{number:02d}.png"
        pixels = (
            np.array([COLORS[name] for name in names], np.uint8)
            .reshape(2, 2, 3)
            .repeat(8, 0)
            .repeat(8, 1)
        )
        Image.fromarray(pixels).save(file)
        text = "a picture {}, on top {}, below {}, beside it {}, the end.".format(*names)
        result.append(example(text, file))
    return result


Run = Callable[..., tuple[Judge, list[dict[str, Any]]]]


@pytest.fixture
def run(quarters: list[LongExample], tmp_path: Path) -> Run:
    """Return ``run(name, samples, loss, seed, **settings)``, which trains a new model and returns
    it with the log.
    """

    def go(
        name: str,
        samples: list[LongExample] = quarters,
        loss: str = "specs",
        seed: int = 1,
        **changes: Any,
    ) -> tuple[Judge, Any]:
        settle(1)
        torch.manual_seed(0)
        preprocess, chosen = Preprocess(PREPROCESS, None), SpecsTraining(**{**SETTINGS, **changes})
        judge = Judge(construct(CFG), get_tokenizer(CFG, None), preprocess, torch.device("cpu"), 1)
        return judge, train_specs(
            judge, samples, chosen, tmp_path / f"{name}.pt", loss=loss, seed=seed
        )

    return go


# What a step draws.


def test_chunks_are_numbered_by_content_and_equally_likely() -> None:
    """Only words that no image shows are ignored; numbers, `no`, places and word order count."""
    assert chunk_numbers(
        [example("A bird, a red wing, feet"), example("a bird, a  Red wing.")]
    ).tolist() == [[0, 1, 2], [0, 1, -1]]
    texts = [
        "It has a red bill.",
        "There is a red bill",
        "A RED bill that is",
        "It has a blue bill",
        "It is.",
        "is it",
    ]
    assert chunk_numbers([example(text) for text in texts])[:, 0].tolist() == [0, 0, 0, 1, 2, 3]
    texts = [
        "two dogs",
        "three dogs",
        "no dogs",
        "a dog above a table",
        "a dog under a table",
        "a red bird with a blue bill",
        "a blue bird with a red bill",
    ]
    assert len(set(chunk_numbers([example(text) for text in texts])[:, 0])) == len(texts)
    samples = [example(", ".join(f"{name}{k}" for k in range(5)), name) for name in "xyz"]
    counts: Counter[int] = Counter()
    others: Counter[str] = Counter()
    for seed in range(2000):
        ((base, _, negative), *_), _ = draw_triples(samples, [5] * 3, slice(None), rng(seed))
        counts[base.count(",")] += 1
        others[negative.split(", ")[-1][0]] += 1
    assert set(counts) == {0, 1, 2, 3} and all(abs(count - 500) < 80 for count in counts.values())
    assert set(others) == {"y", "z"} and abs(others["y"] - 1000) < 120
    tokenizer = get_tokenizer({"text_cfg": {"context_length": 20}}, None)
    long = example(
        ", ".join(f"the wing is {color} and long" for color in ("red", "green", "blue", "white"))
    )
    parts = [long.text[:end] for end in long.ends]
    assert find_truncated_texts(tokenizer, parts, tokenize(tokenizer, parts)).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert count_fitting(tokenizer, long) == 2
    other = example("the tail is red, feet, a, b", "b")
    drawn = {draw_triples([long, other], [2], slice(0, 1), rng(seed))[0][0] for seed in range(50)}
    assert {detail for _, detail, _ in drawn} == {parts[1]}


captions = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=2, max_size=5), min_size=2, max_size=8
)


@given(captions, st.integers(0, 99), st.data())
def test_triples(chunks: list[list[str]], seed: int, data: st.DataObject) -> None:
    """The negative's last chunk is another image's chunk at the same place, with other content; the
    detail fits.
    """
    # The first two are captions of the same image.
    samples = [example(", ".join(part), str(max(k, 1))) for k, part in enumerate(chunks)]
    fitting = [data.draw(st.integers(1, len(part))) for part in chunks]
    triples, bare = draw_triples(samples, fitting, slice(None), rng(seed))
    without = 0
    for k, (base, detail, negative) in enumerate(triples):
        if fitting[k] == 1:
            without += 1
            assert {base, detail, negative} == {samples[k].text}
            continue
        parts, whole = base.split(", "), detail.split(", ")
        i = len(parts)
        assert whole == chunks[k][: i + 1] and parts == chunks[k][:i] and 1 <= i < fitting[k]
        others = [part for j, part in enumerate(chunks) if max(j, 1) != max(k, 1)]

        def wrong(i: int, k: int = k, others: list[list[str]] = others) -> set[str]:
            return {part[i - 1] for part in others if len(part) >= i} - {chunks[k][i - 1]}

        if negative == base:
            without += 1
            assert not any(wrong(i) for i in range(1, fitting[k]))
        else:
            *same, last = negative.split(", ")
            assert same == parts[:-1] and last in wrong(i)
    assert without == bare
    shares = [
        draw_triples(samples, fitting[own], own, rng(seed))[0]
        for own in (slice(0, 1), slice(1, None))
    ]
    assert shares[0] + shares[1] == triples, "a process draws as the whole does"


# The training.


def test_the_rate_counts_and_settings_that_do_not_fit(
    run: Run, quarters: list[LongExample]
) -> None:
    """Warm-up is a number of steps, or a fraction of them if below 1."""
    climbing = [row["lr"] for row in run("number", warmup=3)[1]]
    np.testing.assert_allclose(climbing, [1e-3 / 3, 2e-3 / 3, 1e-3, 1e-3], rtol=1e-6)
    np.testing.assert_allclose(
        [row["lr"] for row in run("share", warmup=0.5)[1]], [5e-4, 1e-3, 1e-3, 5e-4], rtol=1e-6
    )
    long = example(", ".join(["a red bird with a long tail"] * 10), quarters[0].image)
    rows = run("long", samples=[*quarters[:11], long], epochs=1)[1]
    assert [row["truncated"] for row in rows] == [1] and rows[0]["without_negative"] == 0
    same = [example("a bird, a wing", one.image) for one in quarters]
    assert [row["without_negative"] for row in run("same", samples=same, epochs=1)[1]] == [12, 12]
    with pytest.raises(UserError, match="30 captions, but one step takes 32; lower batch"):
        run("judge", batch=16)


def test_an_infinite_loss_ends_a_training(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of this size overflow, however a processor rounds."""
    monkeypatch.setattr(library, "rate", lambda *_: 1e38)
    fault = r"specs\.training\.lr: the loss is NaN or infinite in step \d+; lower it"
    with pytest.raises(UserError, match=fault):
        run("judge", epochs=5)


def test_a_killed_training_ends_with_the_same_bytes(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is killed in the middle of a step."""
    whole, rows = run("whole")
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    monkeypatch.setattr(library, "CHECKPOINT_FRACTION", float("inf"))
    real, losses = library.specs_loss, 0

    def dying(*arguments: Any) -> Any:
        nonlocal losses
        losses += 1
        if losses == 4:  # the second half of the second step
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(library, "specs_loss", dying)
    with pytest.raises(KeyboardInterrupt):
        run("cut")
    monkeypatch.setattr(library, "specs_loss", real)
    with caplog.at_level("INFO", "compclip"):
        cut, again = run("cut")
    assert "resumed after step 1" in caplog.text
    assert again == rows and rows[0]["margin"] > 0, "the margin is resumed too"
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, cut.model.state_dict()[name]), name
    assert run("cut")[1] == rows, "and once more, with nothing left to do"


def test_the_baseline_sees_the_same_batches(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees only the whole captions, and its loss is the contrastive term. Each epoch has its own
    order.
    """
    seen: dict[str, list[Any]] = {"specs": [], "contrastive": []}
    images: list[Path] = []
    real = library.make_batch

    def watching(judge: Judge, examples: list[LongExample], *arguments: Any) -> Any:
        images.extend(example.image for example in examples)
        batch = real(judge, examples, *arguments)
        seen["specs" if arguments[-1] else "contrastive"].append(batch)
        return batch

    monkeypatch.setattr(library, "make_batch", watching)
    rows = {loss: run(loss, loss=loss)[1] for loss in seen}
    assert len(seen["specs"]) == len(seen["contrastive"]) == 8
    for one, other in zip(*seen.values(), strict=True):
        assert np.array_equal(one.pixels, other.pixels)
        assert torch.equal(one.ids[:1], other.ids) and one.ids.shape[:2] == (4, 6)
    assert rows["specs"][0]["contrastive"] == pytest.approx(
        rows["contrastive"][0]["contrastive"], rel=1e-5
    )
    for row in rows["contrastive"]:
        assert (
            row["loss"] == row["contrastive"]
            and row["detail"] == row["negative"] == row["margin"] == 0
        )
    run("other", seed=2)
    orders = {tuple(images[start : start + 24]) for start in range(0, len(images), 24)}
    assert len(orders) == 4 and all(len(set(order)) == 24 for order in orders), (
        "two epochs of each seed"
    )


def test_the_trained_judges(first_run: Project) -> None:
    """Both see the same captions in as many steps; the first positions stay."""
    trained = first_run.root / "results" / "sketch" / "specs" / "0"
    examples = pd.read_parquet(trained / "chunks.parquet")

    def positions(name: str) -> torch.Tensor:
        return load_file(trained / name / "weights.safetensors")["text.positional_embedding"]

    before = positions("stretched")
    for loss in ("specs", "contrastive"):
        manifest = read_json(trained / loss / "manifest.json")
        log = pd.read_csv(trained / loss / "log.csv")
        assert manifest["examples"] == len(examples) == 200 and manifest["captions_read"] == 200
        assert (
            log["step"].tolist() == [1, 2, 3, 4, 5]
            and set(log["epoch"]) == {1}
            and manifest["steps"] == 5
        )
        assert (
            manifest["started_from"]
            == read_json(trained / "stretched" / "manifest.json")["judge_hash"]
        )
        after = positions(loss)
        assert torch.equal(before[:20], after[:20]) and not torch.equal(before, after)
        assert load_judge(trained / loss, 1, "cpu").name.endswith(f"-{loss}")
