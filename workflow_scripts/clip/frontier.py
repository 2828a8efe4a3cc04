"""Where the training of a tower begins: all before the frontier is frozen, and need be computed but once.

An image tower is a row of stages, each behind the other; the frontier lies before the first one that trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import nn

from workflow_scripts.clip.text_tower import causal_tower, embed, mask, pool, projected
from workflow_scripts.clip.vision import import_torchvision

import_torchvision()

from open_clip.modified_resnet import ModifiedResNet  # noqa: E402
from open_clip.timm_model import TimmModel  # noqa: E402
from open_clip.transformer import VisionTransformer  # noqa: E402

Step = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Stage:
    """A part of a tower: its name, its parameters, and what it does."""

    name: str
    parts: tuple[nn.Module | nn.Parameter, ...]
    run: Step

    @property
    def trains(self) -> bool:
        """Whether any of its parameters do."""
        return any(p.requires_grad for part in self.parts for p in _parameters(part))


@dataclass(frozen=True)
class ImageCut:
    """An image tower in two: ``below`` is frozen; ``above``, which follows it, gives the features.

    behind: the last stage of ``below``.
    """

    below: Step
    above: Step
    behind: str


@dataclass(frozen=True)
class TextCut:
    """A text tower in two.

    below: (n, length) ids to (n, length, width) floats; above: these and the ids to (n, d) features. length:
    any that holds all tokens up to the end token (``text_tower.lengths``).
    """

    below: Step
    above: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    behind: str


def _parameters(part: nn.Module | nn.Parameter) -> list[nn.Parameter]:
    return list(part.parameters()) if isinstance(part, nn.Module) else [part]


def image_stages(visual: nn.Module) -> list[Stage]:
    """The stages of an image tower in order; none for one of which they are not known, or that draws lots."""
    if type(visual) is ModifiedResNet:
        stem = tuple(getattr(visual, f"{kind}{i}") for i in (1, 2, 3) for kind in ("conv", "bn"))
        layers = [f"layer{i}" for i in (1, 2, 3, 4)]
        blocks = [(f"{layer}.{i}", block) for layer in layers for i, block in enumerate(getattr(visual, layer))]
        return [
            Stage("stem", stem, visual.stem),
            *(Stage(name, (block,), block) for name, block in blocks),
            Stage("attnpool", (visual.attnpool,), visual.attnpool),
        ]
    if type(visual) is TimmModel:
        return [Stage("trunk", (visual.trunk,), visual.trunk), Stage("head", (visual.head,), visual.head)]
    if (
        type(visual) is VisionTransformer
        and isinstance(visual.patch_dropout, nn.Identity)
        and visual.transformer.batch_first
        and not visual.output_tokens
    ):
        embedding = (visual.conv1, visual.class_embedding, visual.positional_embedding, visual.ln_pre)
        pooling = tuple(part for part in (visual.attn_pool, visual.ln_post, visual.proj) if part is not None)
        return [
            Stage("embeddings", embedding, visual._embeds),
            *(Stage(f"resblocks.{i}", (block,), block) for i, block in enumerate(visual.transformer.resblocks)),
            Stage("pooling", pooling, lambda x: projected(visual._pool(x)[0], visual.proj)),
        ]
    return []


def image_cut(model: nn.Module) -> ImageCut | None:
    """``model``'s image tower, cut before the first stage that trains; None where nothing before it is frozen."""
    stages = image_stages(model.visual)
    frozen = next((i for i, stage in enumerate(stages) if stage.trains), len(stages))
    if not frozen:
        return None
    return ImageCut(_row(stages[:frozen]), _row(stages[frozen:]), stages[frozen - 1].name)


def _row(stages: list[Stage]) -> Step:
    return lambda x: reduce(lambda passed, stage: stage.run(passed), stages, x)


def text_cut(model: nn.Module) -> TextCut | None:
    """``model``'s text tower, cut before the first block that trains; None where that is the first.

    Only of a ``causal_tower``.
    """
    tower = causal_tower(model)
    if tower is None or not tower.transformer.batch_first:
        return None
    blocks = list(tower.transformer.resblocks)
    frozen = next(
        (i for i, block in enumerate(blocks) if any(p.requires_grad for p in block.parameters())), len(blocks)
    )
    embeddings = (*tower.token_embedding.parameters(), tower.positional_embedding)
    if not frozen or any(p.requires_grad for p in embeddings):
        return None

    def through(x: torch.Tensor, some: list[nn.Module]) -> torch.Tensor:
        return reduce(lambda passed, block: block(passed, attn_mask=mask(tower, x)), some, x)

    def below(ids: torch.Tensor) -> torch.Tensor:
        return through(embed(tower, ids), blocks[:frozen])

    def above(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return pool(tower, through(x, blocks[frozen:]), ids)

    return TextCut(below, above, f"resblocks.{frozen - 1}")
