"""Which class does an image belong to, by the model's texts for each class? Top-1 and top-5 accuracy.

Reads ImageNet's validation images (a folder a class, named by its wnid), any other folder of classes, and CIFAR-10
and CIFAR-100 as their Python pickles (cifar-10-batches-py, cifar-100-python; the test images). A class has the texts
that the templates make of its name, or those that --prompts gives it: example captions, descriptions.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from workflow_scripts.common import cli
from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.io import atomic_folder, read_json, write_json
from workflow_scripts.common.pickles import as_text, read_pickle
from workflow_scripts.common.pictures import SUFFIXES
from workflow_scripts.common.seeds import rng
from workflow_scripts.common.vision import import_torchvision
from workflow_scripts.score.embed import file_digest, open_embedder
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import LeftOut, encode_images, estimate, percent
from workflow_scripts.specs.retrieval import recalls

KS = (1, 5)
WNID = re.compile(r"n\d{8}")
SPLITS = {"train", "val", "test"}
# A CIFAR image is a row of this many bytes: red, green and blue of 32 x 32 pixels.
SIDE, BYTES = 32, 3072
# Per data set: the file of images, that of names, the key of the labels, the key of the names.
CIFAR = {
    "CIFAR-10": ("test_batch", "batches.meta", "labels", "label_names"),
    "CIFAR-100": ("test", "meta", "fine_labels", "fine_label_names"),
}

DEFINITION = {
    "vectors": "Of a class, the mean of its texts' unit vectors, of unit length.",
    "similarities": "Of a class, the mean of its texts' similarities.",
}
TIES = """The share of images whose class is among the k of greatest similarity. Equal similarities are in random order:
an image counts with its chance. Intervals resample images."""

Combine = Literal["vectors", "similarities"]


def make_prompts(names: Sequence[str], templates: Sequence[str]) -> list[list[str]]:
    """The texts of each class: every template with ``{}`` filled by its name."""
    return [[template.replace("{}", name) for template in templates] for name in names]


def class_vectors(
    encode: Callable[[Sequence[str]], np.ndarray], prompts: Sequence[Sequence[str]], combine: Combine = "vectors"
) -> np.ndarray:
    """(classes, d) of each class's texts, at least one each; ``encode`` gives unit vectors (n, d).

    vectors: the mean of the texts' vectors, of unit length (CLIP's ensemble of templates). similarities: the mean as
    it is, whose product with an image is the mean of the texts' similarities (Compun's example captions).
    """
    sizes = [len(texts) for texts in prompts]
    vectors = encode([text for texts in prompts for text in texts]).astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    means = np.add.reduceat(vectors, starts) / np.array(sizes)[:, None]
    if combine == "vectors":
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means.astype(np.float32)


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
    names = _open_clip().IMAGENET_CLASSNAMES
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


def read_templates(name: str) -> list[str]:
    """CLIP's own for ImageNet, 80 (``imagenet``) or 7 (``simple``), or a text file's lines, each with one ``{}``."""
    if name in ("imagenet", "simple"):
        known = _open_clip()
        chosen = known.OPENAI_IMAGENET_TEMPLATES if name == "imagenet" else known.SIMPLE_IMAGENET_TEMPLATES
        return [template("{}") for template in chosen]
    path = Path(name)
    if not path.is_file():
        raise UserError(f"--templates {name}: neither imagenet nor simple nor a file")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    bad = [line for line in lines if line.count("{}") != 1]
    if bad or not lines:
        raise UserError(f"{path}: {bad[0] if bad else 'empty'}: give a template a line, with one {{}} for the name")
    return lines


def read_prompts(path: Path, found: Classified) -> list[list[str]]:
    """The texts of each class from JSON: an object from a class's key or name to its list of texts."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be an object from a class to its texts")
    prompts = []
    for key, name in zip(found.keys, found.names, strict=True):
        texts = content.get(key, content.get(name))
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            raise UserError(f"{path}: class {key!r}: needs a list of texts, none of them empty")
        prompts.append(texts)
    return prompts


def _open_clip() -> Any:
    # Here, not above: it is slow to import.
    import_torchvision()
    from open_clip import zero_shot_metadata

    return zero_shot_metadata


def main(options: argparse.Namespace) -> None:
    found = read_classified(options.data, options.classes, options.cache)
    if options.prompts:
        prompts = read_prompts(options.prompts, found)
    else:
        prompts = make_prompts(found.names, read_templates(options.templates))
    log.info("%d images, %d classes, %d texts", len(found.paths), len(found.names), sum(map(len, prompts)))
    with open_embedder(options) as embedder:
        images, fault = encode_images(embedder, found.paths)
        classes = class_vectors(embedder.texts, prompts, options.combine)
        seen = fault == ""
        hits = top_k(images[seen], np.array(found.labels)[seen], classes, device=embedder.judge.device)
        cut = evaluation.count_cut(embedder, [text for texts in prompts for text in texts])
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
    if twice and not options.prompts:
        log.warning("warning: %d names are of several classes, which tie; the first is %s", len(twice), twice[0])
    result = evaluation.head(options, f"{DEFINITION[options.combine]} {TIES}") | judge
    result |= {
        "templates": None if options.prompts else Path(options.templates).name,
        "prompts": options.prompts.name if options.prompts else None,
        "combine": options.combine,
        "classes": len(found.names),
        "texts": sum(map(len, prompts)),
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
    parser.add_argument("--templates", default="imagenet", help="imagenet (80), simple (7), or a file with {} a line")
    parser.add_argument("--prompts", type=Path, help="JSON: the texts of each class, in place of templates")
    parser.add_argument(
        "--combine", choices=tuple(DEFINITION), default="vectors", help="what is averaged over a class's texts"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
