"""Find the adjective-noun pairs of all captions."""

from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as arrow
import pyarrow.parquet as pq

from workflow_scripts.core import cli, limits
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_frames, table_writer, write_json
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.tables import PAIRS, RELATIONS
from workflow_scripts.pairs.engine import Extractor, decode
from workflow_scripts.pairs.occurrences import Occurrence
from workflow_scripts.pairs.steps import ExtractPairs
from workflow_scripts.text.language import identity
from workflow_scripts.text.lexicon import load_lexicon
from workflow_scripts.text.parsing import fill, values

BATCH = 4096  # captions in memory at once


def read_batches(path: Path) -> Iterator[pd.DataFrame]:
    """Yield image_id, caption_id and text of the captions, in order, a batch at a time."""
    for frame in read_frames(path, ["image_id", "caption_id", "text"], BATCH):
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


def extract(path: Path, extractor: Extractor, cache: Cache, processes: int, output: Path) -> dict:
    """Write the pairs of ``path`` to ``output``; return the counts of the summary."""
    total = pq.ParquetFile(path).metadata.num_rows
    log.info("%d captions; new ones are parsed (processes: %d, each about 500 a second)", total, processes)
    with Progress(total, "captions") as progress:
        texts = (batch["text"].tolist() for batch in read_batches(path))
        parsed = fill(extractor, cache, texts, processes, progress.add)
    log.info("%d distinct captions parsed; the others were cached", parsed)
    relations, count = Counter[str](), Counter[str]()
    distinct = array("Q")
    with table_writer(output, PAIRS) as write:
        for batch in read_batches(path):
            encoded = values(extractor, cache, batch["text"].tolist())
            decoded = {value: decode(value) for value in set(encoded) if value is not None}
            found = [[] if value is None else decoded[value] for value in encoded]
            distinct.extend(int.from_bytes(k[:8], "big") for k in extractor.keys(batch["text"]))
            count["empty"] += encoded.count(None)
            count["with_pairs"] += sum(map(bool, found))
            relations.update(o.relation for occurrences in found for o in occurrences)
            if any(found):
                write(rows_of(batch, found))
    return {
        "captions": total,
        "distinct": int(np.unique(np.frombuffer(distinct, dtype=np.uint64)).size),
        "with_pairs": count["with_pairs"],
        "without_pairs": total - count["with_pairs"] - count["empty"],
        "empty": count["empty"],
        "pairs": sum(relations.values()),
        "relations": {name: relations[name] for name in RELATIONS},
    }


def main(step: ExtractPairs) -> None:
    adjectives = [load_lexicon(path) for path in step.adjectives]
    nouns = load_lexicon(step.nouns) if step.nouns else None
    extractor = Extractor(step.parsing.model, adjectives, nouns, load_lexicon(step.compounds))
    with Cache(step.cache / "pairs" / "occurrences.sqlite") as cache:
        try:
            summary = extract(step.captions, extractor, cache, step.processes, step.pairs)
        except arrow.ArrowInvalid as error:
            raise UserError(f"{step.captions}: not a readable Parquet file ({error}); remove and rerun") from error
    text = (
        "%(captions)d captions, %(with_pairs)d with pairs, %(without_pairs)d without, %(empty)d empty; %(pairs)d pairs"
    )
    log.info(text, summary)
    if summary["captions"] and 2 * summary["with_pairs"] < summary["captions"]:
        summary["warning"] = "most captions have no pair: are they in the language of pairs.model?"
        log.warning("warning: %s", summary["warning"])
    write_json({"model": identity(step.parsing.model), **summary}, step.summary)


if __name__ == "__main__":
    cli.run(main)
