"""Convert released checkpoints of Long-CLIP and SPECS to a judge.

Their tensors have the names of OpenAI's CLIP, which are open_clip's too, except for the positions: two tables of 248;
the model uses the first 20 rows of one and the rest of the other.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.clip.model import MANIFEST, MODEL, TOKENIZER, VOCABULARY, WEIGHTS, assemble, construct
from compclip.clip.pixels import PREPROCESS
from compclip.clip.weights import SETTINGS, read_weights
from compclip.core.cli import Command
from compclip.core.errors import UserError, one_line, require
from compclip.core.hub import hub_file
from compclip.specs.config import KEPT_POSITIONS
from compclip.specs.stretch import write_judge

HUB_FILES = {  # default files of models on huggingface.co
    "Xiaohud/SPECS": "spec.pt",
    "BeichenZhang/LongCLIP-B": "longclip-B.pt",
    "BeichenZhang/LongCLIP-L": "longclip-L.pt",
    "BeichenZhang/LongCLIP-L-336px": "longclip-L@336px.pt",
}

FIRST_TABLE, SECOND_TABLE = "positional_embedding", "positional_embedding_res"
HEAD_WIDTH = 64  # of every attention in OpenAI's transformers
# A folder with only these files may be replaced by another judge.
JUDGE_FILES = {WEIGHTS, MODEL, VOCABULARY, TOKENIZER, MANIFEST, "log.csv", ".snakemake_timestamp"}


class Released(Command):
    """Convert a released checkpoint of Long-CLIP or SPECS to a judge's folder."""

    checkpoint: CliPositionalArg[str] = Field(
        description="a file, or a model on huggingface.co: Xiaohud/SPECS, BeichenZhang/LongCLIP-B, owner/model/file"
    )
    output: Path = Field(description="folder of the judge")


def read_released(name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the open_clip model config and the state dict, float32, of a checkpoint by path or name on the Hub."""
    weights = read_weights(str(find_released(name)))
    state = {key: tensor.float() for key, tensor in weights.items() if key not in SETTINGS}
    rest = state.pop(SECOND_TABLE, None)
    try:
        if rest is not None:
            state[FIRST_TABLE] = torch.cat([state[FIRST_TABLE][:KEPT_POSITIONS], rest[KEPT_POSITIONS:]])
        cfg = _config(state)
        with torch.device("meta"):
            construct(cfg).load_state_dict(state, assign=True)
    except Exception as error:  # any, by the tensor that is missing or has another shape
        raise UserError(f"{name}: not a CLIP with a ViT under OpenAI's names: {one_line(error)[:300]}") from error
    return cfg, state


def find_released(name: str) -> Path:
    """Return the file of a path, or of a model on huggingface.co, downloaded unless it is cached."""
    if Path(name).is_file():
        return Path(name)
    match = re.fullmatch(r"([\w-][\w.-]*/[\w-][\w.-]*)(?:/(.+))?", name)
    repository, file = match.groups() if match else ("", None)
    file = file or HUB_FILES.get(repository)
    fault, known = "neither a file nor a known model on huggingface.co", ", ".join(HUB_FILES)
    require(file, name, fault, f"use a path, OWNER/MODEL/FILE or, for example, {known}")
    remedy = f"download it from https://huggingface.co/{repository} on another machine and give its path"
    return hub_file(repository, [str(file)], remedy=remedy)


def _config(state: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the model config that the shapes of the tensors give."""
    width, (vision, _, _, patch) = state["ln_final.weight"].shape[0], state["visual.conv1.weight"].shape
    grid = round((len(state["visual.positional_embedding"]) - 1) ** 0.5)
    return {
        "embed_dim": state["text_projection"].shape[-1],
        "quick_gelu": True,
        "vision_cfg": {"image_size": patch * grid, "patch_size": patch, "width": vision,
                       "layers": _layers(state, "visual.transformer"), "head_width": HEAD_WIDTH},
        "text_cfg": {"context_length": len(state[FIRST_TABLE]), "vocab_size": len(state["token_embedding.weight"]),
                     "width": width, "heads": width // HEAD_WIDTH, "layers": _layers(state, "transformer")},
    }  # fmt: skip


def _layers(state: Mapping[str, torch.Tensor], tower: str) -> int:
    return len({match[1] for key in state if (match := re.match(rf"{re.escape(tower)}\.resblocks\.(\d+)\.", key))})


def check_output(folder: Path) -> None:
    """Check that writing a judge to ``folder`` overwrites only another judge."""
    where, target = f"--output {folder}", folder.resolve()
    require(target.is_dir() or not target.exists(), where, "is a file", "choose a folder")
    files = {path.name for path in target.iterdir()} if target.exists() else set()
    is_judge = {MODEL, MANIFEST} <= files <= JUDGE_FILES
    require(is_judge or not files, where, "has other files than a judge's", "choose a new or an empty folder")


def main(command: Released) -> None:
    check_output(command.output)
    cfg, state = read_released(command.checkpoint)
    built = assemble(cfg, state, PREPROCESS | {"size": cfg["vision_cfg"]["image_size"]}, None, command.checkpoint)
    path = Path(command.checkpoint)
    name = path.stem if path.exists() else command.checkpoint
    write_judge(built, name, None, {"pretrained": name}, command.output)
