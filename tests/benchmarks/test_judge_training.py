"""The benchmark of the judge's training from scratch, in small: both sides learn the same."""

import numpy as np

from benchmarks.speed import judge_training


def test_both_loops_learn_the_same() -> None:
    data = judge_training.draw_data(24)
    data.settings.update(batch=8, captions=2)
    for steps, tolerance in judge_training.TOLERANCES.items():
        losses = (loop(data.head(8 * steps), 1)[0] for loop in (judge_training.ours, judge_training.plain_training))
        np.testing.assert_allclose(*losses, rtol=tolerance)
