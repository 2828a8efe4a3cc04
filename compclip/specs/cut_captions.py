"""Find which long captions are usable for training, and where the chunks of each end."""

from pathlib import Path

import pandas as pd

from compclip.core.cache import Cache
from compclip.core.errors import require
from compclip.core.log import log
from compclip.specs.chunks import chunk_all
from compclip.specs.data import check_images


def cut_captions(
    examples: pd.DataFrame, images: Path, *, model: str = "en_core_web_sm", processes: int = 2,
    cache: str | Path = ":memory:",
) -> pd.DataFrame:  # fmt: skip
    """Check examples (columns image, text; ``data.read_source``) and cut their captions into chunks.

    Args:
        images: folder that the images' paths are relative to.
        model: spaCy pipeline.
        processes: processes that parse at once; the result is the same.
        cache: SQLite file of chunks, from which a killed call resumes.

    Returns:
        The examples with columns digest, fault ("" if usable) and ends, as in ``tables.CHUNKS``.
    """
    table = check_images(examples, images)
    usable = table["fault"] == ""
    for row in table[~usable].head(3).itertuples():
        log.warning("skipped: record %d (%s): %s", row.Index + 1, row.image, row.fault)
    fault = f"none of {len(table)} examples is usable"
    require(usable.any(), images, fault, "check that this is the folder of their images")
    log.info("cutting %d captions into chunks, %d examples are skipped", usable.sum(), (~usable).sum())
    with Cache(cache) as chunks:
        table["ends"] = chunk_all(table["text"].where(usable, "").tolist(), model, chunks, processes)
    return table
