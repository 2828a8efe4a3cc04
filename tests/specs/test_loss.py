"""The loss of SPECS by hand, against finite differences and against plain loops."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from compclip.specs.loss import Margin, specs_loss


def batch(seed: int, n: int = 6, d: int = 5) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(5, n, d, generator=generator, dtype=torch.float64)
    return list(F.normalize(drawn, dim=-1))


def by_loops(rows: list[torch.Tensor], scale: float, epsilon: float) -> tuple[list[float], list[float]]:
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
    margin, epsilon = Margin(), 0.0
    for k in range(3):
        rows = batch(seed + k)
        losses = specs_loss(*rows, torch.tensor(scale, dtype=torch.float64), margin)
        terms, margins = by_loops(rows, scale, epsilon)
        assert [x.item() for x in losses[1:]] == pytest.approx(terms, abs=1e-9)
        assert losses.total.item() == pytest.approx(
            sum(w * x for w, x in zip((1, 8, 0.8), terms, strict=True)), abs=1e-9
        )
        epsilon = margins[-1]
        assert float(margin.epsilon) == pytest.approx(epsilon, abs=1e-9)
        assert 0 <= epsilon <= 1.5


class Constant(Margin):
    """A margin that does not follow the inputs, which would change finite differences."""

    def hinge(self, better: torch.Tensor, worse: torch.Tensor) -> torch.Tensor:
        self.epsilon = 0.7
        return super().hinge(better, worse)


def test_gradients_equal_finite_differences_and_none_flows_through_the_margin() -> None:
    """Finite differences are taken while the margin is constant."""
    rows = [part.requires_grad_() for part in batch(1)]
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: specs_loss(*inputs, Constant()).total, (*rows, scale))
    # The hinge of negatives uses what the details achieved, without a gradient to the details.
    images, full, base, detail, negative = batch(2)
    detail = (0.2 * detail + images).requires_grad_()
    margin = Margin()
    losses = specs_loss(images, full, base, detail, negative, torch.tensor(5.0), margin, (0.0, 0.0, 1.0))
    assert margin.epsilon.grad_fn is None and losses.negative > 0
    gradient = torch.autograd.grad(losses.total, detail)[0]
    assert not gradient.any()
