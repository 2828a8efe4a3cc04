"""Train a stretched CLIP by the loss of SPECS or, for comparison, only by its contrastive term."""

import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from compclip.clip.device import autocast, is_gpu, scaler, settled
from compclip.clip.model import Judge
from compclip.clip.text_tower import encode_families
from compclip.clip.tokens import Tokenizer, find_truncated_texts, tokenize
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.seeds import derive_seed, rng
from compclip.judge.checkpoint import Checkpoint
from compclip.judge.parallel import ALONE, Group, synchronise_norms
from compclip.judge.training import make_optimizer, rate, take_step, training_mode
from compclip.specs.config import KEPT_POSITIONS, SpecsTraining
from compclip.specs.data import LongExample, LongExamples
from compclip.specs.loss import LOSS_WEIGHTS, Losses, Objective, specs_loss
from compclip.specs.stretch import position_name

# Words that an image cannot show or contradict. Other stop words, such as `no`, `two`, `above`,
# distinguish images.
UNSEEN_WORDS = frozenset(
    "a an the this that these those it its he his she her they their there here who which one you "
    "we i is are was were be been being has have had having can see sees seen also and".split()
)
LOSSES = ("loss", *Losses._fields[1:])  # in the log: the loss and its terms
WEIGHT_DECAY = 1e-2
SPECS_GPUS = "specs.base.gpus"  # the setting that errors about several processes name
CHECKPOINT_FRACTION = 0.05  # largest fraction of the training's time


class Triple(NamedTuple):
    """The texts of the two hinges."""

    base: str  # a beginning of a caption
    detail: str  # the base and the caption's next chunk
    negative: str  # the base with a wrong last chunk


def _content_words(chunk: str) -> tuple[str, ...]:
    """Return the words of a chunk that an image can show, or all words if there are none."""
    words = re.findall(r"\w+", chunk.lower())
    content = [word for word in words if word not in UNSEEN_WORDS]
    return tuple(content or words)


def chunk_numbers(examples: Sequence[LongExample]) -> np.ndarray:
    """Return numbers (n, c) of chunks by content words (by all words if a chunk has none); -1 where
    there is no chunk.

    `It has a red bill` and `There is a red bill` have equal numbers, so they are not negatives of
    each other.
    """
    numbers: dict[tuple[str, ...], int] = {}
    captions = []  # each one's numbers, of different lengths
    for example in examples:
        contents = map(_content_words, example.chunks())
        captions.append([numbers.setdefault(content, len(numbers)) for content in contents])
    return np.array(list(zip_longest(*captions, fillvalue=-1))).T


def draw_triples(
    examples: Sequence[LongExample], fitting: Sequence[int], rows: slice, draw: np.random.Generator
) -> tuple[list[Triple], int]:
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
    triples = []
    without_negative = 0
    for row, fit in zip(range(len(examples))[rows], fitting, strict=True):
        example = examples[row]
        if fit < 2:  # no detail can be added
            triples.append(Triple(example.text, example.text, example.text))
            without_negative += 1
            continue
        position_lot, donor_lot = lots[row]
        # (n, c): which chunk can replace this caption's chunk at the same position
        is_other_content = (chunks >= 0) & (chunks != chunks[row])
        is_wrong = is_other_content & (images != images[row])[:, None]
        # The last chunk that fits is only ever the detail, so it is never replaced.
        positions = np.flatnonzero(is_wrong[:, : fit - 1].any(axis=0))
        if len(positions):
            position = int(positions[int(position_lot * len(positions))])
            donors = np.flatnonzero(is_wrong[:, position])
            donor = examples[donors[int(donor_lot * len(donors))]]
            negative = example.beginning(position) + donor.chunk(position)
        else:
            position = int(position_lot * (fit - 1))
            negative = example.beginning(position + 1)
            without_negative += 1
        base = example.beginning(position + 1)
        triples.append(Triple(base, example.beginning(position + 2), negative))
    return triples, without_negative


def count_fitting(tokenizer: Tokenizer, example: LongExample) -> int:
    """Return how many chunks of a caption the model can read together."""
    beginnings = [example.text[:end] for end in example.ends]
    is_truncated = find_truncated_texts(tokenizer, beginnings, tokenize(tokenizer, beginnings))
    return int((~is_truncated).sum())


@dataclass(frozen=True)
class Batch:
    """A batch of one process."""

    pixels: np.ndarray  # (n, height, width, 3) bytes
    # Tokens (1, n, length) of the whole captions; with hinges (4, n, length), followed by those of
    # the bases, details and negatives.
    ids: torch.Tensor
    # numbers of captions
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
    process_examples = examples[rows]
    files = [(example.image, None) for example in process_examples]
    (pixels,) = judge.preprocess.read_ahead(files, len(files), judge.threads)
    captions = [example.text for example in process_examples]
    caption_ids = tokenize(judge.tokenizer, captions)
    is_truncated = find_truncated_texts(judge.tokenizer, captions, caption_ids)
    truncated = int(is_truncated.sum())
    if not hinges:
        return Batch(pixels, caption_ids[None], truncated, 0)
    fitting = [len(example.ends) for example in process_examples]
    # Counting tokenizes each beginning, so only captions that do not fit as a whole are counted.
    for row in np.flatnonzero(is_truncated).tolist():
        fitting[row] = count_fitting(judge.tokenizer, process_examples[row])
    triples, without_negative = draw_triples(examples, fitting, rows, draw)
    texts_by_role = zip(*triples, strict=True)
    triple_ids = [tokenize(judge.tokenizer, texts) for texts in texts_by_role]
    ids = torch.stack([caption_ids, *triple_ids])
    return Batch(pixels, ids, truncated, without_negative)


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
        self.judge = judge
        self.model = judge.model
        self.settings = settings
        self.hinges = hinges
        self.group = group
        training_mode(self.model)
        synchronise_norms(self.model, group, judge.device, SPECS_GPUS)
        name = position_name(dict(self.model.named_parameters()))
        # a view, through which ``step`` restores the first positions
        self.positions = self.model.get_parameter(name).detach()[:KEPT_POSITIONS]
        self.optimizer = make_optimizer(self.model, settings.lr, WEIGHT_DECAY)
        self.scaler = scaler(settings.precision, judge.device)
        self.objective = Objective(LOSS_WEIGHTS["specs" if hinges else "contrastive"])

    def batches(
        self, examples: LongExamples, steps: range, epoch_steps: int, seed: int
    ) -> Iterator[Batch]:
        """Yield this process's batches of ``steps``; an epoch has ``epoch_steps`` steps.

        Randomness depends only on seed and step.
        """
        size = self.settings.batch * self.group.count
        process_rows = self.group.share(size)
        for step in steps:
            epoch, step_of_epoch = divmod(step, epoch_steps)
            # A resumed training starts within an epoch.
            if step == steps.start or step_of_epoch == 0:
                order = rng(seed, "specs", "order", epoch).permutation(len(examples))
            first = step_of_epoch * self.settings.accumulation
            for number in range(self.settings.accumulation):
                start = (first + number) * size
                batch = [examples[row] for row in order[start : start + size]]
                # The same for all processes: each draws for the whole batch.
                draw = rng(seed, "train_specs", step, number)
                yield make_batch(self.judge, batch, process_rows, draw, self.hinges)

    def losses(self, batch: Batch) -> Losses:
        device = self.judge.device
        with autocast(self.settings.precision, device):
            pixels = self.judge.preprocess.floats(batch.pixels, device)
            images = self.model.encode_image(pixels)
            texts = encode_families(self.model, batch.ids.to(device))
        embeddings = [F.normalize(rows.float(), dim=-1) for rows in (images, *texts)]
        if not self.hinges:
            # The hinges have weight 0, so any texts do for them.
            image_rows, full_rows = embeddings
            embeddings = [image_rows, full_rows, full_rows, full_rows, full_rows]
        # L_con: captions compete with the images of all processes.
        gathered = self.group.gather(torch.cat(embeddings, dim=1))
        images, full, base, detail, negative = gathered.tensor_split(5, dim=1)
        scale = self.model.logit_scale.exp()
        return specs_loss(images, full, base, detail, negative, scale, self.objective)

    def step(self, batches: Iterator[Batch], lr: float) -> dict[str, Any]:
        """Make one step, and return its row of the log."""
        accumulation = self.settings.accumulation
        self.optimizer.zero_grad()
        values = []  # a row of losses per batch
        counts = np.zeros((1, 2), np.int64)  # a row, which ``gather`` joins with other processes'
        for _ in range(accumulation):
            batch = next(batches)
            losses = self.losses(batch)
            # Gradients add up, so this is the gradient of the batches' mean.
            self.scaler.scale(losses.total / accumulation).backward()
            values.append(torch.stack(losses).detach())
            counts += [batch.truncated, batch.without_negative]
        first_positions = self.positions.clone()
        take_step(self.model, self.optimizer, self.scaler, lr, self.group)
        # Restored, because weight decay changes them even without a gradient.
        self.positions.copy_(first_positions)
        process_counts = self.group.gather(torch.from_numpy(counts).to(self.judge.device))
        truncated, without_negative = process_counts.sum(0).tolist()
        means = torch.stack(values).mean(0).tolist()
        return {
            **dict(zip(LOSSES, means, strict=True)),
            "margin": float(self.objective.margin.epsilon),
            "lr": lr,
            "truncated": truncated,
            "without_negative": without_negative,
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
    step_captions = settings.batch * group.count * settings.accumulation
    epoch_steps = len(examples) // step_captions
    fault = f"{len(examples)} captions, but one step takes {step_captions}"
    require(epoch_steps, "specs.training", fault, "lower batch or accumulation")
    steps = epoch_steps * settings.epochs
    trainer = Trainer(judge, settings, loss != "contrastive", group)
    checkpoints = Checkpoint(
        checkpoint, judge.model, trainer.optimizer, trainer.scaler, "step", CHECKPOINT_FRACTION
    )
    rows = checkpoints.resume()
    done = len(rows)
    if done:
        # The margin is no tensor of the model, so only the log has it.
        trainer.objective.margin.epsilon = rows[-1]["margin"]
    warmup = settings.warmup
    if warmup >= 1:  # a number of steps, not yet a fraction of them
        warmup /= steps
    batches = trainer.batches(examples, range(done, steps), epoch_steps, seed)
    # On a CPU, both would compete for the same cores.
    if is_gpu(judge.device):
        batches = ahead(batches)
    with settled(judge.threads), checkpoints, Progress(steps, "steps") as progress:
        progress.add(done)
        for step in range(done, steps):
            # The model may draw, too, for example for dropout.
            torch.manual_seed(derive_seed(seed, "train_specs", step))
            row = trainer.step(batches, rate(step, steps, settings.lr, warmup))
            is_finite = math.isfinite(row["loss"])
            fault = f"the loss is NaN or infinite in step {step + 1}"
            require(is_finite, "specs.training.lr", fault, f"lower it ({settings.lr})")
            epoch = step // epoch_steps + 1
            rows.append({"step": step + 1, "epoch": epoch, **row})
            progress.add(1, row["loss"])
            # All processes have the same state, so one of them writes it.
            if group.first:
                checkpoints.keep(rows, last=step + 1 == steps)
            if (step + 1) % epoch_steps == 0:
                mean = np.mean([row["loss"] for row in rows[-epoch_steps:]])
                log.info("epoch %d of %d: loss %.4f", epoch, settings.epochs, mean)
    return rows
