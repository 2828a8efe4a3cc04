"""Read JPEG files of 500 x 375 to the floats that a judge takes, against open_clip's way.

The baseline opens each file by Pillow and applies open_clip's transform. Both use one thread;
rounds alternate, and the fastest of each counts, by CPU time. Pixels may differ by as much as
torch's way to resize differs from Pillow's. ``by_cores`` has images a second on some of the
machine's cores, a thread each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.gpu import make_files
from benchmarks.speed import compared, seconds

FILES = 1_000
BATCH = 64
ROUNDS = 7
ROUNDS_BY_CORES = 3
MOST_LEVELS = 2  # by which a pixel of 255 levels may differ


def cpu_seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def count_images(read: Callable[..., Iterator[np.ndarray]], *arguments: Any) -> int:
    return sum(len(batch) for batch in read(*arguments))


def measure() -> dict[str, Any]:
    """CPU time of an image by both ways, and images a second by cores."""
    # Here, for other benchmarks' sake: loading torch's models takes seconds.
    import torch

    from compclip.clip.device import settle
    from compclip.clip.pixels import PREPROCESS, Preprocess
    from compclip.clip.vision import open_clip

    settle(1)
    library = open_clip().transform
    transform = library.image_transform_v2(library.PreprocessCfg(**PREPROCESS), is_train=False)
    preprocess = Preprocess(PREPROCESS, None)
    device = torch.device("cpu")

    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_files(folder, FILES)
        items = [(file, None) for file in sorted(folder.glob("*.jpg"))]

        def theirs(n: int) -> list[torch.Tensor]:
            batches = []
            for first in range(0, n, BATCH):
                images = [transform(Image.open(file)) for file, _ in items[first : first + BATCH]]
                batches.append(torch.stack(images))
            return batches

        def ours(n: int) -> list[torch.Tensor]:
            firsts = range(0, n, BATCH)
            read = (preprocess.read(items[first : first + BATCH]) for first in firsts)
            return [preprocess.floats(pixels, device) for pixels in read]

        levels = 255 * torch.tensor(PREPROCESS["std"]).view(3, 1, 1)
        difference = ((ours(BATCH)[0] - theirs(BATCH)[0]).abs() * levels).max().item()
        assert difference < MOST_LEVELS + 0.01, difference
        own, plain = [], []
        for _ in range(ROUNDS):
            own.append(cpu_seconds(lambda: ours(FILES // 4)))
            plain.append(cpu_seconds(lambda: theirs(FILES // 4)))

        usable = sorted(os.sched_getaffinity(0))
        by_cores = {}
        cores = 1
        while cores <= len(usable):
            os.sched_setaffinity(0, usable[:cores])
            read_all = partial(count_images, preprocess.read_ahead, items, BATCH, cores)
            fastest = min(seconds(read_all)[0] for _ in range(ROUNDS_BY_CORES))
            by_cores[str(cores)] = round(FILES / fastest)
            cores *= 2
        os.sched_setaffinity(0, usable)
    images = FILES // 4
    return compared(
        images / min(own),
        images / min(plain),
        "images per CPU second",
        images,
        spread=[round(float(np.divide(p, o)), 2) for p, o in zip(plain, own, strict=True)],
        by_cores=by_cores,
    )
