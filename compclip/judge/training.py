"""The training of a CLIP: loss, learning rate, trainable parameters, epochs, and resuming."""

import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from compclip.clip.device import autocast, scaler
from compclip.clip.model import construct
from compclip.clip.sources import find_model
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.seeds import derive_seed, rng
from compclip.judge.augment import Changes, draw_changes, strength_at
from compclip.judge.checkpoint import Checkpoint
from compclip.judge.config import Training
from compclip.judge.parallel import ALONE, Group
from compclip.judge.training_inputs import Features

# CLIP limits the inverse temperature to 100, "to prevent training instability" (section 2.5).
MAX_SCALE = math.log(100)

Evaluate = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Examples:
    """n images and their captions; ``images`` and ``captions`` map row numbers to features.

    The captions of image i are rows first[i] to first[i] + count[i]. ``images`` also takes a list
    of the ``Changes`` of each batch's images, or of None without augmentation.
    """

    images: Features
    captions: Features
    first: np.ndarray
    count: np.ndarray


def clip_loss(images: torch.Tensor, texts: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the mean of two cross-entropies: images among all texts of the batch, and texts among
    all images.

    Equal captions in a batch count as wrong for each other's images, as in the paper. ``images``
    and ``texts`` are (n, d), of unit length; ``scale`` is the inverse temperature. Source: Radford
    et al. 2021, figure 3.
    """
    logits = scale * images @ texts.T
    # Row i of the images belongs to row i of the texts.
    target = torch.arange(len(images), device=images.device)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def rate(step: int, steps: int, peak: float, warmup: float, schedule: str = "cosine") -> float:
    """Return the learning rate of ``step`` (from 0) of ``steps``.

    It rises linearly to ``peak`` during the fraction ``warmup`` of the steps, then falls along half
    a cosine to 0 or stays.
    """
    climb = round(warmup * steps)
    if step < climb:
        return peak * (step + 1) / climb
    if schedule == "constant":
        return peak
    # Loshchilov & Hutter 2017 (SGDR), without restarts
    falling = max(1, steps - climb)
    angle = math.pi * (step - climb) / falling
    return peak * 0.5 * (1 + math.cos(angle))


def check_trainable(config: Training) -> None:
    """Raise UserError if ``trainable`` does not fit the model, which is built without weights.

    Towers whose settings transformers or timm load from the Hub are not checked.
    """
    cfg = find_model(config.model, config.revision).model_cfg
    # A word tower's size depends on the captions, its parameters' names do not.
    text_cfg = {"vocab_size": 1, **cfg["text_cfg"]}
    timm_name = str(cfg["vision_cfg"].get("timm_model_name"))
    if "hf_model_name" in text_cfg or ":" in timm_name:
        return
    with torch.device("meta"):  # tensors without memory
        model = construct({**cfg, "text_cfg": text_cfg})
    names = [name for name, _ in model.named_parameters()]
    check_patterns(names, config.trainable)


def choose_trainable(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze every parameter whose name matches no pattern, and return the names of the others."""
    names = [name for name, _ in model.named_parameters()]
    check_patterns(names, patterns)
    trained = set()
    for pattern in patterns:
        trained.update(fnmatch.filter(names, pattern))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)
    return [name for name in names if name in trained]


def check_patterns(names: Sequence[str], patterns: Sequence[str]) -> None:
    """Raise UserError if a pattern matches none of the parameters' names."""
    # All names would fill pages, so the error lists only their first two components.
    beginnings = [re.sub(r"^([^.]+\.[^.]+)\..*", r"\1.*", name) for name in names]
    suggestions = ", ".join(dict.fromkeys(beginnings))
    for pattern in patterns:
        matches = fnmatch.filter(names, pattern)
        fault = f"{pattern!r} matches no parameter; there are {suggestions}"
        require(matches, "judge.trainable", fault)


def training_mode(module: nn.Module) -> None:
    """Set training mode, but evaluation mode for parts with only frozen parameters, including batch
    norms.
    """
    module.train()
    for child in module.children():
        parameters = list(child.parameters())
        is_frozen = parameters and not any(p.requires_grad for p in parameters)
        if is_frozen:
            child.eval()
        else:
            training_mode(child)


def make_optimizer(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW without decay on norms, biases and the logit scale (parameters of fewer than two
    dimensions).
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.ndim >= 2]
    vectors = [p for p in trained if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    # CLIP's values for its ViTs (Radford et al. 2021, table 18)
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), eps=1e-6, fused=True)


def take_step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    lr: float,
    group: Group,
) -> None:
    """Make a step with learning rate ``lr`` by the mean gradients of all processes, and limit the
    logit scale.
    """
    for options in optimizer.param_groups:
        options["lr"] = lr
    group.average(p for p in model.parameters() if p.requires_grad)
    scaler.step(optimizer)
    scaler.update()
    # After the step, so that the limited value is the one that encodes.
    with torch.no_grad():
        model.logit_scale.clamp_(0, MAX_SCALE)


@dataclass
class _Trainer:
    """Takes the steps of a training; what a step does depends only on the seed and its number."""

    model: Any
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    examples: Examples
    config: Training
    seed: int
    group: Group

    def __post_init__(self) -> None:
        self.device = next(self.model.parameters()).device
        self.n = len(self.examples.first)
        batch = min(self.config.batch, self.n)
        # Every process takes equally many images.
        self.batch = batch // self.group.count * self.group.count
        self.local = self.group.share(self.batch)  # this process's images of a batch
        self.steps_per_epoch = self.n // self.batch
        self.steps = self.steps_per_epoch * self.config.epochs

    def train_epoch(self, epoch: int, progress: Progress) -> dict[str, Any]:
        """Train for one epoch (from 0), and return the row of its log."""
        training_mode(self.model)  # which the evaluation has left
        # for layers that draw in training, such as dropout of patches
        torch.manual_seed(derive_seed(self.seed, "train_judge", epoch))
        draw = rng(self.seed, "train_judge", epoch)
        order = draw.permutation(self.n)
        captions = _draw_captions(draw, self.examples, self.config.captions)
        first_step = epoch * self.steps_per_epoch
        steps = range(first_step, first_step + self.steps_per_epoch)
        batches = []
        for start in range(0, self.steps_per_epoch * self.batch, self.batch):
            # Sorted, so that rows of the file of activations are read in order.
            in_batch = np.sort(order[start : start + self.batch])
            batches.append(in_batch[self.local])
        images = self.examples.images(batches, [self._changes(step) for step in steps])
        texts = self.examples.captions([captions[:, batch].ravel() for batch in batches])
        # They stay on the device until the epoch ends, because reading one waits for its step.
        step_losses: list[torch.Tensor] = []
        for step in steps:
            lr = rate(step, self.steps, self.config.lr, self.config.warmup, self.config.schedule)
            step_losses.append(self.train_step(lr, images, texts))
            progress.add(1, step_losses[-1])
        losses = torch.stack(step_losses).tolist()
        if not np.isfinite(losses).all():
            raise UserError(
                f"judge.lr: the loss is NaN or infinite in epoch {epoch + 1}; lower it "
                f"({self.config.lr})"
            )
        return {"epoch": epoch + 1, "step": step + 1, "loss": float(np.mean(losses)), "lr": lr}

    def train_step(
        self, lr: float, images: Iterator[torch.Tensor], texts: Iterator[torch.Tensor]
    ) -> torch.Tensor:
        """Take a step with the next features of n images, and of k * n captions; return its
        loss.
        """
        with autocast(self.config.precision, self.device):
            image_features = F.normalize(next(images), dim=-1)
            text_features = F.normalize(next(texts), dim=-1)
        # outside of autocast: the loss is computed in 32 bits
        loss = _loss(self.group, image_features, text_features, self.model.logit_scale)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        take_step(self.model, self.optimizer, self.scaler, lr, self.group)
        return loss.detach()

    def _changes(self, step: int) -> Changes | None:
        """Return the changes of this process's images; none before augmentation begins."""
        if self.config.augment == "none":
            return None
        strength = strength_at(step, self.steps)
        if strength == 0:
            return None
        # Drawn for the whole batch, so that the number of processes does not change them.
        changes = draw_changes(self.batch, self.seed, step, strength=strength)
        return changes.each(itemgetter(self.local))


def train(
    model: Any,
    prepare: Callable[[], tuple[Examples, Evaluate]],
    config: Training,
    seed: int,
    checkpoint: Path,
    group: Group = ALONE,
) -> list[dict[str, Any]]:
    """Train ``model`` in place; return a row for each epoch: epoch, step, loss, lr, and the results
    of evaluation.

    The randomness of an epoch depends on the seed and its number, so a killed training resumes from
    the last checkpoint to the same weights. All processes of ``group`` have the same examples, and
    each encodes its part of every batch; the first evaluates and writes the checkpoints.

    Args:
        prepare: returns the examples and the evaluation; not called if the checkpoint is from the
            last epoch.
    """
    device = next(model.parameters()).device
    training_mode(model)
    optimizer = make_optimizer(model, config.lr, config.weight_decay)
    loss_scaler = scaler(config.precision, device)
    state = Checkpoint(checkpoint, model, optimizer, loss_scaler, "epoch")
    rows = state.resume()
    if len(rows) == config.epochs:
        return rows  # before images are read
    examples, evaluate = prepare()
    trainer = _Trainer(model, optimizer, loss_scaler, examples, config, seed, group)
    with state, Progress(trainer.steps, "steps") as progress:
        progress.add(len(rows) * trainer.steps_per_epoch)
        for epoch in range(len(rows), config.epochs):
            row = trainer.train_epoch(epoch, progress)
            if group.first:
                row |= evaluate()
            rows.append(row)
            results = [
                f"{key} {value:.3g}" for key, value in row.items() if key not in ("epoch", "step")
            ]
            log.info("epoch %d of %d: %s", epoch + 1, config.epochs, ", ".join(results))
            if group.first:
                state.keep(rows, last=epoch + 1 == config.epochs)
            # The other processes wait for the evaluation and the checkpoint.
            group.wait()
    return rows


def _loss(
    group: Group, images: torch.Tensor, texts: torch.Tensor, log_scale: nn.Parameter
) -> torch.Tensor:
    """Return the loss of all processes for images (n, d) and texts (k * n, d), averaged over k
    captions of each.
    """
    all_images = group.gather(images.float())
    # The first n rows are one caption of each image, the next n another one.
    rounds = texts.float().split(len(images))
    losses = []
    for captions in rounds:
        all_captions = group.gather(captions)
        loss = clip_loss(all_images, all_captions, log_scale.exp())
        losses.append(loss / len(rounds))
    return sum(losses[1:], losses[0])


def _draw_captions(draw: np.random.Generator, examples: Examples, k: int) -> np.ndarray:
    """Return (k, n) rows of k captions of each image, distinct unless it has fewer than k."""
    counts = examples.count
    columns = np.arange(counts.max())
    draws = draw.random((len(counts), len(columns)))
    # Sorted draws give a random order of each image's captions. Columns without a caption get 2,
    # which is above every draw, and so come last.
    order = np.where(columns < counts[:, None], draws, 2).argsort(1)
    # An image with too few captions starts its order again.
    rounds = np.arange(k)[:, None] % counts
    chosen = np.take_along_axis(order, rounds.T, 1).T
    return examples.first + chosen


def chance_among_first(similarities: np.ndarray, correct: np.ndarray, k: int) -> np.ndarray:
    """Return each image's chance (n,) that its own column is among its first ``k``, with ties in
    random order.

    ``similarities`` has a row for each image and a column for each text or class; ``correct`` (n,)
    is the image's column.
    """
    correct_values = np.take_along_axis(similarities, correct[:, None], axis=1)
    higher = (similarities > correct_values).sum(axis=1)
    tied = (similarities == correct_values).sum(axis=1)  # including the correct one
    # The first k have k - higher places for the tied ones.
    return np.clip((k - higher) / tied, 0, 1)


def in_batch_accuracy(images: np.ndarray, texts: np.ndarray, group: int = 100) -> float:
    """Return how often an image's caption is the most similar one among those of its group of
    ``group`` images.

    Ties count by their fraction. Rows after the last full group are ignored; fewer than ``group``
    rows form one group. NaN without rows. ``images`` and ``texts`` are (n, d), row by row.
    """
    n = len(images)
    size = min(group, n)
    if n == 0:
        return math.nan
    hits = []
    # Only full groups: among fewer captions, a caption is found more easily.
    for start in range(0, n - size + 1, size):
        rows = slice(start, start + size)
        similarities = images[rows] @ texts[rows].T
        hits.append(chance_among_first(similarities, np.arange(size), 1))
    return float(np.concatenate(hits).mean())
