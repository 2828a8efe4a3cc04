"""The frontier of a tower that is trained in part: everything before it is frozen and needs computing only once.

An image tower is a sequence of stages; the frontier lies before the first stage that trains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import nn

from compclip.clip.networks import ConvTower
from compclip.clip.text_tower import causal_tower, embed, mask, pool, projected
from compclip.clip.vision import open_clip

Transform = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Stage:
    name: str
    parts: tuple[nn.Module | nn.Parameter, ...]
    run: Transform

    @property
    def trains(self) -> bool:
        parameters = (part.parameters() if isinstance(part, nn.Module) else [part] for part in self.parts)
        return any(parameter.requires_grad for of_part in parameters for parameter in of_part)


@dataclass(frozen=True)
class ImageCut:
    """An image tower in two: ``below`` is frozen and ends with stage ``behind``, ``above`` gives the features."""

    below: Transform
    above: Transform
    behind: str


@dataclass(frozen=True)
class TextCut:
    """A text tower in two, after block ``behind``."""

    below: Transform  # ids (n, length) to floats (n, length, width), for any length that holds the end
    above: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # these and the ids to features (n, d)
    behind: str


def image_stages(visual: Any) -> list[Stage]:
    """Return the stages of an image tower in order; none if they are not known, or if the tower is random."""
    if isinstance(visual, ConvTower):
        return []
    library = open_clip()
    if type(visual) is library.modified_resnet.ModifiedResNet:
        stem = tuple(getattr(visual, f"{kind}{i}") for i in (1, 2, 3) for kind in ("conv", "bn"))
        layers = [f"layer{i}" for i in (1, 2, 3, 4)]
        blocks = [(f"{layer}.{i}", block) for layer in layers for i, block in enumerate(getattr(visual, layer))]
        return [
            Stage("stem", stem, visual.stem),
            *(Stage(name, (block,), block) for name, block in blocks),
            Stage("attnpool", (visual.attnpool,), visual.attnpool),
        ]
    if type(visual) is library.timm_model.TimmModel:
        return [Stage("trunk", (visual.trunk,), visual.trunk), Stage("head", (visual.head,), visual.head)]
    if (
        type(visual) is library.transformer.VisionTransformer
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


def image_cut(model: Any) -> ImageCut | None:
    """Cut ``model``'s image tower before the first stage that trains; None if nothing before it is frozen."""
    stages = image_stages(model.visual)
    frozen = next((i for i, stage in enumerate(stages) if stage.trains), len(stages))
    if not frozen:
        return None
    return ImageCut(_chain(stages[:frozen]), _chain(stages[frozen:]), stages[frozen - 1].name)


def _chain(stages: Sequence[Stage]) -> Transform:
    return lambda x: reduce(lambda passed, stage: stage.run(passed), stages, x)


def text_cut(model: Any) -> TextCut | None:
    """Cut ``model``'s ``causal_tower`` before the first block that trains; None if there is none or it is the first."""
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

    def through(x: torch.Tensor, chosen: list[Any]) -> torch.Tensor:
        return reduce(lambda passed, block: block(passed, attn_mask=mask(tower, x)), chosen, x)

    def below(ids: torch.Tensor) -> torch.Tensor:
        return through(embed(tower, ids), blocks[:frozen])

    def above(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return pool(tower, through(x, blocks[frozen:]), ids)

    return TextCut(below, above, f"resblocks.{frozen - 1}")
