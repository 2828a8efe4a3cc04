"""Embed one shard of a generator's images; other steps encode few images, or captions that they need at once."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.clip.embed import check_embeddings, items_of, open_embedder
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.core.tables import EMBEDDINGS, IMAGES, MANIFEST
from workflow_scripts.score.steps import EmbedImages

# From n paths in the manifest to their embeddings, (n, d).
Embed = Callable[[Sequence[str]], np.ndarray]


def shard_of(image_id: str, shards: int) -> int:
    return derive_seed(0, "shard", image_id) % shards + 1


def open_shards(files: Sequence[Path], judge_hash: str) -> Embed:
    """Read all shards of a generator, in any order; UserError for another judge, or, when called, an absent image."""
    tables = [read_table(file, EMBEDDINGS) for file in files]
    for file, table in zip(files, tables, strict=True):
        if not (table["judge_hash"] == judge_hash).all():
            raise UserError(f"{file}: embeddings by another judge; run embed_images again")
    joined = pd.concat(tables)
    rows = {path: row for row, path in enumerate(joined["path"])}
    if joined["embedding"].map(len).nunique() > 1:
        raise UserError(f"{files[0].parent}: embeddings of different lengths; run embed_images again")
    vectors = np.stack(joined["embedding"]) if len(joined) else np.zeros((0, 1), np.float32)
    names = [f"{file}: {path}" for file, table in zip(files, tables, strict=True) for path in table["path"]]
    check_embeddings(vectors, judge_hash, names.__getitem__, remedy="run embed_images again")

    def embed(paths: Sequence[str]) -> np.ndarray:
        absent = [path for path in paths if path not in rows]
        if absent:
            raise UserError(f"{files[0].parent}: no shard has {absent[0]}; pass all shards, made from this manifest")
        return vectors[[rows[path] for path in paths]]

    return embed


def main(step: EmbedImages) -> None:
    manifest = read_table(step.manifest, MANIFEST)
    made = manifest[manifest["status"] == "ok"].drop_duplicates("path")
    in_shard = made["image_id"].map(lambda image: shard_of(image, step.shards) == step.shard).astype(bool)
    paths = sorted(made.loc[in_shard, "path"])
    log.info("shard %d of %d: %d of %d images", step.shard, step.shards, len(paths), len(made))
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        vectors = embedder.images(items_of(paths, read_table(step.images, IMAGES), step.results))
    table = pd.DataFrame({"path": paths, "embedding": pd.Series(list(vectors), dtype=object)})
    table = table.assign(judge_hash=embedder.judge.hash).astype({"path": "str", "judge_hash": "str"})
    write_table(table, step.embeddings, EMBEDDINGS)


if __name__ == "__main__":
    cli.run(main)
