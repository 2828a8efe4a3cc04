"""SPECS scores of pairs of an image and a text."""

import csv
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from workflow_scripts.clip.embed import Embedder, InvalidEmbedding, open_embedder
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic
from workflow_scripts.core.pictures import BrokenImage, image_size
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import csv_rows
from workflow_scripts.core.step import Cache, Input, Output, Step, Threads
from workflow_scripts.specs.steps import Device

IMAGE, TEXT = "image", "text"
ADDED = ("specs", "cosine", "status")
OK, TRUNCATED = "ok", "cut"
NO_FILE = "no such image file"

PAIRS_IN_MEMORY = 4096
CACHE_OVERHEAD = 60  # bytes of an embedding's entry in the cache, without the embedding
FAULTS_LOGGED = 20


class Score(Step):
    """Score pairs of an image and a text by SPECS.

    The table has the columns image (a path relative to the table) and text; other columns are kept. The output has
    three more columns: specs, cosine (of the two embeddings, from which the score is computed) and status: ok, cut
    (scored, but the text is longer than the judge reads and was truncated), or why there is no score. Each distinct
    image and text is encoded once and cached. The exit code is 1 if any pair has no score.
    """

    pairs: Input = Field(description="CSV with the columns image and text")
    judge: Input = Field(description="folder of the judge")
    # The last batch is filled up, so that a large one wastes time on few pairs.
    batch: int = Field(16, ge=1, description="items encoded at once; changes floating-point rounding")
    threads: Threads
    device: Device
    cache: Cache
    output: Output | None = Field(None, description="CSV with the scores; default: --pairs with suffix .specs.csv")


@dataclass
class Scored:
    """n pairs: their cosines and SPECS scores, (n,) float32, NaN where there is none, and the status of each."""

    cosine: np.ndarray
    specs: np.ndarray
    status: list[str]

    @property
    def done(self) -> np.ndarray:
        return ~np.isnan(self.specs)


def score_pairs(embedder: Embedder, images: Sequence[Path], texts: Sequence[str]) -> Scored:
    """Score n texts (captions) with n images (files); a bad image or text costs only its own pairs."""
    # Imported here, because torch is slow to import.
    import torch

    from workflow_scripts.specs.measure import cosine, from_cosine

    cosines = torch.full((len(images),), torch.nan)
    status = [OK if text.strip() else "empty text" for text in texts]
    tokenizer = embedder.judge.tokenizer
    with Progress(len(images), "pairs") as progress:
        for start in range(0, len(images), PAIRS_IN_MEMORY):
            rows = range(start, min(start + PAIRS_IN_MEMORY, len(images)))
            wanted = dict.fromkeys(images[row] for row in rows if status[row] == OK)
            vectors, faults = embed_images(embedder, list(wanted))
            for row in rows:
                if status[row] == OK:
                    status[row] = faults.get(images[row], OK)
            good = [row for row in rows if status[row] == OK]
            if good:
                captions = [texts[row] for row in good]
                pictures = torch.from_numpy(np.stack([vectors[images[row]] for row in good]))
                cosines[good] = cosine(pictures, torch.from_numpy(embedder.texts(captions)))
                truncated = cut_texts(tokenizer, captions)
                for row in good:
                    if texts[row] in truncated:
                        status[row] = TRUNCATED
            progress.add(len(rows))
    return Scored(cosines.numpy(), from_cosine(cosines).numpy(), status)


def embed_images(embedder: Embedder, paths: Sequence[Path]) -> tuple[dict[Path, np.ndarray], dict[Path, str]]:
    """Return the embeddings, (d,) each, of the readable ones of distinct files, and the faults of the others."""
    faults = {path: NO_FILE for path in paths if not os.path.isfile(path)}
    files = [path for path in paths if path not in faults]
    try:
        vectors = embedder.images([(path, None) for path in files])
    except InvalidEmbedding:
        raise
    except Exception:
        # One bad file stops its batch; only then is each file checked.
        faults |= image_faults(embedder.judge, files)
        files = [path for path in files if path not in faults]
        vectors = embedder.images([(path, None) for path in files])
    return dict(zip(files, vectors, strict=True)), faults


def image_faults(judge: Any, paths: Sequence[Path]) -> dict[Path, str]:
    """Return why the judge cannot read some of ``paths``; each file is decoded."""
    faults = {}
    for path in paths:
        # os.path, because Path.is_file fails if a name is too long, for example a caption.
        if not os.path.isfile(path):
            faults[path] = NO_FILE
            continue
        try:
            judge.preprocess.read([(path, None)])
        except Exception:  # Pillow's decoders raise many kinds
            faults[path] = "unreadable image"
            try:
                image_size(path)
            except BrokenImage as error:
                faults[path] += f": {error}"
            except OSError as error:
                faults[path] += f": {error.strerror}"
    return faults


def read_pairs(path: Path) -> tuple[list[str], list[list[str]]]:
    header, *rows = [row for _, row in csv_rows(path)] or [[]]
    missing = [name for name in (IMAGE, TEXT) if name not in header]
    if missing:
        names = ", ".join(map(repr, header))[:200] or "nothing"
        raise UserError(
            f"{path}: no column {' and no column '.join(missing)}; the first line must name the columns image and text,"
            f" separated by commas, but names {names}"
        )
    for name, count in Counter(header).items():
        if name in ADDED or count > 1:
            reason = "is a column of the output" if name in ADDED else "is a duplicate"
            raise UserError(f"{path}: column {name!r} {reason}; rename it")
    if not rows:
        raise UserError(f"{path}: no pairs after the header; add a row for each")
    return header, rows


def score_rows(embedder: Embedder, header: Sequence[str], rows: Sequence[Sequence[str]], folder: Path) -> Scored:
    """Score a table's rows (``score_pairs``), with images from ``folder``; a row of another length has no score."""
    image, text = header.index(IMAGE), header.index(TEXT)
    complete = [row if len(row) == len(header) else [""] * len(header) for row in rows]
    scored = score_pairs(embedder, [folder / row[image] for row in complete], [row[text] for row in complete])
    for number, row in enumerate(rows):
        if len(row) != len(header):
            fault = f"{len(row)} fields, not {len(header)}: put quotes around a text that has commas"
            scored.status[number] = fault
    return scored


def write_scores(header: Sequence[str], rows: Sequence[Sequence[str]], scored: Scored, path: Path) -> None:
    """Write the table with three more columns; numbers have six decimals, empty where there is none."""
    with atomic(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*header, *ADDED])
        for row, score, value, status in zip(rows, scored.specs, scored.cosine, scored.status, strict=True):
            fields = [*row, *[""] * len(header)][: len(header)]
            writer.writerow([*fields, *("" if np.isnan(x) else f"{x:.6f}" for x in (score, value)), status])


def report(scored: Scored, rows: Sequence[Sequence[str]], output: Path) -> None:
    """Log what was scored and what was not; raises UserError if any pair has no score."""
    bad = np.flatnonzero(~scored.done)
    for row in bad[:FAULTS_LOGGED]:
        log.warning("pair %d (%s): %s", row + 1, ", ".join(rows[row])[:80], scored.status[row])
    if len(bad) > FAULTS_LOGGED:
        log.warning("and %d more", len(bad) - FAULTS_LOGGED)
    say_cut(scored.status.count(TRUNCATED), len(rows), "texts")
    if scored.done.any():
        log.info("%s: %d pairs scored, mean SPECS score %.4f", output, scored.done.sum(), np.nanmean(scored.specs))
    if len(bad):
        raise UserError(f"{len(bad)} of {len(rows)} pairs have no score; see the column status of {output}")


def main(step: Score) -> None:
    header, rows = read_pairs(step.pairs)
    output = step.output or step.pairs.with_suffix(".specs.csv")
    with open_embedder(step.judge, step.batch, step.threads, step.device, step.cache) as embedder:
        counts = [len({row[k] for row in rows if len(row) > k}) for k in (header.index(IMAGE), header.index(TEXT))]
        size = sum(counts) * (4 * embedder.judge.width + CACHE_OVERHEAD) / 2**20
        log.info("%d pairs: %d images and %d texts, %.1f MiB in the cache", len(rows), *counts, size)
        scored = score_rows(embedder, header, rows, step.pairs.parent)
    write_scores(header, rows, scored, output)
    report(scored, rows, output)


if __name__ == "__main__":
    cli.run(main)
