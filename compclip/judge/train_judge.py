"""Train the judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's loss."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from compclip.clip.device import autocast, check_precision, find_device, settle
from compclip.clip.embed import Item, check_embeddings, items_of
from compclip.clip.model import MANIFEST, Built, Judge, build, save_judge
from compclip.clip.pixels import Preprocess
from compclip.clip.sources import find_source, model_name
from compclip.clip.tokens import cut_texts, find_cut, say_cut, tokenize
from compclip.clip.weights import find_weights
from compclip.core import cache, cli, tables
from compclip.core.code import code_hash
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.seeds import derive_seed
from compclip.io import atomic, read_table, write_json
from compclip.judge.config import Training
from compclip.judge.feed import Captions, Feed, Images
from compclip.judge.parallel import Group, joined, own_device, synchronise_norms
from compclip.judge.steps import TrainJudge
from compclip.judge.training import (
    Evaluate,
    Examples,
    choose_trainable,
    in_batch_accuracy,
    train,
    training_mode,
)
from compclip.split.judged import judge_images, judged_images

GPUS = "judge.gpus"  # the setting that errors of several processes name
WATCHED = 1000  # test images that show whether a training goes wrong; stage score computes the scores
# What decides a training's weights and log, apart from its inputs and settings.
TRAINING = ("compclip.judge.train_judge:learn", "compclip.clip.model:build")


@dataclass(frozen=True)
class Material:
    """What a judge learns from."""

    items: list[Item]  # images with their boxes
    texts: list[str]  # their captions, grouped by image
    first: np.ndarray  # of each image the first caption
    count: np.ndarray  # and how many
    watched: dict[str, tuple[list[Item], list[str]]]  # by split, test images and a caption of each
    wrong: list[str] = field(default_factory=list)  # hard negatives
    negatives: np.ndarray | None = None  # of each caption its places in texts and, after them, wrong; -1 for none


def trained_images(splits: pd.DataFrame, images: pd.DataFrame, captions: pd.DataFrame, on: str, seed: int) -> list[str]:
    """Return the images that the judge learns from: of ``judge_images`` those with a file and a caption."""
    usable = set(images.loc[images["path"].notna(), "image_id"]) & set(captions["image_id"])
    return [image for image in judge_images(splits, images, on, seed) if image in usable]


def watched_images(
    splits: pd.DataFrame, images: pd.DataFrame, captions: pd.DataFrame, on: str, seed: int
) -> dict[str, tuple[list[str], list[str]]]:
    """Return, by test split, up to ``WATCHED`` judged images, drawn by seed, and a caption of each."""
    usable = set(images.loc[images["path"].notna(), "image_id"])
    judged = judged_images(splits, images, on, seed)
    result = {}
    for split, of_split in judged.groupby("split", sort=True):
        drawn = captions[captions["image_id"].isin(set(of_split["image_id"]) & usable)]
        drawn = drawn.sample(frac=1, random_state=derive_seed(seed, "watched", str(split)) % 2**32)
        drawn = drawn.drop_duplicates("image_id").head(WATCHED)
        if len(drawn):
            result[str(split)] = (drawn["image_id"].tolist(), drawn["text"].tolist())
    return result


def first_and_count(owners: Sequence[str], order: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each image in ``order``, its first caption and how many; owners: each caption's image, grouped."""
    counts = pd.Series(owners).groupby(pd.Series(owners), sort=False).size()
    first = counts.cumsum() - counts
    return first.loc[list(order)].to_numpy(), counts.loc[list(order)].to_numpy()


def read_material(step: TrainJudge) -> Material:
    captions = read_table(step.captions, tables.CAPTIONS)
    images = read_table(step.images, tables.IMAGES)
    splits = read_table(step.splits, tables.SPLIT)
    chosen = (splits, images, captions, step.settings.train_on, step.halves)
    trained = trained_images(*chosen)
    if step.settings.epochs and len(trained) < max(2, step.settings.gpus):
        raise UserError(f"{step.splits}: {len(trained)} images to train on; the judge needs at least two")
    path_of = images.set_index("image_id")["path"]
    own = captions[captions["image_id"].isin(trained)].sort_values(["image_id", "caption_id"])
    watched = {
        split: (items_of(list(path_of.loc[ids]), images, step.results), texts)
        for split, (ids, texts) in watched_images(*chosen).items()
    }
    if not step.settings.epochs:
        return Material([], own["text"].tolist(), *first_and_count(own["image_id"].tolist(), trained), watched)
    items = items_of(list(path_of.loc[trained]), images, step.results)
    texts, owners = own["text"].tolist(), own["image_id"].tolist()
    if step.pretraining:
        more = pd.read_parquet(step.pretraining).sort_values("path", kind="stable")
        names = more["path"].drop_duplicates().tolist()
        items += [(step.results / name, None) for name in names]
        texts, owners, trained = texts + more["text"].tolist(), owners + more["path"].tolist(), trained + names
    material = Material(items, texts, *first_and_count(owners, trained), watched)
    return with_negatives(material, own, read_table(step.negatives, tables.NEGATIVES)) if step.negatives else material


def with_negatives(material: Material, captions: pd.DataFrame, negatives: pd.DataFrame) -> Material:
    """Return the material with hard negatives of ``captions``, which are the first of its texts."""
    key = ["image_id", "caption_id"]
    row = captions[key].assign(row=np.arange(len(captions)))
    wrong = negatives.merge(row, on=key).sort_values("row", kind="stable")
    place = wrong.groupby("row").cumcount().to_numpy()
    rows = np.full((len(material.texts), int(place.max(initial=-1)) + 1), -1)
    rows[wrong["row"], place] = len(material.texts) + np.arange(len(wrong))
    return replace(material, wrong=wrong["text"].tolist(), negatives=rows if rows.size else None)


def training_key(step: TrainJudge, material: Material, device: torch.device, processes: int) -> str:
    """Return 32 hex digits over all that a training depends on: code, settings, kind of machine, data, weights."""
    digest = hashlib.blake2b(digest_size=16)
    config = step.settings
    files = [*config.files(), *find_source(config).files]
    files += [find_weights(config.tower.weights)] if config.tower else []
    watched = [item for items, _ in material.watched.values() for item in items]
    for path, box in [*((Path(file), None) for file in dict.fromkeys(map(str, files))), *material.items, *watched]:
        digest.update(hashlib.blake2b(path.read_bytes()).digest() + repr(box).encode())
    return cache.key(
        code_hash(*TRAINING), config.model_dump_json(exclude={"device", "gpus"}), step.seed, step.threads,
        torch.__version__, device.type, processes, digest.digest(), material.count.tobytes(), *material.texts,
        *material.wrong, b"" if material.negatives is None else material.negatives.tobytes(),
        *(text for _, texts in material.watched.values() for text in texts),
    ).hex()  # fmt: skip


def evaluator(judge: Judge, watched: dict[str, tuple[Images, Captions, int]], precision: str) -> Evaluate:
    """Return the function that measures how often images retrieve their captions; ``watched``: n of each, by split."""

    def unit(encode: Images | Captions, n: int, what: str) -> np.ndarray:
        with torch.inference_mode(), autocast(precision, judge.device):
            features = [encode(np.arange(start, min(start + 100, n))) for start in range(0, n, 100)]
            vectors = F.normalize(torch.cat(features), dim=-1).float().cpu().numpy()
        # In half precision lengths are not exact.
        check_embeddings(vectors, "in training", lambda row: f"{what} {row + 1} of {n}", unit=False)
        return vectors

    def evaluate() -> dict[str, float]:
        judge.model.eval()
        return {
            f"retrieval_{split.removeprefix('test_')}": round(
                in_batch_accuracy(unit(images, n, f"{split}: image"), unit(captions, n, f"{split}: caption")), 6
            )
            for split, (images, captions, n) in watched.items()
        }

    return evaluate


def learn(
    built: Built, material: Material, config: Training, seed: int, threads: int, device: torch.device,
    work: Path, group: Group,
) -> list[dict[str, Any]]:  # fmt: skip
    """Train a model in place, or only evaluate it if there are no epochs; return the rows of its log.

    Folder ``work`` gets the checkpoint, which stays, and files that are removed at the end.
    """
    tokenizer = built.tokenizer()
    judge = Judge(built.model, tokenizer, Preprocess(built.preprocess_cfg, config.crop), device, threads)
    if config.epochs:
        choose_trainable(judge.model, config.trainable)
    training_mode(judge.model)
    synchronise_norms(judge.model, group, device, GPUS)
    feed = Feed(judge, config, work, group)

    def watch() -> Evaluate:
        watched = {}
        for split, (items, texts) in material.watched.items():
            captions = feed.captions(tokenize(tokenizer, texts), f"{split}_captions")
            watched[split] = (feed.images(items, split), captions, len(items))
        return evaluator(judge, watched, config.precision)

    def prepare() -> tuple[Examples, Evaluate]:
        evaluate = watch()
        captions = feed.captions(tokenize(tokenizer, [*material.texts, *material.wrong]), "captions")
        n, parameters = len(material.items), list(judge.model.parameters())
        log.info(
            "training %s on %d images with %d captions: %d of %d weights, %d epochs of %d steps, on %s",
            config.model, n, len(material.texts), sum(p.numel() for p in parameters if p.requires_grad),
            sum(p.numel() for p in parameters), config.epochs, n // min(config.batch, n), device,
        )  # fmt: skip
        images = feed.images(material.items, "images")
        return Examples(images, captions, material.first, material.count, material.negatives), evaluate

    if config.epochs:
        rows = train(judge.model, prepare, config, seed, work / "checkpoint.pt", group)
    else:
        rows = [{"epoch": 0, "step": 0, **watch()()}]
    feed.clear()
    return rows


def write_log(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write log.csv, a row for each epoch, and loss.png, its curves."""
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


def write_judge(step: TrainJudge, built: Built, material: Material, rows: list[dict[str, Any]]) -> None:
    """Write the judge's folder: the model, the log of its training, and the manifest."""
    config, texts = step.settings, material.texts if step.settings.epochs else []
    tokenizer = built.tokenizer()
    truncated = int(find_cut(tokenizer, texts, tokenize(tokenizer, texts)).sum())
    say_cut(truncated, len(texts))
    shown = [text for _, of_split in material.watched.values() for text in of_split]
    cut = cut_texts(tokenizer, shown)
    say_cut(sum(text in cut for text in shown), len(shown), "captions of watched images")
    name = model_name(config.model)
    judge_hash = save_judge(built, name, config.crop, step.judge)
    write_log(rows, step.judge)
    write_json(
        {
            "judge_hash": judge_hash,
            "model": name,
            "pretrained": config.pretrained and Path(config.pretrained).name,
            "tower": config.tower and Path(config.tower.weights).name,
            "tower_unused": built.unused,
            "trainable": config.trainable,
            "trained_weights": sum(p.numel() for p in built.model.parameters() if p.requires_grad) if texts else 0,
            "train_on": config.train_on,
            "epochs": config.epochs,
            "images": len(material.items),
            "captions": len(texts),
            "hard_negatives": len(material.wrong),
            "truncated_captions": truncated,
            "watched": {split: len(items) for split, (items, _) in material.watched.items()},
            **{key: value for key, value in rows[-1].items() if key.startswith("retrieval")},
            "seed": step.seed,
        },
        step.judge / MANIFEST,
    )


def train_judge(step: TrainJudge, device: torch.device, group: Group) -> None:
    find_source(step.settings)  # before anything that takes time
    material = read_material(step)
    built = build(step.settings, material.texts, derive_seed(step.seed, "train_judge"))
    for name in built.unused:
        log.info("%s: %s is not used", step.settings.tower and step.settings.tower.weights, name)
    work = step.cache / "judge" / training_key(step, material, device, group.count)
    rows = learn(built, material, step.settings, step.seed, step.threads, device, work, group)
    if group.first:
        write_judge(step, built, material, rows)


def main(step: TrainJudge) -> None:
    config = step.settings
    settle(step.threads)
    device = own_device(find_device(config.device), config.gpus, config.device, GPUS)
    check_precision(config.precision, device, "judge.precision")
    with joined(config.gpus, device, GPUS) as group:
        train_judge(step, device, group)


if __name__ == "__main__":
    cli.run(main)
