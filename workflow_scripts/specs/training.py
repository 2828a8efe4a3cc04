"""The training of SPECS: what a step draws from the captions, how texts are encoded, one step after another."""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F

from workflow_scripts.clip.device import is_gpu
from workflow_scripts.clip.model import Judge
from workflow_scripts.clip.pixels import Content
from workflow_scripts.clip.precision import autocast, scaler
from workflow_scripts.clip.text_tower import encode_families
from workflow_scripts.clip.tokens import Tokenizer, find_cut, tokenize
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.seeds import derive_seed, rng
from workflow_scripts.judge.checkpoint import Checkpoint
from workflow_scripts.judge.parallel import ALONE, Group
from workflow_scripts.judge.schedule import rate
from workflow_scripts.judge.training import MAX_SCALE, make_optimizer, training_mode
from workflow_scripts.specs.chunks import triple
from workflow_scripts.specs.config import Training
from workflow_scripts.specs.data import Example
from workflow_scripts.specs.loss import CONTRASTIVE, Margin, specs_loss
from workflow_scripts.specs.stretch import hold_positions

# Of the log: the loss and its terms.
TERMS = ("loss", "contrastive", "detail", "negative")

# Words that no image shows or contradicts. Not all that are called stop words: `no`, `two`, `above` tell images apart.
SAY_NOTHING = frozenset(
    "a an the this that these those it its he his she her they their there here who which one you we i is are was were"
    " be been being has have had having can see sees seen also and".split()
)

# The share of a training's time that checkpoints may take.
KEEPING = 0.05


# An image with a caption, and where the caption's chunks end (``chunks.chunk_ends``).
Sample = tuple[Example, list[int]]

# The samples of an epoch, by its number, behind the first so many; each epoch has an order of its own.
Stream = Callable[[int, int], Iterator[Sample]]


def chunk_numbers(samples: Sequence[Sample]) -> np.ndarray:
    """(n, c) int: equal numbers where chunks say the same, but for words that say nothing; -1 for no chunk.

    `It has a red bill` and `There is a red bill` do, and are no negatives of each other: what tells them apart is not
    in the image. A chunk of such words alone is its words.
    """
    numbers: dict[tuple[str, ...], int] = {}

    def number(chunk: str) -> int:
        words = re.findall(r"\w+", chunk.lower())
        said = tuple(word for word in words if word not in SAY_NOTHING) or tuple(words)
        return numbers.setdefault(said, len(numbers))

    rows = [[number(example.text[a:b]) for a, b in pairwise([0, *ends])] for example, ends in samples]
    result = np.full((len(rows), max(map(len, rows))), -1)
    for row, some in zip(result, rows, strict=True):
        row[: len(some)] = some
    return result


def draw_triples(
    samples: Sequence[Sample], fitting: Sequence[int], own: slice, draw: np.random.Generator
) -> tuple[list[tuple[str, str, str]], int]:
    """Base, detail and negative of each sample of ``own``, and how many have no negative.

    samples: the batch of all processes. fitting: for each of ``own``, how many of its chunks the model can read
    together. i is uniform among the numbers of chunks for which there is a detail behind them, and in the batch
    another image whose i-th chunk says something else; that image is uniform among these. Without any such i the
    negative is the base: nothing is learned from it. Without a second chunk that fits all three are.
    """
    chunks = chunk_numbers(samples)
    _, images = np.unique([example.name for example, _ in samples], return_inverse=True)
    # Drawn for the whole batch, so that the share of a process does not depend on how many there are.
    lots = draw.random((len(samples), 2))
    result, bare = [], 0
    for row, fit in zip(range(len(samples))[own], fitting, strict=True):
        example, ends = samples[row]
        if fit < 2:
            result.append((example.text,) * 3)
            bare += 1
            continue
        wrong = (chunks >= 0) & (chunks != chunks[row]) & (images != images[row])[:, None]
        places = np.flatnonzero(wrong[:, : fit - 1].any(axis=0))
        if len(places):
            place = places[int(lots[row, 0] * len(places))]
            others = np.flatnonzero(wrong[:, place])
            other, other_ends = samples[others[int(lots[row, 1] * len(others))]]
            result.append(triple(example.text, ends, other.text, other_ends, int(place) + 1))
        else:
            place = int(lots[row, 0] * (fit - 1))
            base, detail = (example.text[: ends[k]] for k in (place, place + 1))
            result.append((base, detail, base))
            bare += 1
    return result, bare


def count_fitting(tokenizer: Tokenizer, text: str, ends: Sequence[int]) -> int:
    """How many chunks of a caption that is too long can be read together."""

    def too_long(chunks: int) -> bool:
        part = [text[: ends[chunks - 1]]]
        return bool(find_cut(tokenizer, part, tokenize(tokenizer, part)))

    return bisect_left(range(1, len(ends) + 1), True, key=too_long)


@dataclass(frozen=True)
class Batch:
    """What one process encodes at once.

    pixels: (n, height, width, 3) bytes. ids: (1, n, length) of the whole captions, or, for the loss of SPECS, (4, n,
    length), with bases, details and negatives. cut: captions longer than the model reads; bare: those without negative.
    """

    pixels: np.ndarray
    ids: torch.Tensor
    cut: int
    bare: int


def make_batch(judge: Judge, samples: Sequence[Sample], own: slice, draw: np.random.Generator, hinges: bool) -> Batch:
    """The share ``own`` of the batch of all processes, ``samples``; images are read from their files.

    hinges: whether bases, details and negatives are wanted. Raises UserError for an image that cannot be read.
    """
    mine = samples[own]
    (pixels,) = judge.read_ahead([(_image(example), None) for example, _ in mine], len(mine))
    texts = [example.text for example, _ in mine]
    ids = tokenize(judge.tokenizer, texts)
    cut = np.flatnonzero(find_cut(judge.tokenizer, texts, ids)).tolist()
    if not hinges:
        return Batch(pixels, ids[None], len(cut), 0)
    fitting = [len(ends) for _, ends in mine]
    for row in cut:
        fitting[row] = count_fitting(judge.tokenizer, texts[row], mine[row][1])
    triples, bare = draw_triples(samples, fitting, own, draw)
    parts = [tokenize(judge.tokenizer, part) for part in zip(*triples, strict=True)]
    return Batch(pixels, torch.stack([ids, *parts]), len(cut), bare)


def _image(example: Example) -> Path | Content:
    return example.image if isinstance(example.image, Path) else Content(example.image, example.name)


def ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same, the next one made while this one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = pool.submit(next, batches, None)
            yield batch


def train(
    judge: Judge,
    stream: Stream,
    count: int,
    settings: Training,
    loss: Literal["specs", "contrastive"],
    seed: int,
    checkpoint: Path,
    group: Group = ALONE,
) -> list[dict[str, Any]]:
    """Train ``judge.model`` in place; returns a row for each step: its losses, the margin behind it, the rate.

    stream: the samples, of which an epoch has ``count``; those that fill no step are left for another epoch, whose
    order is another. loss: contrastive leaves the hinges out, on the same images, captions and steps.

    A step is ``settings.accumulation`` batches, each of ``settings.batch`` images a process. A batch is that of all
    processes: a caption is to find its image among all of theirs, and the hinges' means and margin are over all. The
    contrastive term is not that of the step's images together, but the mean over its batches, as published; so are
    the hinges, which with a fixed margin is the same as together. An adaptive one goes from batch to batch.

    A step draws its randomness from the seed and its own number: a training that was killed goes on from the last
    checkpoint to the very weights it would have had. The first positions keep their very values.
    """
    model, device = judge.model, judge.device
    together = settings.batch * group.count
    each = count // (together * settings.accumulation)
    steps = each * settings.epochs
    if not each:
        raise UserError(
            f"{count} captions to train on, and a step takes {together * settings.accumulation}: lower batch or"
            " accumulation in --settings"
        )
    warmup = settings.warmup if settings.warmup < 1 else settings.warmup / steps
    hinges = loss == "specs"
    weights = settings.weights if hinges else CONTRASTIVE
    own = group.share(together)
    training_mode(model)
    hold_positions(model, settings.keep)
    optimizer = make_optimizer(model, settings)
    scale = scaler(settings.precision, device)
    margin = Margin(settings.margin)
    kept = Checkpoint(checkpoint, model, optimizer, scale, "step")
    rows = kept.resume()
    done = len(rows)
    if done:
        log.info("%d of %d steps are done", done, steps)
        margin.epsilon = rows[-1]["margin"]

    def make_batches() -> Iterator[Batch]:
        first, skipped = divmod(done, each)
        for epoch in range(first, settings.epochs):
            samples = stream(epoch, skipped * together * settings.accumulation)
            for step in range(epoch * each + skipped, (epoch + 1) * each):
                for part in range(settings.accumulation):
                    some = list(islice(samples, together))
                    yield make_batch(judge, some, own, rng(seed, "train_specs", step, part), hinges)
            skipped = 0

    batches = ahead(make_batches()) if is_gpu(device) else make_batches()
    cost = 0.0
    with Progress(steps, "steps") as progress:
        progress.add(done)
        for step in range(done, steps):
            torch.manual_seed(derive_seed(seed, "train_specs", step))
            for part in optimizer.param_groups:
                part["lr"] = rate(step, steps, settings.lr, warmup)
            optimizer.zero_grad()
            values, cut, bare = [], 0, 0
            for _ in range(settings.accumulation):
                batch = next(batches)
                with autocast(settings.precision, device):
                    images = model.encode_image(judge.preprocess.floats(batch.pixels, device))
                    texts = encode_families(model, batch.ids.to(device))
                forms = [F.normalize(part.float(), dim=-1) for part in (images, *texts)]
                if not hinges:
                    forms = [forms[0], *forms[1:] * 4]
                everyones = group.gather(torch.cat(forms, dim=1)).tensor_split(5, dim=1)
                losses = specs_loss(*everyones, model.logit_scale.exp(), margin, weights)
                scale.scale(losses.total / settings.accumulation).backward()
                values.append(torch.stack(losses).detach())
                cut, bare = cut + batch.cut, bare + batch.bare
            group.average(p for p in model.parameters() if p.requires_grad)
            scale.step(optimizer)
            scale.update()
            with torch.no_grad():
                model.logit_scale.clamp_(0, MAX_SCALE)
            terms = dict(zip(TERMS, torch.stack(values).mean(0).tolist(), strict=True))
            if not math.isfinite(terms["loss"]):
                raise UserError(f"the loss is no number in step {step + 1}: lower lr (it is {settings.lr})")
            counts = group.gather(torch.tensor([[cut, bare]], device=device)).sum(0).tolist()
            rows.append(
                {
                    "step": step + 1, "epoch": step // each + 1, **terms, "margin": float(margin.epsilon),
                    "lr": optimizer.param_groups[0]["lr"], "cut": counts[0], "without_negative": counts[1],
                }
            )  # fmt: skip
            progress.add(1, f"loss {terms['loss']:.3f}")
            last = step + 1 == steps
            if group.first and (last or time.monotonic() - kept.kept > cost / KEEPING):
                begun = time.monotonic()
                kept.keep(rows, last)
                if kept.kept > begun:
                    cost = time.monotonic() - begun
            if (step + 1) % each == 0:
                mean = np.mean([row["loss"] for row in rows[-each:]])
                log.info("epoch %d of %d: loss %.4f", step // each + 1, settings.epochs, mean)
    return rows
