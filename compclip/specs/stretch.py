"""Stretch a CLIP's text tower from 77 positions to 248, as Long-CLIP does.

Source: Zhang et al., "Long-CLIP" (ECCV 2024), section 3.2.
"""

from collections.abc import Container, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from compclip.clip.config import FOLDER, ModelConfig, has_weights
from compclip.clip.model import (
    MANIFEST,
    MODEL,
    TOKENIZER,
    VOCABULARY,
    WEIGHTS,
    Built,
    assemble,
    build,
    judge_hash,
    read_judge,
    save_judge,
)
from compclip.clip.sources import model_name
from compclip.core import cli
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.io import atomic_folder, write_json
from compclip.specs.config import KEEP, LENGTH
from compclip.specs.steps import Stretch

# In open_clip's CLIP, and in its CustomTextCLIP and CoCa.
POSITIONS = ("positional_embedding", "text.positional_embedding")
CONTEXT_LENGTH = 77  # of an open_clip model whose config has none
# A folder with only these files may be replaced by another judge.
JUDGE_FILES = {WEIGHTS, MODEL, VOCABULARY, TOKENIZER, MANIFEST, "log.csv", "loss.png"}


def stretch_positions(positions: torch.Tensor, length: int = LENGTH, keep: int = KEEP) -> torch.Tensor:
    """Stretch positional embeddings (n, d) to (length, d), of the same dtype.

    The first ``keep`` stay. Each of the others becomes k = (length - keep) / (n - keep) positions, k a whole number, by
    linear interpolation towards the next one; the last one is extrapolated by the difference before it.
    """
    n = len(positions)
    factor, remainder = divmod(length - keep, n - keep) if 0 <= keep < n else (0, 0)
    remedy = f"each of the others must become equally many, for example --length {keep + 4 * (n - keep)}"
    is_possible = n > 1 and factor > 0 and not remainder
    require(is_possible, f"{n} positions", f"with the first {keep} kept they cannot be stretched to {length}", remedy)
    rows = positions.double()
    steps = rows.diff(dim=0)
    steps = torch.cat([steps, steps[-1:]])[keep:]
    fractions = torch.arange(factor, dtype=rows.dtype, device=rows.device) / factor
    stretched = rows[keep:, None] + steps[:, None] * fractions[:, None]
    return torch.cat([rows[:keep], stretched.flatten(0, 1)]).to(positions.dtype)


def stretch(
    model_cfg: dict[str, Any], state: Mapping[str, torch.Tensor], length: int = LENGTH, keep: int = KEEP
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return copies of an open_clip model's config and state dict, stretched to captions of ``length`` tokens."""
    name = position_name(state)
    cfg, positions, context = deepcopy(model_cfg), state[name], context_length(model_cfg)
    # CoCa has one more position, for its class token.
    is_fitting = len(positions) == context + bool(cfg["text_cfg"].get("embed_cls"))
    require(is_fitting, name, f"{len(positions)} positions, but the model's config says {context}")
    cfg["text_cfg"]["context_length"] = length
    stretched = torch.cat([stretch_positions(positions[:context], length, keep), positions[context:]])
    return cfg, {**state, name: stretched}


def context_length(model_cfg: Mapping[str, Any]) -> int:
    return model_cfg["text_cfg"].get("context_length", CONTEXT_LENGTH)


def position_name(names: Container[str]) -> str:
    """Return the name of a model's positional embeddings."""
    name = next((name for name in POSITIONS if name in names), "")
    require(name, "text tower", "no positional_embedding to stretch or freeze", "use an open_clip transformer")
    return name


def check_output(folder: Path, *sources: str | Path | None) -> None:
    """Check that writing a judge to ``folder`` overwrites nothing but another judge."""
    where, target = f"--output {folder}", folder.resolve()
    require(target.is_dir() or not target.exists(), where, "is a file", "choose a folder")
    files = {path.name for path in target.iterdir()} - {".snakemake_timestamp"} if target.exists() else set()
    is_judge = {MODEL, MANIFEST} <= files <= JUDGE_FILES
    require(is_judge or not files, where, "has other files than a judge's", "choose a new or an empty folder")
    for source in (Path(source) for source in sources if source):
        inside = source.exists() and source.resolve().is_relative_to(target)
        require(not inside, where, f"would overwrite {source}", "choose another folder")


def write_judge(built: Built, name: str, crop: float | None, about: dict[str, Any], folder: Path) -> None:
    """Write a judge's folder atomically, with a manifest that says what it was made from."""
    check_output(folder)
    with atomic_folder(folder.resolve()) as temporary:
        digest = save_judge(built, name, crop, temporary)
        length = built.model_cfg["text_cfg"]["context_length"]
        write_json({"judge_hash": digest, "model": name, "context_length": length, **about}, temporary / MANIFEST)
    log.info("%s: %s, captions of up to %d tokens", folder, name, length)


def read_source(step: Stretch) -> tuple[Built, str, float | None, dict[str, Any]]:
    """Return the CLIP to stretch, of a judge's folder or by a model's name: its name, crop, and manifest's entry."""
    folder, has_options = Path(step.judge), step.pretrained is not None or step.preprocess is not None
    if folder.is_dir():
        require(not has_options, folder, "is a judge with its own weights", "omit --pretrained and --preprocess")
        built, name, crop = read_judge(folder)
        is_new = context_length(built.model_cfg) != step.length
        require(is_new, folder, f"already reads {step.length} tokens", "choose another --length")
        return built, name, crop, {"stretched_from": judge_hash(folder)}
    fault, remedy = f"{step.judge} would have random weights", "give a tag of open_clip or a weights file"
    require(step.pretrained is not None or has_weights(step.judge), "--pretrained", fault, remedy)
    try:
        # The seed does not matter, since all weights are loaded.
        built = build(ModelConfig(model=step.judge, pretrained=step.pretrained, preprocess=step.preprocess), [], 0)
    except UserError as error:
        raise UserError(str(error).replace("judge.model:", "--judge:").replace("judge.pre", "--pre")) from error
    return built, model_name(step.judge), None, {"pretrained": step.pretrained and Path(step.pretrained).name}


def main(step: Stretch) -> None:
    check_output(step.output, step.judge.removeprefix(FOLDER), step.pretrained)
    source, name, crop, about = read_source(step)
    model_cfg, state = stretch(source.model_cfg, source.model.state_dict(), step.length, step.keep)
    built = assemble(model_cfg, state, source.preprocess_cfg, source.vocabulary, step.judge, source.tokenizer_files)
    before = context_length(source.model_cfg)
    name = f"{name.removesuffix(f'-{before}')}-{step.length}"  # a stretched judge's name has its length
    write_judge(built, name, crop, {**about, "positions_before": before, "positions_kept": step.keep}, step.output)


if __name__ == "__main__":
    cli.run(main)
