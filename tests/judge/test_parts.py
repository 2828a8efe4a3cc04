"""The small parts of a training: loss, schedule, precision, the watched accuracy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compclip.clip.device import check_precision
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.judge.training import clip_loss, in_batch_accuracy, rate


def test_loss_is_open_clips_and_accuracy_counts_ties_by_their_fraction() -> None:
    generator = torch.Generator().manual_seed(0)
    images, texts = (torch.nn.functional.normalize(torch.randn(7, 5, generator=generator), dim=-1) for _ in range(2))
    theirs = open_clip().ClipLoss()(images, texts, torch.tensor(14.0))
    assert clip_loss(images, texts, torch.tensor(14.0)).item() == pytest.approx(theirs.item(), rel=1e-6)
    pictures = np.eye(3, dtype=np.float32)
    captions = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 0]], np.float32)
    # Image 0 ties with three captions, image 1 with two, image 2 loses nothing but ties with all at 0.
    assert in_batch_accuracy(pictures, captions) == pytest.approx((1 / 3 + 1 / 2 + 1 / 3) / 3)
    assert math.isnan(in_batch_accuracy(pictures[:0], captions[:0]))
    assert in_batch_accuracy(np.tile(pictures, (40, 1)), np.tile(pictures, (40, 1)), group=3) == 1


@given(st.integers(1, 500), st.floats(0, 0.99))
def test_rate_climbs_then_falls(steps: int, warmup: float) -> None:
    rates = [rate(step, steps, 2.0, warmup) for step in range(steps)]
    climb = round(warmup * steps)
    assert all(0 <= r <= 2 for r in rates)
    assert rates[:climb] == sorted(rates[:climb]) and rates[climb:] == sorted(rates[climb:], reverse=True)
    if climb:
        assert rates[climb - 1] == 2.0
    assert climb == steps or rates[climb] == 2.0


def test_a_constant_rate_climbs_and_stays_and_float16_needs_a_gpu() -> None:
    assert [rate(step, 6, 2.0, 1 / 3, "constant") for step in range(6)] == [1, 2, 2, 2, 2, 2]
    with pytest.raises(UserError, match=r"^its setting: amp_fp16 needs a GPU"):
        check_precision("amp_fp16", torch.device("cpu"), "its setting")
    check_precision("amp_bf16", torch.device("cpu"), "its setting")
