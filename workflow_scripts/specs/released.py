"""Released checkpoints of Long-CLIP and SPECS as a judge: their state dicts to open_clip's names.

Reads a file, or a model of huggingface.co by its name (``Xiaohud/SPECS``, ``BeichenZhang/LongCLIP-B``, or
``owner/model/file``), and writes a judge's folder. The names are those of OpenAI's CLIP, which open_clip shares, but
for the positions: two tables of 248, of which the model adds the first 20 of one and the rest of the other.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import hf_hub_download

from workflow_scripts.clip.model import PreprocessCfg, assemble, construct
from workflow_scripts.clip.weights import read_weights
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.specs.stretch import KEEP, check_output, write_judge

# The file that a model's name alone stands for.
HUB = {
    "Xiaohud/SPECS": "spec.pt",
    "BeichenZhang/LongCLIP-B": "longclip-B.pt",
    "BeichenZhang/LongCLIP-L": "longclip-L.pt",
    "BeichenZhang/LongCLIP-L-336px": "longclip-L@336px.pt",
}

FIRST, REST = "positional_embedding", "positional_embedding_res"

# What a config is read from.
SHAPES = (
    FIRST, "token_embedding.weight", "ln_final.weight", "text_projection", "visual.conv1.weight",
    "visual.positional_embedding", "visual.proj",
)  # fmt: skip

# Numbers, not weights, that OpenAI's files hold beside them.
SETTINGS = ("input_resolution", "context_length", "vocab_size")

# Of every attention in OpenAI's transformers.
HEAD = 64


def read_released(name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The open_clip model config and the state dict, float32, of a released checkpoint by path or hub name.

    Raises UserError where there is none, and where a tensor is missing, is left over, or has a shape that does not
    fit the others.
    """
    weights = read_weights(str(find_released(name)))
    state = {key: tensor.float() for key, tensor in weights.items() if key not in SETTINGS}
    rest = state.pop(REST, None)
    missing = [key for key in SHAPES if key not in state]
    if missing:
        raise UserError(f"{name}: not a CLIP of OpenAI's names with a ViT: it has no {_some(missing)}")
    if rest is not None:
        if rest.shape != state[FIRST].shape:
            raise UserError(f"{name}: {FIRST} is {_shape(state[FIRST])}, {REST} {_shape(rest)}: they must be alike")
        state[FIRST] = torch.cat([state[FIRST][:KEEP], rest[KEEP:]])
    cfg = _config(state, name)
    with torch.device("meta"):
        expected = construct(cfg).state_dict()
    if absent := sorted(expected.keys() - state.keys()):
        raise UserError(f"{name}: {len(absent)} tensors are not in it: {_some(absent)}")
    if unused := sorted(state.keys() - expected.keys()):
        raise UserError(f"{name}: {len(unused)} tensors that a CLIP has no place for: {_some(unused)}")
    if wrong := [key for key in expected if state[key].shape != expected[key].shape]:
        found, wanted = _shape(state[wrong[0]]), _shape(expected[wrong[0]])
        more = f" ({len(wrong) - 1} more are like it)" if len(wrong) > 1 else ""
        raise UserError(f"{name}: {wrong[0]} is {found}, not {wanted}{more}: of another width than the rest")
    return cfg, state


def find_released(name: str) -> Path:
    """A path as it is, or the file that huggingface_hub has or fetches; UserError where neither can be had."""
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
        raise UserError(f"{name}: no such file, and no model of huggingface.co (such as {known})")
    if not file:
        raise UserError(f"{name}: which of its files? Name it as {name}/weights.pt; by themselves are known {known}")
    log.info("%s: %s from huggingface.co, unless it is there already", repository, file)
    try:
        return Path(hf_hub_download(repository, file))
    except Exception as error:  # a dozen kinds, of two libraries
        raise UserError(
            f"{name}: {file} could not be fetched ({type(error).__name__}): go online, or get it from"
            f" https://huggingface.co/{repository} on another machine and give its path"
        ) from error


def _config(state: Mapping[str, torch.Tensor], name: str) -> dict[str, Any]:
    width, vision = state["ln_final.weight"].shape[0], state["visual.conv1.weight"].shape[0]
    if width % HEAD or vision % HEAD:
        raise UserError(f"{name}: towers of width {vision} and {width}: OpenAI's have a multiple of {HEAD}")
    patch = state["visual.conv1.weight"].shape[-1]
    grid = round((len(state["visual.positional_embedding"]) - 1) ** 0.5)
    return {
        "embed_dim": state["text_projection"].shape[-1],
        "quick_gelu": True,
        "vision_cfg": {
            "image_size": patch * grid, "patch_size": patch, "width": vision,
            "layers": _layers(state, "visual.transformer"), "head_width": HEAD,
        },
        "text_cfg": {
            "context_length": len(state[FIRST]), "vocab_size": len(state["token_embedding.weight"]),
            "width": width, "heads": width // HEAD, "layers": _layers(state, "transformer"),
        },
    }  # fmt: skip


def _layers(state: Mapping[str, torch.Tensor], tower: str) -> int:
    return len({match[1] for key in state if (match := re.match(rf"{re.escape(tower)}\.resblocks\.(\d+)\.", key))})


def _shape(tensor: torch.Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a number"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def main(options: argparse.Namespace) -> None:
    check_output(options.output, options.checkpoint)
    cfg, state = read_released(options.checkpoint)
    preprocess_cfg = asdict(PreprocessCfg(size=cfg["vision_cfg"]["image_size"]))
    built = assemble(cfg, state, preprocess_cfg, None, options.checkpoint)
    name = options.checkpoint if not Path(options.checkpoint).exists() else Path(options.checkpoint).stem
    write_judge(built, name, None, {"pretrained": name}, options.output)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("checkpoint", help="a file, or a model's name on huggingface.co")
    parser.add_argument("--output", type=Path, required=True, help="folder of the judge")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
