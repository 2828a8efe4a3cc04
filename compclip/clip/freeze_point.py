"""The freeze point of a partly trained tower: what comes before it is frozen, so its output is
computed only once.

A tower is a sequence of stages; the freeze point lies before the first stage that trains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from compclip.clip.networks import ConvTower
from compclip.clip.text_tower import causal_tower, embed, mask, pool, projected
from compclip.clip.vision import open_clip

Transform = Callable[..., torch.Tensor]
Weights = nn.Module | nn.Parameter


class Stage(NamedTuple):
    """One step of a tower, and all modules and parameters that it uses."""

    name: str
    weights: Sequence[Weights]
    run: Transform


@dataclass(frozen=True)
class FreezePoint:
    """A tower in two parts: ``frozen`` ends with stage ``last_frozen``; ``trained`` gives the
    features (n, d).
    """

    # of pixels (n, 3, height, width), or of ids (n, length) up to or beyond the end token
    frozen: Transform
    # of the output of ``frozen`` and, for captions, the positions (n,) of their end tokens
    trained: Transform
    last_frozen: str


def image_stages(visual: Any) -> list[Stage]:
    """Return the stages of an image tower in order; none if the architecture is unknown, or the
    tower is random.
    """
    if isinstance(visual, ConvTower):  # before the import of open_clip, which takes seconds
        return []
    library = open_clip()
    # Exact types: the forward pass of a subclass may have other stages.
    if type(visual) is library.modified_resnet.ModifiedResNet:
        return _resnet_stages(visual)
    if type(visual) is library.timm_model.TimmModel:
        return [
            Stage("trunk", (visual.trunk,), visual.trunk),
            Stage("head", (visual.head,), visual.head),
        ]
    if type(visual) is library.transformer.VisionTransformer:
        return _transformer_stages(visual)
    return []


def _resnet_stages(visual: Any) -> list[Stage]:
    stem = [getattr(visual, f"{kind}{i}") for i in (1, 2, 3) for kind in ("conv", "bn")]
    stages = [Stage("stem", stem, visual.stem)]
    for layer in ("layer1", "layer2", "layer3", "layer4"):
        for i, block in enumerate(getattr(visual, layer)):
            stages.append(Stage(f"{layer}.{i}", (block,), block))
    stages.append(Stage("attnpool", (visual.attnpool,), visual.attnpool))
    return stages


def _transformer_stages(visual: Any) -> list[Stage]:
    # Dropped patches differ in each step, so their output cannot be kept.
    drops_patches = not isinstance(visual.patch_dropout, nn.Identity)
    if drops_patches or not visual.transformer.batch_first or visual.output_tokens:
        return []
    embedding = (visual.conv1, visual.class_embedding, visual.positional_embedding, visual.ln_pre)
    stages = [Stage("embeddings", embedding, visual._embeds)]
    for i, block in enumerate(visual.transformer.resblocks):
        stages.append(Stage(f"resblocks.{i}", (block,), block))

    def run_pooling(x: torch.Tensor) -> torch.Tensor:
        pooled, _ = visual._pool(x)
        return projected(pooled, visual.proj)

    pooling = [visual.attn_pool, visual.ln_post, visual.proj]
    present = [weights for weights in pooling if weights is not None]
    stages.append(Stage("pooling", present, run_pooling))
    return stages


def _trains(weights: Weights) -> bool:
    if isinstance(weights, nn.Module):
        return any(parameter.requires_grad for parameter in weights.parameters())
    return weights.requires_grad


def _count_frozen(stages: Sequence[Stage]) -> int:
    """Return how many stages precede the first that trains."""
    for number, stage in enumerate(stages):
        if any(_trains(weights) for weights in stage.weights):
            return number
    return len(stages)


def _chain(stages: Sequence[Stage]) -> Transform:
    def run(x: torch.Tensor) -> torch.Tensor:
        for stage in stages:
            x = stage.run(x)
        return x

    return run


def image_freeze_point(model: Any) -> FreezePoint | None:
    """Return the freeze point of ``model``'s image tower, before the first stage that trains; None
    if nothing before it is frozen.
    """
    stages = image_stages(model.visual)
    n = _count_frozen(stages)
    if n == 0:
        return None
    return FreezePoint(_chain(stages[:n]), _chain(stages[n:]), stages[n - 1].name)


def text_freeze_point(model: Any) -> FreezePoint | None:
    """Return the freeze point of ``model``'s ``causal_tower``, before the first block that trains;
    None if there is none or it is the first.
    """
    tower = causal_tower(model)
    if tower is None or not tower.transformer.batch_first:
        return None

    def run_block(x: torch.Tensor, block: nn.Module) -> torch.Tensor:
        return block(x, attn_mask=mask(tower, x))

    embedding = (tower.token_embedding, tower.positional_embedding)
    stages = [Stage("embeddings", embedding, partial(embed, tower))]
    for i, block in enumerate(tower.transformer.resblocks):
        stages.append(Stage(f"resblocks.{i}", (block,), partial(run_block, block=block)))
    n = _count_frozen(stages)
    # Looking up embeddings is as cheap as reading them from a file.
    if n < 2:
        return None
    run_trained = _chain(stages[n:])

    def trained(x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return pool(tower, run_trained(x), ends)

    return FreezePoint(_chain(stages[:n]), trained, stages[n - 1].name)
