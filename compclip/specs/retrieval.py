"""Does an image find its caption among all captions, and a caption its image among all images? R@1, R@5, R@10."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from compclip.clip.embed import merge_equal, open_embedder
from compclip.core.documents import decode
from compclip.core.errors import UserError, require
from compclip.core.log import log
from compclip.core.pictures import SUFFIXES
from compclip.core.progress import Progress
from compclip.core.records import read_records
from compclip.core.seeds import rng
from compclip.io import read_json, write_json
from compclip.specs import evaluation
from compclip.specs.evaluation import (
    CAPTIONS_EMPTY,
    Evaluation,
    SkippedNames,
    encode_images,
    mean_over_images,
    show_estimate,
)

RANKS = (1, 5, 10)
SIMILARITIES_IN_MEMORY = 1 << 25  # 4 bytes each, and as many marks
GALLERY_COLUMNS = ["image", "path", "key", "caption"]  # a row per caption, whose name is the key

RETRIEVAL_DEFINITION = """The share of queries that find their own among the first k. image_to_text: any own caption of
the image counts; text_to_image: the caption's image. Equal similarities are in random order: a query counts with its
chance. Intervals resample images among the same candidates."""


class Retrieval(Evaluation):
    """Measure how often an image finds its caption among all captions, and a caption its image among all images.

    The data are COCO as published (annotations/captions_SPLIT.json, and the images in SPLIT), Urban1k (image/NAME.jpg,
    caption/NAME.txt), or a table with columns image and caption, a row per caption.
    """

    data: Path = Field(description="COCO's or Urban1k's folder, or a table of images and captions")
    images: Path | None = Field(None, description="folder of the images; default: the folder of the data")
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
    queries: np.ndarray, candidates: np.ndarray, own: np.ndarray, ks: tuple[int, ...], device: Any, unit: str
) -> np.ndarray:
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
    step, result = max(1, SIMILARITIES_IN_MEMORY // len(distinct)), []
    with Progress(len(queries), unit) as progress:
        for start in range(0, len(queries), step):
            values = torch.from_numpy(queries[start : start + step]).to(device) @ columns
            first, last = np.searchsorted(own[:, 0], [start, start + len(values)])
            query = torch.from_numpy(own[first:last, 0] - start).to(device)
            similarity = values[query, torch.from_numpy(index[own[first:last, 1]]).to(device)]
            best = torch.full((len(values),), -torch.inf, device=device).scatter_reduce_(0, query, similarity, "amax")
            above, tied = (values > best[:, None]).float() @ counts, (values == best[:, None]).float() @ counts
            hit = torch.zeros_like(best).scatter_add_(0, query, (similarity == best[query]).float())
            result.append(torch.stack([expected_hit(above, tied, hit, k) for k in ks], dim=1).cpu().numpy())
            progress.add(len(values))
    return np.concatenate(result)


def read_coco(folder: Path, split: str, captions: int) -> tuple[pd.DataFrame, list[str], SkippedNames]:
    """Return a row per caption (GALLERY_COLUMNS) of COCO, the names of all images, and the skipped captions."""
    file = folder / "annotations" / f"captions_{split}.json"
    existing = ", ".join(sorted(path.name for path in file.parent.glob("captions_*.json"))) or "none"
    require(file.is_file(), file, "no such file", f"choose another --split (available: {existing})")
    try:
        content = read_json(file)
        names = {image["id"]: str(image["file_name"]) for image in content["images"]}
        table = pd.DataFrame(content["annotations"], columns=["id", "image_id", "caption"]).astype({"caption": str})
        table["image"] = [names.get(image) for image in table["image_id"]]
    except (KeyError, TypeError, ValueError) as error:
        fault = "not COCO's captions: expected images (id, file_name) and annotations (id, image_id, caption)"
        raise UserError(f"{file}: {fault}; download it again") from error
    table["path"] = [folder / split / str(name) for name in table["image"]]
    table["key"] = table["id"].astype(str)
    unlisted = table["image"].isna()
    surplus = ~unlisted & (table.groupby("image_id").cumcount() >= (captions or len(table)))
    skipped = {
        "captions of images that the file does not list": table["key"][unlisted].tolist(),
        f"captions past an image's first {captions}": table["key"][surplus].tolist(),
    }
    return table[~unlisted & ~surplus], [*names.values()], skipped


def read_urban(folder: Path) -> tuple[pd.DataFrame, list[str], SkippedNames]:
    """Return the same of Urban1k: an image and a text file of the same name are a pair."""
    images = {path.stem: path for path in sorted((folder / "image").iterdir()) if path.suffix.lower() in SUFFIXES}
    texts = sorted((folder / "caption").glob("*.txt"))
    pairs = [(images[path.stem], path) for path in texts if path.stem in images]
    table = pd.DataFrame(
        [(image.name, image, path.name, decode(path)) for image, path in pairs], columns=GALLERY_COLUMNS
    )
    missing = [f"{path.stem} (of {path.name})" for path in texts if path.stem not in images]
    return table, [path.name for path in images.values()], {evaluation.IMAGES_MISSING: missing}


def read_captioned(path: Path, images: Path | None) -> tuple[pd.DataFrame, list[str], SkippedNames]:
    table, bad = read_records(path, ["image", "caption"])
    nameless = evaluation.is_absent(table["image"])
    skipped = {"rows that cannot be read": bad, "rows without an image": table["where"][nameless].tolist()}
    table = table[~nameless].rename(columns={"where": "key"})
    table["path"] = [(images or path.parent) / name for name in table["image"]]
    return table, table["image"].unique().tolist(), skipped


def read_gallery(data: Path, images: Path | None, split: str, captions: int) -> tuple[pd.DataFrame, SkippedNames]:
    """Return a row per caption (GALLERY_COLUMNS) that is not empty, and what is skipped."""
    if data.is_file():
        table, names, skipped = read_captioned(data, images)
    elif (data / "annotations").is_dir():
        table, names, skipped = read_coco(data, split, captions)
    else:
        layouts = f"COCO (annotations/captions_{split}.json), Urban1k (image/, caption/) or a table"
        is_urban = (data / "image").is_dir() and (data / "caption").is_dir()
        require(is_urban, data, "unknown layout", f"expected {layouts}")
        table, names, skipped = read_urban(data)
    table = table[GALLERY_COLUMNS].assign(
        caption=[" ".join(str(caption or "").split()) for caption in table["caption"]]
    )
    empty = table["caption"] == ""
    skipped[CAPTIONS_EMPTY] = table["key"][empty].tolist()
    table = table[~empty]
    skipped["images without a caption"] = [name for name in names if name not in set(table["image"])]
    require(len(table), data, "no image with a caption", "add some")
    return table, skipped


def retrieve(images: np.ndarray, texts: np.ndarray, own: np.ndarray, device: Any = "cpu") -> dict[str, np.ndarray]:
    """Return ``recalls`` for RANKS in both directions, (n, 3) and (m, 3); ``own`` (m,): the image of each text."""
    text = np.arange(len(own))
    by_image = np.argsort(own, kind="stable")
    return {
        "image_to_text": recalls(images, texts, np.stack([own[by_image], by_image], 1), RANKS, device, "images"),
        "text_to_image": recalls(texts, images, np.stack([text, own], 1), RANKS, device, "captions"),
    }


def main(command: Retrieval) -> None:
    gallery, skipped = read_gallery(command.data, command.images, command.split, command.captions)
    images = gallery.drop_duplicates("image")
    log.info("%d images, %d captions", len(images), len(gallery))
    with open_embedder(command.judge, command.batch, command.threads, command.device, command.cache) as embedder:
        vectors, fault = encode_images(embedder, images["path"].tolist())
        evaluation.skip_unreadable(skipped, images["image"].tolist(), fault)
        names = images["image"].to_numpy()[fault == ""]
        gallery = gallery[gallery["image"].isin(names)]
        captions, own = gallery["caption"].tolist(), pd.Index(names).get_indexer(gallery["image"])
        hits = retrieve(vectors[fault == ""], embedder.texts(captions), own, embedder.judge.device)
        result = evaluation.result_head(command.data, RETRIEVAL_DEFINITION, command.bootstrap, command.seed)
        result |= evaluation.judge_of(embedder) | {"images": len(names), "captions": len(captions)}
        result["captions_cut"] = evaluation.count_truncated(embedder, captions)
    result["left_out"] = evaluation.report_skipped(skipped, command.data)
    for way, queries in {"image_to_text": names, "text_to_image": names[own]}.items():
        result[way] = {
            f"R@{k}": mean_over_images(values, queries, command.bootstrap, rng(command.seed, "retrieval", way, k))
            for k, values in zip(RANKS, hits[way].T, strict=True)
        }
        log.info("%s: %s", way, ", ".join(f"{name} {show_estimate(value)}" for name, value in result[way].items()))
    write_json(result, command.output)
