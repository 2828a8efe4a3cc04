"""Train the judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's loss.

Writes weights.safetensors, model.json, vocabulary.json, log.csv, loss.png and manifest.json into --folder. A
training that was killed goes on where it was, to the same weights, from what it keeps below --cache.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from pydantic import ValidationError

from workflow_scripts.common import cache, cli, tables
from workflow_scripts.common.cli import log
from workflow_scripts.common.code import code_hash
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.io import atomic, read_table, write_json
from workflow_scripts.common.progress import Progress
from workflow_scripts.common.seeds import derive_seed
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.model import Judge, build, find_device, save_judge, settle
from workflow_scripts.judge.pixels import Item, Preprocess
from workflow_scripts.judge.tokens import count_truncated, get_tokenizer, tokenize
from workflow_scripts.judge.training import (
    Examples,
    choose_trainable,
    frozen_trunk,
    image_encoder,
    in_batch_accuracy,
    train,
)
from workflow_scripts.judge.weights import find_weights
from workflow_scripts.split.judged import judge_images, judged_images

# Enough test images to see a training go wrong; the scores themselves are the score stage's.
WATCHED = 1000
# Images that a thread reads before it reports.
READ_AT_ONCE = 64


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


def examples_of(pixels: np.ndarray, ids: torch.Tensor, owners: Sequence[str], order: Sequence[str]) -> Examples:
    """Images in ``order`` with their captions: row j of ids is a caption of image owners[j]; owners are grouped."""
    counts = pd.Series(owners).groupby(pd.Series(owners), sort=False).size()
    first = counts.cumsum() - counts
    return Examples(pixels, ids, first.loc[list(order)].to_numpy(), counts.loc[list(order)].to_numpy())


def read_pixels(items: Sequence[Item], preprocess: Preprocess, threads: int, file: Path) -> np.ndarray:
    """The bytes of all images, (n, height, width, 3), in a file that the system keeps in memory as far as it fits."""
    shape = (len(items), *preprocess.size, 3)
    if not file.is_file():
        log.info("reading %d images; their pixels take %.0f MB in %s", len(items), np.prod(shape) / 1e6, file.parent)
        with atomic(file) as temporary:
            pixels = np.memmap(temporary, np.uint8, "w+", shape=shape)
            with ThreadPoolExecutor(threads) as pool, Progress(len(items), "images") as progress:
                starts = range(0, len(items), READ_AT_ONCE)
                parts = pool.map(preprocess.read, (items[start : start + READ_AT_ONCE] for start in starts))
                for start, part in zip(starts, parts, strict=True):
                    pixels[start : start + len(part)] = part
                    progress.add(len(part))
            pixels.flush()
    return np.memmap(file, np.uint8, "r", shape=shape)


def trunk_features(trunk: torch.nn.Module, pixels: np.ndarray, preprocess: Preprocess, batch: int) -> np.ndarray:
    """(n, d) float32: the output of a trunk that does not train."""
    device = next(trunk.parameters()).device
    parts = []
    with torch.inference_mode(), Progress(len(pixels), "images") as progress:
        for start in range(0, len(pixels), batch):
            parts.append(trunk(preprocess.floats(pixels[start : start + batch], device)).cpu().numpy())
            progress.add(len(parts[-1]))
    return np.concatenate(parts)


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


def main(options: argparse.Namespace) -> None:
    try:
        config = JudgeConfig.model_validate_json(options.settings)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"--settings: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    settle(options.threads)
    device = find_device(config.device)
    captions = read_table(options.captions, tables.CAPTIONS)
    images = read_table(options.images, tables.IMAGES)
    splits = read_table(options.splits, tables.SPLIT)

    trained = trained_images(splits, images, captions, config.train_on, options.seed)
    if config.epochs and len(trained) < 2:
        raise UserError(f"{options.splits}: {len(trained)} images to train on; the judge needs at least two")
    own = captions[captions["image_id"].isin(trained)].sort_values(["image_id", "caption_id"])
    built = build(config, own["text"].tolist(), derive_seed(options.seed, "train_judge"))
    for name in built.unused:
        log.info("%s: %s is not used", config.tower.weights, name)
    preprocess = Preprocess(built.preprocess_cfg, config.crop)
    tokenizer = get_tokenizer(built.model_cfg, built.vocabulary)
    judge = Judge(built.model, tokenizer, preprocess, device, options.threads)
    trainable = choose_trainable(judge.model, config.trainable)
    trunk = frozen_trunk(judge.model)
    if trunk is not None and config.flip:
        raise UserError("judge.flip: the image tower's trunk is frozen and sees each image once: set it to false")

    def prepared(pixels: np.ndarray) -> np.ndarray:
        return pixels if trunk is None else trunk_features(trunk, pixels, preprocess, 64)

    def floats(part: np.ndarray) -> torch.Tensor:
        return preprocess.floats(part, device) if trunk is None else torch.from_numpy(part).to(device)

    watched = {
        split: (prepared(preprocess.read(items_of(images, ids, options.results))), texts)
        for split, (ids, texts) in watched_images(splits, images, captions, config.train_on, options.seed).items()
    }

    def evaluate() -> dict[str, float]:
        judge.model.eval()
        encode = image_encoder(judge.model)
        result = {}
        for split, (pixels, texts) in watched.items():
            with torch.inference_mode():
                parts = [encode(floats(pixels[start : start + 100])) for start in range(0, len(pixels), 100)]
                rows = F.normalize(torch.cat(parts), dim=-1).float().cpu().numpy()
            accuracy = in_batch_accuracy(rows, judge.encode_texts(texts, 100))
            result[f"retrieval_{split.removeprefix('test_')}"] = round(accuracy, 6)
        return result

    parameters = dict(judge.model.named_parameters())
    weights = sum(parameters[name].numel() for name in trainable)
    ids = tokenize(tokenizer, own["text"].tolist())
    truncated = count_truncated(tokenizer, own["text"].tolist(), ids)
    if config.epochs:
        items = items_of(images, trained, options.results)
        work = options.cache / "judge" / work_key(options, config, items, own["text"].tolist())
        log.info(
            "training %s on %d images with %d captions: %d of %d weights, %d epochs of %d steps, on %s",
            config.model, len(items), len(own), weights, sum(p.numel() for p in parameters.values()),
            config.epochs, len(items) // min(config.batch, len(items)), device,
        )  # fmt: skip
        pixels = prepared(read_pixels(items, preprocess, options.threads, work / "pixels.bin"))
        examples = examples_of(pixels, ids, own["image_id"].tolist(), trained)
        rows = train(judge.model, examples, config, options.seed, floats, evaluate, work / "checkpoint.pt")
        (work / "pixels.bin").unlink()
    else:
        rows = [{"epoch": 0, "step": 0, **evaluate()}]
    if truncated:
        log.warning(
            "%d of %d captions are longer than the model reads: cut before their end token", truncated, len(own)
        )
    name = Path(config.model).stem if config.model.endswith(".json") else config.model
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
            "images": len(trained) if config.epochs else 0,
            "captions": len(own) if config.epochs else 0,
            "truncated_captions": truncated,
            "watched": {split: len(texts) for split, (_, texts) in watched.items()},
            **last,
            "seed": options.seed,
        },
        options.folder / "manifest.json",
    )


if __name__ == "__main__":
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
    cli.run(main, parser)
