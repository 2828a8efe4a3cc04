"""The training of SPECS: what is drawn, short texts, several processes, kills, the step."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from safetensors.torch import load_file

from tests.accelerator import accelerator
from tests.clip.conftest import PREPROCESS
from workflow_scripts.clip.device import settle
from workflow_scripts.clip.model import Judge, assemble, construct, load_judge
from workflow_scripts.clip.pixels import Preprocess
from workflow_scripts.clip.tokens import find_cut, get_tokenizer, tokenize
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json
from workflow_scripts.core.seeds import rng
from workflow_scripts.judge import checkpoint
from workflow_scripts.specs import train_specs, training
from workflow_scripts.specs.data import Example
from workflow_scripts.specs.steps import TrainSpecs
from workflow_scripts.specs.stretch import stretch, write_judge
from workflow_scripts.specs.training import Sample, Stream, Training, chunk_numbers, count_fitting, draw_triples, train

COLORS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 70, 220), "white": (240, 240, 240)}
CFG = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 26, "width": 16, "heads": 2, "layers": 2},
}
LONG = {**CFG, "text_cfg": {**CFG["text_cfg"], "context_length": 44}}
SETTINGS = {"epochs": 2, "batch": 6, "accumulation": 2, "lr": 1e-3, "warmup": 0.25, "precision": "fp32"}


def sample(path: Path | bytes, text: str, name: str) -> Sample:
    """Return a caption whose chunks end before its commas and at its end."""
    return Example(path, text, name), [*(k for k, letter in enumerate(text) if letter == ","), len(text)]


@pytest.fixture(scope="module")
def quarters(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """Draw thirty pictures of four squares, described quarter by quarter."""
    folder = tmp_path_factory.mktemp("quarters")
    draw = np.random.default_rng(0)
    result = []
    for number in range(30):
        names = draw.choice(list(COLORS), 4)
        pixels = np.array([COLORS[name] for name in names], np.uint8).reshape(2, 2, 3).repeat(8, 0).repeat(8, 1)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
        places = ("a picture", "on top", "below", "beside it")
        text = ", ".join(f"{place} {name}" for place, name in zip(places, names, strict=True)) + ", the end."
        result.append(sample(folder / f"{number:02d}.png", text, f"{number:02d}.png"))
    return result


def stream_of(samples: list[Sample]) -> Stream:
    def stream(epoch: int, skip: int) -> Iterator[Sample]:
        order = rng(0, "order", epoch).permutation(len(samples))
        return islice((samples[k] for k in order), skip, None)

    return stream


def new_judge(cfg: dict[str, Any] = LONG) -> Judge:
    settle(1)
    torch.manual_seed(0)
    model = construct(cfg)
    return Judge(model, get_tokenizer(cfg, None), Preprocess(PREPROCESS, None), torch.device("cpu"), 1)


Run = Callable[..., tuple[Judge, list[dict[str, Any]]]]


@pytest.fixture
def run(quarters: list[Sample], tmp_path: Path) -> Run:
    """Return ``run(name, loss=…, samples=…, **settings)``, which trains a new model and returns it with the log."""

    def go(name: str, loss: str = "specs", samples: list[Sample] = quarters, **changes: Any) -> tuple[Judge, Any]:
        judge, chosen = new_judge(), Training(**{**SETTINGS, **changes})
        return judge, train(judge, stream_of(samples), len(samples), chosen, loss, 0, tmp_path / f"{name}.pt")

    return go


def weights(judge: Judge) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in judge.model.state_dict().items()}


# What a step draws.


def test_chunks_with_equal_content_have_equal_numbers() -> None:
    """Only words that no image shows are ignored; numbers, `no`, places and word order count."""
    samples = [sample(b"", "A bird, a red wing, feet", "a"), sample(b"", "a bird, a  Red wing.", "b")]
    assert chunk_numbers(samples).tolist() == [[0, 1, 2], [0, 1, -1]]
    texts = ["It has a red bill.", "There is a red bill", "A RED bill that is", "It has a blue bill", "It is.", "is it"]
    samples = [(Example(Path("a"), text, "a"), [len(text)]) for text in texts]
    assert chunk_numbers(samples)[:, 0].tolist() == [0, 0, 0, 1, 2, 3]
    texts = ["two dogs", "three dogs", "no dogs", "a dog above a table", "a dog under a table",
             "a red bird with a blue bill", "a blue bird with a red bill"]  # fmt: skip
    samples = [(Example(Path("a"), text, "a"), [len(text)]) for text in texts]
    assert len(set(chunk_numbers(samples)[:, 0])) == len(texts)


captions = st.lists(st.lists(st.sampled_from("abcd"), min_size=2, max_size=5), min_size=2, max_size=8)


@given(captions, st.integers(0, 99))
def test_triples(chunks: list[list[str]], seed: int) -> None:
    """The negative's last chunk is another image's chunk at the same place, with other content."""
    # The first two are captions of the same image.
    samples = [sample(b"", ", ".join(part), str(max(k, 1))) for k, part in enumerate(chunks)]
    fitting = [len(part) for part in chunks]
    triples, bare = draw_triples(samples, fitting, slice(None), rng(seed))
    without = 0
    for k, (base, detail, negative) in enumerate(triples):
        parts, whole = base.split(", "), detail.split(", ")
        i = len(parts)
        assert whole == chunks[k][: i + 1] and parts == chunks[k][:i] and 1 <= i < len(chunks[k])
        others = [part for j, part in enumerate(chunks) if max(j, 1) != max(k, 1)]

        def wrong(i: int, k: int = k, others: list[list[str]] = others) -> set[str]:
            return {part[i - 1] for part in others if len(part) >= i} - {chunks[k][i - 1]}

        if negative == base:
            without += 1
            assert not any(wrong(i) for i in range(1, len(chunks[k])))
        else:
            *same, last = negative.split(", ")
            assert same == parts[:-1] and last in wrong(i)
    assert without == bare
    shares = [draw_triples(samples, fitting[own], own, rng(seed))[0] for own in (slice(0, 1), slice(1, None))]
    assert shares[0] + shares[1] == triples, "a process draws as the whole does"


def test_every_i_is_equally_likely() -> None:
    samples = [sample(b"", ", ".join(f"{name}{k}" for k in range(5)), name) for name in "xyz"]
    counts: Counter[int] = Counter()
    others: Counter[str] = Counter()
    for seed in range(2000):
        ((base, _, negative), *_), _ = draw_triples(samples, [5] * 3, slice(None), rng(seed))
        counts[base.count(",")] += 1
        others[negative.split(", ")[-1][0]] += 1
    assert set(counts) == {0, 1, 2, 3} and all(abs(count - 500) < 80 for count in counts.values())
    assert set(others) == {"y", "z"} and abs(others["y"] - 1000) < 120


def test_a_detail_that_would_be_truncated_is_not_drawn() -> None:
    tokenizer = get_tokenizer({"text_cfg": {"context_length": 20}}, None)
    some = sample(b"", ", ".join(f"the wing is {color} and long" for color in ("red", "green", "blue", "white")), "a")
    fits = count_fitting(tokenizer, some[0].text, some[1])
    parts = [[some[0].text[:end]] for end in some[1]]
    cut = [bool(find_cut(tokenizer, part, tokenize(tokenizer, part))) for part in parts]
    assert cut == [False, False, True, True] and fits == 2
    other = sample(b"", "the tail is red, feet, a, b", "b")
    drawn = {draw_triples([some, other], [fits], slice(0, 1), rng(seed))[0][0] for seed in range(50)}
    assert {detail for _, detail, _ in drawn} == {some[0].text[: some[1][1]]}


def test_a_caption_with_one_fitting_chunk_teaches_no_detail() -> None:
    samples = [sample(b"", "a, b", "a"), sample(b"", "c, d", "b")]
    triples, bare = draw_triples(samples, [1, 2], slice(None), rng(0))
    assert bare == 1 and triples[0] == ("a, b",) * 3


# The training.


def rises(judge: Judge, samples: list[Sample]) -> float:
    """Return the fraction of details that raise the similarity."""
    found: list[bool] = []
    with torch.no_grad():
        for example, ends in samples:
            pixels = training.make_batch(judge, [(example, ends)], slice(None), rng(0), False).pixels
            image = judge.model.encode_image(judge.preprocess.floats(pixels, judge.device), normalize=True)
            parts = tokenize(judge.tokenizer, [example.text[:end] for end in ends])
            found += ((judge.model.encode_text(parts, normalize=True) @ image[0]).diff() > 0).tolist()
    return float(np.mean(found))


@pytest.mark.slow
def test_it_learns(quarters: list[Sample], tmp_path: Path) -> None:
    """Contrastive training tells the images apart; SPECS after it makes details raise the similarity."""
    judge, stream = new_judge(), stream_of(quarters)
    chosen = Training(epochs=40, batch=15, accumulation=1, lr=5e-3, warmup=0.1, precision="fp32")
    rows = train(judge, stream, 30, chosen, "contrastive", 0, tmp_path / "before.pt")
    assert rows[-1]["loss"] < 0.6 * rows[0]["loss"] and len(rows) == 80
    before = rises(judge, quarters)
    rows = train(judge, stream, 30, chosen.model_copy(update={"lr": 1e-3}), "specs", 0, tmp_path / "after.pt")
    assert before < 0.8 and rises(judge, quarters) > 0.9
    assert all(0 <= row["margin"] <= 1.5 for row in rows) and rows[-1]["margin"] > 0
    total = [row["contrastive"] + 8 * row["detail"] + 0.8 * row["negative"] for row in rows]
    np.testing.assert_allclose(total, [row["loss"] for row in rows], rtol=1e-5)


def test_the_rate(run: Run) -> None:
    """Warm-up is a number of steps, or a fraction of them if below 1."""
    climbing = [row["lr"] for row in run("number", warmup=3)[1]]
    np.testing.assert_allclose(climbing, [1e-3 / 3, 2e-3 / 3, 1e-3, 1e-3], rtol=1e-6)
    np.testing.assert_allclose([row["lr"] for row in run("share", warmup=0.5)[1]], [5e-4, 1e-3, 1e-3, 5e-4], rtol=1e-6)


def test_the_first_positions_stay(run: Run) -> None:
    before = new_judge().model.positional_embedding.detach().clone()
    after = run("judge", weight_decay=0.5, keep=20)[0].model.positional_embedding
    assert torch.equal(before[:20], after[:20])
    assert not torch.equal(before[20:], after[20:])
    assert not torch.equal(before, run("free", keep=0)[0].model.positional_embedding)


def test_a_killed_training_ends_with_the_same_bytes(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is killed in the middle of a step."""
    whole, rows = run("whole")
    monkeypatch.setattr(checkpoint, "EVERY", 0)
    monkeypatch.setattr(training, "CHECKPOINT_FRACTION", float("inf"))
    real, losses = training.specs_loss, 0

    def dying(*arguments: Any) -> Any:
        nonlocal losses
        losses += 1
        if losses == 4:  # the second half of the second step
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(training, "specs_loss", dying)
    with pytest.raises(KeyboardInterrupt):
        run("cut")
    monkeypatch.setattr(training, "specs_loss", real)
    with caplog.at_level("INFO", "compclip"):
        cut, again = run("cut")
    assert "resumed after step 1" in caplog.text
    assert again == rows and rows[0]["margin"] > 0, "the margin is resumed too"
    for name, tensor in weights(whole).items():
        assert torch.equal(tensor, weights(cut)[name]), name
    assert run("cut")[1] == rows, "and once more, with nothing left to do"


def test_accumulated_hinges_are_those_of_the_whole_batch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fixed margin, and wrong chunks that do not depend on the batch."""

    def fixed(samples: list[Sample], fitting: list[int], rows: slice, draw: Any) -> tuple[list[Any], int]:
        texts = [(example.text, ends) for example, ends in samples[rows]]
        return [(t[: ends[1]], t[: ends[2]], t[: ends[0]] + ", below pink") for t, ends in texts], 0

    monkeypatch.setattr(training, "draw_triples", fixed)
    options = {"weights": (0.0, 8.0, 0.8), "margin": 0.3, "epochs": 1, "warmup": 0}
    start = weights(new_judge())
    whole, rows = run("whole", batch=12, accumulation=1, **options)
    parts, others = run("parts", batch=3, accumulation=4, **options)
    assert len(rows) == len(others) == 2
    for key in ("detail", "negative"):
        np.testing.assert_allclose([row[key] for row in rows], [row[key] for row in others], rtol=1e-4)
    for name, tensor in weights(whole).items():
        moved = (tensor - start[name]).norm()
        assert name.endswith("in_proj_bias") or (tensor - weights(parts)[name]).norm() <= 5e-3 * moved, name


def test_the_baseline_sees_the_same_batches(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees only the whole captions, and its loss is the contrastive term."""
    seen: dict[str, list[torch.Tensor]] = {"specs": [], "contrastive": []}
    real = training.make_batch

    def watching(*arguments: Any) -> Any:
        batch = real(*arguments)
        seen["specs" if arguments[-1] else "contrastive"].append(batch)
        return batch

    monkeypatch.setattr(training, "make_batch", watching)
    rows = {loss: run(loss, loss=loss)[1] for loss in seen}
    assert len(seen["specs"]) == len(seen["contrastive"]) == 8
    for one, other in zip(*seen.values(), strict=True):
        assert np.array_equal(one.pixels, other.pixels)
        assert torch.equal(one.ids[:1], other.ids) and one.ids.shape[:2] == (4, 6)
    assert rows["specs"][0]["contrastive"] == pytest.approx(rows["contrastive"][0]["contrastive"], rel=1e-5)
    for row in rows["contrastive"]:
        assert row["loss"] == row["contrastive"] and row["detail"] == row["negative"] == row["margin"] == 0


def test_mixed_precision(run: Run) -> None:
    rows = [run(precision, precision=precision, epochs=1)[1] for precision in ("fp32", "amp_bf16")]
    assert rows[0] != rows[1] and rows[0][0]["loss"] == pytest.approx(rows[1][0]["loss"], rel=0.05)


def test_truncated_captions_are_counted(run: Run, quarters: list[Sample]) -> None:
    image = quarters[0][0].image
    long = sample(image, ", ".join(["a red bird with a long tail"] * 10), "long")
    rows = run("judge", samples=[*quarters[:11], long], epochs=1)[1]
    assert [row["cut"] for row in rows] == [1] and rows[0]["without_negative"] == 0


def test_equal_captions_have_no_negatives(run: Run, quarters: list[Sample]) -> None:
    same = [sample(example.image, "a bird, a wing", example.name) for example, _ in quarters]
    rows = run("judge", samples=same, epochs=1)[1]
    assert [row["without_negative"] for row in rows] == [12, 12]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 16}, "30 captions, but one step takes 32; lower batch or accumulation"),
        ({"lr": 1e30, "epochs": 5}, r"the loss is NaN or infinite in step \d+; lower specs\.training\.lr"),
    ],
)
def test_settings_that_do_not_fit(run: Run, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run("judge", **changes)


def test_the_images_of_shards(quarters: list[Sample]) -> None:
    """The bytes of an image are equivalent to its file."""
    judge = new_judge()
    packed = [(Example(example.image.read_bytes(), example.text, example.name), ends) for example, ends in quarters]
    ones, others = (training.make_batch(judge, some, slice(None), rng(0), False) for some in (quarters, packed))
    assert np.array_equal(ones.pixels, others.pixels)
    with pytest.raises(UserError, match=r"^broken: not a readable image"):
        training.make_batch(judge, [sample(b"no image", "a, b", "broken")], slice(None), rng(0), False)


# The command.


@pytest.fixture(scope="module")
def places(quarters: list[Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a stretched judge, and captions.parquet next to its images."""
    folder = tmp_path_factory.mktemp("places")
    judge = new_judge(CFG)
    cfg, state = stretch(CFG, judge.model.state_dict(), length=44)
    write_judge(assemble(cfg, state, PREPROCESS, None, "here"), "small", None, {}, folder / "judge")
    records = []
    for example, _ in quarters:
        (folder / example.name).write_bytes(example.image.read_bytes())
        names = [part.split()[-1] for part in example.text.split(",")[:4]]
        said = "There is a {} square at the top, beside a {} one. A {} square lies below, near a {} one.".format(*names)
        records.append((example.name, said))
    pd.DataFrame(records, columns=["image", "text"]).to_parquet(folder / "captions.parquet")
    return folder


def settings(places: Path, output: Path, **changes: Any) -> TrainSpecs:
    training = Training(**{**SETTINGS, **changes.pop("training", {})})
    common = {
        "judge": places / "judge", "examples": places / "captions.parquet", "processes": 1, "threads": 1,
        "device": "cpu", "cache": output.parent / "cache",
    }  # fmt: skip
    return TrainSpecs(output=output, training=training, **{**common, **changes})


def test_the_step(places: Path, tmp_path: Path) -> None:
    """From a table to a judge that can be loaded; a second run gives the same bytes."""
    for name in ("one", "again"):
        train_specs.main(settings(places, tmp_path / name, cache=tmp_path / f"{name}_cache"))
    one = tmp_path / "one"
    assert {file.name for file in one.iterdir()} == {
        "weights.safetensors", "model.json", "vocabulary.json", "manifest.json", "log.csv", "loss.png",
    }  # fmt: skip
    for file in one.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name
    manifest = read_json(one / "manifest.json")
    assert manifest["examples"] == 30 and manifest["steps"] == 4 and manifest["captions_read"] == 48
    assert manifest["cut"] == manifest["without_negative"] == 0
    log = pd.read_csv(one / "log.csv")
    assert log["step"].tolist() == [1, 2, 3, 4] and log["epoch"].tolist() == [1, 1, 2, 2]
    before, after = (load_file(folder / "weights.safetensors") for folder in (places / "judge", one))
    positions = [part["positional_embedding"] for part in (before, after)]
    assert torch.equal(positions[0][:20], positions[1][:20]) and not torch.equal(*positions)
    judge = load_judge(one, threads=1)
    assert judge.name == "small-specs"
    assert judge.encode_texts(["a red square " * 10], 1).shape == (1, 16)


def test_on_a_gpu(places: Path, tmp_path: Path) -> None:
    """In float32 as on the CPU; in float16, the default on a GPU, nearly so."""

    def step(name: str, **changes: Any) -> tuple[pd.DataFrame, str]:
        train_specs.main(settings(places, tmp_path / name, **changes))
        manifest = read_json(tmp_path / name / "manifest.json")
        return pd.read_csv(tmp_path / name / "log.csv"), manifest["settings"]["precision"]

    here, _ = step("here")
    with accelerator():
        there, fine = step("there", device="auto")
        default, coarse = step("default", device="auto", training={"precision": "auto"})
    assert (fine, coarse) == ("fp32", "amp_fp16")
    pd.testing.assert_frame_equal(there, here, rtol=1e-4)
    assert default["loss"][0] != here["loss"][0] and default["loss"][0] == pytest.approx(here["loss"][0], rel=0.02)


@pytest.mark.slow
def test_two_processes_train_as_one(places: Path, tmp_path: Path) -> None:
    """Started by torchrun on the CPU, each has half of the batch."""
    one, two = tmp_path / "one", tmp_path / "two"
    train_specs.main(settings(places, one))
    chosen = settings(places, two, training={"batch": 3}).model_dump(mode="json", exclude_none=True)
    words = {name: value if isinstance(value, str) else json.dumps(value) for name, value in chosen.items()}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in words.items()]
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--",
            "workflow_scripts.specs.train_specs", *arguments,
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("epoch 1 of 2") == 1, "only the first process logs"
    logs = [pd.read_csv(folder / "log.csv") for folder in (one, two)]
    pd.testing.assert_frame_equal(*logs, rtol=1e-4, atol=1e-5)
    start = load_file(places / "judge" / "weights.safetensors")
    ends = [load_file(folder / "weights.safetensors") for folder in (one, two)]
    for name, tensor in ends[0].items():
        if not name.endswith("in_proj_bias"):  # of which a third has no gradient but rounding
            assert (tensor - ends[1][name]).norm() <= 5e-3 * (tensor - start[name]).norm(), name
    assert any(not torch.equal(start[name], ends[0][name]) for name in start)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("lr", -1), ("lr", math.inf), ("rate", 1), ("weight_decay", math.inf), ("warmup", math.nan),
        ("margin", math.inf), ("weights", [-1, -8, -1]), ("weights", [0, 0, 0]), ("weights", [1, math.nan, 1]),
        ("weights", [1, math.inf, 1]),
    ],
)  # fmt: skip
def test_bad_settings(setting: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=setting):
        Training(**{setting: value})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge": Path("nowhere")}, "nowhere: not a judge's folder; make one with workflow_scripts.specs.stretch"),
        ({"training": {"precision": "amp_fp16"}}, r"^specs\.training\.precision: amp_fp16 needs a GPU"),
        ({"device": "cuda"}, "--device: cuda, but torch sees no GPU"),
    ],
)
def test_bad_options(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=said):
        train_specs.main(settings(places, tmp_path / "judge", **changes))


def test_the_judge_it_starts_from_is_not_overwritten(places: Path) -> None:
    for output in (places / "judge", places):
        with pytest.raises(UserError, match=f"--output {output}: would overwrite {places / 'judge'}"):
            train_specs.main(settings(places, output, cache=places.parent / "none"))
    assert not (places.parent / "none").exists() and load_judge(places / "judge", 1).name == "small"


def test_a_warm_up_longer_than_the_training(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = "warm-up ends after the last of 4 steps, at 50 % of lr; lower specs.training.warmup (now 8)"
    for warmup, warned in ((8, True), (4, False), (0.25, False)):
        caplog.clear()
        train_specs.main(settings(places, tmp_path / f"w{warmup}", training={"warmup": warmup}))
        assert (said in caplog.text) == warned
