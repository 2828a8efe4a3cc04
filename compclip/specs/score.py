"""SPECS scores of pairs of an image and a text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.clip.embed import Embedder, open_embedder
from compclip.clip.tokens import report_truncated, truncated_texts
from compclip.core.artifacts.files import atomic
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.settings.cli import Command
from compclip.core.settings.section import CacheFolder, Count, Threads
from compclip.specs.evaluation import Device, embed_readable

# Values of column status; other values are faults.
OK = "ok"
TRUNCATED = "truncated"
SCORE_COLUMNS = ("specs", "cosine", "status")  # added to the user's
FAULTS_LOGGED = 20


class Score(Command):
    """Score pairs of an image and a text by SPECS.

    The table has the columns image (a path relative to the table) and text; other columns are kept.
    The output has three more columns: specs, cosine (of the embeddings, from which the score is
    computed) and status: ok, truncated (scored, but the text is longer than the judge reads), or
    why there is no score. Each distinct image and text is encoded once and cached. The exit code is
    1 if any pair has no score.
    """

    pairs: Path = Field(description="CSV with the columns image and text")
    judge: Path = Field(description="folder of the judge")
    # The last batch is padded, so a large batch wastes time on few pairs.
    batch: Count = Field(
        16, ge=1, description="items encoded at once; changes floating-point rounding"
    )
    threads: Threads
    device: Device
    cache: CacheFolder
    output: Path | None = Field(
        None, description="CSV with the scores; default: --pairs with suffix .specs.csv"
    )


def score_pairs(embedder: Embedder, images: Sequence[Path], texts: Sequence[str]) -> pd.DataFrame:
    """Score n texts (captions) with n images (files); a bad image or text affects only its own
    pairs.

    The columns are specs and cosine, float32, NaN if there is no score, and the status of each
    pair.
    """
    # Imported here, because torch is slow to import.
    import torch

    from compclip.specs.specs_score import cosine, from_cosine

    status = np.array([OK if text.strip() else "empty text" for text in texts], dtype=object)
    rows_with_text = np.flatnonzero(status == OK)
    files = [images[row] for row in rows_with_text.tolist()]
    image_vectors, faults = embed_readable(embedder, files)
    is_readable = faults == ""
    status[rows_with_text] = np.where(is_readable, OK, faults)
    scored_rows = rows_with_text[is_readable].tolist()
    captions = [texts[row] for row in scored_rows]
    text_vectors = torch.from_numpy(embedder.texts(captions))
    cosines = torch.full((len(texts),), torch.nan)
    cosines[scored_rows] = cosine(torch.from_numpy(image_vectors[is_readable]), text_vectors)
    truncated = truncated_texts(embedder.judge.tokenizer, captions)
    status[[row for row in scored_rows if texts[row] in truncated]] = TRUNCATED
    scores = from_cosine(cosines).numpy()
    return pd.DataFrame({"specs": scores, "cosine": cosines.numpy(), "status": status})


def read_image_texts(path: Path) -> pd.DataFrame:
    """Return the rows of a CSV file with columns image and text, as texts, "" where empty."""
    try:
        # By default, pandas reads a text such as "null" as a missing one.
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (ValueError, OSError) as error:  # of pandas' parser, or a byte that is not UTF-8
        fault = f"not a readable CSV file: {one_line(error)}"
        raise UserError(f"{path}: {fault}; correct it") from error
    table = table.fillna("")  # cells that a short row lacks
    columns = ", ".join(map(repr, table))[:200]
    expected = "the first line must name the columns image, text, separated by commas"
    for name in ("image", "text"):
        require(name in table, path, f"no column {name}", f"{expected}, but names {columns}")
    require(len(table), path, "no rows after the header", "add some")
    return table


def main(command: Score) -> None:
    table = read_image_texts(command.pairs)
    # checked before the scoring, which can take hours
    duplicates = ", ".join(name for name in SCORE_COLUMNS if name in table)
    fault = f"column {duplicates!r} is a column of the output"
    require(not duplicates, command.pairs, fault, "rename it")
    output = command.output or command.pairs.with_suffix(".specs.csv")
    images = [command.pairs.parent / name for name in table["image"]]
    texts = table["text"].tolist()
    distinct = table[["image", "text"]].nunique()
    log.info("%d pairs: %d images, %d texts", len(table), distinct["image"], distinct["text"])
    with open_embedder(
        command.judge, command.batch, command.threads, command.device, command.cache
    ) as embedder:
        scored = score_pairs(embedder, images, texts)
    with atomic(output) as temporary:
        table.join(scored).to_csv(temporary, index=False, float_format="%.6f", lineterminator="\n")
    unscored = np.flatnonzero(scored["specs"].isna())
    for row in unscored[:FAULTS_LOGGED]:
        pair = ", ".join(table.iloc[row])[:80]
        log.warning("pair %d (%s): %s", row + 1, pair, scored["status"][row])
    report_truncated(int((scored["status"] == TRUNCATED).sum()), len(table), "texts")
    count = len(table) - len(unscored)
    mean = scored["specs"].mean()
    log.info("%s: %d pairs scored, mean SPECS score %.4f", output, count, mean)
    fault = f"{len(unscored)} of {len(table)} pairs have no score"
    require(count == len(table), output, fault, "see its column status")
