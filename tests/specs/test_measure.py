"""The score of a pair, by hand and against torchmetrics."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.specs.measure import cosine, specs


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
    import_torchvision()
    from torchmetrics.functional import pairwise_cosine_similarity

    images, texts = draw(n, d, seed)
    expected = (pairwise_cosine_similarity(images, texts).diagonal() + 1) / 2
    torch.testing.assert_close(specs(images * 7, texts / 3), expected)  # only directions matter


def test_precision_is_kept_or_raised() -> None:
    images, texts = draw(8, 512, 0, torch.float64)
    exact = specs(images, texts)
    assert exact.dtype == torch.float64
    half = specs(images.half(), texts.half())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, exact.float(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("shape", [(2, 5), (3, 4), (4,)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected pairs of rows"):
        specs(torch.zeros(2, 4), torch.zeros(shape))
