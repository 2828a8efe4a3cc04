"""CLIP's causal text transformer, which reads a caption only up to its end token.

A token does not attend to later ones, and the feature is that of the end token, which has the
highest id. So a caption truncated after its end token has the same feature as in the whole context,
except for rounding.
"""

from typing import Any

import torch
from torch import nn

from compclip.clip.networks import WordTower
from compclip.clip.vision import open_clip

# Lengths to which captions are truncated for encoding, if the context is longer. They are fixed, so
# that a caption's feature does not depend on its neighbors in the batch.
LENGTHS = (32, 64, 128)


def causal_tower(model: Any) -> Any | None:
    """Return the causal transformer of ``model``: a CLIP itself, or its ``text``; None for other
    architectures.
    """
    tower = getattr(model, "text", model)
    if isinstance(tower, WordTower):
        return None
    library = open_clip()
    if type(tower) is library.model.CLIP:
        return tower if tower.attn_mask is not None and tower.text_pool_type == "argmax" else None
    if (
        type(tower) is not library.transformer.TextTransformer
        or tower.cls_emb is not None
        or tower.output_tokens
    ):
        return None
    return tower if tower.attn_mask is not None and tower.pool_type == "argmax" else None


def lengths(ids: torch.Tensor) -> torch.Tensor:
    """Return (n,) numbers of tokens up to the end token, for ids (n, length)."""
    return ids.argmax(dim=-1) + 1


def embed(tower: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return the input of the transformer, (n, length, width), for ids (n, length) no longer than
    the context.
    """
    dtype = tower.transformer.get_cast_dtype()
    return tower.token_embedding(ids).to(dtype) + tower.positional_embedding[: ids.shape[1]].to(
        dtype
    )


def mask(tower: Any, x: torch.Tensor) -> torch.Tensor:
    return tower.attn_mask[: x.shape[1], : x.shape[1]]


def pool(tower: Any, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Return features (n, d), not normalized, for the transformer's output x (n, length, width)."""
    return projected(
        open_clip().transformer.text_global_pool(tower.ln_final(x), ids, "argmax"),
        tower.text_projection,
    )


def projected(x: torch.Tensor, projection: nn.Module | torch.Tensor | None) -> torch.Tensor:
    """Apply an open_clip projection: a module, a matrix, or none."""
    if projection is None:
        return x
    return projection(x) if isinstance(projection, nn.Module) else x @ projection


def encode(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return (n, d) as ``model.encode_text``, not normalized; a ``causal_tower`` takes ids
    truncated after the end.
    """
    tower = causal_tower(model)
    if tower is None:
        return model.encode_text(ids)
    x = embed(tower, ids)
    return pool(tower, tower.transformer(x, attn_mask=mask(tower, x)), ids)


def encode_texts(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return (n, d) as ``encode``, for ids (n, context length); a ``causal_tower`` reads them up to
    the longest.
    """
    if causal_tower(model) is None:
        return encode(model, ids)
    counts = lengths(ids)
    order = counts.argsort(stable=True)  # a different order changes floating-point rounding
    return encode(model, ids[order, : int(counts.max())])[order.argsort()]


def by_length(model: Any, ids: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Group captions, ids (n, context length), by length: rows of each group, and their ids up to
    the next LENGTH.

    A group may be empty. Without a ``causal_tower``, all captions form one group, not truncated.
    """
    if causal_tower(model) is None:
        return [(torch.arange(len(ids)), ids)]
    context = ids.shape[1]
    ends = torch.tensor([*(length for length in LENGTHS if length < context), context])
    groups = torch.bucketize(lengths(ids), ends)  # a group includes its end
    rows_of = [(groups == k).nonzero()[:, 0] for k in range(len(ends))]
    return [(rows, ids[rows, :end]) for rows, end in zip(rows_of, ends.tolist(), strict=True)]


def encode_families(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return (k, n, d) features, as ``encode_texts`` does, of n families of k texts with common
    beginnings.

    ``ids`` are (k, n, context length).
    A ``causal_tower`` computes what a text shares with the first of its family only once: the first
    text is followed by the remainders of the others. Each token keeps the position in its text and
    attends only to that text. The result is equal except for rounding. Other towers read all texts
    separately.
    """
    tower = causal_tower(model)
    if tower is None or len(ids) == 1:
        return encode_texts(model, ids.flatten(0, 1)).unflatten(0, ids.shape[:2])
    text, place, shared, ends = _pack(ids)
    # Slots after the end of the last text are not read.
    known = place.clamp(max=ids.shape[2] - 1)
    family = torch.arange(ids.shape[1], device=ids.device)[:, None]
    dtype = tower.transformer.get_cast_dtype()
    x = tower.token_embedding(ids[text, family, known]).to(dtype) + tower.positional_embedding[
        known
    ].to(dtype)
    heads = tower.transformer.resblocks[0].attn.num_heads
    unseen = _family_mask(text, place, shared, dtype).repeat_interleave(heads, dim=0)
    x = tower.transformer(x, attn_mask=unseen)
    return projected(tower.ln_final(x[family.T, ends]), tower.text_projection)


def _pack(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pack the texts of each family into one row.

    Returns the text, the position in it and the length of its shared beginning for each slot, (n,
    slots) each, and the slot of each text's end token, (k, n).
    """
    counts = lengths(ids.flatten(0, 1)).view(ids.shape[:2])
    # Texts do not share their end tokens.
    fork = torch.minimum((ids == ids[0]).cumprod(dim=-1).sum(dim=-1), counts - 1)
    fork[0] = 0
    sizes = counts - fork
    starts = sizes.cumsum(dim=0) - sizes
    slot = torch.arange(int(sizes.sum(dim=0).max()), device=ids.device)
    text = (slot >= starts[..., None]).sum(dim=0) - 1
    shared = fork.T.gather(1, text)
    return text, slot - starts.T.gather(1, text) + shared, shared, starts + sizes - 1


def _family_mask(
    text: torch.Tensor, place: torch.Tensor, shared: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return (n, slots, slots): 0 where a slot attends to another, else minus infinity."""
    within = (text[:, :, None] == text[:, None]) & (place[:, :, None] >= place[:, None])
    before = (text[:, None] == 0) & (place[:, None] < shared[:, :, None])
    return torch.zeros(within.shape, dtype=dtype, device=text.device).masked_fill_(
        ~(within | before), float("-inf")
    )
