"""Train a stretched CLIP by the loss of SPECS or, for comparison, only by its contrastive term."""

import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from compclip.clip.device import autocast, is_gpu, scaler, settled
from compclip.clip.model import Judge
from compclip.clip.text_tower import encode_families
from compclip.clip.tokens import Tokenizer, find_cut, tokenize
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.seeds import derive_seed, rng
from compclip.judge.checkpoint import Checkpoint
from compclip.judge.parallel import ALONE, Group, synchronise_norms
from compclip.judge.training import make_optimizer, rate, take_step, training_mode
from compclip.specs.config import KEPT_POSITIONS, SpecsTraining
from compclip.specs.data import LongExample, LongExamples
from compclip.specs.loss import LOSS_WEIGHTS, Losses, Margin, specs_loss
from compclip.specs.stretch import position_name

# Words that an image cannot show or contradict. Other stop words, such as `no`, `two`, `above`,
# distinguish images.
UNSEEN_WORDS = frozenset(
    "a an the this that these those it its he his she her they their there here who which one you "
    "we i is are was were"
    " be been being has have had having can see sees seen also and".split()
)
LOSSES = ("loss", *Losses._fields[1:])  # in the log: the loss and its terms
WEIGHT_DECAY = 1e-2
SPECS_GPUS = "specs.base.gpus"  # the setting that errors about several processes name
CHECKPOINT_FRACTION = 0.05  # largest fraction of the training's time


def chunk_numbers(examples: Sequence[LongExample]) -> np.ndarray:
    """Return numbers (n, c) of chunks by content words (by all words if a chunk has none); -1 where
    there is no chunk.

    `It has a red bill` and `There is a red bill` have equal numbers, so they are not negatives of
    each other.
    """
    numbers: dict[tuple[str, ...], int] = {}

    def number(chunk: str) -> int:
        words = re.findall(r"\w+", chunk.lower())
        content = tuple(word for word in words if word not in UNSEEN_WORDS) or tuple(words)
        return numbers.setdefault(content, len(numbers))

    captions = [
        [number(example.text[a:b]) for a, b in pairwise([0, *example.ends])] for example in examples
    ]
    return np.array(list(zip_longest(*captions, fillvalue=-1))).T


def draw_triples(
    examples: Sequence[LongExample], fitting: Sequence[int], rows: slice, draw: np.random.Generator
) -> tuple[list[tuple[str, str, str]], int]:
    """Draw base, detail and negative of each example in ``rows``; return them and the number
    without a negative.

    The base is the caption's first i chunks, the detail the first i + 1. The negative is the base
    with its i-th chunk replaced by the i-th chunk of another image of the batch, with other
    content. i is uniform among the numbers for which the caption has a next chunk and an image has
    such a negative; that image is uniform among these. Without such an i, the negative is the base,
    which has no effect. Without a second chunk that fits, all three texts are the caption.

    Args:
        examples: the batch of all processes; this process has ``rows``.
        fitting: for each example in ``rows``, how many of its chunks the model can read together.
    """
    chunks = chunk_numbers(examples)
    _, images = np.unique([str(example.image) for example in examples], return_inverse=True)
    # drawn for the whole batch, so that the triples do not depend on the number of processes
    lots = draw.random((len(examples), 2))
    triples, without = [], 0
    for row, fit in zip(range(len(examples))[rows], fitting, strict=True):
        text, ends = examples[row].text, examples[row].ends
        if fit < 2:
            triples.append((text,) * 3)
            without += 1
            continue
        wrong = (chunks >= 0) & (chunks != chunks[row]) & (images != images[row])[:, None]
        places = np.flatnonzero(wrong[:, : fit - 1].any(axis=0))
        place = int(
            places[int(lots[row, 0] * len(places))] if len(places) else lots[row, 0] * (fit - 1)
        )
        base, detail = text[: ends[place]], text[: ends[place + 1]]
        negative = base
        if len(places):
            others = np.flatnonzero(wrong[:, place])
            other = examples[others[int(lots[row, 1] * len(others))]]
            start, other_start = (ends[place - 1], other.ends[place - 1]) if place else (0, 0)
            negative = text[:start] + other.text[other_start : other.ends[place]]
        triples.append((base, detail, negative))
        without += not len(places)
    return triples, without


def count_fitting(tokenizer: Tokenizer, example: LongExample) -> int:
    """Return how many chunks of a caption the model can read together."""
    beginnings = [example.text[:end] for end in example.ends]
    return int((~find_cut(tokenizer, beginnings, tokenize(tokenizer, beginnings))).sum())


@dataclass(frozen=True)
class Batch:
    """A batch of one process, with the numbers of captions that are truncated or have no
    negative.
    """

    pixels: np.ndarray  # (n, height, width, 3) bytes
    ids: (
        torch.Tensor
    )  # (1, n, length) of the whole captions; with hinges (4, n, length): bases, details, negatives
    truncated: int
    without_negative: int


def make_batch(
    judge: Judge,
    examples: Sequence[LongExample],
    rows: slice,
    draw: np.random.Generator,
    hinges: bool,
) -> Batch:
    """Return the batch of this process, ``rows`` of all processes'; ``hinges``: with bases,
    details, negatives.
    """
    own = examples[rows]
    (pixels,) = judge.read_ahead([(example.image, None) for example in own], len(own))
    texts = [example.text for example in own]
    ids = tokenize(judge.tokenizer, texts)
    truncated = find_cut(judge.tokenizer, texts, ids)
    if not hinges:
        return Batch(pixels, ids[None], int(truncated.sum()), 0)
    fitting = [
        count_fitting(judge.tokenizer, example) if is_cut else len(example.ends)
        for example, is_cut in zip(own, truncated, strict=True)
    ]
    triples, without = draw_triples(examples, fitting, rows, draw)
    forms = [tokenize(judge.tokenizer, form) for form in zip(*triples, strict=True)]
    return Batch(pixels, torch.stack([ids, *forms]), int(truncated.sum()), without)


def ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the batches, preparing the next one while one is used."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, batches, None)
        while (batch := pending.result()) is not None:
            pending = pool.submit(next, batches, None)
            yield batch


class Trainer:
    """The state of a training; ``hinges``: with the two hinges of SPECS beside the contrastive
    term.
    """

    def __init__(self, judge: Judge, settings: SpecsTraining, hinges: bool, group: Group) -> None:
        self.judge, self.model, self.settings, self.hinges, self.group = (
            judge,
            judge.model,
            settings,
            hinges,
            group,
        )
        training_mode(self.model)
        synchronise_norms(self.model, group, judge.device, SPECS_GPUS)
        name = position_name(dict(self.model.named_parameters()))
        self.positions = self.model.get_parameter(name).detach()[:KEPT_POSITIONS]
        self.optimizer = make_optimizer(self.model, settings.lr, WEIGHT_DECAY)
        self.scaler = scaler(settings.precision, judge.device)
        self.margin = Margin()

    def batches(
        self, examples: LongExamples, steps: range, each: int, seed: int
    ) -> Iterator[Batch]:
        """Yield this process's batches of ``steps``, ``each`` per epoch; randomness depends only on
        seed and step.
        """
        size, accumulation = self.settings.batch * self.group.count, self.settings.accumulation
        for step in steps:
            epoch, place = divmod(step, each)
            if step == steps.start or place == 0:
                order = rng(seed, "specs", "order", epoch).permutation(len(examples))
            for number in range(accumulation):
                start = (place * accumulation + number) * size
                batch = [examples[row] for row in order[start : start + size]]
                draw = rng(seed, "train_specs", step, number)
                yield make_batch(self.judge, batch, self.group.share(size), draw, self.hinges)

    def losses(self, batch: Batch) -> Losses:
        with autocast(self.settings.precision, self.judge.device):
            images = self.model.encode_image(
                self.judge.preprocess.floats(batch.pixels, self.judge.device)
            )
            texts = encode_families(self.model, batch.ids.to(self.judge.device))
        forms = [F.normalize(form.float(), dim=-1) for form in (images, *texts)]
        if not self.hinges:
            forms = [forms[0], *forms[1:] * 4]
        gathered = self.group.gather(torch.cat(forms, dim=1))
        images, full, base, detail, negative = gathered.tensor_split(5, dim=1)
        weights = LOSS_WEIGHTS["specs" if self.hinges else "contrastive"]
        return specs_loss(
            images, full, base, detail, negative, self.model.logit_scale.exp(), self.margin, weights
        )

    def step(self, batches: Iterator[Batch], lr: float) -> dict[str, Any]:
        """Make one step, and return its row of the log."""
        self.optimizer.zero_grad()
        values, counts = [], np.zeros((1, 2), np.int64)
        for _ in range(self.settings.accumulation):
            batch = next(batches)
            losses = self.losses(batch)
            self.scaler.scale(losses.total / self.settings.accumulation).backward()
            values.append(torch.stack(losses).detach())
            counts += [batch.truncated, batch.without_negative]
        held = self.positions.clone()
        take_step(self.model, self.optimizer, self.scaler, lr, self.group)
        self.positions.copy_(
            held
        )  # Frozen, because weight decay would change them even without a gradient.
        truncated, without = (
            self.group.gather(torch.from_numpy(counts).to(self.judge.device)).sum(0).tolist()
        )
        return {
            **dict(zip(LOSSES, torch.stack(values).mean(0).tolist(), strict=True)),
            "margin": float(self.margin.epsilon),
            "lr": lr,
            "cut": truncated,
            "without_negative": without,
        }


def train_specs(
    judge: Judge,
    examples: LongExamples,
    settings: SpecsTraining,
    checkpoint: Path,
    *,
    loss: str = "specs",
    seed: int = 0,
    group: Group = ALONE,
) -> list[dict[str, Any]]:
    """Train ``judge.model`` in place; return a row per step: losses, margin after it, learning rate
    and counts.

    A caption must retrieve its image among those of all processes. As published, the loss of a step
    is the mean over its batches, and batches share an adaptive margin. The randomness of a step
    depends only on the seed and its number, so a killed training resumes from its checkpoint and
    ends with the same weights.

    Args:
        judge: the stretched CLIP.
        examples: the examples of each epoch, whose order is random; an incomplete last step is
            skipped.
        loss: a key of LOSS_WEIGHTS; contrastive omits the hinges, on the same images, captions and
            steps.
    """
    size = settings.batch * group.count * settings.accumulation
    each, remedy = len(examples) // size, "lower batch or accumulation"
    require(each, "specs.training", f"{len(examples)} captions, but one step takes {size}", remedy)
    steps = each * settings.epochs
    trainer = Trainer(judge, settings, loss != "contrastive", group)
    kept = Checkpoint(
        checkpoint, judge.model, trainer.optimizer, trainer.scaler, "step", CHECKPOINT_FRACTION
    )
    rows = kept.resume()
    done = len(rows)
    if done:
        trainer.margin.epsilon = rows[-1]["margin"]
    warmup = settings.warmup if settings.warmup < 1 else settings.warmup / steps
    batches = trainer.batches(examples, range(done, steps), each, seed)
    if is_gpu(judge.device):
        batches = ahead(batches)
    with settled(judge.threads), Progress(steps, "steps") as progress:
        progress.add(done)
        for step in range(done, steps):
            torch.manual_seed(derive_seed(seed, "train_specs", step))
            row = trainer.step(batches, rate(step, steps, settings.lr, warmup))
            fault = f"the loss is NaN or infinite in step {step + 1}"
            require(
                math.isfinite(row["loss"]), "specs.training.lr", fault, f"lower it ({settings.lr})"
            )
            rows.append({"step": step + 1, "epoch": step // each + 1, **row})
            progress.add(1, f"loss {row['loss']:.3f}")
            if group.first:
                kept.keep(rows, last=step + 1 == steps)
            if (step + 1) % each == 0:
                mean = np.mean([row["loss"] for row in rows[-each:]])
                log.info("epoch %d of %d: loss %.4f", rows[-1]["epoch"], settings.epochs, mean)
    return rows
