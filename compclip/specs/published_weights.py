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
from compclip.core.errors import UserError, one_line, require
from compclip.core.settings.cli import Command
from compclip.specs.config import KEPT_POSITIONS
from compclip.specs.stretch import write_judge

# Tables of positions; OpenAI's own checkpoints have only the first one.
FIRST_TABLE = "positional_embedding"
SECOND_TABLE = "positional_embedding_res"
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
    # float32, because OpenAI's files are float16
    state = {key: tensor.float() for key, tensor in weights.items() if key not in NOT_WEIGHTS}
    second_table = state.pop(SECOND_TABLE, None)
    try:
        if second_table is not None:
            first_rows = state[FIRST_TABLE][:KEPT_POSITIONS]
            state[FIRST_TABLE] = torch.cat([first_rows, second_table[KEPT_POSITIONS:]])
        cfg = _config(state)
        # a strict load, which fails for tensors that the model lacks or has in another shape
        with torch.device("meta"):
            construct(cfg).load_state_dict(state, assign=True)
    except Exception as error:  # of any type, for a missing tensor or one of a different shape
        reason = one_line(error)[:300]
        fault = f"{file}: not a CLIP with a ViT under OpenAI's names: {reason}"
        raise UserError(fault) from error
    return cfg, state


def _config(state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the model config that follows from the tensors' shapes."""
    width = len(state["ln_final.weight"])
    vision_width, _, _, patch = state["visual.conv1.weight"].shape
    # The vision tower has a position for each patch and one for the class token.
    patches = len(state["visual.positional_embedding"]) - 1
    grid = round(patches**0.5)
    return {
        "embed_dim": state["text_projection"].shape[-1],
        "quick_gelu": True,  # OpenAI's activation, which no tensor shows
        "vision_cfg": {
            "image_size": patch * grid,
            "patch_size": patch,
            "width": vision_width,
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
    """Return the number of a tower's layers, from the names of its tensors."""
    pattern = re.compile(rf"{re.escape(tower)}\.resblocks\.(\d+)\.")
    matches = map(pattern.match, state)
    return len({match[1] for match in matches if match})


def check_output(folder: Path) -> None:
    """Raise UserError if writing a judge to ``folder`` would overwrite files."""
    is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    require(is_free, f"--output {folder}", "exists already", "choose a new or an empty folder")


def main(command: Released) -> None:
    check_output(command.output)
    cfg, state = read_released(command.checkpoint)
    model = assemble(cfg, state, str(command.checkpoint))
    preprocess = PREPROCESS | {"size": cfg["vision_cfg"]["image_size"]}
    built = Built(model, cfg, preprocess, None)
    name = command.checkpoint.stem
    write_judge(built, name, None, {"pretrained": name}, command.output)
