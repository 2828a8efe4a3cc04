"""Does an image find its caption among all captions, and a caption its image among all images? R@1, R@5, R@10.

Reads COCO as it is published (annotations/captions_SPLIT.json, and the images in SPLIT, images/SPLIT or images),
Urban1k (image/NAME.jpg, caption/NAME.txt), or a table (CSV, TSV, JSON, JSON lines, Parquet) with columns image and
caption, a row a caption.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_scripts.clip.embed import merge_equal, open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, write_json
from workflow_scripts.core.pictures import SUFFIXES
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import EMPTY, LeftOut, encode_images, estimate, find_image, percent

KS = (1, 5, 10)
# Similarities that lie in memory at once, 4 bytes each, and as many marks of them.
HELD = 1 << 25

DEFINITION = """The share of queries that find their own among the first k. image_to_text: any own caption of the image
counts; text_to_image: the caption's image. Equal similarities are in random order: a query counts with its chance.
Intervals resample images among the same candidates."""


def expected_hit(above: torch.Tensor, tied: torch.Tensor, own: torch.Tensor, k: int) -> torch.Tensor:
    """(n,) the chance that one of ``own`` items is among the first k, ties being in random order.

    Of the best own similarity: above, how many items have a greater one; tied, how many have that one, of which own
    are the query's own. 1 - C(tied - own, r) / C(tied, r) for the r places that are left.
    """
    missed = torch.ones(above.shape, dtype=torch.float64, device=above.device)
    for place in range(k):
        share = (tied - own - place).clamp(min=0).double() / (tied - place).clamp(min=1)
        missed *= torch.where(above + place < k, share, 1.0)
    return 1 - missed


def recalls(
    queries: np.ndarray,
    candidates: np.ndarray,
    own: np.ndarray,
    ks: tuple[int, ...] = KS,
    device: Any = "cpu",
    unit: str = "queries",
) -> np.ndarray:
    """(n, len(ks)) the chance of each query to find one of its own candidates among the first k.

    queries (n, d), candidates (m, d): of unit length. own (p, 2): query and candidate, sorted by query, at least one
    of each query. Equal candidates tie exactly. The matrix of all similarities is never held.
    """
    distinct, index = merge_equal(candidates)
    columns = torch.from_numpy(np.ascontiguousarray(distinct)).to(device).T
    # How many candidates a column stands for: exact in float32 below 16 million.
    counts = torch.from_numpy(np.bincount(index)).to(device, torch.float32)
    result = np.empty((len(queries), len(ks)))
    step = max(1, min(HELD // len(distinct), len(queries)))
    # Kept, for new memory costs more than what is done in it.
    room = torch.empty((2, step, len(distinct)), device=device)
    with Progress(len(queries), unit) as progress:
        for start in range(0, len(queries), step):
            stop = min(start + step, len(queries))
            first, last = np.searchsorted(own[:, 0], [start, stop])
            query = torch.from_numpy(own[first:last, 0] - start).to(device)
            column = torch.from_numpy(index[own[first:last, 1]]).to(device)
            values, marks = room[:, : stop - start]
            torch.mm(torch.from_numpy(queries[start:stop]).to(device), columns, out=values)
            mine = values[query, column]
            best = torch.full((stop - start,), -torch.inf, device=device).scatter_reduce_(0, query, mine, "amax")
            above = torch.gt(values, best[:, None], out=marks) @ counts
            tied = torch.eq(values, best[:, None], out=marks) @ counts
            held = torch.zeros_like(best).scatter_add_(0, query, (mine == best[query]).float())
            hits = [expected_hit(above, tied, held, k) for k in ks]
            result[start:stop] = torch.stack(hits, dim=1).cpu().numpy()
            progress.add(stop - start)
    return result


@dataclass
class Gallery:
    """Images and their captions: ``own[i]`` is the place of caption i's image in ``names`` and ``paths``."""

    names: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, path: Path, captions: dict[str, str]) -> None:
        """An image with its captions by their names; an empty caption, and an image without any, is left out."""
        said = {key: " ".join(caption.split()) for key, caption in captions.items()}
        self.left_out[EMPTY] += [key for key, caption in said.items() if not caption]
        texts = [caption for caption in said.values() if caption]
        if not texts:
            self.left_out["images without a caption"].append(name)
            return
        self.own += [len(self.names)] * len(texts)
        self.names.append(name)
        self.paths.append(path)
        self.captions += texts

    def without(self, fault: np.ndarray) -> Gallery:
        """The same less images with a fault (n,), and their captions."""
        kept = np.flatnonzero(fault == "")
        place = {int(old): new for new, old in enumerate(kept)}
        result = Gallery([self.names[i] for i in kept], [self.paths[i] for i in kept], left_out=self.left_out)
        for caption, image in zip(self.captions, self.own, strict=True):
            if image in place:
                result.captions.append(caption)
                result.own.append(place[image])
        for name, reason in zip(self.names, fault, strict=True):
            if reason:
                result.left_out[reason].append(name)
        return result


def read_coco(folder: Path, split: str, captions: int) -> Gallery:
    """COCO's captions, at most ``captions`` of an image, the first ones of the file; 0 takes all."""
    file = folder / "annotations" / f"captions_{split}.json"
    if not file.is_file():
        there = ", ".join(sorted(path.name for path in file.parent.glob("captions_*.json"))) or "none"
        raise UserError(f"{file}: no such file: name the --split; captions there: {there}")
    content = read_json(file)
    try:
        images = {image["id"]: str(image["file_name"]) for image in content["images"]}
        said = [(str(a.get("id", n)), a["image_id"], str(a["caption"])) for n, a in enumerate(content["annotations"])]
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file}: not COCO's captions: needs images (id, file_name) and annotations (image_id, caption)"
            f" ({type(error).__name__}: {error})"
        ) from error
    places = [folder / split, folder / "images" / split, folder / "images"]
    place = next((path for path in places if path.is_dir()), None)
    if place is None:
        raise UserError(f"{folder}: no folder of images: put them into {split}/")
    gallery = Gallery()
    by_image: dict[Any, dict[str, str]] = {image: {} for image in images}
    for key, image, text in said:
        if image not in images:
            gallery.left_out["captions of images that the file does not list"].append(key)
        elif captions and len(by_image[image]) == captions:
            gallery.left_out[f"captions past an image's first {captions}"].append(key)
        else:
            by_image[image][key] = text
    for image, name in images.items():
        gallery.add(name, place / name, by_image[image])
    return gallery


def read_urban(folder: Path) -> Gallery:
    """Urban1k: an image and a text file of the same name make a pair."""
    images = {path.stem: path for path in sorted((folder / "image").iterdir()) if path.suffix.lower() in SUFFIXES}
    texts = {path.stem: path for path in sorted((folder / "caption").glob("*.txt"))}
    gallery = Gallery()
    for stem, path in texts.items():
        if stem not in images:
            gallery.left_out[evaluation.MISSING].append(f"{stem} (of {path.name})")
            continue
        try:
            gallery.add(images[stem].name, images[stem], {path.name: path.read_text(encoding="utf-8")})
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8") from error
    gallery.left_out["images without a caption"] += [images[stem].name for stem in images if stem not in texts]
    return gallery


def read_table(path: Path, images: Path | None) -> Gallery:
    """A row a caption; a row that cannot be read is left out."""
    table, bad = read_records(path, ["image", "caption"])
    gallery = Gallery()
    gallery.left_out["rows that cannot be read"] += bad
    nameless = evaluation.absent(table["image"])
    gallery.left_out["rows without an image"] += table["where"][nameless].tolist()
    for name, rows in table[~nameless].groupby("image", sort=False):
        captions = dict(zip(rows["where"], rows["caption"].fillna(""), strict=True))
        gallery.add(name, find_image(name, images or path.parent), captions)
    return gallery


def read_gallery(data: Path, images: Path | None, split: str, captions: int) -> Gallery:
    """The layout is known by what lies there."""
    if data.is_file():
        gallery = read_table(data, images)
    elif (data / "annotations").is_dir():
        gallery = read_coco(data, split, captions)
    elif (data / "image").is_dir() and (data / "caption").is_dir():
        gallery = read_urban(data)
    else:
        raise UserError(
            f"{data}: neither COCO (annotations/captions_{split}.json) nor Urban1k (image/, caption/) nor a table"
        )
    if not gallery.captions:
        raise UserError(f"{data}: no image with a caption")
    return gallery


def retrieve(images: np.ndarray, texts: np.ndarray, own: np.ndarray, device: Any = "cpu") -> dict[str, np.ndarray]:
    """``recalls`` both ways: image_to_text (n, 3) and text_to_image (m, 3), for k of KS.

    images (n, d), texts (m, d); own (m,): each text's image.
    """
    text = np.arange(len(own))
    by_image = np.argsort(own, kind="stable")
    return {
        "image_to_text": recalls(images, texts, np.stack([own[by_image], by_image], 1), device=device, unit="images"),
        "text_to_image": recalls(texts, images, np.stack([text, own], 1), device=device, unit="captions"),
    }


def main(options: argparse.Namespace) -> None:
    gallery = read_gallery(options.data, options.images, options.split, options.captions)
    log.info(
        "%d images, %d captions: 2 x %.3g similarities", len(gallery.names), len(gallery.captions),
        len(gallery.names) * len(gallery.captions),
    )  # fmt: skip
    with open_embedder(options) as embedder:
        images, fault = encode_images(embedder, gallery.paths)
        gallery, images = gallery.without(fault), images[fault == ""]
        texts = embedder.texts(gallery.captions)
        own = np.array(gallery.own)
        found = retrieve(images, texts, own, embedder.judge.device)
        cut = evaluation.count_cut(embedder, gallery.captions)
        judge = evaluation.judge_of(embedder)
    names = np.array(gallery.names)
    results = {}
    for way, hits in found.items():
        of = names if way == "image_to_text" else names[own]
        results[way] = {
            f"R@{k}": estimate(hits[:, i], of, options.bootstrap, rng(options.seed, "retrieval", way, k))
            for i, k in enumerate(KS)
        }
        log.info("%s: %s", way, ", ".join(f"{name} {percent(value)}" for name, value in results[way].items()))
    result = evaluation.head(options, DEFINITION) | judge
    result |= {"images": len(names), "captions": len(texts), "captions_cut": cut}
    write_json(
        result | {"left_out": evaluation.say_left_out(gallery.left_out, options.data), **results}, options.output
    )


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    evaluation.add_arguments(parser, "COCO's or Urban1k's folder, or a table of images and captions")
    parser.add_argument("--images", type=Path, help="folder of a table's images; default: the table's")
    parser.add_argument("--split", default="val2017", help="of COCO")
    parser.add_argument(
        "--captions", type=int, default=5, help="of each image of COCO, the first ones, as published; 0: all"
    )
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
