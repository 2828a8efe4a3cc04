"""Train a stretched judge by the loss of SPECS, or, to compare, by its contrastive term alone.

Reads a judge's folder (workflow_scripts.specs.stretch makes one) and images with long captions; writes a judge's
folder, which stage score reads as any other, with log.csv, a row for each step, and loss.png. A training that was
killed goes on where it was, to the same weights, from what it keeps below --cache, where the ends of the captions'
chunks are kept too. Images are read and decoded anew in every epoch.

On several GPUs, of several hosts:
python -m workflow_scripts.judge.launch --hosts H --gpus N -- workflow_scripts.specs.train_specs ...
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from workflow_scripts.clip.device import find_device, is_gpu, settle
from workflow_scripts.clip.model import Judge, judge_hash, read_judge
from workflow_scripts.clip.pixels import Preprocess
from workflow_scripts.clip.precision import check_precision
from workflow_scripts.clip.tokens import get_tokenizer, say_cut
from workflow_scripts.core import cache, cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.io import atomic
from workflow_scripts.core.section import read_settings
from workflow_scripts.judge.parallel import Group, check_shared, joined, own_device, synchronise_norms
from workflow_scripts.judge.training import training_mode
from workflow_scripts.specs.data import Examples, open_examples
from workflow_scripts.specs.stretch import check_output, write_judge
from workflow_scripts.specs.training import TERMS, Training, train

# What errors of several processes name: the options of ``judge.launch``.
PROCESSES, HOSTS = "--gpus", "--hosts"


def read_captions(options: argparse.Namespace, group: Group) -> Examples:
    """The source's examples; the first process makes their index, and the others find it."""

    def read() -> Examples:
        return open_examples(options.examples, options.images, options.model, options.cache, options.processes)

    examples = read() if group.first else None
    group.wait()
    return examples or read()


def write_log(rows: list[dict[str, Any]], folder: Path) -> None:
    """log.csv, a row for each step, and loss.png, its curves."""
    from matplotlib.figure import Figure

    table = pd.DataFrame(rows)
    with atomic(folder / "log.csv") as temporary:
        table.to_csv(temporary, index=False, float_format="%.8g", lineterminator="\n")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, color in zip(TERMS, ("black", "tab:blue", "tab:green", "tab:red"), strict=True):
        axes.plot(table["step"], table[name], color=color, linewidth=1, label=name)
    axes.plot(table["step"], table["margin"], color="gray", linewidth=1, linestyle="--", label="margin")
    axes.set_xlabel("step")
    axes.set_ylabel("loss, its terms, margin (logits)")
    figure.legend(loc="outside upper center", ncols=5, frameon=False)
    with atomic(folder / "loss.png") as temporary:
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})


def main(options: argparse.Namespace) -> None:
    settings = read_settings(Training, options.settings)
    check_output(options.output, options.judge)
    settle(options.threads)
    gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # as torchrun says
    hosts = int(os.environ.get("WORLD_SIZE", 1)) // gpus
    device = own_device(find_device(options.device, "--device"), gpus, options.device, PROCESSES)
    if settings.precision == "auto":
        settings = settings.model_copy(update={"precision": "amp_fp16" if is_gpu(device) else "fp32"})
    check_precision(settings.precision, device, "--settings: precision")
    with joined(gpus, device, PROCESSES, "workflow_scripts.specs.train_specs", hosts) as group:
        check_shared(options.cache / "specs", group, hosts, HOSTS)
        train_specs(options, settings, device, group)


def train_specs(options: argparse.Namespace, settings: Training, device: torch.device, group: Group) -> None:
    """The step, in one of ``group``'s processes."""
    built, name, crop = read_judge(options.judge)
    judge = Judge(
        built.model, get_tokenizer(built.model_cfg, built.vocabulary), Preprocess(built.preprocess_cfg, crop),
        device, options.threads,
    )  # fmt: skip
    training_mode(judge.model)
    synchronise_norms(judge.model, group, device, PROCESSES)
    examples = read_captions(options, group)
    started_from = judge_hash(options.judge)
    work = cache.key(
        code_hash("workflow_scripts.specs.train_specs"), settings.model_dump_json(), options.loss, options.seed,
        options.threads, torch.__version__, device.type, group.count, started_from, examples.identity,
    ).hex()  # fmt: skip
    log.info(
        "training %s by %s on %d captions, %d epochs of batches of %d, on %s",
        name, options.loss, len(examples), settings.epochs, settings.batch * group.count, device,
    )  # fmt: skip
    each = settings.batch * settings.accumulation * group.count
    steps = len(examples) // each * settings.epochs
    if 0 < steps < settings.warmup:
        log.warning(
            "warning: the training has %d steps, in all of which its rate climbs, to %.0f %% of lr: lower warmup (%g)",
            steps, 100 * steps / settings.warmup, settings.warmup,
        )  # fmt: skip
    rows = train(
        judge, lambda epoch, start: examples.stream(options.seed, epoch, start), len(examples), settings,
        options.loss, options.seed, options.cache / "specs" / work / "checkpoint.pt", group,
    )  # fmt: skip
    if not group.first:
        return
    cut, bare = (sum(row[key] for row in rows) for key in ("cut", "without_negative"))
    read = len(rows) * settings.accumulation * settings.batch * group.count
    say_cut(cut, read)
    if bare:
        log.warning("%d of %d captions read had no negative in their batch", bare, read)
    about = {
        "started_from": started_from,
        "loss": options.loss,
        "settings": settings.model_dump(mode="json"),
        "processes": group.count,
        "examples": len(examples),
        "left_out": examples.summary["left_out"]["count"],
        "steps": len(rows),
        "captions_read": read,
        "cut": cut,
        "without_negative": bare,
        "seed": options.seed,
    }
    write_judge(built, f"{name}-{options.loss}", crop, about, options.output)
    write_log(rows, options.output)


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--judge", type=Path, required=True, help="folder of the stretched judge")
    parser.add_argument("--examples", type=Path, required=True, help="JSON, Parquet or tar file, or a folder of them")
    parser.add_argument("--images", type=Path, help="folder that the images' paths are relative to")
    parser.add_argument("--loss", choices=("specs", "contrastive"), default="specs")
    parser.add_argument("--settings", default="{}", help="of the training, as JSON; by default as published")
    parser.add_argument("--model", default="en_core_web_sm", help="spaCy pipeline that cuts captions into chunks")
    parser.add_argument("--processes", type=cli.positive, default=2, help="that parse at once; the result is the same")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=cli.positive, default=2, help="other counts give other bytes")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="for checkpoints and the ends of chunks")
    parser.add_argument("--output", type=Path, required=True, help="folder of the trained judge")
    cli.run(main, parser)
