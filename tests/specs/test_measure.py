"""The score of a pair, by hand, against torchmetrics, over batches and processes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.specs.evaluated import picture, real_judge
from workflow_scripts.clip.model import load_judge
from workflow_scripts.clip.tokens import get_tokenizer
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs.measure import SpecsScore, cosine, specs  # first, for it makes torchvision's import work

from torchmetrics.functional import pairwise_cosine_similarity  # isort: skip


def draw(n: int, d: int, seed: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=made, dtype=dtype), torch.randn(n, d, generator=made, dtype=dtype)


def test_by_hand() -> None:
    images = torch.tensor([[3.0, 4.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    texts = torch.tensor([[3.0, 4.0], [-9.0, 0.0], [0.0, 5.0], [1.0, 1.0]])
    assert specs(images, texts).tolist() == pytest.approx([1, 0, 0.5, (1 + 0.5**0.5) / 2])
    assert cosine(images, texts).tolist() == pytest.approx([1, -1, 0, 0.5**0.5])


@given(n=st.integers(1, 20), d=st.integers(1, 64), seed=st.integers(0, 99))
def test_against_torchmetrics(n: int, d: int, seed: int) -> None:
    images, texts = draw(n, d, seed)
    scores = specs(images, texts)
    torch.testing.assert_close(scores, (pairwise_cosine_similarity(images, texts).diagonal() + 1) / 2)
    assert (scores >= 0).all() and scores.shape == (n,)
    # Only directions matter, and the score is symmetric.
    torch.testing.assert_close(specs(images * 7, texts / 3), scores)
    torch.testing.assert_close(specs(texts, images), scores)


def test_precision_is_kept_or_raised() -> None:
    images, texts = draw(8, 512, 0, torch.float64)
    exact = specs(images, texts)
    assert exact.dtype == torch.float64
    half = specs(images.half(), texts.half())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, exact.float(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5), (4,)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected pairs of rows"):
        specs(torch.zeros(2, 4), torch.zeros(shape))


def test_the_mean_over_batches() -> None:
    images, texts = draw(100, 16, 1)
    score = SpecsScore()
    for some in torch.arange(100).split(17):
        score.update(images[some], texts[some])
    torch.testing.assert_close(score.compute(), specs(images, texts).mean())
    # forward() returns the batch's own value.
    torch.testing.assert_close(score(images[:3], texts[:3]), specs(images[:3], texts[:3]).mean())
    score.reset()
    score.update(images[:5], texts[:5])
    torch.testing.assert_close(score.compute(), specs(images[:5], texts[:5]).mean())


def test_processes_are_summed() -> None:
    """Processes may have different numbers of pairs."""
    images, texts = draw(9, 4, 2)
    parts = [SpecsScore(), SpecsScore()]
    for part, rows in zip(parts, (slice(0, 2), slice(2, 9)), strict=True):
        part.update(images[rows], texts[rows])
    parts[0].merge_state(parts[1])
    torch.testing.assert_close(parts[0].compute(), specs(images, texts).mean())


def test_with_a_judge() -> None:
    class Judge:
        name, tokenizer = "eye", get_tokenizer({"text_cfg": {"context_length": 5}}, None)

        def encode_images(self, items: list, batch: int) -> np.ndarray:
            assert batch == 7
            return np.eye(4, dtype=np.float32)[[int(path.stem) for path, _ in items]]

        def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
            return np.eye(4, dtype=np.float32)[[int(text[0]) for text in texts]]

    score = SpecsScore(Judge(), batch=7)
    score.update([(Path("2.png"), None), (Path("3.png"), None)], ["2", "1 red bird"])
    assert score.compute().item() == pytest.approx(0.75) and score.cut == 0
    score.update([(Path("0.png"), None)] * 2, ["0 red birds fly"] * 2)
    assert score.compute().item() == pytest.approx(0.875) and score.cut == 2


def test_files_by_their_paths(tmp_path: Path) -> None:
    """Strings, paths and items are equivalent; a bad file is named, and its batch does not count."""
    judge = load_judge(real_judge(tmp_path / "judge"), 1, "cpu")
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for number, file in enumerate(files):
        picture(file, (90 * number, 30, 200 - 60 * number))
    texts = ["a red bird", "a blue bill", " ".join(["a green tail"] * 9)]
    scores = []
    for images in (files, [str(file) for file in files], [(file, None) for file in files]):
        score = SpecsScore(judge, batch=2)
        score.update(images, texts)
        scores.append(score.compute().item())
    assert scores[0] == scores[1] == scores[2] and score.cut == 1
    (tmp_path / "bad.png").write_bytes(files[0].read_bytes()[:60])
    for image, said in ((tmp_path / "bad.png", "unreadable image"), (tmp_path / "gone.png", "no such image file")):
        with pytest.raises(UserError, match=rf"{image.name}: {said}.*; remove the pair"):
            score.update([files[0], str(image)], texts[1:])
    with pytest.raises(UserError, match="gone.png: .*1 more unreadable"):
        score.update([tmp_path / "gone.png", tmp_path / "bad.png"], texts[1:])
    with pytest.raises(UserError, match="text 1 of 2 is empty"):
        score.update(files[:2], ["a bird", " "])
    with pytest.raises(ValueError, match="3 images and 2 texts"):
        score.update(files, texts[:2])
    assert (score.pairs, score.cut, score.compute().item()) == (3, 1, scores[0])
