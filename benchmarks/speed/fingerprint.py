"""Fingerprint: a folder of 60,000 files whose index is up to date, against reading them all."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import compared
from compclip.core.fingerprint import fingerprint

FILES, SIZE, PER_FOLDER = 60_000, 15_000, 500


def measure(files: int = FILES) -> dict[str, Any]:
    noise = np.random.default_rng(0).bytes(SIZE)
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "images", Path(name) / "cache"
        for number in range(files):
            file = folder / str(number // PER_FOLDER) / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(noise + number.to_bytes(4, "big"))
        runs = []
        for _ in range(2):
            wall, cpu = time.perf_counter(), time.process_time()
            fingerprint(folder, cache=cache)
            runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    (first, first_cpu), (again, again_cpu) = runs
    seconds = {"first": round(first, 2), "again": round(again, 2)}
    cpu_seconds = {"first": round(first_cpu, 2), "again": round(again_cpu, 2)}
    return compared(files / again, files / first, "files/s", files, seconds=seconds, cpu_seconds=cpu_seconds)
