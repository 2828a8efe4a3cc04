"""Train a judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's
loss.

A killed training resumes from the cache to the same weights; a finished one is repeated only if the
code or settings that determine its weights change.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from compclip.clip.config import HUB
from compclip.clip.device import autocast, check_precision, settled
from compclip.clip.embed import BoxedFile, check_embeddings, items_of
from compclip.clip.model import Built, Judge, build
from compclip.clip.pixels import Preprocess
from compclip.clip.sources import find_model, find_source, model_name
from compclip.clip.tokens import find_truncated_texts, report_truncated, tokenize
from compclip.clip.weights import find_weights
from compclip.core.errors import UserError
from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.log import log
from compclip.core.seeds import derive_seed
from compclip.judge.config import Training
from compclip.judge.parallel import Group, synchronise_norms
from compclip.judge.training import (
    Evaluate,
    Examples,
    choose_trainable,
    in_batch_accuracy,
    train,
    training_mode,
)
from compclip.judge.training_inputs import Features, TrainingInputs
from compclip.split.evaluation import evaluation_images, judge_training_images

GPUS_SETTING = "judge.gpus"  # the setting that errors about several processes name
VALIDATION_IMAGES = 500  # of each test split; stage score computes the scores
ENCODED_AT_ONCE = 100  # images or captions in validation


@dataclass(frozen=True)
class ValidationSet:
    """Test images, and a caption of each."""

    items: list[BoxedFile]
    texts: list[str]


@dataclass(frozen=True)
class TrainingData:
    """The training and validation data of a judge."""

    items: list[BoxedFile]  # training images with their boxes
    texts: list[str]  # their captions, grouped by image
    first: np.ndarray  # first caption of each image
    count: np.ndarray  # number of captions of each image
    validation: dict[str, ValidationSet]  # by split


class Trained(NamedTuple):
    """A trained model."""

    built: Built
    rows: list[dict[str, Any]]  # the log of its training, a row for each epoch
    ids: torch.Tensor  # (n, length), of the training captions; none without epochs


def training_code() -> str:
    """Return the identity of the code that determines a training's weights and log."""
    return code_hash(__name__, within=("compclip.clip", "compclip.judge", "compclip.core.seeds"))


def validation_captions(
    captions: pd.DataFrame, judged: pd.DataFrame, seed: int
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each test split with a caption each of up to ``VALIDATION_IMAGES`` judged images, drawn
    by seed.
    """
    for split, judged_of_split in judged.groupby("split", sort=True):
        # The name of the random stream decides the log of every training: keep it.
        random_state = derive_seed(seed, "watched", str(split)) % 2**32  # pandas takes 32 bits
        is_judged = captions["image_id"].isin(judged_of_split["image_id"])
        candidates = captions[is_judged]
        shuffled = candidates.sample(frac=1, random_state=random_state)
        if len(shuffled):
            yield str(split), shuffled.drop_duplicates("image_id").head(VALIDATION_IMAGES)


def first_and_count(owners: Sequence[str], order: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first caption and the number of captions of each image in ``order``; owners: each
    caption's image.
    """
    images_of_captions = pd.Series(owners)
    counts = images_of_captions.groupby(images_of_captions, sort=False).size()
    first = counts.cumsum() - counts
    images = list(order)
    return first.loc[images].to_numpy(), counts.loc[images].to_numpy()


def find_training_data(
    captions: pd.DataFrame,
    images: pd.DataFrame,
    splits: Sequence[pd.DataFrame],
    settings: Training,
    folder: Path,
    *,
    pretraining: pd.DataFrame | None = None,
    judge_half: int = 0,
) -> TrainingData:
    """Return the data of the judge by ``settings.train_on``.

    Args:
        captions: all captions (``tables.CAPTIONS``).
        images: all images (``tables.IMAGES``).
        splits: the split of each image (``tables.SPLIT``), for each of the judge's compositions.
        folder: folder that the paths of images are relative to.
        pretraining: path and text of further images, whose captions are consecutive.
        judge_half: seed of the half of the test images that train judges, if they train on half.
    """
    path_by_image = images.dropna(subset="path").set_index("image_id")["path"]
    captions = captions[captions["image_id"].isin(path_by_image.index)]

    allowed = judge_training_images(splits, images, settings.train_on, judge_half)
    with_caption = set(captions["image_id"])
    trained = [image_id for image_id in allowed if image_id in with_caption]
    # The contrastive loss of a single image is always 0, and each process needs one.
    if settings.epochs and len(trained) < max(2, settings.gpus):
        raise UserError(
            f"judge.train_on: {len(trained)} images to train on; the judge needs at least two"
        )
    is_trained = captions["image_id"].isin(trained)
    training_captions = captions[is_trained]
    training_captions = training_captions.sort_values(["image_id", "caption_id"])
    texts = training_captions["text"].tolist()
    owners = training_captions["image_id"].tolist()

    judged = [evaluation_images(split, images, settings.train_on, judge_half) for split in splits]
    # Compositions share test images.
    all_judged = pd.concat(judged).drop_duplicates()
    validation = {}
    for split, drawn in validation_captions(captions, all_judged, judge_half):
        paths = path_by_image.loc[drawn["image_id"]].tolist()
        items = items_of(paths, images, folder)
        validation[split] = ValidationSet(items, drawn["text"].tolist())

    # Without training, texts are needed even so: a word tower takes its vocabulary from them.
    training_items: list[BoxedFile] = []
    if settings.epochs:
        trained_paths = path_by_image.loc[trained].tolist()
        training_items = items_of(trained_paths, images, folder)
        if pretraining is not None:
            further = pretraining.sort_values("path", kind="stable")
            paths = further["path"].drop_duplicates().tolist()
            training_items += [(folder / path, None) for path in paths]
            texts += further["text"].tolist()
            # A path identifies these images, which have no id.
            owners += further["path"].tolist()
            trained += paths
    first, count = first_and_count(owners, trained)
    return TrainingData(training_items, texts, first, count, validation)


def training_key(
    training_data: TrainingData,
    config: Training,
    seed: int,
    threads: int,
    device: torch.device,
    processes: int,
) -> str:
    """Return 32 hex digits of everything that a training depends on: code, settings, processor,
    data, weights.
    """
    weights = find_source(config).files
    if config.tower:
        weights.append(find_weights(config.tower.weights))
    distinct = dict.fromkeys(map(str, weights))
    inputs: list[BoxedFile] = [(Path(file), None) for file in distinct]
    inputs += training_data.items
    texts = list(training_data.texts)
    for validation in training_data.validation.values():
        inputs += validation.items
        texts += validation.texts

    digest = hashlib.blake2b(digest_size=16)
    for path, box in inputs:
        content = hashlib.blake2b(path.read_bytes())
        digest.update(content.digest())
        digest.update(repr(box).encode())
    # Device and number of GPUs count as they are used, not as they are configured.
    settings = config.model_dump_json(exclude={"device", "gpus"})
    return key(
        training_code(),
        settings,
        seed,
        threads,
        torch.__version__,
        device.type,
        processes,
        digest.digest(),
        training_data.count.tobytes(),
        *texts,
    ).hex()


def evaluator(training_inputs: TrainingInputs, training_data: TrainingData) -> Evaluate:
    """Return a function that measures how often validation images retrieve their captions."""
    judge = training_inputs.judge
    features = {}
    for split, validation in training_data.validation.items():
        ids = tokenize(judge.tokenizer, validation.texts)
        captions = training_inputs.captions(ids, f"{split}_captions")
        features[split] = (training_inputs.images(validation.items, split), captions)

    def encode(encoder: Features, n: int, name: str) -> np.ndarray:
        """Return embeddings (n, d) of unit length."""
        starts = range(0, n, ENCODED_AT_ONCE)
        batches = [np.arange(start, min(start + ENCODED_AT_ONCE, n)) for start in starts]
        with torch.inference_mode(), autocast(training_inputs.precision, judge.device):
            features = torch.cat(list(encoder(batches)))
            normalized = F.normalize(features, dim=-1)
            vectors = normalized.float().cpu().numpy()
        # In half precision, lengths are not exact.
        check_embeddings(vectors, "in training", lambda row: f"{name} {row + 1} of {n}", unit=False)
        return vectors

    def evaluate() -> dict[str, float]:
        judge.model.eval()
        results = {}
        for split, (images, captions) in features.items():
            n = len(training_data.validation[split].items)
            image_vectors = encode(images, n, f"{split}: image")
            caption_vectors = encode(captions, n, f"{split}: caption")
            accuracy = in_batch_accuracy(image_vectors, caption_vectors)
            results[f"retrieval_{split.removeprefix('test_')}"] = round(accuracy, 6)
        return results

    return evaluate


def describe_training(
    trained: Trained, training_data: TrainingData, config: Training
) -> dict[str, Any]:
    """Return a summary: the model, its training data, and how often images finally retrieve their
    captions.
    """
    texts = training_data.texts if config.epochs else []
    is_truncated = find_truncated_texts(trained.built.tokenizer(), texts, trained.ids)
    truncated = int(is_truncated.sum())
    report_truncated(truncated, len(texts))
    summary = {
        "model": model_name(config.model),
        # Folders differ between machines, names do not.
        "pretrained": config.pretrained and Path(config.pretrained).name,
        "tower": config.tower and Path(config.tower.weights).name,
        "trainable": config.trainable,
        "train_on": config.train_on,
        "epochs": config.epochs,
        "augment": config.augment,
        "images": len(training_data.items),
        "captions": len(texts),
        "truncated_captions": truncated,
    }
    if config.model.startswith(HUB):
        # The folder of a model's files in the Hub's cache has the name of their commit.
        settings_file = find_model(config.model, config.revision).file
        assert settings_file is not None, "a model on the Hub has one"
        summary["commit"] = settings_file.parent.name
    for name, value in trained.rows[-1].items():
        if name.startswith("retrieval"):
            summary[name] = value
    return summary


def _log_training(
    model: torch.nn.Module, training_data: TrainingData, settings: Training, device: torch.device
) -> None:
    n = len(training_data.items)
    parameters = list(model.parameters())
    log.info(
        "training %s on %d images with %d captions: %d of %d weights, %d epochs of %d steps, on %s",
        settings.model,
        n,
        len(training_data.texts),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(p.numel() for p in parameters),
        settings.epochs,
        n // min(settings.batch, n),
        device,
    )


def train_judge(
    training_data: TrainingData,
    settings: Training,
    *,
    seed: int,
    threads: int,
    cache: Path,
    device: torch.device,
    group: Group,
) -> Trained:
    """Train a judge, or use a pretrained one unchanged if there are no epochs.

    Args:
        training_data: from ``find_training_data``.
        threads: of torch; changes floating-point rounding.
        cache: folder of checkpoints and of activations of frozen parts.
        group: the processes that train together (``judge.parallel.joined``).
    """
    with settled(threads):
        check_precision(settings.precision, device, "judge.precision")
        find_source(settings)  # before anything that takes time
        built = build(settings, training_data.texts, derive_seed(seed, "train_judge"))
        for name in built.unused:
            log.info("%s: %s is not used", settings.tower and settings.tower.weights, name)
        preprocess = Preprocess(built.preprocess_cfg, settings.crop)
        judge = Judge(built.model, built.tokenizer(), preprocess, device, threads)
        if settings.epochs:
            choose_trainable(judge.model, settings.trainable)
        training_mode(judge.model)
        synchronise_norms(judge.model, group, device, GPUS_SETTING)
        # The checkpoint stays there; other files are removed at the end.
        identity = training_key(training_data, settings, seed, threads, device, group.count)
        folder = cache / "judge" / identity
        training_inputs = TrainingInputs(judge, settings, folder, group, seed)
        ids = tokenize(judge.tokenizer, training_data.texts if settings.epochs else [])

        def prepare() -> tuple[Examples, Evaluate]:
            evaluate = evaluator(training_inputs, training_data)
            captions = training_inputs.captions(ids, "captions")
            _log_training(judge.model, training_data, settings, device)
            images = training_inputs.images(
                training_data.items, "images", augment=settings.augment == "mild"
            )
            return Examples(images, captions, training_data.first, training_data.count), evaluate

        if settings.epochs:
            rows = train(judge.model, prepare, settings, seed, folder / "checkpoint.pt", group)
        else:
            evaluate = evaluator(training_inputs, training_data)
            rows = [{"epoch": 0, "step": 0, **evaluate()}]
        training_inputs.clear()
    return Trained(built, rows, ids)
