"""Check which long captions are usable for training, and divide them into chunks by spaCy's parse.

``phrases`` defines chunks. A caption's first i chunks are its text up to the i-th end.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from compclip.core import limits
from compclip.core.errors import require
from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.log import log
from compclip.specs.data import check_examples
from compclip.specs.phrases import chunk_ends
from compclip.text.language import identity, load_language
from compclip.text.parsing import parse_texts

PIPELINE_BATCH = 32  # texts; larger batches take more memory and save little time


class Chunker:
    """Divides texts by spaCy's pipeline ``model`` in this process; ``text.parsing`` runs it in
    several.
    """

    def __init__(self, model: str) -> None:
        self.pipeline = load_language(model)
        code = code_hash(__name__, within=(__name__, "compclip.text"))
        # Other code, or another pipeline, gives other chunks, so it has other keys.
        self.context = key(code, identity(model))

    def keys(self, texts: Iterable[str]) -> list[bytes]:
        return [key(self.context, text) for text in texts]

    def parse(self, texts: Sequence[str]) -> list[bytes]:
        """Return the ends of each text's chunks, [] for a blank text, encoded for the cache."""
        values = []
        # The zone frees the memory that spaCy would keep for each new word.
        with self.pipeline.memory_zone():
            beginnings = (text[: limits.CAPTION] for text in texts)
            docs = self.pipeline.pipe(beginnings, batch_size=PIPELINE_BATCH)
            for text, doc in zip(texts, docs, strict=True):
                ends = chunk_ends(doc)
                if text.strip():
                    # The last chunk of a very long text includes the part that is not parsed.
                    ends = [*ends[:-1], len(text.rstrip())]
                values.append(json.dumps(ends, separators=(",", ":")).encode())
        return values


def chunk_captions(
    examples: pd.DataFrame,
    images: Path,
    *,
    model: str = "en_core_web_sm",
    processes: int = 2,
    cache: str | Path = ":memory:",
) -> pd.DataFrame:
    """Check examples (columns image, text; ``data.read_source``) and divide their captions into
    chunks.

    Args:
        images: folder that the images' paths are relative to.
        model: spaCy pipeline.
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of chunks, from which a killed call resumes.

    Returns:
        The examples with columns digest, fault ("" if usable) and ends, as in ``tables.CHUNKS``.
    """
    table = check_examples(examples, images)
    is_usable = table["fault"] == ""
    for row in table[~is_usable].head(3).itertuples():
        log.warning("skipped: record %d (%s): %s", row.Index + 1, row.image, row.fault)
    fault = f"none of {len(table)} examples is usable"
    require(is_usable.any(), images, fault, "check that this is the folder of their images")
    usable = is_usable.sum()
    skipped = len(table) - usable
    log.info("cutting %d captions into chunks, %d examples are skipped", usable, skipped)
    # Blank texts, which cost no time, keep the rows in step with the table.
    captions = table["text"].where(is_usable, "").tolist()
    values = parse_texts(Chunker(model), captions, processes, cache, "captions")
    table["ends"] = [[] if value is None else json.loads(value) for value in values]
    return table
