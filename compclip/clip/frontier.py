"""The frontier of a partly trained tower: the part before it is frozen, so its output is computed
only once.

A tower is a sequence of stages; the frontier lies before the first stage that trains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import torch
from torch import nn

from compclip.clip.networks import ConvTower
from compclip.clip.text_tower import causal_tower, embed, mask, pool, projected
from compclip.clip.vision import open_clip

Transform = Callable[..., torch.Tensor]
Part = nn.Module | nn.Parameter


class Stage(NamedTuple):
    name: str
    parts: Sequence[Part]
    run: Transform


@dataclass(frozen=True)
class CutTower:
    """A tower in two parts: ``below`` is frozen and ends with stage ``behind``; ``above`` gives the
    features (n, d).
    """

    # of pixels (n, 3, height, width), or of ids (n, length) up to or beyond the end token
    below: Transform
    above: Transform  # of the output of ``below`` and, for captions, the ids
    behind: str


def image_stages(visual: Any) -> list[Stage]:
    """Return the stages of an image tower in order; none if the architecture is unknown, or the
    tower is random.
    """
    if isinstance(visual, ConvTower):
        return []
    library = open_clip()
    if type(visual) is library.modified_resnet.ModifiedResNet:
        stem = tuple(getattr(visual, f"{kind}{i}") for i in (1, 2, 3) for kind in ("conv", "bn"))
        layers = [f"layer{i}" for i in (1, 2, 3, 4)]
        blocks = [
            (f"{layer}.{i}", block)
            for layer in layers
            for i, block in enumerate(getattr(visual, layer))
        ]
        return [
            Stage("stem", stem, visual.stem),
            *(Stage(name, (block,), block) for name, block in blocks),
            Stage("attnpool", (visual.attnpool,), visual.attnpool),
        ]
    if type(visual) is library.timm_model.TimmModel:
        return [
            Stage("trunk", (visual.trunk,), visual.trunk),
            Stage("head", (visual.head,), visual.head),
        ]
    if (
        type(visual) is library.transformer.VisionTransformer
        and isinstance(visual.patch_dropout, nn.Identity)
        and visual.transformer.batch_first
        and not visual.output_tokens
    ):
        embedding = (
            visual.conv1,
            visual.class_embedding,
            visual.positional_embedding,
            visual.ln_pre,
        )
        pooling = tuple(
            part for part in (visual.attn_pool, visual.ln_post, visual.proj) if part is not None
        )
        return [
            Stage("embeddings", embedding, visual._embeds),
            *(
                Stage(f"resblocks.{i}", (block,), block)
                for i, block in enumerate(visual.transformer.resblocks)
            ),
            Stage("pooling", pooling, lambda x: projected(visual._pool(x)[0], visual.proj)),
        ]
    return []


def _count_frozen(stages: Sequence[Stage]) -> int:
    """Return how many stages precede the first that trains."""
    for number, stage in enumerate(stages):
        parameters = (
            part.parameters() if isinstance(part, nn.Module) else [part] for part in stage.parts
        )
        if any(parameter.requires_grad for of_part in parameters for parameter in of_part):
            return number
    return len(stages)


def _through(stages: Sequence[Stage]) -> Transform:
    return lambda x: reduce(lambda passed, stage: stage.run(passed), stages, x)


def image_cut(model: Any) -> CutTower | None:
    """Cut ``model``'s image tower before the first stage that trains; None if nothing before it is
    frozen.
    """
    stages = image_stages(model.visual)
    frozen = _count_frozen(stages)
    return (
        CutTower(_through(stages[:frozen]), _through(stages[frozen:]), stages[frozen - 1].name)
        if frozen
        else None
    )


def text_cut(model: Any) -> CutTower | None:
    """Cut ``model``'s ``causal_tower`` before the first block that trains; None if there is none or
    it is the first.
    """
    tower = causal_tower(model)
    if tower is None or not tower.transformer.batch_first:
        return None
    stages = [
        Stage(
            "embeddings", (tower.token_embedding, tower.positional_embedding), partial(embed, tower)
        )
    ]
    for i, block in enumerate(tower.transformer.resblocks):
        stages.append(
            Stage(
                f"resblocks.{i}",
                (block,),
                lambda x, block=block: block(x, attn_mask=mask(tower, x)),
            )
        )
    frozen = _count_frozen(stages)
    if frozen < 2:
        return None
    above = _through(stages[frozen:])
    return CutTower(
        _through(stages[:frozen]),
        lambda x, ids: pool(tower, above(x), ids),
        stages[frozen - 1].name,
    )
