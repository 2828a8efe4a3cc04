"""Convert released checkpoints of Long-CLIP and SPECS to a judge.

Their tensors have the names of OpenAI's CLIP, which are open_clip's too, except for the positions: two tables of 248,
of which the model uses the first 20 of one and the rest of the other.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from pydantic_settings import CliPositionalArg

from workflow_scripts.clip.model import assemble, construct
from workflow_scripts.clip.pixels import PREPROCESS
from workflow_scripts.clip.weights import SETTINGS, read_weights
from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.hub import hub_file
from workflow_scripts.core.step import Output, Step
from workflow_scripts.specs.config import KEEP
from workflow_scripts.specs.stretch import check_output, write_judge

HUB = {  # the default file of a model on huggingface.co
    "Xiaohud/SPECS": "spec.pt",
    "BeichenZhang/LongCLIP-B": "longclip-B.pt",
    "BeichenZhang/LongCLIP-L": "longclip-L.pt",
    "BeichenZhang/LongCLIP-L-336px": "longclip-L@336px.pt",
}

FIRST, REST = "positional_embedding", "positional_embedding_res"
SHAPES = (  # the tensors whose shapes give the config
    FIRST, "token_embedding.weight", "ln_final.weight", "text_projection", "visual.conv1.weight",
    "visual.positional_embedding", "visual.proj",
)  # fmt: skip
HEAD_WIDTH = 64  # of every attention in OpenAI's transformers


class Released(Step):
    """Convert a released checkpoint of Long-CLIP or SPECS to a judge's folder."""

    checkpoint: CliPositionalArg[str] = Field(
        description="a file, or a model on huggingface.co: Xiaohud/SPECS, BeichenZhang/LongCLIP-B, owner/model/file"
    )
    output: Output = Field(description="folder of the judge")


def read_released(name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the open_clip model config and the state dict, float32, of a checkpoint by path or name on the Hub."""
    weights = read_weights(str(find_released(name)))
    state = {key: tensor.float() for key, tensor in weights.items() if key not in SETTINGS}
    rest = state.pop(REST, None)
    missing = [key for key in SHAPES if key not in state]
    if missing:
        raise UserError(f"{name}: not a CLIP with a ViT under OpenAI's names; tensors missing: {_first(missing)}")
    if rest is not None:
        if rest.shape != state[FIRST].shape:
            raise UserError(
                f"{name}: {FIRST} is {_shape(state[FIRST])}, but {REST} is {_shape(rest)}; expected equal shapes"
            )
        state[FIRST] = torch.cat([state[FIRST][:KEEP], rest[KEEP:]])
    cfg = _config(state, name)
    with torch.device("meta"):
        expected = construct(cfg).state_dict()
    if absent := sorted(expected.keys() - state.keys()):
        raise UserError(f"{name}: {len(absent)} tensors missing: {_first(absent)}")
    if unused := sorted(state.keys() - expected.keys()):
        raise UserError(f"{name}: {len(unused)} unknown tensors: {_first(unused)}")
    if wrong := [key for key in expected if state[key].shape != expected[key].shape]:
        shape, fitting = _shape(state[wrong[0]]), _shape(expected[wrong[0]])
        more = f" ({len(wrong) - 1} more do not fit)" if len(wrong) > 1 else ""
        raise UserError(f"{name}: {wrong[0]} is {shape}, but {fitting} fits the other tensors{more}")
    return cfg, state


def find_released(name: str) -> Path:
    """Return the file of a path, or of a model on huggingface.co, downloaded unless it is cached."""
    path = Path(name)
    if path.is_file():
        return path
    owner, _, model = name.partition("/")
    model, _, file = model.partition("/")
    repository = f"{owner}/{model}"
    file = file or HUB.get(repository, "")
    known = ", ".join(HUB)
    is_path = not file and path.suffix in (".pt", ".pth", ".bin", ".safetensors")
    if is_path or not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", repository):
        raise UserError(f"{name}: neither a file nor a model on huggingface.co; use a path or, for example, {known}")
    if not file:
        raise UserError(f"{name}: no file given; append one, as {name}/weights.pt (models with a default: {known})")
    remedy = f"download it from https://huggingface.co/{repository} on another machine and give its path"
    return hub_file(repository, [file], remedy=remedy)


def _config(state: Mapping[str, torch.Tensor], name: str) -> dict[str, Any]:
    width, vision = state["ln_final.weight"].shape[0], state["visual.conv1.weight"].shape[0]
    if width % HEAD_WIDTH or vision % HEAD_WIDTH:
        raise UserError(f"{name}: towers of width {vision} and {width}; expected multiples of {HEAD_WIDTH}")
    patch = state["visual.conv1.weight"].shape[-1]
    grid = round((len(state["visual.positional_embedding"]) - 1) ** 0.5)
    return {
        "embed_dim": state["text_projection"].shape[-1],
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": patch * grid, "patch_size": patch, "width": vision,
            "layers": _layers(state, "visual.transformer"), "head_width": HEAD_WIDTH,
        },
        "text_cfg": {
            "context_length": len(state[FIRST]), "vocab_size": len(state["token_embedding.weight"]),
            "width": width, "heads": width // HEAD_WIDTH, "layers": _layers(state, "transformer"),
        },
    }  # fmt: skip


def _layers(state: Mapping[str, torch.Tensor], tower: str) -> int:
    return len({match[1] for key in state if (match := re.match(rf"{re.escape(tower)}\.resblocks\.(\d+)\.", key))})


def _shape(tensor: torch.Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a number"


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def main(step: Released) -> None:
    check_output(step.output, step.checkpoint)
    cfg, state = read_released(step.checkpoint)
    preprocess_cfg = PREPROCESS | {"size": cfg["vision_cfg"]["image_size"]}
    built = assemble(cfg, state, preprocess_cfg, None, step.checkpoint)
    path = Path(step.checkpoint)
    name = path.stem if path.exists() else step.checkpoint
    write_judge(built, name, None, {"pretrained": name}, step.output)


if __name__ == "__main__":
    cli.run(main)
