"""Judge training: the default judge's epochs, against a plain PyTorch loop over the same batches.

The loop is what one would write in an evening: pixels, token ids and word windows in memory,
channels last, torch's layers and embedding bag, AdamW. The sides take turns, each epoch in a new
process, after one that warms it, on one thread; times are CPU seconds, which other programs disturb
less. The mean losses of the first steps must agree. ``roofline`` is the rate of a large matrix
product; ``percent`` is how much of it a step's operations reach, counted by torch.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
import yaml
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.speed import compared
from compclip.clip.device import settle
from compclip.clip.model import Judge, build
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import PAD, tokenize
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.dataset.sources import sketch
from compclip.judge.training import MAX_SCALE, Examples, _draw_captions, make_optimizer, rate, train
from compclip.judge.training_inputs import whole_captions
from workflow_scripts.workflow.config import load_config

IMAGES, ROUNDS = 1920, 7  # images of an epoch; measured epochs of each side
# Steps, and how much their mean losses may differ, relatively. The first loss has only float32's
# rounding; each update by Adam scales that of small gradients up: a change of the pixels by 1e-7
# moves the mean of three steps by 1.5e-4.
TOLERANCES = {1: 1e-5, 3: 1e-3}
MATRIX_SIZE = 2048  # of the matrices


@dataclass(frozen=True)
class Data:
    """Images, bytes (n, height, width, 3), and their captions, grouped by image; ``settings`` of
    stage judge.
    """

    pixels: np.ndarray
    texts: list[str]
    count: np.ndarray
    settings: dict[str, Any]

    @property
    def first(self) -> np.ndarray:
        return self.count.cumsum() - self.count

    def head(self, n: int) -> "Data":
        """Return the first n images with their captions."""
        return Data(
            self.pixels[:n], self.texts[: int(self.count[:n].sum())], self.count[:n], self.settings
        )


def draw_data(n: int) -> Data:
    """Return drawn birds with their captions."""
    config = load_config(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))).judge
    config = config.model_copy(update={"augment": "none"})  # the plain loop changes no image
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawn = sketch.load(
            sketch.Settings(images=n, pretraining=0), seed=0, limit=n, folder=folder, cache=folder
        )
        assert isinstance(drawn.captions, pd.DataFrame)
        captions = drawn.captions.sort_values(["image_id", "caption_id"])
        count = captions.groupby("image_id").size()
        paths = drawn.images.set_index("image_id").loc[count.index, "path"]
        cfg = build(config, captions["text"].tolist(), 0).preprocess_cfg
        pixels = Preprocess(cfg, None).read([(folder / path, None) for path in paths])
    return Data(pixels, captions["text"].tolist(), count.to_numpy(), config.model_dump())


def start_judge(data: Data) -> tuple[Any, Judge, torch.Tensor]:
    """Return the settings, the judge before training, and the ids of the captions."""
    config = load_config({"dataset": {"source": "sketch"}, "judge": data.settings}).judge
    built = build(config, data.texts, 0)
    judge = Judge(
        built.model,
        built.tokenizer(),
        Preprocess(built.preprocess_cfg, None),
        torch.device("cpu"),
        1,
    )
    return config, judge, tokenize(judge.tokenizer, data.texts)


def ours(data: Data, epochs: int) -> tuple[list[float], list[float]]:
    """Return each epoch's mean loss and CPU seconds, as the step trains."""
    settle(1)
    config, judge, ids = start_judge(data)
    ends = [time.process_time()]

    def images(batches: Sequence[np.ndarray], changes: object) -> Iterator[torch.Tensor]:
        for rows in batches:
            pixels = judge.preprocess.floats(data.pixels[rows], judge.device)
            yield judge.model.encode_image(pixels)

    def ended() -> dict[str, float]:
        ends.append(time.process_time())
        return {}

    examples = Examples(images, whole_captions(judge, ids), data.first, data.count)
    with tempfile.TemporaryDirectory() as name:
        config = config.model_copy(update={"epochs": epochs})
        rows = train(
            judge.model, lambda: (examples, ended), config, 0, Path(name) / "checkpoint.pt"
        )
    return [row["loss"] for row in rows], np.diff(ends).tolist()


def plain_training(data: Data, epochs: int) -> tuple[list[float], list[float]]:
    """Return the same of the plain loop, which draws the same batches."""
    torch.set_num_threads(1)
    config, judge, ids = start_judge(data)
    model, words, vision = judge.model.train(), judge.model.text, judge.model.visual
    half = words.window // 2
    windows = (
        F.pad(ids, (half, half)).unfold(1, words.window, 1)
        + torch.arange(words.window) * words.vocab_size
    )
    n, batch, k = len(data.pixels), config.batch, config.captions
    steps, target = n // batch, torch.arange(config.batch)
    optimizer = make_optimizer(model, config.lr, config.weight_decay)
    examples = Examples(vision, words, data.first, data.count)
    losses, times = [], []
    for epoch in range(epochs):
        begun, draw, of_epoch = time.process_time(), rng(0, "train_judge", epoch), []
        order = draw.permutation(n)
        drawn = _draw_captions(draw, examples, k)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rate(
                    epoch * steps + step, epochs * steps, config.lr, config.warmup, config.schedule
                )
            rows = np.sort(order[step * batch : (step + 1) * batch])
            texts = torch.from_numpy(drawn[:, rows].ravel())
            maps = vision.layers(judge.preprocess.floats(data.pixels[rows], judge.device))
            images = F.normalize(vision.center(vision.projection(maps.mean((2, 3)))), dim=1)
            table = (
                words.places(words.embedding.weight)
                .unflatten(1, (words.window, -1))
                .transpose(0, 1)
                .flatten(0, 1)
            )
            is_word = ids[texts] != PAD
            phrases = F.relu(
                F.embedding_bag(windows[texts][is_word], table, mode="sum") + words.bias
            )
            sums = phrases.new_zeros(len(texts), phrases.shape[1]).index_add(
                0, is_word.nonzero()[:, 0], phrases
            )
            captions = F.normalize(words.center(words.projection(words.norm(sums))), dim=1)
            scores = [model.logit_scale.exp() * images @ part.T for part in captions.split(batch)]
            loss = sum(
                F.cross_entropy(x, target) + F.cross_entropy(x.T, target) for x in scores
            ) / (2 * k)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                model.logit_scale.clamp_(0, MAX_SCALE)
            of_epoch.append(loss.item())
        losses.append(float(np.mean(of_epoch)))
        times.append(time.process_time() - begun)
    return losses, times


def step_operations(data: Data) -> int:
    """Return the floating-point operations of one step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        ours(data, 1)
    return counter.get_total_flops()


def roofline() -> float:
    """Return the operations per second of one thread in a large matrix product, the best of
    several.
    """
    torch.set_num_threads(1)
    a, times = torch.ones(MATRIX_SIZE, MATRIX_SIZE), []
    for _ in range(5):
        begun = time.process_time()
        a @ a
        times.append(time.process_time() - begun)
    return 2 * MATRIX_SIZE**3 / min(times)


def measure(images: int = IMAGES, rounds: int = ROUNDS) -> dict[str, Any]:
    """Images per CPU second of both sides."""
    data = draw_data(images)
    batch = min(data.settings["batch"], images)
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as one, ProcessPoolExecutor(1, spawn) as other:
        for steps, tolerance in TOLERANCES.items():
            few = data.head(steps * batch)
            losses = (
                one.submit(ours, few, 1).result()[0],
                other.submit(plain_training, few, 1).result()[0],
            )
            np.testing.assert_allclose(
                *losses, rtol=tolerance, err_msg="the two sides train differently"
            )
        rates = [other.submit(roofline).result() for _ in range(rounds)]
        operations = one.submit(step_operations, data.head(batch)).result()
    for _ in range(
        rounds
    ):  # each in a new process, because the plain loop's page faults depend on it
        for side, loop in (("plain", plain_training), ("ours", ours)):
            with ProcessPoolExecutor(1, spawn) as pool:
                seconds[side] += pool.submit(loop, data, 2).result()[1][1:]
    steps = images // batch
    took, theirs = (float(np.median(seconds[side])) for side in ("ours", "plain"))
    reached, best = operations * steps / took, max(rates)
    flops = {"ours": reached, "baseline": operations * steps / theirs, "roofline": best}
    return compared(
        steps * batch / took,
        steps * batch / theirs,
        "images per CPU second",
        steps * batch * rounds,
        ms_per_step={
            "ours": round(took / steps * 1e3, 1),
            "baseline": round(theirs / steps * 1e3, 1),
        },
        gflop_per_s={name: round(flop / 1e9, 1) for name, flop in flops.items()}
        | {"percent": round(100 * reached / best)},
    )
