"""Stretch a CLIP's text tower from 77 positions to 248, as Long-CLIP does.

Source: Zhang et al., "Long-CLIP" (ECCV 2024), section 3.2.
"""

from collections.abc import Container, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from compclip.clip.model import JUDGE_MANIFEST, Built, assemble, save_judge
from compclip.clip.tokens import DEFAULT_LENGTH
from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.specs.config import KEPT_POSITIONS, STRETCHED_LENGTH

# in open_clip's CLIP and CustomTextCLIP
POSITION_NAMES = ("positional_embedding", "text.positional_embedding")


def stretch_positions(
    positions: torch.Tensor, length: int = STRETCHED_LENGTH, keep: int = KEPT_POSITIONS
) -> torch.Tensor:
    """Stretch positional embeddings (n, d) to (length, d), of the same dtype.

    The first ``keep`` are not changed. Each of the others becomes k = (length - keep) / (n - keep)
    positions, k an integer, by linear interpolation towards the next one; the last one is
    extrapolated by the preceding difference.
    """
    n = len(positions)
    factor = remainder = 0
    if 0 <= keep < n:
        factor, remainder = divmod(length - keep, n - keep)
    is_possible = n > 1 and factor > 0 and not remainder
    fault = f"with the first {keep} kept they cannot be stretched to {length}"
    example = keep + 4 * (n - keep)  # the factor of Long-CLIP
    remedy = f"each of the others must become equally many, for example in {example}"
    require(is_possible, f"{n} positions", fault, remedy)
    rows = positions.double()  # so that half precision is rounded to only once
    steps = rows.diff(dim=0)
    steps = torch.cat([steps, steps[-1:]])  # of the last position: the preceding difference
    # 0, 1/k, … (k - 1)/k of the way to the next position
    fractions = torch.arange(factor, dtype=rows.dtype, device=rows.device) / factor
    # (n - keep, factor, d)
    stretched = rows[keep:, None] + steps[keep:, None] * fractions[:, None]
    return torch.cat([rows[:keep], stretched.flatten(0, 1)]).to(positions.dtype)


def stretch(source: Built) -> Built:
    """Return a copy of a CLIP that reads captions of STRETCHED_LENGTH tokens, with unchanged first
    positions.
    """
    cfg = deepcopy(source.model_cfg)
    state = source.model.state_dict()
    name = position_name(state)
    positions = state[name]
    context = context_length(cfg)
    fault = f"{len(positions)} positions, but the model's config says {context}"
    require(len(positions) == context, name, fault, "use another CLIP")
    cfg["text_cfg"]["context_length"] = STRETCHED_LENGTH
    state[name] = stretch_positions(positions)
    model = assemble(cfg, state, "stretched")
    return replace(source, model=model, model_cfg=cfg, unused=[])


def context_length(model_cfg: Mapping[str, Any]) -> int:
    return model_cfg["text_cfg"].get("context_length", DEFAULT_LENGTH)


def position_name(names: Container[str]) -> str:
    """Return the name of a model's positional embeddings."""
    for name in POSITION_NAMES:
        if name in names:
            return name
    fault = "no positional_embedding to stretch or freeze"
    raise UserError(f"text tower: {fault}; use an open_clip transformer")


def write_judge(
    built: Built, name: str, crop: float | None, provenance: dict[str, Any], folder: Path
) -> None:
    """Write a judge's folder atomically, with a manifest of its sources."""
    length = context_length(built.model_cfg)
    with atomic_folder(folder.resolve()) as temporary:
        digest = save_judge(built, name, crop, temporary)
        manifest = {"judge_hash": digest, "model": name, "context_length": length, **provenance}
        write_json(manifest, temporary / JUDGE_MANIFEST)
    log.info("%s: %s, captions of up to %d tokens", folder, name, length)
