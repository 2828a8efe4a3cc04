"""Which class does an image belong to, by texts for each class? Top-1 and top-5 accuracy.

Source of the example captions: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024),
appendix A.2.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from PIL import Image
from pydantic import Field

from workflow_scripts.clip.embed import file_digest, open_embedder
from workflow_scripts.clip.prompts import (
    Ensembles,
    by_captions,
    by_descriptions,
    make_prompts,
    open_clip_metadata,
    read_templates,
    read_texts,
)
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.digests import record
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, write_json
from workflow_scripts.core.pickles import as_text, read_pickle
from workflow_scripts.core.pictures import SUFFIXES
from workflow_scripts.core.sealed import is_recorded
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import Skipped, encode_images, estimate, percent
from workflow_scripts.specs.retrieval import recalls
from workflow_scripts.specs.steps import Evaluation

KS = (1, 5)
TEXTS_IN_MEMORY = 1 << 15  # their vectors
WNID = re.compile(r"n\d{8}")
SPLITS = {"train", "val", "test"}
SIDE, BYTES = 32, 3072  # of a CIFAR image: red, green and blue of 32 x 32 pixels
# For each data set: the file of images, the file of names, the key of the labels, the key of the names.
CIFAR = {
    "CIFAR-10": ("test_batch", "batches.meta", "labels", "label_names"),
    "CIFAR-100": ("test", "meta", "fine_labels", "fine_label_names"),
}

# How the similarity of a class is computed from its texts.
DEFINITION = {
    "vectors": "Of a class, the mean of its texts' unit vectors, of unit length.",
    "ensembles": "Of a class, the mean of the similarities of its captions or descriptions; of each of these, the mean"
    " of its templates' unit vectors, of unit length.",
}
TIES = """The share of images whose class is among the k of greatest similarity. Equal similarities are in random order:
an image counts with its chance. Intervals resample images."""

Combine = Literal["vectors", "similarities"]
T = TypeVar("T")


class ZeroShot(Evaluation):
    """Classify images by texts for each class: top-1 and top-5 accuracy.

    The data are ImageNet's validation images (a folder per class, named by its wnid), any other folder of classes, or
    CIFAR-10 or CIFAR-100 as Python pickles (cifar-10-batches-py, cifar-100-python; the test images). The texts of a
    class are templates filled with its name; or, with --captions or --descriptions (files as stage compun writes
    them), its example captions or descriptions in the prompts of that stage.
    """

    data: Input = Field(description="a folder of classes (ImageNet's val), or of CIFAR's pickles")
    classes: Input | None = Field(None, description="names of the classes, a text file; default: the folders' names")
    templates: str | None = Field(
        None,
        description="imagenet (80 of CLIP's), simple (7), photo (a photo of a {}), or a file with a template per line;"
        " default: imagenet, or photo with --captions or --descriptions",
    )
    captions: Input | None = Field(None, description="JSON: example captions of each class, for its prompts")
    descriptions: Input | None = Field(None, description="JSON: descriptions of each class, for its prompts")
    examples: int | None = Field(None, ge=1, description="most captions or descriptions of a class; default: all")

    @property
    def texts(self) -> Path | None:
        """Return the file of the classes' texts; raises UserError if there are two."""
        if self.captions and self.descriptions:
            raise UserError("--captions and --descriptions exclude each other; choose one")
        return self.captions or self.descriptions


def class_vectors(
    encode: Callable[[list[T]], np.ndarray], prompts: Sequence[Sequence[T]], combine: Combine = "vectors"
) -> np.ndarray:
    """Return a vector per class from its texts, (classes, d) float32.

    Args:
        encode: returns unit vectors (n, d) of texts, or of whatever else ``prompts`` holds for each class.
        combine: vectors: the mean of the texts' vectors, scaled to unit length (CLIP's ensemble of templates).
            similarities: not scaled, so that its product with an image is the mean of the texts' similarities.
    """
    return np.concatenate([_class_vectors(encode, block, combine) for block in _blocks(prompts)])


def _class_vectors(encode: Callable[[list[T]], np.ndarray], prompts: Sequence[Sequence[T]], combine: str) -> np.ndarray:
    sizes = [len(texts) for texts in prompts]
    vectors = encode([text for texts in prompts for text in texts]).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    means = np.add.reduceat(vectors, starts) / np.array(sizes)[:, None]
    if combine == "vectors":
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means.astype(np.float32)


def _blocks(prompts: Sequence[Sequence[T]]) -> Iterator[Sequence[Sequence[T]]]:
    """Yield consecutive ``prompts`` with at most TEXTS_IN_MEMORY texts, or of one class."""
    start = count = 0
    for place, texts in enumerate(prompts):
        if count + len(texts) > TEXTS_IN_MEMORY and place > start:
            yield prompts[start:place]
            start, count = place, 0
        count += len(texts)
    yield prompts[start:]


def ensemble_vectors(encode: Callable[[list[str]], np.ndarray], classes: Sequence[Ensembles]) -> np.ndarray:
    """Return a vector per class, (classes, d), whose similarity is the mean of its ensembles' ``vectors``."""
    return class_vectors(lambda ensembles: class_vectors(encode, ensembles), classes, "similarities")


def top_k(
    images: np.ndarray, labels: np.ndarray, classes: np.ndarray, ks: tuple[int, ...] = KS, device: Any = "cpu"
) -> np.ndarray:
    """Return the chance that an image's class is among its k best, with ties in random order, (n, len(ks)).

    ``images`` are (n, d), ``labels`` (n,) indices into ``classes`` (c, d).
    """
    own = np.stack([np.arange(len(labels)), labels], axis=1)
    return recalls(images, classes, own, ks, device, "images")


@dataclass
class Classified:
    """Images (paths) with their labels, which are indices into ``keys`` and ``names``, the names of the classes."""

    keys: list[str]
    names: list[str]
    paths: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    skipped: Skipped = field(default_factory=dict)


def read_folders(folder: Path, classes: Path | None) -> Classified:
    """Read a folder of classes, each a folder with images at any depth. ``classes`` is a file for ``read_names``."""
    keys = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if keys and set(keys) <= SPLITS:
        raise UserError(f"{folder}: {', '.join(keys)} are splits, not classes; choose one of them")
    classified = Classified(keys, read_names(classes, keys) if classes else default_names(folder, keys))
    empty = []
    for label, key in enumerate(keys):
        paths = [path for path in sorted((folder / key).rglob("*")) if path.suffix.lower() in SUFFIXES]
        classified.paths += paths
        classified.labels += [label] * len(paths)
        if not paths:
            empty.append(key)
    if not classified.paths:
        raise UserError(f"{folder}: no folder of a class with images ({', '.join(SUFFIXES)}); choose another --data")
    classified.skipped["classes without an image, candidates still"] = empty
    return classified


def read_names(path: Path, keys: Sequence[str]) -> list[str]:
    """Return the names of the classes ``keys`` from a text file in one of two forms.

    Either a line per class that starts with its key, as in ImageNet's synset lists (``n02119789 kit fox, Vulpes
    macrotis``: the name ends at the comma; other classes are ignored); or a name per line for all classes in the order
    of their keys.
    """
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    keyed = {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[-1].split(",")[0].strip() for line in lines}
    if all(key in keyed for key in keys):
        return [keyed[key] for key in keys]
    if len(lines) == len(keys) and not any(key in keyed for key in keys):
        return lines
    absent = [key for key in keys if key not in keyed]
    raise UserError(
        f"{path}: {len(lines)} lines for {len(keys)} classes, none starts with {absent[0]}; write a line per class, in"
        " the order of the folders' names or each starting with its folder's name"
    )


def default_names(folder: Path, keys: Sequence[str]) -> list[str]:
    """Return the folders' own names or, for all of ImageNet's wnids, CLIP's names of its classes."""
    if not keys or not all(WNID.fullmatch(key) for key in keys):
        return [key.replace("_", " ") for key in keys]
    names = open_clip_metadata().IMAGENET_CLASSNAMES
    if len(keys) != len(names):
        raise UserError(f"{folder}: {len(keys)} of ImageNet's {len(names)} classes; name them by --classes FILE")
    return list(names)


def read_cifar(folder: Path, kind: str, cache: Path) -> Classified:
    """Read the test images of CIFAR-10 or CIFAR-100 (``kind``), which are kept in ``cache`` as PNG files."""
    images, meta, labels_key, names_key = CIFAR[kind]
    labels, data = _pickled_lists(folder / images, kind, labels_key, "data")
    names = [as_text(name) for name in _pickled_lists(folder / meta, kind, names_key)[0]]
    try:
        pixels, label = np.array(data, dtype=np.uint8), np.array(labels, dtype=int)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{folder / images}: not {kind}: data are not bytes or labels not numbers ({error}); download it again"
        ) from error
    if pixels.shape != (len(label), BYTES) or None in names:
        raise UserError(
            f"{folder / images}: not {kind}: data of shape {pixels.shape} for {len(label)} labels, expected"
            f" ({len(label)}, {BYTES}); download it again"
        )
    if len(label) and not 0 <= label.min() <= label.max() < len(names):
        raise UserError(f"{folder / images}: not {kind}: label {label.max()} of {len(names)} classes; download again")
    place = cache / "cifar" / file_digest(folder / images)
    if not is_recorded(place, "written again"):
        with atomic_folder(place) as temporary:
            for number, row in enumerate(pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)):
                Image.fromarray(row).save(temporary / f"{number:05d}.png", compress_level=1)
        record(place, "zero_shot")
    paths = [place / f"{number:05d}.png" for number in range(len(label))]
    return Classified([str(n) for n in names], [str(n).replace("_", " ") for n in names], paths, label.tolist())


def _pickled_lists(path: Path, kind: str, *keys: str) -> list[list[Any]]:
    """Read lists of a pickle whose keys are bytes, because Python 2 wrote them."""
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: not {kind}: expected a dict, got a {type(content).__name__}; download it again")
    content = {as_text(key): value for key, value in content.items()}
    for key in keys:
        if not isinstance(content.get(key), list):
            names = ", ".join(sorted(map(str, content)))
            raise UserError(f"{path}: not {kind}: no list {key!r} (keys: {names}); download it again")
    return [content[key] for key in keys]


def read_classified(data: Path, classes: Path | None, cache: Path) -> Classified:
    """Read the data; the layout is known by the files."""
    if not data.is_dir():
        raise UserError(f"{data}: no such folder; correct --data")
    for kind, files in CIFAR.items():
        if all((data / name).is_file() for name in files[:2]):
            return read_cifar(data, kind, cache)
    return read_folders(data, classes)


def read_prompts(path: Path, keys: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """Return the texts of each class from JSON: an object from a class's key or name to its list of texts."""
    content = read_texts(path, "class")
    texts = {key: content.get(key, content.get(name)) for key, name in zip(keys, names, strict=True)}
    without = [key for key, prompts in texts.items() if prompts is None]
    if without:
        raise UserError(f"{path}: class {without[0]!r}: no list of texts ({len(without)} classes without); add it")
    return [prompts for prompts in texts.values() if prompts is not None]


def make_classes(step: ZeroShot, keys: Sequence[str], names: Sequence[str]) -> tuple[list[Ensembles], str]:
    """Return the ensembles of each class, and the name of their ``DEFINITION``."""
    templates = read_templates(_templates(step))
    if not step.texts:
        return [[texts] for texts in make_prompts(names, templates)], "vectors"
    make = by_captions if step.captions else by_descriptions
    prompts = [texts[: step.examples] for texts in read_prompts(step.texts, keys, names)]
    return [make(name, texts, templates) for name, texts in zip(names, prompts, strict=True)], "ensembles"


def _templates(step: ZeroShot) -> str:
    return step.templates or ("photo" if step.texts else "imagenet")


def main(step: ZeroShot) -> None:
    classified = read_classified(step.data, step.classes, step.cache)
    ensembles, combine = make_classes(step, classified.keys, classified.names)
    texts = [text for of_class in ensembles for ensemble in of_class for text in ensemble]
    log.info("%d images, %d classes, %d texts", len(classified.paths), len(classified.names), len(texts))
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        images, fault = encode_images(embedder, classified.paths)
        classes = ensemble_vectors(embedder.texts, ensembles)
        readable = fault == ""
        labels = np.array(classified.labels)[readable]
        hits = top_k(images[readable], labels, classes, device=embedder.judge.device)
        truncated = evaluation.count_truncated(embedder, texts)
        judge = evaluation.judge_of(embedder)
    files = zip(classified.labels, classified.paths, strict=True)
    names = [f"{classified.keys[label]}/{path.name}" for label, path in files]
    for reason in (evaluation.MISSING, evaluation.UNREADABLE):
        classified.skipped[reason] = [name for name, why in zip(names, fault, strict=True) if why == reason]
    entries = np.flatnonzero(readable).astype(str)
    accuracy = {
        f"top-{k}": estimate(hits[:, i], entries, step.bootstrap, rng(step.seed, "zero_shot", k))
        for i, k in enumerate(KS)
    }
    counts = Counter(classified.names)
    shared = sorted(name for name, count in counts.items() if count > 1)
    if shared and not step.texts:
        log.warning("warning: %d names belong to several classes, which tie; first %s", len(shared), shared[0])
    result = evaluation.head(step, step.data, f"{DEFINITION[combine]} {TIES}") | judge
    result |= {
        "templates": Path(_templates(step)).name,
        "prompts": step.texts.name if step.texts else None,
        "combine": combine,
        "classes": len(classified.names),
        "texts": len(texts),
        "texts_cut": truncated,
        "names_of_several_classes": shared,
        "left_out": evaluation.report_skipped(classified.skipped, step.data),
    }
    write_json(result | accuracy, step.output)
    log.info("%s: %s", step.data, ", ".join(f"{name} {percent(value)}" for name, value in accuracy.items()))


if __name__ == "__main__":
    cli.run(main)
