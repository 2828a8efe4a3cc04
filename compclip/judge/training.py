"""The training of a CLIP: loss, learning rate, trainable parameters, epochs, and resuming."""

import fnmatch
import math
import re
from collections.abc import Callable, Sequence
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
from compclip.judge.feed import Features
from compclip.judge.parallel import ALONE, Group

MAX_SCALE = math.log(100)

Evaluate = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Examples:
    """n images and their captions; ``images`` and ``captions`` map row numbers to features.

    The captions of image i are rows first[i] to first[i] + count[i]. With augmentation, ``images``
    also takes the ``Changes`` of these images.
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
    return peak * 0.5 * (1 + math.cos(math.pi * (step - climb) / max(1, steps - climb)))


def check_trainable(config: Training) -> None:
    """Raise UserError if ``trainable`` does not fit the model, which is built without weights.

    Towers whose settings transformers or timm load from the Hub are not checked.
    """
    cfg = find_model(config.model)[0]
    text_cfg = {"vocab_size": 1, **cfg["text_cfg"]}  # a word tower's size depends on the captions
    timm_name = str(cfg["vision_cfg"].get("timm_model_name"))
    if "hf_model_name" not in text_cfg and ":" not in timm_name:
        with torch.device("meta"):
            model = construct({**cfg, "text_cfg": text_cfg})
        check_patterns([name for name, _ in model.named_parameters()], config.trainable)


def choose_trainable(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze every parameter whose name matches no pattern, and return the names of the others."""
    names = [name for name, _ in model.named_parameters()]
    check_patterns(names, patterns)
    trained = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)
    return [name for name in names if name in trained]


def check_patterns(names: Sequence[str], patterns: Sequence[str]) -> None:
    """Raise UserError if a pattern matches none of the parameters' names."""
    # suggestions: the first two parts of the dotted names
    beginnings = dict.fromkeys(re.sub(r"^([^.]+\.[^.]+)\..*", r"\1.*", name) for name in names)
    for pattern in patterns:
        fault = f"{pattern!r} matches no parameter; there are {', '.join(beginnings)}"
        require(fnmatch.filter(names, pattern), "judge.trainable", fault)


def training_mode(module: nn.Module) -> None:
    """Set training mode, but evaluation mode for parts with only frozen parameters, including batch
    norms.
    """
    module.train()
    for child in module.children():
        parameters = list(child.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            child.eval()
        else:
            training_mode(child)


def make_optimizer(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW without decay on norms, biases and the logit scale (parameters of fewer than two
    dimensions).
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    parameters = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(parameters, lr=lr, betas=(0.9, 0.98), eps=1e-6, fused=True)


def take_step(
    model: Any,
    optimizer: torch.optim.Optimizer,
    scale: torch.amp.GradScaler,
    lr: float,
    group: Group,
) -> None:
    """Make a step with learning rate ``lr`` by the mean gradients of all processes, and limit the
    logit scale.
    """
    for options in optimizer.param_groups:
        options["lr"] = lr
    group.average(p for p in model.parameters() if p.requires_grad)
    scale.step(optimizer)
    scale.update()
    with torch.no_grad():
        model.logit_scale.clamp_(0, MAX_SCALE)


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
    scale = scaler(config.precision, device)
    kept = Checkpoint(checkpoint, model, optimizer, scale, "epoch")
    rows = kept.resume()
    if len(rows) == config.epochs:
        return rows
    examples, evaluate = prepare()
    n = len(examples.first)
    batch = min(config.batch, n) // group.count * group.count
    per_epoch = n // batch
    steps = per_epoch * config.epochs
    own = group.share(batch)

    def changes_at(step: int) -> list[Changes]:
        strength = strength_at(step, steps) if config.augment == "mild" else 0
        # Drawn for the whole batch, so that the number of processes does not change them.
        return (
            [draw_changes(batch, seed, step, strength=strength).each(itemgetter(own))]
            if strength
            else []
        )

    with Progress(steps, "steps") as progress:
        progress.add(len(rows) * per_epoch)
        for epoch in range(len(rows), config.epochs):
            training_mode(model)
            torch.manual_seed(derive_seed(seed, "train_judge", epoch))
            draw = rng(seed, "train_judge", epoch)
            order = draw.permutation(n)
            captions = _draw_captions(draw, examples, config.captions)
            losses = []
            for step in range(epoch * per_epoch, (epoch + 1) * per_epoch):
                first = step % per_epoch * batch
                chosen = np.sort(order[first : first + batch])[own]
                with autocast(config.precision, device):
                    images = F.normalize(examples.images(chosen, *changes_at(step)), dim=-1)
                    texts = F.normalize(examples.captions(captions[:, chosen].ravel()), dim=-1)
                loss = _loss(group, images, texts, model.logit_scale)
                optimizer.zero_grad()
                scale.scale(loss).backward()
                lr = rate(step, steps, config.lr, config.warmup, config.schedule)
                take_step(model, optimizer, scale, lr, group)
                losses.append(loss.item())
                progress.add(1, f"loss {losses[-1]:.3f}")
            if not np.isfinite(losses).all():
                raise UserError(
                    f"judge.lr: the loss is NaN or infinite in epoch {epoch + 1}; lower it "
                    f"({config.lr})"
                )
            row = {"epoch": epoch + 1, "step": step + 1, "loss": float(np.mean(losses)), "lr": lr}
            rows.append({**row, **(evaluate() if group.first else {})})
            shown = (
                f"{key} {value:.3g}"
                for key, value in rows[-1].items()
                if key not in ("epoch", "step")
            )
            log.info("epoch %d of %d: %s", epoch + 1, config.epochs, ", ".join(shown))
            if group.first:
                kept.keep(rows, last=epoch + 1 == config.epochs)
            group.wait()
    return rows


def _loss(
    group: Group, images: torch.Tensor, texts: torch.Tensor, log_scale: nn.Parameter
) -> torch.Tensor:
    """Return the loss of all processes for images (n, d) and texts (k * n, d), averaged over k
    captions of each.
    """
    all_images, parts = group.gather(images.float()), texts.float().split(len(images))
    losses = [
        clip_loss(all_images, group.gather(part), log_scale.exp()) / len(parts) for part in parts
    ]
    return sum(losses[1:], losses[0])


def _draw_captions(draw: np.random.Generator, examples: Examples, k: int) -> np.ndarray:
    """Return (k, n) rows of k captions of each image, distinct unless it has fewer than k."""
    places = np.arange(examples.count.max())
    order = np.where(
        places < examples.count[:, None], draw.random((len(examples.count), len(places))), 2
    ).argsort(1)
    rounds = np.arange(k)[:, None] % examples.count
    return examples.first + np.take_along_axis(order, rounds.T, 1).T


def chance_among_first(similarities: np.ndarray, own: np.ndarray, k: int) -> np.ndarray:
    """Return each image's chance (n,) that its own column is among its first ``k``, with ties in
    random order.

    ``similarities`` has a row for each image and a column for each text or class; ``own`` (n,) is
    the image's column.
    """
    of_own = np.take_along_axis(similarities, own[:, None], axis=1)
    above, tied = (similarities > of_own).sum(axis=1), (similarities == of_own).sum(axis=1)
    return np.clip((k - above) / tied, 0, 1)


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
    for start in range(0, n - size + 1, size):
        similarities = images[start : start + size] @ texts[start : start + size].T
        hits.append(chance_among_first(similarities, np.arange(size), 1))
    return float(np.concatenate(hits).mean())
