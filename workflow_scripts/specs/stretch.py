"""Stretch a CLIP's text tower from 77 positions to 248, as Long-CLIP does.

Reads a judge's folder, or builds an open_clip model, and writes a judge's folder whose captions may have 248 tokens:
training by SPECS starts from it, and stage ``score`` reads it as any other. Source: Zhang et al., "Long-CLIP"
(ECCV 2024), section 3.2.
"""

from __future__ import annotations

import argparse
import weakref
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from workflow_scripts.clip.model import (
    MANIFEST,
    MODEL,
    VOCABULARY,
    WEIGHTS,
    Built,
    assemble,
    build,
    judge_hash,
    model_name,
    save_judge,
)
from workflow_scripts.clip.weights import read_weights
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, read_json, write_json
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.specs.config import KEEP, LENGTH

# Of open_clip's CLIP, and of its CustomTextCLIP and CoCa.
POSITIONS = ("positional_embedding", "text.positional_embedding")

# All that a judge's folder holds; another judge may take its place.
JUDGES_FILES = {WEIGHTS, MODEL, VOCABULARY, MANIFEST, "log.csv", "loss.png"}


def stretch_positions(positions: torch.Tensor, length: int = LENGTH, keep: int = KEEP) -> torch.Tensor:
    """(n, d) positional embeddings to (length, d), of the same dtype.

    The first ``keep`` stay, for they are well trained. Each of the others becomes k = (length - keep) / (n - keep)
    positions, on the way to the next one in steps of 1/k (¾ and ¼, ½ and ½, ¼ and ¾); the last one's, which has no
    next, go on by the step before it.

    Raises UserError where k is no whole number.
    """
    n = len(positions)
    factor, rest = divmod(length - keep, n - keep) if 0 <= keep < n else (0, 0)
    if n < 2 or factor < 1 or rest:
        raise UserError(
            f"{n} positions, the first {keep} kept, cannot be stretched to {length}: each of the others becomes one"
            f" whole number of positions" + (f", as with --length {keep + 4 * (n - keep)}" if 0 <= keep < n else "")
        )
    rows = positions.double()
    steps = rows.diff(dim=0)
    steps = torch.cat([steps, steps[-1:]])[keep:]
    way = torch.arange(factor, dtype=rows.dtype, device=rows.device) / factor
    stretched = rows[keep:, None] + steps[:, None] * way[:, None]
    return torch.cat([rows[:keep], stretched.flatten(0, 1)]).to(positions.dtype)


def stretch(
    model_cfg: dict[str, Any], state: Mapping[str, torch.Tensor], length: int = LENGTH, keep: int = KEEP
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """An open_clip model's config and state dict, stretched to captions of ``length`` tokens; neither is changed.

    Raises UserError for a text tower without positional embeddings of open_clip's names, or of another length than
    its config says.
    """
    name = next((name for name in POSITIONS if name in state), None)
    if name is None:
        tower = model_cfg["text_cfg"].get("tower") or model_cfg["text_cfg"].get("hf_model_name") or "this"
        raise UserError(f"text tower {tower}: no positional_embedding to stretch; take an open_clip transformer")
    cfg = deepcopy(model_cfg)
    context = cfg["text_cfg"].get("context_length", 77)
    positions = state[name]
    # Behind the words' positions CoCa has one of its class token.
    if len(positions) != context + bool(cfg["text_cfg"].get("embed_cls")):
        raise UserError(f"{name}: {len(positions)} positions, where the model's config says {context}")
    cfg["text_cfg"]["context_length"] = length
    stretched = torch.cat([stretch_positions(positions[:context], length, keep), positions[context:]])
    return cfg, {**state, name: stretched}


def hold_positions(model: nn.Module, keep: int = KEEP) -> None:
    """Keep the first ``keep`` positional embeddings of an open_clip model as they are, whatever trains it.

    They get no gradient, and an optimizer's step leaves them their very bytes, where it decays the others too. A
    mask, and no parameter of its own, so that state dicts and checkpoints stay as they are. It holds this model's
    parameter, not a copy's. Raises UserError for a text tower without positional embeddings of open_clip's names, or
    with fewer than ``keep``.
    """
    parameters = dict(model.named_parameters())
    parameter = next((parameters[name] for name in POSITIONS if name in parameters), None)
    if parameter is None:
        raise UserError("this text tower has no positional_embedding to hold; take an open_clip transformer")

    if keep > len(parameter):
        raise UserError(f"keep {keep}: the model has {len(parameter)} positions: lower it")

    def mask(gradient: torch.Tensor) -> torch.Tensor:
        masked = gradient.clone()
        masked[:keep] = 0  # not a product: nan times 0 is nan
        return masked

    # Without a strong reference: the hooks below outlive the model otherwise.
    held = weakref.ref(parameter)
    before: list[torch.Tensor] = []

    def trained_by(optimizer: torch.optim.Optimizer) -> nn.Parameter | None:
        own = held()
        return own if any(own is other for part in optimizer.param_groups for other in part["params"]) else None

    def remember(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if (own := trained_by(optimizer)) is not None:
            before.append(own.detach()[:keep].clone())

    def restore(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if (own := trained_by(optimizer)) is not None:
            own.detach()[:keep] = before.pop()

    if parameter.requires_grad:
        parameter.register_hook(mask)
    # Of any optimizer, for weight decay moves what has no gradient too.
    for hook in (register_optimizer_step_pre_hook(remember), register_optimizer_step_post_hook(restore)):
        weakref.finalize(parameter, hook.remove)


def check_output(folder: Path, *sources: str | Path | None) -> None:
    """Raises UserError where writing a judge to ``folder`` would cost anything but another judge.

    It may be new, empty or a judge's; not a file, a folder with other files, or one with a source that is there.
    """
    whole = folder.resolve()
    for source in filter(None, sources):
        if Path(source).exists() and Path(source).resolve().is_relative_to(whole):
            raise UserError(f"--output {folder}: {source} would be lost: name another folder")
    if whole.exists() and not whole.is_dir():
        raise UserError(f"--output {folder}: is a file: name a folder")
    if Path.cwd().is_relative_to(whole):
        raise UserError(f"--output {folder}: the folder that this runs in would be lost: name another one")
    there = {path.name for path in whole.iterdir()} - {".snakemake_timestamp"} if whole.exists() else set()
    foreign = sorted(there - JUDGES_FILES) or sorted(there if not {MODEL, MANIFEST} <= there else ())
    if foreign:
        raise UserError(
            f"--output {folder}: holds {foreign[0]}, which would be lost: name a new folder, or an empty one"
        )


def write_judge(built: Built, name: str, crop: float | None, about: dict[str, Any], folder: Path) -> None:
    """A judge's folder, whole or not at all, with a manifest of what it was made from.

    Raises UserError as ``check_output``, which a long work asks before it begins.
    """
    check_output(folder)
    with atomic_folder(folder.resolve()) as temporary:
        digest = save_judge(built, name, crop, temporary)
        length = built.model_cfg["text_cfg"]["context_length"]
        write_json({"judge_hash": digest, "model": name, "context_length": length, **about}, temporary / MANIFEST)
    log.info("%s: %s, captions of up to %d tokens", folder, name, length)


def main(options: argparse.Namespace) -> None:
    source = Path(options.judge)
    check_output(options.output, options.judge, options.pretrained)
    if (source / MODEL).is_file():
        if options.pretrained is not None:
            raise UserError(f"--pretrained {options.pretrained}: {source} is a judge with weights of its own")
        settings = read_json(source / MODEL)
        name, crop, model_cfg = settings["name"], settings["crop"], settings["model_cfg"]
        preprocess_cfg, vocabulary = settings["preprocess_cfg"], read_json(source / VOCABULARY)
        if model_cfg["text_cfg"].get("context_length", 77) == options.length:
            raise UserError(f"{source}: reads {options.length} tokens already: nothing is left to stretch")
        state = read_weights(str(source / WEIGHTS))
        about = {"stretched_from": judge_hash(source)}
    else:
        if source.is_dir():
            raise UserError(f"{source}: not a judge's folder: it has no {MODEL}")
        if options.pretrained is None:
            log.warning("%s: without --pretrained its weights are random", options.judge)
        built = _build(options)
        name, crop, model_cfg = model_name(options.judge), None, built.model_cfg
        preprocess_cfg, vocabulary, state = built.preprocess_cfg, built.vocabulary, built.model.state_dict()
        about = {"pretrained": options.pretrained and Path(options.pretrained).name}
    cfg, stretched = stretch(model_cfg, state, options.length, options.keep)
    before = model_cfg["text_cfg"].get("context_length", 77)
    positions = {"positions_before": before, "positions_kept": options.keep}
    built = assemble(cfg, stretched, preprocess_cfg, vocabulary, options.judge)
    # Of one that was stretched before, or copied, the length stands once.
    name = f"{name.removesuffix(f'-{before}')}-{options.length}"
    write_judge(built, name, crop, {**about, **positions}, options.output)


def _build(options: argparse.Namespace) -> Built:
    """The open_clip model; an error names the command's options, where it names the config's keys."""
    try:
        return build(JudgeConfig(model=options.judge, pretrained=options.pretrained), [], options.seed)
    except UserError as error:
        said = str(error).replace("judge.model:", "--judge:").replace("judge.pretrained:", "--pretrained:")
        raise UserError(said) from error


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument(
        "--judge", required=True, help="a judge's folder, an open_clip model, or a model config (.json)"
    )
    parser.add_argument("--pretrained", help="open_clip's tag or a weights file, for a model that is no judge's folder")
    parser.add_argument("--length", type=int, default=LENGTH, help="positions afterwards")
    parser.add_argument("--keep", type=int, default=KEEP, help="first positions that stay as they are")
    parser.add_argument("--seed", type=int, default=0, help="of random weights, where nothing pretrained is named")
    parser.add_argument("--output", type=Path, required=True, help="folder of the stretched judge")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
