"""CLIP's own text transformer, which need read a caption no further than its end token.

No token there sees those behind it, and the feature is the end token's, which has the highest id: a caption that is
cut behind its end has the feature that it has in the whole context, but for rounding.
"""

from __future__ import annotations

import torch
from torch import nn

from workflow_scripts.clip.vision import import_torchvision

import_torchvision()

from open_clip.model import CLIP  # noqa: E402
from open_clip.transformer import TextTransformer, text_global_pool  # noqa: E402

# Places to which captions are cut when they are only looked at, where the context has more: fixed, so that a
# caption's feature does not depend on those beside it.
LENGTHS = (32, 64, 128)


def causal_tower(model: nn.Module) -> nn.Module | None:
    """The part of ``model`` that is such a transformer: of CLIP itself, else its ``text``; None for any other."""
    tower = model if type(model) is CLIP else getattr(model, "text", None)
    if type(tower) is CLIP:
        return tower if tower.attn_mask is not None and tower.text_pool_type == "argmax" else None
    if type(tower) is not TextTransformer or tower.cls_emb is not None or tower.output_tokens:
        return None
    return tower if tower.attn_mask is not None and tower.pool_type == "argmax" else None


def lengths(ids: torch.Tensor) -> torch.Tensor:
    """(n,) tokens of captions up to the end token; ids: (n, length)."""
    return ids.argmax(dim=-1) + 1


def embed(tower: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """What goes into the transformer, (n, length, width), for ids (n, length) of at most the context."""
    dtype = tower.transformer.get_cast_dtype()
    return tower.token_embedding(ids).to(dtype) + tower.positional_embedding[: ids.shape[1]].to(dtype)


def mask(tower: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The causal mask for x (n, length, width)."""
    return tower.attn_mask[: x.shape[1], : x.shape[1]]


def pool(tower: nn.Module, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Features (n, d), not normalized, of what comes out of the transformer, x (n, length, width)."""
    return projected(text_global_pool(tower.ln_final(x), ids, "argmax"), tower.text_projection)


def projected(x: torch.Tensor, projection: nn.Module | nn.Parameter | None) -> torch.Tensor:
    """x through an open_clip projection: a module, a matrix, or none."""
    if projection is None:
        return x
    return projection(x) if isinstance(projection, nn.Module) else x @ projection


def encode(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """(n, d) as ``model.encode_text``, not normalized; ids may be cut behind their ends where ``causal_tower`` is."""
    tower = causal_tower(model)
    if tower is None:
        return model.encode_text(ids)
    x = embed(tower, ids)
    return pool(tower, tower.transformer(x, attn_mask=mask(tower, x)), ids)


def encode_texts(model: nn.Module, ids: torch.Tensor, at_once: int) -> torch.Tensor:
    """(n, d) features of captions, not normalized, as ``model.encode_text`` gives them; ids (n, context length).

    ``at_once`` captions of like length go through a ``causal_tower`` together, cut behind the longest; other towers
    get them all, uncut.
    """
    if causal_tower(model) is None:
        return model.encode_text(ids)
    own = lengths(ids)
    order = own.argsort(stable=True)
    parts = [encode(model, ids[rows, : int(own[rows].max())]) for rows in order.split(at_once)]
    return torch.cat(parts)[order.argsort()]


def by_length(model: nn.Module, ids: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Captions that go through ``model`` together: their rows, and their ids cut to the next of ``LENGTHS``.

    ids: (n, context length). A part may be empty. One part of all of them, uncut, where there is no ``causal_tower``.
    """
    if causal_tower(model) is None:
        return [(torch.arange(len(ids)), ids)]
    context = ids.shape[1]
    ends = torch.tensor([*(length for length in LENGTHS if length < context), context])
    places = torch.bucketize(lengths(ids), ends)  # an end is its own part's
    parts = [(places == k).nonzero()[:, 0] for k in range(len(ends))]
    return [(rows, ids[rows, :end]) for rows, end in zip(parts, ends.tolist(), strict=True)]


def encode_families(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """(k, n, d) features, as ``encode_texts`` gives them, of n families of k texts that begin alike.

    ids: (k, n, context length). What a text has in common with the first of its family goes through a
    ``causal_tower`` once: behind the first stand the others' remainders, each with the places that it has in its
    text, and sees its own beginning there and itself. Equal but for rounding; other towers get all texts, uncut.
    """
    tower = causal_tower(model)
    if tower is None or len(ids) == 1:
        return encode_texts(model, ids.flatten(0, 1), ids.shape[1]).unflatten(0, ids.shape[:2])
    own = lengths(ids.flatten(0, 1)).view(ids.shape[:2])
    # An end token is each text's own.
    fork = torch.minimum((ids == ids[0]).cumprod(dim=-1).sum(dim=-1), own - 1)
    fork[0] = 0
    sizes = own - fork
    starts = sizes.cumsum(dim=0) - sizes
    slot = torch.arange(int(sizes.sum(dim=0).max()), device=ids.device)
    text = (slot >= starts[..., None]).sum(dim=0) - 1
    shared = fork.T.gather(1, text)
    place = slot - starts.T.gather(1, text) + shared
    # Behind the last text's end nobody looks.
    known = place.clamp(max=ids.shape[2] - 1)
    family = torch.arange(ids.shape[1], device=ids.device)[:, None]
    dtype = tower.transformer.get_cast_dtype()
    x = tower.token_embedding(ids[text, family, known]).to(dtype) + tower.positional_embedding[known].to(dtype)
    within = (text[:, :, None] == text[:, None]) & (place[:, :, None] >= place[:, None])
    before = (text[:, None] == 0) & (place[:, None] < shared[:, :, None])
    unseen = torch.zeros(within.shape, dtype=dtype, device=ids.device).masked_fill_(~(within | before), float("-inf"))
    heads = tower.transformer.resblocks[0].attn.num_heads
    x = tower.transformer(x, attn_mask=unseen.repeat_interleave(heads, dim=0))
    return projected(tower.ln_final(x[family.T, starts + sizes - 1]), tower.text_projection)
