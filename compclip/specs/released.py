"""Convert released checkpoints of Long-CLIP and SPECS to a judge.

Their tensors have the names of OpenAI's CLIP, which are open_clip's too, except for the positions:
two tables of 248; the model uses the first 20 rows of one and the rest of the other.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.clip.model import Built, assemble, construct
from compclip.clip.pixels import PREPROCESS
from compclip.clip.weights import NOT_WEIGHTS, read_weights
from compclip.core.cli import Command
from compclip.core.errors import UserError, one_line, require
from compclip.specs.config import KEPT_POSITIONS
from compclip.specs.stretch import write_judge

FIRST_TABLE, SECOND_TABLE = "positional_embedding", "positional_embedding_res"
HEAD_WIDTH = 64  # width of each attention head in OpenAI's transformers


class Released(Command):
    """Convert a released checkpoint of Long-CLIP or SPECS to a judge's folder."""

    checkpoint: CliPositionalArg[Path] = Field(
        description="the file, such as spec.pt or longclip-B.pt"
    )
    output: Path = Field(description="folder of the judge")
    makes_folder: ClassVar[bool] = True


def read_released(file: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the open_clip model config and the state dict, float32, of a checkpoint."""
    weights = read_weights(str(file))
    state = {key: tensor.float() for key, tensor in weights.items() if key not in NOT_WEIGHTS}
    rest = state.pop(SECOND_TABLE, None)
    try:
        if rest is not None:
            state[FIRST_TABLE] = torch.cat(
                [state[FIRST_TABLE][:KEPT_POSITIONS], rest[KEPT_POSITIONS:]]
            )
        cfg = _config(state)
        with torch.device("meta"):
            construct(cfg).load_state_dict(state, assign=True)
    except Exception as error:  # of any type, for a missing tensor or one of a different shape
        raise UserError(
            f"{file}: not a CLIP with a ViT under OpenAI's names: {one_line(error)[:300]}"
        ) from error
    return cfg, state


def _config(state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the model config that follows from the tensors' shapes."""
    width, (vision, _, _, patch) = (
        state["ln_final.weight"].shape[0],
        state["visual.conv1.weight"].shape,
    )
    grid = round((len(state["visual.positional_embedding"]) - 1) ** 0.5)
    return {
        "embed_dim": state["text_projection"].shape[-1],
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": patch * grid,
            "patch_size": patch,
            "width": vision,
            "layers": _layers(state, "visual.transformer"),
            "head_width": HEAD_WIDTH,
        },
        "text_cfg": {
            "context_length": len(state[FIRST_TABLE]),
            "vocab_size": len(state["token_embedding.weight"]),
            "width": width,
            "heads": width // HEAD_WIDTH,
            "layers": _layers(state, "transformer"),
        },
    }


def _layers(state: Mapping[str, torch.Tensor], tower: str) -> int:
    return len(
        {
            match[1]
            for key in state
            if (match := re.match(rf"{re.escape(tower)}\.resblocks\.(\d+)\.", key))
        }
    )


def check_output(folder: Path) -> None:
    """Raise UserError if writing a judge to ``folder`` would overwrite files."""
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    require(is_free, f"--output {folder}", "exists already", "choose a new or an empty folder")


def main(command: Released) -> None:
    check_output(command.output)
    cfg, state = read_released(command.checkpoint)
    model = assemble(cfg, state, str(command.checkpoint))
    built = Built(model, cfg, PREPROCESS | {"size": cfg["vision_cfg"]["image_size"]}, None)
    name = command.checkpoint.stem
    write_judge(built, name, None, {"pretrained": name}, command.output)
