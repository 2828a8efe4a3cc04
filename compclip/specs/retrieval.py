"""Does an image find its caption among all captions, and a caption its image among all images? R@1, R@5, R@10."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from compclip.clip.embed import merge_equal, open_embedder
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import Progress
from compclip.core.records import read_records
from compclip.core.seeds import rng
from compclip.io import write_json
from compclip.specs import evaluation
from compclip.specs.evaluation import (
    CAPTIONS_EMPTY,
    Evaluation,
    SkippedNames,
    encode_images,
    is_absent,
    mean_over_images,
    show_estimate,
)

RANKS = (1, 5, 10)
SIMILARITIES_IN_MEMORY = 1 << 25  # 4 bytes each, and as many marks

RETRIEVAL_DEFINITION = """The share of queries that find their own among the first k. image_to_text: any own caption of
the image counts; text_to_image: the caption's image. Equal similarities are in random order: a query counts with its
chance. Intervals resample images among the same candidates."""


class Retrieval(Evaluation):
    """Measure how often an image finds its caption among all captions, and a caption its image among all images.

    The data are a table with columns image, a path, and caption: a row per caption.
    """

    data: Path = Field(description="table of images and captions: CSV, TSV, JSON lines or Parquet")
    images: Path | None = Field(None, description="folder of the images; default: the folder of the data")


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


def read_gallery(data: Path, images: Path | None = None) -> tuple[pd.DataFrame, SkippedNames]:
    """Return a row per caption of a table: image, path and caption, without white space around it; and what is skipped.

    ``images``: folder of the images; None: the folder of the table.
    """
    table, bad = read_records(data, ["image", "caption"])
    nameless, empty = is_absent(table["image"]), is_absent(table["caption"])
    skipped = {
        "rows that cannot be read": bad,
        "rows without an image": table["where"][nameless].tolist(),
        CAPTIONS_EMPTY: table["where"][empty].tolist(),
    }
    table = table[~nameless & ~empty]
    require(len(table), data, "no image with a caption", "add some")
    folder = images or data.parent
    paths = [folder / name for name in table["image"]]
    return table[["image"]].assign(path=paths, caption=table["caption"].str.strip()), skipped


def retrieve(images: np.ndarray, texts: np.ndarray, own: np.ndarray, device: Any = "cpu") -> dict[str, np.ndarray]:
    """Return ``recalls`` for RANKS in both directions, (n, 3) and (m, 3); ``own`` (m,): the image of each text."""
    text = np.arange(len(own))
    by_image = np.argsort(own, kind="stable")
    return {
        "image_to_text": recalls(images, texts, np.stack([own[by_image], by_image], 1), RANKS, device, "images"),
        "text_to_image": recalls(texts, images, np.stack([text, own], 1), RANKS, device, "captions"),
    }


def main(command: Retrieval) -> None:
    gallery, skipped = read_gallery(command.data, command.images)
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
