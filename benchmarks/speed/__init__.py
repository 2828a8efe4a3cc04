"""Speed, measured against the plain way in the same run: a file a benchmark, with ``measure() ->
dict``.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from compclip.core.identity.code import ROOT


def compared(ours: float, baseline: float, unit: str, n: int, **more: Any) -> dict[str, Any]:
    """Return the figures of a comparison of two speeds."""
    speeds = {
        "ratio": round(ours / baseline, 2),
        "ours": round(ours, 1),
        "baseline": round(baseline, 1),
    }
    return {**speeds, "unit": unit, "n": n, **more}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def timed(*arguments: object) -> dict[str, float]:
    """Return CPU and wall seconds of a process of Python with these arguments."""
    before = os.times()
    subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, check=True)
    spent = np.subtract(os.times(), before)  # own user and system time, the children's, wall time
    return {"cpu": float(spent[2:4].sum()), "wall": float(spent[4])}
