"""Does an image find its caption among all captions, and a caption its image among all images? R@1, R@5, R@10."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field

from workflow_scripts.clip.embed import merge_equal, open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, write_json
from workflow_scripts.core.pictures import SUFFIXES
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import read_records
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input
from workflow_scripts.specs import evaluation
from workflow_scripts.specs.evaluation import EMPTY, Skipped, encode_images, estimate, find_image, percent
from workflow_scripts.specs.steps import Evaluation, ImageFolder

KS = (1, 5, 10)
SIMILARITIES_IN_MEMORY = 1 << 25  # 4 bytes each, and as many marks
NO_CAPTION = "images without a caption"

DEFINITION = """The share of queries that find their own among the first k. image_to_text: any own caption of the image
counts; text_to_image: the caption's image. Equal similarities are in random order: a query counts with its chance.
Intervals resample images among the same candidates."""


class Retrieval(Evaluation):
    """Measure how often an image finds its caption among all captions, and a caption its image among all images.

    The result has R@1, R@5 and R@10 with intervals. The data are COCO as published (annotations/captions_SPLIT.json,
    and the images in SPLIT, images/SPLIT or images), Urban1k (image/NAME.jpg, caption/NAME.txt), or a table (CSV, TSV,
    JSON, JSON lines, Parquet) with columns image and caption, a row per caption.
    """

    data: Input = Field(description="COCO's or Urban1k's folder, or a table of images and captions")
    images: ImageFolder
    split: str = Field("val2017", description="split of COCO")
    captions: int = Field(5, ge=0, description="captions of each image of COCO, the first ones, as published; 0: all")


def expected_hit(above: torch.Tensor, tied: torch.Tensor, own: torch.Tensor, k: int) -> torch.Tensor:
    """Return the chance that one of the query's own items is among the first k, with ties in random order, (n,).

    It is 1 - C(tied - own, r) / C(tied, r) for the r = k - above remaining places. For each query, (n,): ``above``
    items are more similar than its best own item, ``tied`` equally similar, and ``own`` of these are its own.
    """
    missed = torch.ones(above.shape, dtype=torch.float64, device=above.device)
    for place in range(k):
        fraction = (tied - own - place).clamp(min=0).double() / (tied - place).clamp(min=1)
        missed *= torch.where(above + place < k, fraction, 1.0)
    return 1 - missed


def recalls(
    queries: np.ndarray, candidates: np.ndarray, own: np.ndarray,
    ks: tuple[int, ...] = KS, device: Any = "cpu", unit: str = "queries",
) -> np.ndarray:  # fmt: skip
    """Return the chance of each query to find one of its own candidates among the first k, (n, len(ks)).

    Equal candidates tie exactly. The matrix of all similarities is never in memory as a whole.

    Args:
        queries, candidates: (n, d) and (m, d), of unit length.
        own: (p, 2) pairs of query and candidate, sorted by query, at least one of each query.
        unit: what the queries are called in the progress.
    """
    distinct, index = merge_equal(candidates)
    columns = torch.from_numpy(np.ascontiguousarray(distinct)).to(device).T
    # Number of candidates with each vector: exact in float32 below 16 million.
    counts = torch.from_numpy(np.bincount(index)).to(device, torch.float32)
    result = np.empty((len(queries), len(ks)))
    step = max(1, min(SIMILARITIES_IN_MEMORY // len(distinct), len(queries)))
    # Allocated once, because allocation costs more than the work.
    buffer = torch.empty((2, step, len(distinct)), device=device)
    with Progress(len(queries), unit) as progress:
        for start in range(0, len(queries), step):
            stop = min(start + step, len(queries))
            first, last = np.searchsorted(own[:, 0], [start, stop])
            query = torch.from_numpy(own[first:last, 0] - start).to(device)
            column = torch.from_numpy(index[own[first:last, 1]]).to(device)
            values, marks = buffer[:, : stop - start]
            torch.mm(torch.from_numpy(queries[start:stop]).to(device), columns, out=values)
            similarity = values[query, column]
            best = torch.full((stop - start,), -torch.inf, device=device).scatter_reduce_(0, query, similarity, "amax")
            above = torch.gt(values, best[:, None], out=marks) @ counts
            tied = torch.eq(values, best[:, None], out=marks) @ counts
            hit = torch.zeros_like(best).scatter_add_(0, query, (similarity == best[query]).float())
            hits = [expected_hit(above, tied, hit, k) for k in ks]
            result[start:stop] = torch.stack(hits, dim=1).cpu().numpy()
            progress.add(stop - start)
    return result


@dataclass
class Gallery:
    """Images and their captions; ``own[i]`` is the index of caption i's image in ``names`` and ``paths``."""

    names: list[str] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    skipped: Skipped = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, path: Path, captions: dict[str, str]) -> None:
        """Add an image with its captions by their names; empty captions and images without any are skipped."""
        texts = {key: " ".join(caption.split()) for key, caption in captions.items()}
        self.skipped[EMPTY] += [key for key, text in texts.items() if not text]
        texts = {key: text for key, text in texts.items() if text}
        if not texts:
            self.skipped[NO_CAPTION].append(name)
            return
        self.own += [len(self.names)] * len(texts)
        self.names.append(name)
        self.paths.append(path)
        self.captions += texts.values()

    def without(self, fault: np.ndarray) -> "Gallery":
        """Return the gallery without the images that have a fault (n,) and their captions."""
        kept = np.flatnonzero(fault == "")
        place = {int(old): new for new, old in enumerate(kept)}
        result = Gallery([self.names[i] for i in kept], [self.paths[i] for i in kept], skipped=self.skipped)
        for caption, image in zip(self.captions, self.own, strict=True):
            if image in place:
                result.captions.append(caption)
                result.own.append(place[image])
        for name, reason in zip(self.names, fault, strict=True):
            if reason:
                result.skipped[reason].append(name)
        return result


def read_coco(folder: Path, split: str, captions: int) -> Gallery:
    """Read COCO's captions, at most ``captions`` of an image, the first ones of the file; 0 for all."""
    file = folder / "annotations" / f"captions_{split}.json"
    if not file.is_file():
        existing = ", ".join(sorted(path.name for path in file.parent.glob("captions_*.json"))) or "none"
        raise UserError(f"{file}: no such file; choose another --split (available: {existing})")
    content = read_json(file)
    try:
        images = {image["id"]: str(image["file_name"]) for image in content["images"]}
        texts = [(str(a.get("id", n)), a["image_id"], str(a["caption"])) for n, a in enumerate(content["annotations"])]
        hash(tuple(image for _, image, _ in texts))  # raises TypeError for a list
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file}: not COCO's captions ({type(error).__name__}: {error}); expected images (id, file_name) and"
            " annotations (image_id, caption)"
        ) from error
    places = [folder / split, folder / "images" / split, folder / "images"]
    place = next((path for path in places if path.is_dir()), None)
    if place is None:
        raise UserError(f"{folder}: no folder of images; put them into {split}/")
    gallery = Gallery()
    by_image: dict[Any, dict[str, str]] = {image: {} for image in images}
    for key, image, text in texts:
        if image not in images:
            gallery.skipped["captions of images that the file does not list"].append(key)
        elif captions and len(by_image[image]) == captions:
            gallery.skipped[f"captions past an image's first {captions}"].append(key)
        else:
            by_image[image][key] = text
    for image, name in images.items():
        gallery.add(name, place / name, by_image[image])
    return gallery


def read_urban(folder: Path) -> Gallery:
    """Read Urban1k: an image and a text file of the same name are a pair."""
    images = {path.stem: path for path in sorted((folder / "image").iterdir()) if path.suffix.lower() in SUFFIXES}
    texts = {path.stem: path for path in sorted((folder / "caption").glob("*.txt"))}
    gallery = Gallery()
    for stem, path in texts.items():
        if stem not in images:
            gallery.skipped[evaluation.MISSING].append(f"{stem} (of {path.name})")
            continue
        try:
            gallery.add(images[stem].name, images[stem], {path.name: path.read_text(encoding="utf-8")})
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from error
    gallery.skipped[NO_CAPTION] += [images[stem].name for stem in images if stem not in texts]
    return gallery


def read_table(path: Path, images: Path | None) -> Gallery:
    table, bad = read_records(path, ["image", "caption"])
    gallery = Gallery()
    gallery.skipped["rows that cannot be read"] += bad
    nameless = evaluation.is_absent(table["image"])
    gallery.skipped["rows without an image"] += table["where"][nameless].tolist()
    for name, rows in table[~nameless].groupby("image", sort=False):
        captions = dict(zip(rows["where"], rows["caption"].fillna(""), strict=True))
        gallery.add(name, find_image(name, images or path.parent), captions)
    return gallery


def read_gallery(data: Path, images: Path | None, split: str, captions: int) -> Gallery:
    if data.is_file():
        gallery = read_table(data, images)
    elif (data / "annotations").is_dir():
        gallery = read_coco(data, split, captions)
    elif (data / "image").is_dir() and (data / "caption").is_dir():
        gallery = read_urban(data)
    else:
        raise UserError(
            f"{data}: unknown layout; expected COCO (annotations/captions_{split}.json), Urban1k (image/, caption/) or"
            " a table"
        )
    if not gallery.captions:
        raise UserError(f"{data}: no image with a caption; add some")
    return gallery


def retrieve(images: np.ndarray, texts: np.ndarray, own: np.ndarray, device: Any = "cpu") -> dict[str, np.ndarray]:
    """Return ``recalls`` for KS in both directions, (n, 3) and (m, 3), of n images and m texts with images ``own``."""
    text = np.arange(len(own))
    by_image = np.argsort(own, kind="stable")
    return {
        "image_to_text": recalls(images, texts, np.stack([own[by_image], by_image], 1), KS, device, "images"),
        "text_to_image": recalls(texts, images, np.stack([text, own], 1), KS, device, "captions"),
    }


def main(step: Retrieval) -> None:
    gallery = read_gallery(step.data, step.images, step.split, step.captions)
    log.info(
        "%d images, %d captions: 2 x %.3g similarities", len(gallery.names), len(gallery.captions),
        len(gallery.names) * len(gallery.captions),
    )  # fmt: skip
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        images, fault = encode_images(embedder, gallery.paths)
        gallery, images = gallery.without(fault), images[fault == ""]
        texts = embedder.texts(gallery.captions)
        own = np.array(gallery.own)
        hits = retrieve(images, texts, own, embedder.judge.device)
        result = evaluation.head(step, step.data, DEFINITION) | evaluation.judge_of(embedder)
        result |= {"images": len(images), "captions": len(texts)}
        result["captions_cut"] = evaluation.count_truncated(embedder, gallery.captions)
    result["left_out"] = evaluation.report_skipped(gallery.skipped, step.data)
    names = np.array(gallery.names)
    for way, queries in {"image_to_text": names, "text_to_image": names[own]}.items():
        result[way] = {
            f"R@{k}": estimate(hits[way][:, i], queries, step.bootstrap, rng(step.seed, "retrieval", way, k))
            for i, k in enumerate(KS)
        }
        log.info("%s: %s", way, ", ".join(f"{name} {percent(value)}" for name, value in result[way].items()))
    write_json(result, step.output)


if __name__ == "__main__":
    cli.run(main)
