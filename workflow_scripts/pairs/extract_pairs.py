"""Find the adjective-noun pairs of all captions."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, groupby
from pathlib import Path

import numpy as np
import pandas as pd

from workflow_scripts.core import cli, limits
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import ROWS_PER_GROUP, read_frames, read_json, table_writer, write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.tables import PAIRS, RELATIONS
from workflow_scripts.pairs.engine import Extractor, decode
from workflow_scripts.pairs.occurrences import Occurrence
from workflow_scripts.pairs.steps import Extraction, ExtractPairs
from workflow_scripts.text.language import identity
from workflow_scripts.text.lexicon import load_lexicon
from workflow_scripts.text.parsing import fill, values

BATCH = 4096  # captions in memory at once


def read_batches(path: Path, shard: int, shards: int) -> Iterator[pd.DataFrame]:
    """Yield image_id, caption_id and text of a shard's captions, in order, a batch at a time."""
    for frame in read_frames(path, ["image_id", "caption_id", "text"], BATCH, shard=shard, shards=shards):
        long = frame[frame["text"].str.len() > limits.CAPTION]
        if len(long):
            first = long.iloc[0]
            fault = limits.over("CAPTION", f"{len(first.text):,} characters")
            raise UserError(f"{path}: {first.image_id}, caption {first.caption_id}: {fault}; shorten or remove it")
        yield frame


def rows_of(batch: pd.DataFrame, found: list[list[Occurrence]]) -> pd.DataFrame:
    """Return the rows of pairs.parquet for a batch of captions and the occurrences in each."""
    counts = [len(occurrences) for occurrences in found]
    ids = batch[["image_id", "caption_id"]].loc[batch.index.repeat(counts)].reset_index(drop=True)
    pairs = pd.DataFrame([o for occurrences in found for o in occurrences], columns=list(Occurrence._fields))
    return pd.concat([ids, pairs], axis=1)


def extract(step: Extraction, output: Path, shard: int = 1, shards: int = 1) -> tuple[Counter[str], np.ndarray]:
    """Write the pairs of a shard to ``output``; return counts and hashes of its distinct texts, sorted."""
    adjectives = [load_lexicon(path) for path in step.adjectives]
    nouns = load_lexicon(step.nouns) if step.nouns else None
    extractor = Extractor(step.parsing.model, adjectives, nouns, load_lexicon(step.compounds))
    total = sum(map(len, read_frames(step.captions, ["caption_id"], BATCH, shard=shard, shards=shards)))
    log.info("%d captions; new ones are parsed (processes: %d, each about 500 a second)", total, step.processes)
    count, hashes = Counter(captions=total), array("Q")
    with Cache(step.cache / "pairs" / "occurrences.sqlite") as cache:
        with Progress(total, "captions") as progress:
            texts = (batch["text"].tolist() for batch in read_batches(step.captions, shard, shards))
            parsed = fill(extractor, cache, texts, step.processes, progress.add)
        log.info("%d distinct captions parsed; the others were cached", parsed)
        with table_writer(output, PAIRS) as write:
            for batch in read_batches(step.captions, shard, shards):
                encoded = values(extractor, cache, batch["text"].tolist())
                decoded = {value: decode(value) for value in set(encoded) if value is not None}
                found = [[] if value is None else decoded[value] for value in encoded]
                hashes.extend(int.from_bytes(k[:8], "big") for k in extractor.keys(batch["text"]))
                count["empty"] += encoded.count(None)
                count["with_pairs"] += sum(map(bool, found))
                count.update(o.relation for occurrences in found for o in occurrences)
                if any(found):
                    write(rows_of(batch, found))
    return count, np.unique(np.frombuffer(hashes, dtype=np.uint64))


def join(folders: Sequence[Path], output: Path) -> tuple[Counter[str], int]:
    """Write the pairs of all shards to ``output``; return the sums of counts and the number of distinct captions."""
    shards = [read_json(folder / "counts.json") for folder in folders]
    if [shard["of"] for shard in shards] != [[n + 1, len(folders)] for n in range(len(folders))]:
        raise UserError(f"{folders[0].parent}: not all shards of the same number in order; pass 1-of-n to n-of-n")
    with table_writer(output, PAIRS) as write:
        for folder in folders:
            for frame in read_frames(folder / "pairs.parquet", list(PAIRS.columns), ROWS_PER_GROUP):
                write(frame)
    frames = [read_frames(folder / "texts.parquet", ["hash"], BATCH) for folder in folders]
    distinct = groupby(merge(*(chain.from_iterable(frame["hash"].tolist() for frame in of) for of in frames)))
    return sum((Counter(shard["counts"]) for shard in shards), Counter()), sum(1 for _ in distinct)


def main(step: ExtractPairs) -> None:
    if step.extracted:
        count, distinct = join(step.extracted, step.pairs)
    else:
        count, hashes = extract(step, step.pairs)
        distinct = len(hashes)
    relations = {name: count[name] for name in RELATIONS}
    summary = {
        "model": identity(step.parsing.model),
        "captions": count["captions"],
        "distinct": distinct,
        "with_pairs": count["with_pairs"],
        "without_pairs": count["captions"] - count["with_pairs"] - count["empty"],
        "empty": count["empty"],
        "pairs": sum(relations.values()),
        "relations": relations,
    }
    text = (
        "%(captions)d captions, %(with_pairs)d with pairs, %(without_pairs)d without, %(empty)d empty; %(pairs)d pairs"
    )
    log.info(text, summary)
    if 2 * count["with_pairs"] < count["captions"]:
        summary["warning"] = "most captions have no pair: are they in the language of pairs.model?"
        log.warning("warning: %s", summary["warning"])
    write_json(summary, step.summary)


if __name__ == "__main__":
    cli.run(main)
