"""Pairs scored end to end by a tiny stretched model: scores, what cannot be scored, the cache, the command."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.clip.conftest import clip_folder
from workflow_scripts.clip import tokens
from workflow_scripts.clip.embed import Embedder
from workflow_scripts.clip.model import Judge, load_judge
from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs import score as step
from workflow_scripts.specs import stretch
from workflow_scripts.specs.measure import cosine, specs
from workflow_scripts.specs.score import read_pairs, score_pairs
from workflow_scripts.specs.steps import Stretch

from .test_stretch import TINY

LONG = " ".join(f"word{n % 7}" for n in range(10_000))
TEXTS = ["A red bird.", "a bird, with a long bill, and black wings", 'she said "look"\nand left', "ein Vögelchen – 鳥"]

Embedding = Callable[..., Embedder]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a random judge that reads 248 tokens, four images and three broken ones."""
    folder = tmp_path_factory.mktemp("pairs")
    stretch.main(Stretch(judge=f"local-dir:{clip_folder(folder / 'tiny', TINY)}", output=folder / "judge"))
    draw = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(draw.integers(0, 256, (40, 50 + number, 3), np.uint8)).save(folder / f"{number}.png")
    (folder / "broken.jpg").write_text("no image")
    Image.fromarray(draw.integers(0, 256, (200, 200, 3), np.uint8)).save(folder / "cut.jpg")
    (folder / "cut.jpg").write_bytes((folder / "cut.jpg").read_bytes()[:2000])
    (folder / "cut.png").write_bytes((folder / "0.png").read_bytes()[:2000])
    return folder


@pytest.fixture(scope="module")
def judge(folder: Path) -> Judge:
    return load_judge(folder / "judge", 1, "cpu")


@pytest.fixture
def embedder(judge: Judge, tmp_path: Path):
    with Cache(tmp_path / "cache.sqlite") as cache:
        yield Embedder(judge, cache, 4, "made")


def by_hand(judge: Judge, image: Path, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode one pair by open_clip."""
    with torch.inference_mode():
        pixels = judge.preprocess.floats(judge.preprocess.read([(image, None)]), judge.device)
        ids = judge.tokenizer([text.strip().lower()])
        return judge.model.encode_image(pixels), judge.model.encode_text(ids)


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(folder: Path, pairs: Path, cache: Path, batch: int = 4, output: Path | None = None) -> list[dict[str, str]]:
    options = {"cache": cache, "threads": 1, "batch": batch, "device": "cpu", "output": output}
    step.main(step.Score(judge=folder / "judge", pairs=pairs, **options))
    return read(output or pairs.with_suffix(".specs.csv"))


def test_scores_do_not_depend_on_the_batch(judge: Judge, folder: Path, embedder: Embedder) -> None:
    """16 pairs of four images and four texts, compared with each pair encoded alone."""
    images = [folder / f"{n}.png" for n in range(4) for _ in range(4)]
    scored = score_pairs(embedder, images, TEXTS * 4)
    for image, text, value, result in zip(images, TEXTS * 4, scored.cosine, scored.specs, strict=True):
        alone = by_hand(judge, image, text)
        assert value == pytest.approx(cosine(*alone).item(), abs=1e-5)
        assert result == pytest.approx(specs(*alone).item(), abs=1e-5)
    assert scored.status == ["ok"] * 16 and scored.done.all()
    assert len(set(scored.cosine.round(6))) == 16


def test_faults_are_named_and_the_other_pairs_scored(
    judge: Judge, folder: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "PAIRS_IN_MEMORY", 5)
    pairs = [
        ("0.png", TEXTS[0]), ("broken.jpg", TEXTS[0]), ("1.png", ""), ("absent.png", TEXTS[0]), ("2.png", TEXTS[1]),
        ("cut.jpg", TEXTS[2]), ("1.png", " \n "), ("", TEXTS[1]), ("0.png", LONG), ("cut.png", TEXTS[0]),
        ("3.png", TEXTS[2]), ("broken.jpg", ""), ("broken.jpg", TEXTS[2]), ("3.png", TEXTS[3]),
    ]  # fmt: skip
    scored = score_pairs(embedder, [folder / image for image, _ in pairs], [text for _, text in pairs])
    unknown, short = "unreadable image: no image of a known format", "unreadable image: "
    assert [status if not status.startswith(short) or status == unknown else short for status in scored.status] == [
        "ok", unknown, "empty text", "no such image file", "ok",
        short, "empty text", "no such image file", "cut", short,
        "ok", "empty text", unknown, "ok",
    ]  # fmt: skip
    assert all(str(folder) not in status and "0x" not in status for status in scored.status)
    assert scored.done.tolist() == [status in ("ok", "cut") for status in scored.status]
    assert (np.isnan(scored.cosine) == ~scored.done).all()
    good = [row for row in range(len(pairs)) if scored.done[row]]
    again = score_pairs(embedder, [folder / pairs[row][0] for row in good], [pairs[row][1] for row in good])
    assert np.array_equal(again.specs, scored.specs[good])


def test_a_text_of_10000_words(judge: Judge, folder: Path, embedder: Embedder) -> None:
    """It is truncated to 247 tokens and the end token."""
    shorter = " ".join(LONG.split()[:400])
    scored = score_pairs(embedder, [folder / "0.png"] * 2, [LONG, shorter])
    assert scored.status == ["cut", "cut"] and scored.specs[0] == scored.specs[1]
    ids = tokens.tokenize(judge.tokenizer, [LONG])
    assert ids.shape == (1, 248) and ids[0, -1] == judge.tokenizer.eot_token_id


def test_other_failures_are_raised(folder: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(embedder.judge, "encode_images", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        score_pairs(embedder, [folder / "0.png"], ["a bird"])


def test_swapped_columns(folder: Path, embedder: Embedder) -> None:
    scored = score_pairs(embedder, [folder / LONG, folder / "0.png", folder / "a\0b"], ["0.png", "a bird", "a bird"])
    assert scored.status == ["no such image file", "ok", "no such image file"]


def test_the_table(judge: Judge, folder: Path, tmp_path: Path) -> None:
    """Other columns and the order of the rows are kept; the second run reads the cache."""
    rows = [["id", "text", "rating", "image"]]
    rows += [[f"{n}", TEXTS[n % 4], f"0{n}", f"{n % 3}.png"] for n in range(6)]
    pairs = write(folder / "pairs.csv", rows)
    pairs.write_bytes(b"\xef\xbb\xbf" + pairs.read_bytes())  # as spreadsheets do
    found = run(folder, pairs, tmp_path / "cache")
    assert list(found[0]) == ["id", "text", "rating", "image", "specs", "cosine", "status"]
    assert [[row[name] for name in rows[0]] for row in found] == rows[1:]
    for row in found:
        score, value = float(row["specs"]), float(row["cosine"])
        assert score == pytest.approx((value + 1) / 2, abs=1e-6) and len(row["specs"].split(".")[1]) == 6
        alone = by_hand(judge, folder / row["image"], row["text"])
        assert score == pytest.approx(specs(*alone).item(), abs=1e-5)
    first = pairs.with_suffix(".specs.csv").read_bytes()
    assert b"\r" not in first and str(tmp_path).encode() not in first
    run(folder, pairs, tmp_path / "cache")
    assert pairs.with_suffix(".specs.csv").read_bytes() == first
    run(folder, pairs, tmp_path / "another", output=tmp_path / "deep" / "out.csv")
    assert (tmp_path / "deep" / "out.csv").read_bytes() == first


def options_of(folder: Path, pairs: Path, cache: Path) -> list[str]:
    options = ["--judge", folder / "judge", "--pairs", pairs, "--cache", cache, "--batch", "4", "--device", "cpu"]
    return [str(option) for option in options]


def test_the_command(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code says whether all pairs were scored, standard error which were not."""
    good = [["image", "text"], *([f"{n}.png", TEXTS[n]] for n in range(4))]
    monkeypatch.setattr(sys, "argv", ["score", *options_of(folder, write(folder / "good.csv", good), tmp_path)])
    cli.run(step.main)  # a failure would exit
    said = capsys.readouterr()
    assert "4 pairs scored, mean SPECS score 0." in said.err and said.out == ""
    bad = [["broken.jpg", "a bird"], ["0.png", ""], ["0.png", "a bird", "with a bill"], ["1.png"], ["0.png", LONG]]
    pairs = write(folder / "bad.csv", good[:3] + bad + good[3:])
    monkeypatch.setattr(sys, "argv", ["score", *options_of(folder, pairs, tmp_path)])
    with pytest.raises(SystemExit) as caught:
        cli.run(step.main)
    said = capsys.readouterr()
    assert caught.value.code == 1
    for line in (
        "9 pairs: 5 images and 7 texts, 0.0 MiB in the cache",
        "pair 3 (broken.jpg, a bird): unreadable image: no image of a known format",
        "pair 4 (0.png, ): empty text",
        "pair 5 (0.png, a bird, with a bill): 3 fields, not 2: put quotes around a text that has commas",
        "pair 6 (1.png): 1 fields, not 2",
        "1 of 9 texts are longer than the model reads; truncated before their end token",
        "error: 4 of 9 pairs have no score",
    ):
        assert line in said.err
    assert "Traceback" not in said.err
    rows = read(folder / "bad.specs.csv")
    assert [row["status"].split(":")[0] for row in rows] == [
        "ok", "ok", "unreadable image", "empty text", "3 fields, not 2", "1 fields, not 2", "cut", "ok", "ok",
    ]  # fmt: skip
    scores = {row["text"]: row["specs"] for row in read(folder / "good.specs.csv")}
    assert [scores[row["text"]] for row in rows if row["status"] == "ok"] == list(scores.values())
    assert all(bool(row["specs"]) == bool(row["cosine"]) == (row["status"] in ("ok", "cut")) for row in rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image,caption\n0.png,a bird\n", r"no column text; .* names 'image', 'caption'"),
        ("image;text\n0.png;a bird\n", r"no column image and no column text; .* names 'image;text'"),
        ("", r"no column image and no column text; .* names nothing"),
        ("image,text\n", "no pairs after the header"),
        ("image,text,image\n0.png,a,b\n", "column 'image' is a duplicate; rename it"),
        ("image,text,specs\n0.png,a,1\n", "column 'specs' is a column of the output; rename it"),
        ('image,text\n0.png,"a dog\n1.png,a cat\n', "from line 2: unexpected end of data; correct the quotes there"),
        ('image,text\n0.png,a dog\n1.png,"a cat" here\n', "from line 3: .*; correct the quotes there"),
    ],
)
def test_bad_tables(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pairs.csv").write_text(content)
    with pytest.raises(UserError, match=rf"pairs\.csv: {message}") as caught:
        read_pairs(tmp_path / "pairs.csv")
    assert "\n" not in str(caught.value)


def test_no_judge(tmp_path: Path) -> None:
    pairs = write(tmp_path / "p.csv", [["image", "text"], ["0.png", "a bird"]])
    with pytest.raises(UserError, match="not a judge's folder; make one with workflow_scripts.specs.stretch"):
        run(tmp_path, pairs, tmp_path / "cache")
    assert not (tmp_path / "p.specs.csv").exists()
