"""Judge: training from what the frozen part gave once, against decoding the images and running it
for every batch.

The paper's judge with random weights. The first side's time includes the making of its cache and
its checkpoints; the second runs some steps without, half before and half after the first, scaled to
as many. On a CPU, ``bound`` is the ratio of the two sides' floating-point operations, counted while
they run. On a GPU the sizes are those of a real training; ``baseline_decoding`` is the fraction of
the second side's time that other threads could take over.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
from PIL import Image
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu import TRAINED_PARTS
from benchmarks.speed import compared
from compclip.clip.pixels import Item
from compclip.core.identity.code import ROOT
from compclip.dataset.sources import cub, sketch
from compclip.judge.config import JudgeConfig


@dataclass(frozen=True)
class Size:
    """Images, epochs of the whole training, images of a batch, and steps of the plain side after
    its first.
    """

    images: int
    epochs: int
    batch: int
    plain_steps: int


ON_CPU = Size(images=48, epochs=20, batch=48, plain_steps=4)
ON_GPU = Size(images=9000, epochs=100, batch=256, plain_steps=16)


def load_birds(n: int, folder: Path) -> tuple[list[Item], list[list[str]]]:
    """n photographs and each one's captions: real ones where preset birds50 finds them, else drawn
    ones; repeated where they are fewer.
    """
    preset = yaml.safe_load((ROOT / "presets" / "birds50.yaml").read_text(encoding="utf-8"))
    settings = preset["dataset"]["cub"]
    root = ROOT / settings["root"]
    if root.is_dir():
        settings["root"] = str(root)
        loaded = cub.load(cub.Settings(**settings), seed=0, limit=None, folder=folder, cache=folder)
    else:
        loaded = sketch.load(sketch.Settings(), seed=0, limit=n, folder=folder, cache=folder)
        loaded.images["path"] = [as_photograph(folder / path) for path in loaded.images["path"]]
    images = loaded.images[loaded.images["path"].notna()].head(n)
    boxes = images.reindex(columns=["bbox_x", "bbox_y", "bbox_w", "bbox_h"]).to_numpy(float)
    items: list[Item] = [
        (folder / path, None if np.isnan(box).any() else tuple(box))
        for path, box in zip(images["path"], boxes, strict=True)
    ]
    assert isinstance(loaded.captions, pd.DataFrame)
    captions = loaded.captions.groupby("image_id")["text"].apply(list)
    texts = captions.reindex(images["image_id"]).tolist()
    times = -(-n // len(items))
    return (items * times)[:n], (texts * times)[:n]


def as_photograph(drawing: Path) -> str:
    """A JPEG of a photograph's size beside ``drawing``; its name."""
    file = drawing.with_suffix(".jpg")
    with Image.open(drawing) as image:
        image.convert("RGB").resize((500, 375)).save(file, quality=90)
    return file.name


def measure() -> dict[str, Any]:
    """Images a second of the two ways to train; an image counts once for each epoch."""
    # Here, for other benchmarks' sake: loading torch's models takes seconds.
    from compclip.clip.device import find_device, is_gpu, settle
    from compclip.clip.model import Judge, build
    from compclip.clip.pixels import Preprocess
    from compclip.clip.tokens import get_tokenizer, tokenize
    from compclip.judge.parallel import ALONE
    from compclip.judge.training import Examples, choose_trainable, train
    from compclip.judge.training_inputs import TrainingInputs, whole_captions

    device = find_device("auto")
    on_gpu = is_gpu(device)
    size = ON_GPU if on_gpu else ON_CPU
    threads = os.cpu_count() or 1
    # Beside a GPU the threads decode, each on its own.
    settle(1 if on_gpu else threads)
    config = JudgeConfig.model_validate(
        {
            "model": "RN101",
            "pretrained": None,
            "trainable": TRAINED_PARTS,
            "epochs": size.epochs,
            "batch": size.batch,
            "lr": 5e-4,
            "schedule": "constant",
            "warmup": 0,
            "precision": "amp_bf16" if on_gpu else "fp32",
        }
    )
    built = build(config, [], 0)
    preprocess = Preprocess(built.preprocess_cfg, config.crop)
    judge = Judge(built.model, get_tokenizer(built.model_cfg, None), preprocess, device, threads)
    choose_trainable(judge.model, config.trainable)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items, texts = load_birds(size.images, folder)
        ids = tokenize(judge.tokenizer, [text for some in texts for text in some])
        count = np.array([len(some) for some in texts])
        first = count.cumsum() - count

        def decoded(batches: Sequence[np.ndarray], changes: object) -> Iterator[torch.Tensor]:
            for rows in batches:
                pixels = next(
                    judge.preprocess.read_ahead(
                        [items[row] for row in rows], len(rows), judge.threads
                    )
                )
                yield judge.model.encode_image(judge.preprocess.floats(pixels, device))

        def run(examples: Examples, epochs: int, kept: str) -> float:
            """Train; returns when the last epoch ended, before its checkpoint was written."""
            ends = [0.0]

            def ended() -> dict[str, float]:
                ends.append(time.perf_counter())
                return {}

            chosen = config.model_copy(update={"epochs": epochs})
            train(judge.model, lambda: (examples, ended), chosen, 0, folder / kept)
            return ends[-1]

        def plain(steps: int, kept: str) -> float:
            # In several epochs where the images are too few.
            n = min(steps * size.batch, size.images // size.batch * size.batch)
            examples = Examples(decoded, whole_captions(judge, ids), first[:n], count[:n])
            return run(examples, -(-steps * size.batch // n), kept)

        def cached() -> float:
            training_inputs = TrainingInputs(judge, config, folder / "cache", ALONE)
            examples = Examples(
                training_inputs.images(items, "images"),
                training_inputs.captions(ids, "captions"),
                first,
                count,
            )
            run(examples, size.epochs, "ours")
            training_inputs.clear()
            return time.perf_counter()

        def timed(work: Callable[..., float], *arguments: Any) -> tuple[float, int]:
            counter: Any = nullcontext() if on_gpu else FlopCounterMode(display=False)
            begun = time.perf_counter()
            with counter:
                ended = work(*arguments)
            return ended - begun, 0 if on_gpu else counter.get_total_flops()

        plain(1, "warm-up")
        before = timed(plain, size.plain_steps // 2, "before")
        ours = timed(cached)
        after = timed(plain, size.plain_steps // 2, "after")
        begun = time.perf_counter()
        next(judge.preprocess.read_ahead(items[: size.batch], size.batch, judge.threads))
        decoding = time.perf_counter() - begun
    steps = size.images // size.batch * size.epochs
    seconds, operations = (
        (a + b) / size.plain_steps * steps for a, b in zip(before, after, strict=True)
    )
    n = steps * size.batch
    more: dict[str, Any] = {
        "baseline_decoding": round(decoding * steps / seconds, 3),
        "device": device.type,
    }
    if not on_gpu:
        more["bound"] = round(operations / ours[1], 2)
    return compared(n / ours[0], n / seconds, "images/s", n, seconds=round(ours[0], 1), **more)
