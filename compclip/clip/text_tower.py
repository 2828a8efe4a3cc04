"""CLIP's causal text transformer, which reads a caption only up to its end token.

A token does not attend to later ones, and the feature is that of the end token, which has the
highest id. So a caption truncated after its end token has the same feature as in the whole context,
except for rounding.
"""

from typing import Any, NamedTuple

import torch
from torch import nn

from compclip.clip.device import to_device
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
    if isinstance(tower, WordTower):  # before the import of open_clip, which takes seconds
        return None
    library = open_clip()
    # Exact types: a subclass may read a caption otherwise.
    if type(tower) is library.model.CLIP:
        pooling = tower.text_pool_type
    elif type(tower) is library.transformer.TextTransformer:
        # CoCa's tower appends a token to every caption and returns the outputs of all tokens.
        if tower.cls_emb is not None or tower.output_tokens:
            return None
        pooling = tower.pool_type
    else:
        return None
    # open_clip finds the end token as the highest id.
    is_causal = tower.attn_mask is not None and pooling == "argmax"
    return tower if is_causal else None


def lengths(ids: torch.Tensor) -> torch.Tensor:
    """Return (n,) numbers of tokens up to the end token, for ids (n, length)."""
    return ids.argmax(dim=-1) + 1


def embed(tower: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return the input of the transformer, (n, length, width), for ids (n, length) no longer than
    the context.
    """
    return _embed_at(tower, ids, slice(ids.shape[1]))


def _embed_at(tower: Any, ids: torch.Tensor, positions: slice | torch.Tensor) -> torch.Tensor:
    dtype = tower.transformer.get_cast_dtype()
    positional = tower.positional_embedding[positions].to(dtype)
    return tower.token_embedding(ids).to(dtype) + positional


def mask(tower: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the causal mask for the transformer's input x (n, length, width)."""
    return tower.attn_mask[: x.shape[1], : x.shape[1]]


def pool(tower: Any, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Return features (n, d), not normalized, for the transformer's output x (n, length, width).

    ``ends`` are the positions (n,) of the end tokens.
    """
    normed = tower.ln_final(x)
    rows = torch.arange(len(x), device=x.device)
    return projected(normed[rows, ends], tower.text_projection)


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
    x = tower.transformer(x, attn_mask=mask(tower, x))
    return pool(tower, x, ids.argmax(dim=-1))


def encode_texts(model: Any, ids: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return (n, d) as ``encode`` on ``device``, for ids (n, context length); a ``causal_tower``
    reads them up to the longest.

    If ``ids`` are on the CPU, their lengths are known without waiting for a GPU.
    """
    if causal_tower(model) is None:
        return encode(model, to_device(ids, device))
    counts = lengths(ids)
    order = counts.argsort(stable=True)  # a different order changes floating-point rounding
    truncated = ids[order, : int(counts.max())]
    features = encode(model, to_device(truncated, device))
    return features[to_device(order.argsort(), device)]


def by_length(model: Any, ids: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Group captions, ids (n, context length), by length: rows of each group, and their ids up to
    the next LENGTH.

    A group may be empty. Without a ``causal_tower``, all captions form one group, not truncated.
    """
    if causal_tower(model) is None:
        return [(torch.arange(len(ids)), ids)]
    context = ids.shape[1]
    ends = [length for length in LENGTHS if length < context] + [context]
    number = torch.bucketize(lengths(ids), torch.tensor(ends))  # a group includes its end
    groups = []
    for k, end in enumerate(ends):
        rows = (number == k).nonzero()[:, 0]
        groups.append((rows, ids[rows, :end]))
    return groups


def encode_families(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """Return (k, n, d) features, as ``encode_texts`` does, of n families of k texts with common
    beginnings.

    ``ids`` are (k, n, context length). A ``causal_tower`` computes what a text shares with the
    first of its family only once: the first text is followed by the remainders of the others. Each
    token keeps the position in its text and attends only to that text. The result is equal except
    for rounding. Other towers read all texts separately.
    """
    tower = causal_tower(model)
    if tower is None or len(ids) == 1:
        features = encode_texts(model, ids.flatten(0, 1), ids.device)
        return features.unflatten(0, ids.shape[:2])
    packed = _pack(ids)
    # Slots after the end of the last text are not read.
    positions = packed.position.clamp(max=ids.shape[2] - 1)
    family = torch.arange(ids.shape[1], device=ids.device)[:, None]
    x = _embed_at(tower, ids[packed.text, family, positions], positions)
    # torch takes a mask for each head of each row.
    heads = tower.transformer.resblocks[0].attn.num_heads
    unseen = _family_mask(packed, tower.transformer.get_cast_dtype())
    x = tower.transformer(x, attn_mask=unseen.repeat_interleave(heads, dim=0))
    end_tokens = x[family.T, packed.ends]
    return projected(tower.ln_final(end_tokens), tower.text_projection)


class _Packed(NamedTuple):
    """The texts of n families, each family in one row of slots."""

    text: torch.Tensor  # (n, slots), number of the text in its family
    position: torch.Tensor  # (n, slots), in the text
    shared: torch.Tensor  # (n, slots), tokens that the text shares with the first
    ends: torch.Tensor  # (k, n), slot of each text's end token


def _pack(ids: torch.Tensor) -> _Packed:
    """Pack the texts of each family into one row: the first, then the remainders of the others."""
    counts = lengths(ids.flatten(0, 1)).view(ids.shape[:2])
    equal_tokens = (ids == ids[0]).cumprod(dim=-1).sum(dim=-1)
    # Texts do not share their end tokens.
    shared = torch.minimum(equal_tokens, counts - 1)
    shared[0] = 0  # The first text is whole.
    sizes = counts - shared
    starts = sizes.cumsum(dim=0) - sizes
    slots = int(sizes.sum(dim=0).max())
    slot = torch.arange(slots, device=ids.device)
    # A slot belongs to the last text that starts at or before it.
    text = (slot >= starts[..., None]).sum(dim=0) - 1
    shared_at = shared.T.gather(1, text)
    position = slot - starts.T.gather(1, text) + shared_at
    return _Packed(text, position, shared_at, ends=starts + sizes - 1)


def _family_mask(packed: _Packed, dtype: torch.dtype) -> torch.Tensor:
    """Return (n, slots, slots): 0 where a slot attends to another, else minus infinity."""
    text = packed.text
    position = packed.position
    same_text = text[:, :, None] == text[:, None]
    is_earlier = position[:, :, None] >= position[:, None]
    # the beginning that a text shares with the first one, and which only that has
    is_shared = (text[:, None] == 0) & (position[:, None] < packed.shared[:, :, None])
    attends = (same_text & is_earlier) | is_shared
    zeros = torch.zeros(attends.shape, dtype=dtype, device=text.device)
    return zeros.masked_fill_(~attends, float("-inf"))
