"""The score against torchmetrics, the loss against loops and finite differences; the command and
its faults.
"""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from compclip.clip import tokens
from compclip.clip.embed import Embedder
from compclip.clip.model import Judge, load_judge
from compclip.clip.vision import import_torchvision
from compclip.core.errors import UserError
from compclip.core.identity.vector_cache import VectorCache
from compclip.core.settings import cli
from compclip.specs import score as step
from compclip.specs.loss import Margin, Objective, specs_loss
from compclip.specs.score import read_image_texts, score_pairs
from compclip.specs.specs_score import cosine, specs_score
from tests.clip.conftest import clip_folder
from tests.specs.evaluated import refused

from . import test_stretch

LONG = " ".join(f"word{n % 7}" for n in range(10_000))
TEXTS = [
    "A red bird.",
    "a bird, with a long bill, and black wings",
    'she said "look"\nand left',
    "ein Vögelchen – 鳥",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a random judge that reads 248 tokens, four images and three broken ones."""
    folder = tmp_path_factory.mktemp("pairs")
    tiny = clip_folder(folder / "tiny", test_stretch.TINY)
    test_stretch.run(folder / "judge", model=f"local-dir:{tiny}")
    draw = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(draw.integers(0, 256, (40, 50 + number, 3), np.uint8)).save(
            folder / f"{number}.png"
        )
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
    with VectorCache(tmp_path / "cache.sqlite") as cache:
        yield Embedder(judge, cache, 4)


def by_hand(judge: Judge, image: Path, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode one pair by open_clip."""
    with torch.inference_mode():
        pixels = judge.preprocess.floats(judge.preprocess.read([(image, None)]), judge.device)
        ids = judge.tokenizer([text.strip().lower()])
        return judge.model.encode_image(pixels), judge.model.encode_text(ids)


def run(folder: Path, pairs: Path, cache: Path, output: Path | None = None) -> pd.DataFrame:
    options = {"cache": cache, "threads": 1, "batch": 4, "device": "cpu", "output": output}
    step.main(step.Score(judge=folder / "judge", pairs=pairs, **options))
    return pd.read_csv(output or pairs.with_suffix(".specs.csv"), dtype={"rating": str})


def test_faults_are_named_and_the_other_pairs_scored(
    folder: Path, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [
        ("0.png", TEXTS[0]),
        ("broken.jpg", TEXTS[0]),
        ("1.png", ""),
        ("absent.png", TEXTS[0]),
        ("2.png", TEXTS[1]),
        ("cut.jpg", TEXTS[2]),
        ("1.png", " \n "),
        ("", TEXTS[1]),
        ("0.png", LONG),
        ("cut.png", TEXTS[0]),
        (LONG, TEXTS[0]),
        ("a\0b", TEXTS[0]),
        ("broken.jpg", ""),
    ]
    scored = score_pairs(
        embedder, [folder / image for image, _ in pairs], [text for _, text in pairs]
    )
    broken, absent = "broken image", "no such image file"
    assert [status.split(":")[0] for status in scored["status"]] == [
        "ok",
        broken,
        "empty text",
        absent,
        "ok",
        broken,
        "empty text",
        absent,
        "truncated",
        broken,
        absent,
        absent,
        "empty text",
    ]
    assert scored["status"][1] == "broken image: no image of a known format"
    assert all(str(folder) not in status and "0x" not in status for status in scored["status"])
    for name in ("specs", "cosine"):
        assert scored[name].notna().tolist() == scored["status"].isin(["ok", "truncated"]).tolist()
    # The text of 10,000 words is truncated to 247 tokens and the end token.
    ids = tokens.tokenize(embedder.judge.tokenizer, [LONG])
    assert ids.shape == (1, 248) and ids[0, -1] == embedder.judge.tokenizer.eot_token_id
    shorter = score_pairs(embedder, [folder / "0.png"], [" ".join(LONG.split()[:400])])
    assert shorter["status"][0] == "truncated" and shorter["specs"][0] == scored["specs"][8]
    good = np.flatnonzero(scored["specs"].notna()).tolist()
    again = score_pairs(
        embedder, [folder / pairs[row][0] for row in good], [pairs[row][1] for row in good]
    )
    assert np.array_equal(again["specs"], scored["specs"][good])
    assert score_pairs(embedder, [folder / "0.png"], [" "])["status"].tolist() == ["empty text"]

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(embedder.judge, "encode_images", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        score_pairs(embedder, [folder / "3.png"], ["a bird"])


def test_the_table(judge: Judge, folder: Path, tmp_path: Path) -> None:
    """Other columns and the order of the rows are kept; the second run reads the cache.

    Each score is compared with that of its pair encoded alone.
    """
    rows = [
        {"id": n, "text": TEXTS[n % 4], "rating": f"0{n}", "image": f"{n // 4}.png"}
        for n in range(16)
    ]
    pairs = folder / "pairs.csv"
    pd.DataFrame(rows).to_csv(pairs, index=False, encoding="utf-8-sig")  # as spreadsheets do
    scored = run(folder, pairs, tmp_path / "cache")
    assert scored.drop(columns=["specs", "cosine", "status"]).to_dict("records") == rows
    assert set(scored["status"]) == {"ok"} and scored["cosine"].nunique() == 16
    for row in scored.itertuples():
        alone = by_hand(judge, folder / row.image, row.text)
        assert row.specs == pytest.approx(specs_score(*alone).item(), abs=1e-5)
        assert row.specs == pytest.approx((row.cosine + 1) / 2, abs=1e-6)
    first = pairs.with_suffix(".specs.csv").read_bytes()
    assert b"\r" not in first and str(tmp_path).encode() not in first
    run(folder, pairs, tmp_path / "cache")
    assert pairs.with_suffix(".specs.csv").read_bytes() == first
    run(folder, pairs, tmp_path / "another", output=tmp_path / "deep" / "out.csv")
    assert (tmp_path / "deep" / "out.csv").read_bytes() == first


def test_the_command(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code says whether all pairs were scored, standard error which were not."""
    rows = [("broken.jpg", "a bird"), ("0.png", ""), ("1.png", TEXTS[2]), ("0.png", LONG)]
    pd.DataFrame(rows, columns=["image", "text"]).to_csv(folder / "bad.csv", index=False)
    options = [
        "--judge",
        folder / "judge",
        "--pairs",
        folder / "bad.csv",
        "--cache",
        tmp_path,
        "--device",
        "cpu",
    ]
    monkeypatch.setattr(sys, "argv", ["score", *map(str, options)])
    with pytest.raises(SystemExit) as caught:
        cli.run(step.main)
    printed = capsys.readouterr()
    assert caught.value.code == 1 and printed.out == "" and "Traceback" not in printed.err
    for line in (
        "pair 1 (broken.jpg, a bird): broken image: no image of a known format",
        "pair 2 (0.png, ): empty text",
        "1 of 4 texts are longer than the model reads; truncated before their end token",
        "2 pairs scored, mean SPECS score 0.",
        "bad.specs.csv: 2 of 4 pairs have no score; see its column status",
    ):
        assert line in printed.err
    again = step.Score(judge=folder / "judge", pairs=folder / "bad.specs.csv", cache=tmp_path)
    assert "is a column of the output; rename it" in refused(lambda: step.main(again))
    scored = pd.read_csv(folder / "bad.specs.csv")
    assert (
        scored["specs"].notna().tolist()
        == scored["cosine"].notna().tolist()
        == [False, False, True, True]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image,caption\n0.png,a bird\n", r"no column text; .* but names 'image', 'caption'"),
        ("image;text\n0.png;a bird\n", r"no column image; .* names 'image;text'"),
        ("", "not a readable CSV file: .*No columns"),
        ("image,text\n", "no rows after the header"),
        ('image,text\n0.png,"a dog\n1.png,a cat\n', "not a readable CSV file: .*EOF inside string"),
        (
            "image,text\n0.png,a dog, a cat\n1.png,a,b,c\n",
            "not a readable CSV file: .*Expected 3 fields in line 3",
        ),
    ],
)
def test_bad_tables(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "pairs.csv").write_text(content)
    assert re.search(
        rf"pairs\.csv: {message}", refused(lambda: read_image_texts(tmp_path / "pairs.csv"))
    )


@given(
    n=st.integers(1, 20),
    d=st.integers(1, 64),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([torch.float16, torch.float32, torch.float64]),
)
def test_against_torchmetrics(n: int, d: int, seed: int, dtype: torch.dtype) -> None:
    """In double precision if the embeddings are, in single precision otherwise; only directions
    matter.
    """
    import_torchvision()
    from torchmetrics.functional import pairwise_cosine_similarity

    images, texts = torch.randn(2, n, d, generator=torch.Generator().manual_seed(seed)).to(dtype)
    precision = torch.float64 if dtype == torch.float64 else torch.float32
    expected = pairwise_cosine_similarity(images.to(precision), texts.to(precision)).diagonal()
    torch.testing.assert_close(cosine(images * 8, texts / 2), expected)
    torch.testing.assert_close(specs_score(images * 8, texts / 2), (expected + 1) / 2)


@pytest.mark.parametrize("shape", [(2, 5), (3, 4), (4,)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="^(images|texts): expected "):
        specs_score(torch.zeros(2, 4), torch.zeros(shape))


def batch(seed: int, n: int = 6, d: int = 5) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(5, n, d, generator=generator, dtype=torch.float64)
    return list(F.normalize(drawn, dim=-1))


def by_loops(
    rows: list[torch.Tensor], scale: float, epsilon: float
) -> tuple[list[float], list[float]]:
    """Return the three terms, and epsilon after each hinge."""
    images, full, base, detail, negative = (part.tolist() for part in rows)
    n = len(images)

    def s(text: list[float], image: list[float]) -> float:
        return scale * sum(x * y for x, y in zip(text, image, strict=True))

    contrastive = 0.0
    for k in range(n):
        logits = [s(full[k], image) for image in images]
        contrastive += (math.log(sum(math.exp(x) for x in logits)) - logits[k]) / n
    terms, margins = [contrastive], []
    for better, worse in ((detail, base), (base, negative)):
        high = [s(better[k], images[k]) for k in range(n)]
        low = [s(worse[k], images[k]) for k in range(n)]
        terms.append(sum(max(0.0, epsilon + b - a) for a, b in zip(high, low, strict=True)) / n)
        epsilon = min(1.5, max(0.0, sum(high) / n - sum(low) / n))
        margins.append(epsilon)
    return terms, margins


@given(st.integers(0, 2**31), st.floats(0.5, 50))
def test_against_loops(seed: int, scale: float) -> None:
    """Three consecutive batches, each of which passes its margin on."""
    objective, epsilon = Objective(), 0.0
    for k in range(3):
        rows = batch(seed + k)
        losses = specs_loss(*rows, torch.tensor(scale, dtype=torch.float64), objective)
        terms, margins = by_loops(rows, scale, epsilon)
        assert [x.item() for x in losses[1:]] == pytest.approx(terms, abs=1e-9)
        assert losses.total.item() == pytest.approx(
            sum(w * x for w, x in zip((1, 8, 0.8), terms, strict=True)), abs=1e-9
        )
        epsilon = margins[-1]
        assert float(objective.margin.epsilon) == pytest.approx(epsilon, abs=1e-9)
        assert 0 <= epsilon <= 1.5


class Constant(Margin):
    """A margin that does not follow the inputs, which would change finite differences."""

    def hinge(self, better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
        self.epsilon = 0.7
        return super().hinge(better, worse)


def test_gradients_equal_finite_differences() -> None:
    """Finite differences are taken while the margin is constant."""
    rows = [part.requires_grad_() for part in batch(1)]
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *inputs: specs_loss(*inputs, Objective(margin=Constant())).total, (*rows, scale)
    )
    # The hinge of negatives uses what the details achieved, without a gradient to the details.
    images, full, base, detail, negative = batch(2)
    detail = (0.2 * detail + images).requires_grad_()
    margin = Margin()
    objective = Objective((0.0, 0.0, 1.0), margin)
    losses = specs_loss(images, full, base, detail, negative, torch.tensor(5.0), objective)
    assert margin.epsilon.grad_fn is None and losses.negative > 0
    gradient = torch.autograd.grad(losses.total, detail)[0]
    assert not gradient.any()
