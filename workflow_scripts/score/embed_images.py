"""Embed one shard of a generator's images, so that many jobs can share them; score_images joins the shards.

An image is in a shard by its id alone, whatever else there is; all that was made of it is in the same one. An embedding
does not depend on what is encoded beside it, and so no score on the number of shards. Only this is sharded: scores need
all captions of a split at once, but no image; adjective_choice asks about real images alone, which the shards of
`photographs` leave in the cache; a Fréchet distance is of 10,000 images at most.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.clip import embed
from workflow_scripts.clip.embed import items_of, open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.core.tables import EMBEDDINGS, IMAGES, MANIFEST

# The embeddings of files, by their paths in the manifest: (n, d) for n of them.
Embed = Callable[[Sequence[str]], np.ndarray]


def shard_of(image_id: str, shards: int) -> int:
    """From 1 to ``shards``."""
    return derive_seed(0, "shard", image_id) % shards + 1


def open_shards(files: Sequence[Path], judge_hash: str) -> Embed:
    """All shards of a generator, in any order; UserError names one by another judge, and an image that none has."""
    tables = [read_table(file, EMBEDDINGS) for file in files]
    for file, table in zip(files, tables, strict=True):
        if not (table["judge_hash"] == judge_hash).all():
            raise UserError(f"{file}: embeddings by another judge: make it again with embed_images")
    joined = pd.concat(tables)
    rows = {path: row for row, path in enumerate(joined["path"])}
    vectors = np.stack(joined["embedding"]) if len(joined) else np.zeros((0, 1), np.float32)

    def find(paths: Sequence[str]) -> np.ndarray:
        absent = [path for path in paths if path not in rows]
        if absent:
            raise UserError(
                f"{files[0].parent}: no shard has {absent[0]}: name all shards, each made from this manifest"
            )
        return vectors[[rows[path] for path in paths]]

    return find


def main(options: argparse.Namespace) -> None:
    if options.shard > options.shards:
        raise UserError(f"--shard: {options.shard} of {options.shards}")
    manifest = read_table(options.manifest, MANIFEST)
    made = manifest[manifest["status"] == "ok"].drop_duplicates("path")
    mine = made["image_id"].map(lambda image: shard_of(image, options.shards) == options.shard).astype(bool)
    paths = sorted(made.loc[mine, "path"])
    log.info("shard %d of %d: %d of %d images", options.shard, options.shards, len(paths), len(made))
    with open_embedder(options) as embedder:
        vectors = embedder.images(items_of(paths, read_table(options.images, IMAGES), options.results))
    table = pd.DataFrame({"path": paths, "embedding": pd.Series(list(vectors), dtype=object)})
    table = table.assign(judge_hash=embedder.judge.hash).astype({"path": "str", "judge_hash": "str"})
    write_table(table, options.output, EMBEDDINGS)


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    for name in ("manifest", "images"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.parquet")
    parser.add_argument("--results", type=Path, required=True, help="the folder that paths in tables are relative to")
    parser.add_argument("--shard", type=cli.positive, required=True, help="from 1")
    parser.add_argument("--shards", type=cli.positive, required=True, help="how many there are")
    parser.add_argument("--output", type=Path, required=True, help="table of embeddings")
    embed.add_arguments(parser)
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
