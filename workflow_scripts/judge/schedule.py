"""The learning rate over a training: a linear warm-up, then half a cosine down to 0, or a constant."""

import math


def rate(step: int, steps: int, peak: float, warmup: float, schedule: str = "cosine") -> float:
    """Return the learning rate of ``step`` (from 0) of ``steps``; in the fraction ``warmup`` it rises to ``peak``."""
    climb = round(warmup * steps)
    if step < climb:
        return peak * (step + 1) / climb
    if schedule == "constant":
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - climb) / max(1, steps - climb)))
