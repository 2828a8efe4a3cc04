"""Train a judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's
loss.

A killed training resumes from the cache to the same weights; a finished one is repeated only if the
code or settings that determine its weights change.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from compclip.clip.device import autocast, check_precision, find_device, settled
from compclip.clip.embed import BoxedFile, check_embeddings, items_of
from compclip.clip.model import Built, Judge, build
from compclip.clip.pixels import Preprocess
from compclip.clip.sources import find_source, model_name
from compclip.clip.tokens import find_cut, say_cut, tokenize
from compclip.clip.weights import find_weights
from compclip.core.cache import key
from compclip.core.code import code_hash
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.seeds import derive_seed
from compclip.judge.config import Training
from compclip.judge.feed import Features, Feed
from compclip.judge.parallel import ALONE, Group, synchronise_norms
from compclip.judge.training import (
    Evaluate,
    Examples,
    choose_trainable,
    in_batch_accuracy,
    train,
    training_mode,
)
from compclip.split.judged import judge_images, judged_images

GPUS_SETTING = "judge.gpus"  # the setting that errors about several processes name
WATCHED_IMAGES = 500  # test images for validation; stage score computes the scores


@dataclass(frozen=True)
class Material:
    """The training and validation data of a judge."""

    items: list[BoxedFile]  # training images with their boxes
    texts: list[str]  # their captions, grouped by image
    first: np.ndarray  # first caption of each image
    count: np.ndarray  # number of captions of each image
    watched: dict[
        str, tuple[list[BoxedFile], list[str]]
    ]  # test images and a caption of each, by split


def training_code() -> str:
    """Return the identity of the code that determines a training's weights and log."""
    return code_hash(__name__, within=("compclip.clip", "compclip.judge", "compclip.core.seeds"))


def watched_images(
    captions: pd.DataFrame, judged: pd.DataFrame, seed: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each test split with a caption each of up to ``WATCHED_IMAGES`` judged images, drawn by
    seed.
    """
    for split, of_split in judged.groupby("split", sort=True):
        drawn = captions[captions["image_id"].isin(of_split["image_id"])]
        drawn = drawn.sample(frac=1, random_state=derive_seed(seed, "watched", str(split)) % 2**32)
        if len(drawn):
            yield str(split), drawn.drop_duplicates("image_id").head(WATCHED_IMAGES)


def first_and_count(owners: Sequence[str], order: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first caption and the number of captions of each image in ``order``; owners: each
    caption's image.
    """
    counts = pd.Series(owners).groupby(pd.Series(owners), sort=False).size()
    first = counts.cumsum() - counts
    return first.loc[list(order)].to_numpy(), counts.loc[list(order)].to_numpy()


def find_material(
    captions: pd.DataFrame,
    images: pd.DataFrame,
    splits: Sequence[pd.DataFrame],
    settings: Training,
    folder: Path,
    *,
    pretraining: pd.DataFrame | None = None,
    halves: int = 0,
) -> Material:
    """Return the data of the judge by ``settings.train_on``.

    Args:
        captions: all captions (``tables.CAPTIONS``).
        images: all images (``tables.IMAGES``).
        splits: the split of each image (``tables.SPLIT``), for each of the judge's compositions.
        folder: folder that the paths of images are relative to.
        pretraining: path and text of further images, whose captions are consecutive.
        halves: seed of the half of the test images that train judges, if they train on half.
    """
    path_of = images.dropna(subset="path").set_index("image_id")["path"]
    captions = captions[captions["image_id"].isin(path_of.index)]
    usable, rule = set(captions["image_id"]), (images, settings.train_on, halves)
    trained = [image for image in judge_images(splits, *rule) if image in usable]
    if settings.epochs and len(trained) < max(2, settings.gpus):
        raise UserError(
            f"judge.train_on: {len(trained)} images to train on; the judge needs at least two"
        )
    own = captions[captions["image_id"].isin(trained)].sort_values(["image_id", "caption_id"])
    texts, owners = own["text"].tolist(), own["image_id"].tolist()
    judged = pd.concat([judged_images(of, *rule) for of in splits]).drop_duplicates()
    watched = {
        split: (
            items_of(list(path_of.loc[drawn["image_id"]]), images, folder),
            drawn["text"].tolist(),
        )
        for split, drawn in watched_images(captions, judged, halves)
    }
    if not settings.epochs:
        return Material([], texts, *first_and_count(owners, trained), watched)
    items = items_of(list(path_of.loc[trained]), images, folder)
    if pretraining is not None:
        more = pretraining.sort_values("path", kind="stable")
        names = more["path"].drop_duplicates().tolist()
        items += [(folder / name, None) for name in names]
        texts, owners, trained = (
            texts + more["text"].tolist(),
            owners + more["path"].tolist(),
            trained + names,
        )
    return Material(items, texts, *first_and_count(owners, trained), watched)


def training_key(
    material: Material,
    config: Training,
    seed: int,
    threads: int,
    device: torch.device,
    processes: int,
) -> str:
    """Return 32 hex digits of everything that a training depends on: code, settings, processor,
    data, weights.
    """
    digest = hashlib.blake2b(digest_size=16)
    files = find_source(config).files
    files += [find_weights(config.tower.weights)] if config.tower else []
    watched = [item for items, _ in material.watched.values() for item in items]
    for path, box in [
        *((Path(file), None) for file in dict.fromkeys(map(str, files))),
        *material.items,
        *watched,
    ]:
        digest.update(hashlib.blake2b(path.read_bytes()).digest() + repr(box).encode())
    return key(
        training_code(),
        config.model_dump_json(exclude={"device", "gpus"}),
        seed,
        threads,
        torch.__version__,
        device.type,
        processes,
        digest.digest(),
        material.count.tobytes(),
        *material.texts,
        *(text for _, texts in material.watched.values() for text in texts),
    ).hex()


def evaluator(judge: Judge, feed: Feed, material: Material, precision: str) -> Evaluate:
    """Return a function that measures how often watched images retrieve their captions."""
    watched = {}
    for split, (items, texts) in material.watched.items():
        captions = feed.captions(tokenize(judge.tokenizer, texts), f"{split}_captions")
        watched[split] = (feed.images(items, split), captions, len(items))

    def unit(encode: Features, n: int, what: str) -> np.ndarray:
        with torch.inference_mode(), autocast(precision, judge.device):
            features = [encode(np.arange(start, min(start + 100, n))) for start in range(0, n, 100)]
            vectors = F.normalize(torch.cat(features), dim=-1).float().cpu().numpy()
        # In half precision, lengths are not exact.
        check_embeddings(vectors, "in training", lambda row: f"{what} {row + 1} of {n}", unit=False)
        return vectors

    def evaluate() -> dict[str, float]:
        judge.model.eval()
        return {
            f"retrieval_{split.removeprefix('test_')}": round(
                in_batch_accuracy(
                    unit(images, n, f"{split}: image"), unit(captions, n, f"{split}: caption")
                ),
                6,
            )
            for split, (images, captions, n) in watched.items()
        }

    return evaluate


def describe_training(
    built: Built, material: Material, config: Training, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a summary: the model, its training data, and how often images finally retrieve their
    captions.
    """
    tokenizer, texts = built.tokenizer(), material.texts if config.epochs else []
    truncated = int(find_cut(tokenizer, texts, tokenize(tokenizer, texts)).sum())
    say_cut(truncated, len(texts))
    return {
        "model": model_name(config.model),
        "pretrained": config.pretrained and Path(config.pretrained).name,
        "tower": config.tower and Path(config.tower.weights).name,
        "trainable": config.trainable,
        "train_on": config.train_on,
        "epochs": config.epochs,
        "augment": config.augment,
        "images": len(material.items),
        "captions": len(texts),
        "truncated_captions": truncated,
        **{name: value for name, value in rows[-1].items() if name.startswith("retrieval")},
    }


def train_judge(
    material: Material,
    settings: Training,
    *,
    seed: int = 0,
    threads: int = 2,
    cache: Path = Path(".cache"),
    device: torch.device | None = None,
    group: Group = ALONE,
) -> tuple[Built, list[dict[str, Any]]]:
    """Train a judge, or use a pretrained one unchanged if there are no epochs.

    Args:
        material: from ``find_material``.
        threads: of torch; changes floating-point rounding.
        cache: folder of checkpoints and of activations of frozen parts.
        device: None: the settings' device.
        group: the processes that train together (``judge.parallel.joined``).

    Returns:
        The trained model; the log of its training, a row for each epoch.
    """
    with settled(threads):
        device = device or find_device(settings.device)
        check_precision(settings.precision, device, "judge.precision")
        find_source(settings)  # before anything that takes time
        built = build(settings, material.texts, derive_seed(seed, "train_judge"))
        for name in built.unused:
            log.info("%s: %s is not used", settings.tower and settings.tower.weights, name)
        judge = Judge(
            built.model,
            built.tokenizer(),
            Preprocess(built.preprocess_cfg, settings.crop),
            device,
            threads,
        )
        if settings.epochs:
            choose_trainable(judge.model, settings.trainable)
        training_mode(judge.model)
        synchronise_norms(judge.model, group, device, GPUS_SETTING)
        # The checkpoint stays there; other files are removed at the end.
        work = (
            cache / "judge" / training_key(material, settings, seed, threads, device, group.count)
        )
        feed = Feed(judge, settings, work, group, seed)

        def prepare() -> tuple[Examples, Evaluate]:
            evaluate = evaluator(judge, feed, material, settings.precision)
            captions = feed.captions(tokenize(judge.tokenizer, material.texts), "captions")
            n, parameters = len(material.items), list(judge.model.parameters())
            log.info(
                "training %s on %d images with %d captions: %d of %d weights, %d epochs of %d "
                "steps, on %s",
                settings.model,
                n,
                len(material.texts),
                sum(p.numel() for p in parameters if p.requires_grad),
                sum(p.numel() for p in parameters),
                settings.epochs,
                n // min(settings.batch, n),
                device,
            )
            images = feed.images(material.items, "images", augment=settings.augment == "mild")
            return Examples(images, captions, material.first, material.count), evaluate

        if settings.epochs:
            rows = train(judge.model, prepare, settings, seed, work / "checkpoint.pt", group)
        else:
            rows = [
                {"epoch": 0, "step": 0, **evaluator(judge, feed, material, settings.precision)()}
            ]
        feed.clear()
    return built, rows
