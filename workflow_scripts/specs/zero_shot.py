"""Which class does an image belong to, by the model's texts for each class? Top-1 and top-5 accuracy.

Reads ImageNet's validation images (a folder a class, named by its wnid), any other folder of classes, and CIFAR-10
and CIFAR-100 as their Python pickles (cifar-10-batches-py, cifar-100-python; the test images). A class has the texts
that the templates make of its name; or, with --captions or --descriptions, a file as stage compun's ask_captions
writes it, its example captions or descriptions in the prompts of that stage; or those that --prompts gives it, as they
are.

Source of the example captions: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024),
appendix A.2.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from PIL import Image

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
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic_folder, write_json
from workflow_scripts.core.pickles import as_text, read_pickle
from workflow_scripts.core.pictures import SUFFIXES
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import LeftOut, encode_images, estimate, percent
from workflow_scripts.specs.retrieval import recalls

KS = (1, 5)
# Texts whose vectors lie in memory at once.
HELD = 1 << 15
WNID = re.compile(r"n\d{8}")
SPLITS = {"train", "val", "test"}
# A CIFAR image is a row of this many bytes: red, green and blue of 32 x 32 pixels.
SIDE, BYTES = 32, 3072
# Per data set: the file of images, that of names, the key of the labels, the key of the names.
CIFAR = {
    "CIFAR-10": ("test_batch", "batches.meta", "labels", "label_names"),
    "CIFAR-100": ("test", "meta", "fine_labels", "fine_label_names"),
}

# How a class's texts, or the ensembles of its texts, make its similarity.
DEFINITION = {
    "vectors": "Of a class, the mean of its texts' unit vectors, of unit length.",
    "similarities": "Of a class, the mean of its texts' similarities.",
    "ensembles": "Of a class, the mean of the similarities of its captions or descriptions; of each of these, the mean"
    " of its templates' unit vectors, of unit length.",
}
TIES = """The share of images whose class is among the k of greatest similarity. Equal similarities are in random order:
an image counts with its chance. Intervals resample images."""

Combine = Literal["vectors", "similarities"]
T = TypeVar("T")


def class_vectors(
    encode: Callable[[list[T]], np.ndarray], prompts: Sequence[Sequence[T]], combine: Combine = "vectors"
) -> np.ndarray:
    """(classes, d) float32 of each class's texts, at least one each; ``encode`` gives unit vectors (n, d) of texts.

    vectors: the mean of the texts' vectors, of unit length (CLIP's ensemble of templates). similarities: the mean as
    it is, whose product with an image is the mean of the texts' similarities (Compun's example captions). A text may
    be anything that ``encode`` takes: ensembles of texts, say (``ensemble_vectors``).
    """
    return np.concatenate([_class_vectors(encode, part, combine) for part in _parts(prompts)])


def _class_vectors(encode: Callable[[list[T]], np.ndarray], prompts: Sequence[Sequence[T]], combine: str) -> np.ndarray:
    sizes = [len(texts) for texts in prompts]
    vectors = encode([text for texts in prompts for text in texts]).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    means = np.add.reduceat(vectors, starts) / np.array(sizes)[:, None]
    if combine == "vectors":
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means.astype(np.float32)


def _parts(prompts: Sequence[Sequence[T]]) -> Iterator[Sequence[Sequence[T]]]:
    """Successive ``prompts``, of HELD texts at most or of one class."""
    begun = texts = 0
    for place, some in enumerate(prompts):
        if texts + len(some) > HELD and place > begun:
            yield prompts[begun:place]
            begun, texts = place, 0
        texts += len(some)
    yield prompts[begun:]


def ensemble_vectors(encode: Callable[[list[str]], np.ndarray], classes: Sequence[Ensembles]) -> np.ndarray:
    """(classes, d) of classes with ensembles of texts: the mean of the ensembles' similarities, each ensemble being
    the mean of its texts' vectors, of unit length."""
    return class_vectors(lambda ensembles: class_vectors(encode, ensembles), classes, "similarities")


def top_k(
    images: np.ndarray, labels: np.ndarray, classes: np.ndarray, ks: tuple[int, ...] = KS, device: Any = "cpu"
) -> np.ndarray:
    """(n, len(ks)) the chance that an image's class is among its k best, ties being in random order.

    images (n, d), classes (c, d); labels (n,): places in ``classes``.
    """
    own = np.stack([np.arange(len(labels)), labels], axis=1)
    return recalls(images, classes, own, ks, device, "images")


# Reading


@dataclass
class Classified:
    """Images (paths) with their labels, places in ``keys``; ``names`` are the classes' names."""

    keys: list[str]
    names: list[str]
    paths: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=dict)


def read_folders(folder: Path, classes: Path | None) -> Classified:
    """A folder of classes: each folder in it is one, with its images at any depth. classes: ``read_names``."""
    keys = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if keys and set(keys) <= SPLITS:
        raise UserError(f"{folder}: holds {', '.join(keys)}, which are no classes: give one of them")
    found = Classified(keys, read_names(classes, keys) if classes else default_names(folder, keys))
    empty = []
    for label, key in enumerate(keys):
        paths = [path for path in sorted((folder / key).rglob("*")) if path.suffix.lower() in SUFFIXES]
        found.paths += paths
        found.labels += [label] * len(paths)
        if not paths:
            empty.append(key)
    if not found.paths:
        raise UserError(f"{folder}: no folder of a class with images ({', '.join(SUFFIXES)}) in it")
    found.left_out["classes without an image, candidates still"] = empty
    return found


def read_names(path: Path, keys: Sequence[str]) -> list[str]:
    """The names of the classes ``keys``, from a text file in one of two forms.

    A line a class that begins with its key, as ImageNet's synset lists (``n02119789 kit fox, Vulpes macrotis``: the
    name ends at the comma; lines of other classes may stand there too); or, for all classes in the order of their
    keys, a line a name.
    """
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    keyed = {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[-1].split(",")[0].strip() for line in lines}
    if all(key in keyed for key in keys):
        return [keyed[key] for key in keys]
    if len(lines) == len(keys) and not any(key in keyed for key in keys):
        return lines
    absent = [key for key in keys if key not in keyed]
    raise UserError(
        f"{path}: {len(lines)} lines for {len(keys)} classes, none begins with {absent[0]}: give a line a class, in"
        " the order of the folders' names or each beginning with its folder's name"
    )


def default_names(folder: Path, keys: Sequence[str]) -> list[str]:
    """The folders' own names, or for all of ImageNet's wnids those that CLIP was tested with (open_clip's list)."""
    if not keys or not all(WNID.fullmatch(key) for key in keys):
        return [key.replace("_", " ") for key in keys]
    names = open_clip_metadata().IMAGENET_CLASSNAMES
    if len(keys) != len(names):
        raise UserError(f"{folder}: {len(keys)} classes of ImageNet's {len(names)}: name them by --classes FILE")
    return list(names)


def read_cifar(folder: Path, kind: str, cache: Path) -> Classified:
    """The test images of CIFAR-10 or CIFAR-100 (``kind``), kept in ``cache`` as PNG files that a model can read.

    The pickles are read by the restricted reader; their keys are bytes, since Python 2 wrote them. Raises UserError
    for other content.
    """
    images, meta, labels_key, names_key = CIFAR[kind]
    batch, about = (_plain_keys(folder / name, kind) for name in (images, meta))
    names = [as_text(name) for name in _entry(about, names_key, folder / meta, kind)]
    labels = _entry(batch, labels_key, folder / images, kind)
    try:
        pixels = np.array(_entry(batch, "data", folder / images, kind), dtype=np.uint8)
        label = np.array(labels, dtype=int)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{folder / images}: not {kind}: data are no bytes or labels no numbers ({error})") from error
    if pixels.shape != (len(label), BYTES) or None in names:
        raise UserError(
            f"{folder / images}: not {kind}: data of {pixels.shape} for {len(label)} labels, not of ({len(label)},"
            f" {BYTES})"
        )
    if len(label) and not 0 <= label.min() <= label.max() < len(names):
        raise UserError(f"{folder / images}: not {kind}: label {label.max()} of {len(names)} classes")
    place = cache / "cifar" / file_digest(folder / images).hex()
    if not place.is_dir():
        with atomic_folder(place) as temporary:
            for number, row in enumerate(pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)):
                Image.fromarray(row).save(temporary / f"{number:05d}.png", compress_level=1)
    paths = [place / f"{number:05d}.png" for number in range(len(label))]
    return Classified([str(n) for n in names], [str(n).replace("_", " ") for n in names], paths, label.tolist())


def _plain_keys(path: Path, kind: str) -> dict[str | None, Any]:
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: not {kind}: a {type(content).__name__}, not a dict")
    return {as_text(key): value for key, value in content.items()}


def _entry(content: Mapping[str | None, Any], key: str, path: Path, kind: str) -> list[Any]:
    if not isinstance(content.get(key), list):
        raise UserError(f"{path}: not {kind}: no list {key!r}; it has {', '.join(sorted(map(str, content)))}")
    return content[key]


def read_classified(data: Path, classes: Path | None, cache: Path) -> Classified:
    """The layout is known by what lies there."""
    if not data.is_dir():
        raise UserError(f"{data}: no such folder")
    for kind, files in CIFAR.items():
        if all((data / name).is_file() for name in files[:2]):
            return read_cifar(data, kind, cache)
    return read_folders(data, classes)


def read_prompts(path: Path, found: Classified) -> list[list[str]]:
    """The texts of each class from JSON: an object from a class's key or name to its list of texts."""
    content = read_texts(path, "class")
    texts = [content.get(key, content.get(name)) for key, name in zip(found.keys, found.names, strict=True)]
    lacking = [key for key, some in zip(found.keys, texts, strict=True) if some is None]
    if lacking:
        raise UserError(f"{path}: class {lacking[0]!r}: needs a list of texts ({len(lacking)} classes have none)")
    return [some for some in texts if some is not None]


def make_classes(options: argparse.Namespace, found: Classified, templates: str) -> tuple[list[Ensembles], str]:
    """The ensembles of texts of each class, by ``templates`` (``read_templates``) unless the options have --prompts;
    and which of ``DEFINITION`` they follow."""
    if options.prompts:
        texts = read_prompts(options.prompts, found)
        alone = options.combine == "similarities"
        return [[[text] for text in some] if alone else [some] for some in texts], options.combine
    source, make = (options.captions, by_captions) if options.captions else (options.descriptions, by_descriptions)
    own = read_templates(templates)
    if not source:
        return [[texts] for texts in make_prompts(found.names, own)], "vectors"
    texts = [some[: options.examples] for some in read_prompts(source, found)]
    return [make(name, some, own) for name, some in zip(found.names, texts, strict=True)], "ensembles"


def main(options: argparse.Namespace) -> None:
    found = read_classified(options.data, options.classes, options.cache)
    if options.examples is not None and options.examples < 1:
        raise UserError(f"--examples {options.examples}: at least 1")
    file = options.prompts or options.captions or options.descriptions
    templates = options.templates or ("photo" if file else "imagenet")
    prompts, combined = make_classes(options, found, templates)
    texts = [text for ensembles in prompts for some in ensembles for text in some]
    log.info("%d images, %d classes, %d texts", len(found.paths), len(found.names), len(texts))
    with open_embedder(options) as embedder:
        images, fault = encode_images(embedder, found.paths)
        classes = ensemble_vectors(embedder.texts, prompts)
        seen = fault == ""
        hits = top_k(images[seen], np.array(found.labels)[seen], classes, device=embedder.judge.device)
        cut = evaluation.count_cut(embedder, texts)
        judge = evaluation.judge_of(embedder)
    names = [f"{found.keys[label]}/{path.name}" for label, path in zip(found.labels, found.paths, strict=True)]
    for reason in (evaluation.MISSING, evaluation.UNREADABLE):
        found.left_out[reason] = [name for name, why in zip(names, fault, strict=True) if why == reason]
    entries = np.flatnonzero(seen).astype(str)
    results = {
        f"top-{k}": estimate(hits[:, i], entries, options.bootstrap, rng(options.seed, "zero_shot", k))
        for i, k in enumerate(KS)
    }
    twice = sorted({name for name in found.names if found.names.count(name) > 1})
    if twice and not file:
        log.warning("warning: %d names are of several classes, which tie; the first is %s", len(twice), twice[0])
    result = evaluation.head(options, f"{DEFINITION[combined]} {TIES}") | judge
    result |= {
        "templates": None if options.prompts else Path(templates).name,
        "prompts": file.name if file else None,
        "combine": combined,
        "classes": len(found.names),
        "texts": len(texts),
        "texts_cut": cut,
        "names_of_several_classes": twice,
        "left_out": evaluation.say_left_out(found.left_out, options.data),
    }
    write_json(result | results, options.output)
    log.info("%s: %s", options.data, ", ".join(f"{name} {percent(value)}" for name, value in results.items()))


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    evaluation.add_arguments(parser, "a folder of classes (ImageNet's val), or of CIFAR's pickles")
    parser.add_argument("--classes", type=Path, help="names of the classes, a text file; default: the folders' own")
    parser.add_argument(
        "--templates",
        help="imagenet (80 of CLIP's), simple (7), photo (a photo of a {}), or a file with {} a line; default:"
        " imagenet, and photo with --captions or --descriptions",
    )
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--captions", type=Path, help="JSON: example captions of each class, to stand in its prompts")
    texts.add_argument("--descriptions", type=Path, help="JSON: descriptions of each class, to stand in its prompts")
    texts.add_argument("--prompts", type=Path, help="JSON: the texts of each class, in place of templates")
    parser.add_argument("--examples", type=int, help="captions or descriptions of a class, at most; default: all")
    parser.add_argument(
        "--combine", choices=get_args(Combine), default="vectors", help="what is averaged over a class's --prompts"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
