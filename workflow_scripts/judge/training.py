"""The training itself: what learns, one epoch after another, and how to take it up again after a kill."""

from __future__ import annotations

import fnmatch
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.io import atomic
from workflow_scripts.common.progress import Progress
from workflow_scripts.common.seeds import derive_seed, rng
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.loss import clip_loss
from workflow_scripts.judge.precision import autocast, scaler
from workflow_scripts.judge.schedule import rate

MAX_SCALE = math.log(100)


@dataclass(frozen=True)
class Examples:
    """Images and their captions.

    pixels: (n, height, width, 3) uint8, or (n, d) float32 features of a frozen trunk. ids: (m, length) tokens,
    the captions of image i being rows first[i] to first[i] + count[i].
    """

    pixels: np.ndarray
    ids: torch.Tensor
    first: np.ndarray
    count: np.ndarray


def choose_trainable(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Freeze every parameter whose name matches no pattern; returns the names of the others.

    Raises UserError for a pattern that matches nothing.
    """
    names = [name for name, _ in model.named_parameters()]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UserError(f"judge.trainable: {pattern!r} matches no parameter; there are {', '.join(groups(names))}")
    trained = {name for pattern in patterns for name in fnmatch.filter(names, pattern)}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in trained)
    return [name for name in names if name in trained]


def groups(names: Sequence[str]) -> list[str]:
    """The names cut to two parts, each once, as a hint of what patterns could match."""
    return list(dict.fromkeys(".".join(name.split(".")[:2]) + (".*" if name.count(".") > 1 else "") for name in names))


def training_mode(module: nn.Module) -> None:
    """Training mode, but evaluation mode for every part whose parameters are all frozen, batch norms included."""
    module.train()
    for child in module.children():
        parameters = list(child.parameters())
        if parameters and not any(p.requires_grad for p in parameters):
            child.eval()
        else:
            training_mode(child)


def make_optimizer(model: nn.Module, config: JudgeConfig) -> torch.optim.AdamW:
    """AdamW without decay on norms, biases and the logit scale (all parameters of fewer than two dimensions)."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": [p for p in trained if p.ndim >= 2], "weight_decay": config.weight_decay},
            {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=config.lr,
        betas=(0.9, 0.98),
        eps=1e-6,
    )


def frozen_trunk(model: nn.Module) -> nn.Module | None:
    """The image tower's trunk where none of it trains: its output then needs computing once an image."""
    trunk = getattr(model.visual, "trunk", None)
    return trunk if trunk is not None and not any(p.requires_grad for p in trunk.parameters()) else None


def image_encoder(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """What training calls with images: the model, or what follows a frozen trunk, with the trunk's features."""
    return model.encode_image if frozen_trunk(model) is None else model.visual.head


def train(
    model: nn.Module,
    examples: Examples,
    config: JudgeConfig,
    seed: int,
    floats: Callable[[np.ndarray], torch.Tensor],
    evaluate: Callable[[], dict[str, float]],
    checkpoint: Path,
) -> list[dict[str, Any]]:
    """Train ``model`` in place; returns a row for each epoch: epoch, step, loss, lr, and what ``evaluate`` says.

    floats: bytes (or features) of images to what the image tower (or its head) takes. Every epoch ends with a
    checkpoint, and draws its randomness from the seed and its own number: a training that was killed goes on
    from the last one to the very weights it would have had.
    """
    device = next(model.parameters()).device
    encode_image = image_encoder(model)
    optimizer = make_optimizer(model, config)
    scale = scaler(config.precision, device)
    n = len(examples.pixels)
    batch = min(config.batch, n)
    steps = n // batch * config.epochs
    rows = _resume(checkpoint, model, optimizer, scale)
    with Progress(steps, "steps") as progress:
        progress.add(len(rows) * (n // batch))
        for epoch in range(len(rows), config.epochs):
            training_mode(model)
            torch.manual_seed(derive_seed(seed, "train_judge", epoch))
            draw = rng(seed, "train_judge", epoch)
            order = draw.permutation(n)
            captions = _draw_captions(draw, examples, config.captions)
            losses = []
            for number in range(n // batch):
                step = epoch * (n // batch) + number
                for group in optimizer.param_groups:
                    group["lr"] = rate(step, steps, config.lr, config.warmup)
                chosen = np.sort(order[number * batch : (number + 1) * batch])
                pixels = np.asarray(examples.pixels[chosen])
                if config.flip:
                    mirrored = draw.random(batch) < 0.5
                    pixels[mirrored] = pixels[mirrored, :, ::-1]
                with autocast(config.precision, device):
                    images = F.normalize(encode_image(floats(pixels)), dim=-1)
                    texts = model.encode_text(examples.ids[captions[:, chosen].ravel()].to(device), normalize=True)
                loss = sum(
                    clip_loss(images.float(), part.float(), model.logit_scale.exp()) / config.captions
                    for part in texts.split(batch)
                )
                optimizer.zero_grad()
                scale.scale(loss).backward()
                scale.step(optimizer)
                scale.update()
                with torch.no_grad():
                    model.logit_scale.clamp_(0, MAX_SCALE)
                losses.append(loss.item())
                progress.add(1, f"loss {losses[-1]:.3f}")
            if not np.isfinite(losses).all():
                raise UserError(f"the loss is no number in epoch {epoch + 1}: lower judge.lr (it is {config.lr})")
            row = {"epoch": epoch + 1, "step": step + 1, "loss": float(np.mean(losses))}
            rows.append({**row, "lr": optimizer.param_groups[0]["lr"], **evaluate()})
            log.info("epoch %d of %d: %s", epoch + 1, config.epochs, _said(rows[-1]))
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scale.state_dict()}
            with atomic(checkpoint) as temporary:
                torch.save({**state, "rows": rows}, temporary)
    return rows


def _draw_captions(draw: np.random.Generator, examples: Examples, k: int) -> np.ndarray:
    """(k, n) rows of ``examples.ids``: captions of each image, distinct as far as it has so many."""
    places = np.arange(examples.count.max())
    order = np.where(places < examples.count[:, None], draw.random((len(examples.count), len(places))), 2).argsort(1)
    rounds = np.arange(k)[:, None] % examples.count
    return examples.first + np.take_along_axis(order, rounds.T, 1).T


def _resume(
    checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer, scale: torch.amp.GradScaler
) -> list[dict[str, Any]]:
    if not checkpoint.is_file():
        return []
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, pickle.UnpicklingError):
        log.warning("%s: damaged, so the training starts anew", checkpoint)
        return []
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scale.load_state_dict(state["scaler"])
    log.info("resumed behind epoch %d", len(state["rows"]))
    return state["rows"]


def _said(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value:.3g}" for key, value in row.items() if key not in ("epoch", "step"))


def in_batch_accuracy(images: np.ndarray, texts: np.ndarray, group: int = 100) -> float:
    """How often an image's own caption is nearest to it among those of its group of ``group`` images.

    images, texts: (n, d), rows belonging together. Ties count by their share. Rows behind the last full group
    are left out; with fewer than ``group`` rows they are one group. NaN where there are no rows.
    """
    n = len(images)
    size = min(group, n)
    if n == 0:
        return math.nan
    hits = []
    for start in range(0, n - size + 1, size):
        similarity = images[start : start + size] @ texts[start : start + size].T
        own = np.diag(similarity)[:, None]
        best = ~(similarity > own).any(axis=1)
        hits.append(best / (similarity == own).sum(axis=1))
    return float(np.concatenate(hits).mean())
