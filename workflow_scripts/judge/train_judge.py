"""Train the judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's loss.

Writes weights.safetensors, model.json, vocabulary.json, log.csv, loss.png and manifest.json into --folder. A
training that was killed goes on where it was, to the same weights, from what it keeps below --cache.

On several GPUs, of several hosts (judge.gpus, judge.hosts):
python -m workflow_scripts.judge.launch --hosts H --gpus N -- workflow_scripts.judge.train_judge ...
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.model import MANIFEST, Judge, build, model_name, save_judge
from workflow_scripts.clip.pixels import Item, Preprocess
from workflow_scripts.clip.precision import autocast, check_precision
from workflow_scripts.clip.tokens import cut_texts, find_cut, get_tokenizer, say_cut, tokenize
from workflow_scripts.clip.weights import find_weights
from workflow_scripts.core import cache, cli, tables
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic, read_table, write_json
from workflow_scripts.core.section import read_settings
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.feed import Captions, Feed, Images
from workflow_scripts.judge.parallel import Group, check_shared, joined, own_device, synchronise_norms
from workflow_scripts.judge.training import (
    Evaluate,
    Examples,
    choose_trainable,
    in_batch_accuracy,
    train,
    training_mode,
)
from workflow_scripts.split.judged import judge_images, judged_images

# The setting that errors of several processes name.
GPUS = "judge.gpus"
# Enough test images to see a training go wrong; the scores themselves are the score stage's.
WATCHED = 1000


def items_of(images: pd.DataFrame, ids: Sequence[str], results: Path) -> list[Item]:
    """The files and bounding boxes of ``ids``; images: columns of ``tables.IMAGES``, paths relative to results."""
    rows = images.set_index("image_id").loc[list(ids)]
    boxes = rows[["bbox_x", "bbox_y", "bbox_w", "bbox_h"]].to_numpy(float)
    return [
        (results / path, None if np.isnan(box).any() else tuple(box))
        for path, box in zip(rows["path"], boxes, strict=True)
    ]


def trained_images(splits: pd.DataFrame, images: pd.DataFrame, captions: pd.DataFrame, on: str, seed: int) -> list[str]:
    """Those that the judge learns from: of ``judge_images``, the ones with a file and a caption."""
    usable = set(images.loc[images["path"].notna(), "image_id"]) & set(captions["image_id"])
    return [image for image in judge_images(splits, images, on, seed) if image in usable]


def watched_images(
    splits: pd.DataFrame, images: pd.DataFrame, captions: pd.DataFrame, on: str, seed: int
) -> dict[str, tuple[list[str], list[str]]]:
    """By test split, up to ``WATCHED`` judged images, drawn by seed, and for each one of its captions."""
    usable = set(images.loc[images["path"].notna(), "image_id"])
    judged = judged_images(splits, images, on, seed)
    result = {}
    for split, part in judged.groupby("split", sort=True):
        own = captions[captions["image_id"].isin(set(part["image_id"]) & usable)]
        own = own.sample(frac=1, random_state=derive_seed(seed, "watched", str(split)) % 2**32)
        own = own.drop_duplicates("image_id").head(WATCHED)
        if len(own):
            result[str(split)] = (own["image_id"].tolist(), own["text"].tolist())
    return result


def first_and_count(owners: Sequence[str], order: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """For each image in ``order``, the first of its captions and how many; owners: each caption's image, grouped."""
    counts = pd.Series(owners).groupby(pd.Series(owners), sort=False).size()
    first = counts.cumsum() - counts
    return first.loc[list(order)].to_numpy(), counts.loc[list(order)].to_numpy()


def work_key(options: argparse.Namespace, config: JudgeConfig, items: Sequence[Item], texts: Sequence[str]) -> str:
    """32 hex digits over all that a training depends on: code, settings, machine kind, captions, images, weights."""
    digest = hashlib.blake2b(digest_size=16)
    files = config.files()
    if config.tower:
        files.append(str(find_weights(config.tower.weights)))
    for path, box in [*((file, None) for file in files), *items]:
        digest.update(hashlib.blake2b(Path(path).read_bytes()).digest() + repr(box).encode())
    return cache.key(
        code_hash("workflow_scripts.judge.train_judge"), config.model_dump_json(), options.seed, options.threads,
        torch.__version__, find_device(config.device).type, digest.digest(), *texts,
    ).hex()  # fmt: skip


def write_log(rows: list[dict[str, Any]], folder: Path) -> None:
    """log.csv, a row for each epoch, and loss.png, its curves."""
    from matplotlib.figure import Figure

    table = pd.DataFrame(rows)
    with atomic(folder / "log.csv") as temporary:
        table.to_csv(temporary, index=False, float_format="%.6f", lineterminator="\n")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    left = figure.subplots()
    if "loss" in table:
        left.plot(table["epoch"], table["loss"], color="black", marker=".", label="loss")
        left.set_ylabel("loss")
    left.set_xlabel("epoch")
    right = left.twinx()
    for name in [column for column in table if column.startswith("retrieval")]:
        right.plot(table["epoch"], table[name], marker=".", linestyle="--", label=name.replace("_", " "))
    right.set_ylim(0, 1)
    right.set_ylabel("own caption first among 100")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    with atomic(folder / "loss.png") as temporary:
        figure.savefig(temporary, format="png", dpi=120, metadata={"Software": None})


def evaluator(judge: Judge, watched: dict[str, tuple[Images, Captions, int]], precision: str) -> Evaluate:
    """What tells how often watched images find their captions; watched: by split, n images and a caption of each."""

    def unit(encode: Images | Captions, n: int) -> np.ndarray:
        with torch.inference_mode(), autocast(precision, judge.device):
            parts = [encode(np.arange(start, min(start + 100, n))) for start in range(0, n, 100)]
            return F.normalize(torch.cat(parts), dim=-1).float().cpu().numpy()

    def evaluate() -> dict[str, float]:
        judge.model.eval()
        return {
            f"retrieval_{split.removeprefix('test_')}": round(in_batch_accuracy(unit(images, n), unit(captions, n)), 6)
            for split, (images, captions, n) in watched.items()
        }

    return evaluate


def main(options: argparse.Namespace) -> None:
    config = read_settings(JudgeConfig, options.settings)
    settle(options.threads)
    device = own_device(find_device(config.device), config.gpus, config.device, GPUS)
    check_precision(config.precision, device, "judge.precision")
    with joined(config.gpus, device, GPUS, "workflow_scripts.judge.train_judge", config.hosts) as group:
        train_judge(options, config, device, group)


def train_judge(options: argparse.Namespace, config: JudgeConfig, device: torch.device, group: Group) -> None:
    """The step, in one of ``group``'s processes."""
    captions = read_table(options.captions, tables.CAPTIONS)
    images = read_table(options.images, tables.IMAGES)
    splits = read_table(options.splits, tables.SPLIT)

    trained = trained_images(splits, images, captions, config.train_on, options.seed)
    if config.epochs and len(trained) < max(2, config.processes):
        raise UserError(f"{options.splits}: {len(trained)} images to train on; the judge needs at least two")
    own = captions[captions["image_id"].isin(trained)].sort_values(["image_id", "caption_id"])
    built = build(config, own["text"].tolist(), derive_seed(options.seed, "train_judge"))
    for name in built.unused:
        log.info("%s: %s is not used", config.tower.weights, name)
    preprocess = Preprocess(built.preprocess_cfg, config.crop)
    tokenizer = get_tokenizer(built.model_cfg, built.vocabulary)
    judge = Judge(built.model, tokenizer, preprocess, device, options.threads)
    parameters = dict(judge.model.named_parameters())
    weights = sum(parameters[name].numel() for name in choose_trainable(judge.model, config.trainable))
    training_mode(judge.model)
    synchronise_norms(judge.model, group, device, GPUS)

    items = items_of(images, trained, options.results) if config.epochs else []
    looked_at = {
        split: (items_of(images, ids, options.results), texts)
        for split, (ids, texts) in watched_images(splits, images, captions, config.train_on, options.seed).items()
    }
    texts = own["text"].tolist()
    everything = [*items, *(item for some, _ in looked_at.values() for item in some)]
    work = options.cache / "judge" / work_key(options, config, everything, texts)
    check_shared(work, group, config.hosts, "judge.hosts")
    feed = Feed(judge, config, work, group)
    watched = {
        split: (feed.images(some, split), feed.captions(tokenize(tokenizer, said), f"{split}_captions"), len(some))
        for split, (some, said) in looked_at.items()
    }
    evaluate = evaluator(judge, watched, config.precision)
    ids = tokenize(tokenizer, texts)
    truncated = int(find_cut(tokenizer, texts, ids).sum()) if config.epochs else 0
    if config.epochs:
        log.info(
            "training %s on %d images with %d captions: %d of %d weights, %d epochs of %d steps, on %s",
            config.model, len(items), len(own), weights, sum(p.numel() for p in parameters.values()),
            config.epochs, len(items) // min(config.batch, len(items)), device,
        )  # fmt: skip
        places = first_and_count(own["image_id"].tolist(), trained)
        examples = Examples(feed.images(items, "images"), feed.captions(ids, "captions"), *places)
        rows = train(judge.model, examples, config, options.seed, evaluate, work / "checkpoint.pt", group)
    else:
        rows = [{"epoch": 0, "step": 0, **evaluate()}]
    feed.clear()
    if not group.first:
        return
    say_cut(truncated, len(own))
    shown = [text for _, said in looked_at.values() for text in said]
    cut = cut_texts(tokenizer, shown)
    say_cut(sum(text in cut for text in shown), len(shown), "captions of watched images")
    name = model_name(config.model)
    judge_hash = save_judge(built, name, config.crop, options.folder)
    write_log(rows, options.folder)
    last = {key: value for key, value in rows[-1].items() if key.startswith("retrieval")}
    write_json(
        {
            "judge_hash": judge_hash,
            "model": name,
            "pretrained": config.pretrained and Path(config.pretrained).name,
            "tower": config.tower and Path(config.tower.weights).name,
            "tower_unused": built.unused,
            "trainable": config.trainable,
            "trained_weights": weights if config.epochs else 0,
            "train_on": config.train_on,
            "epochs": config.epochs,
            "images": len(items),
            "captions": len(own) if config.epochs else 0,
            "truncated_captions": truncated,
            "watched": {split: n for split, (_, _, n) in watched.items()},
            **last,
            "seed": options.seed,
        },
        options.folder / MANIFEST,
    )


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--captions", type=Path, required=True, help="captions.parquet")
    parser.add_argument("--images", type=Path, required=True, help="images.parquet")
    parser.add_argument("--splits", type=Path, required=True, help="splits.parquet")
    parser.add_argument("--results", type=Path, required=True, help="the folder that image paths start from")
    parser.add_argument("--settings", default="{}", help="the config's judge section as JSON")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="other counts give other bytes")
    parser.add_argument("--cache", type=Path, default=Path(".cache"), help="for checkpoints and decoded images")
    parser.add_argument("--folder", type=Path, required=True, help="where the judge goes")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
