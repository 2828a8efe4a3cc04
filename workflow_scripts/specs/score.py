"""SPECS scores of pairs of an image and a text: a CSV in, the same CSV with three columns more out.

The table has the columns ``image`` (a path, from the table's folder) and ``text``; any others are kept. Added are
``specs``, ``cosine`` (of the two embeddings, from which the score is made) and ``status``: ``ok``, ``cut`` (scored,
its text longer than the judge reads), or why there is no score. Each distinct image and text is encoded once; the
cache serves later runs. Exit code 1 says that some pair has no score; all others have theirs.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workflow_scripts.clip import embed
from workflow_scripts.clip.embed import Embedder, open_embedder
from workflow_scripts.clip.tokens import cut_texts, say_cut
from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic
from workflow_scripts.core.pictures import BrokenImage, image_size
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.records import csv_rows, decode

IMAGE, TEXT = "image", "text"
ADDED = ("specs", "cosine", "status")
OK, CUT = "ok", "cut"
NO_FILE = "no such image file"

# Pairs whose tokens and embeddings lie in memory together.
CHUNK = 4096

# Bytes in the cache beside an embedding.
KEY = 60

# Pairs without a score that are named one by one on standard error.
NAMED = 20


@dataclass
class Scored:
    """n pairs: their cosines and SPECS scores, (n,) float32, nan where there is none, and the status of each."""

    cosine: np.ndarray
    specs: np.ndarray
    status: list[str]

    @property
    def done(self) -> np.ndarray:
        """(n,) which have a score."""
        return ~np.isnan(self.specs)


def score_pairs(embedder: Embedder, images: Sequence[Path], texts: Sequence[str]) -> Scored:
    """Score each text by its image; a pair with a bad one is left without a score and says why, the others get theirs.

    images: n files; texts: n captions.
    """
    # Here, not above: it is slow to import.
    from workflow_scripts.specs.measure import cosine, from_cosine

    cosines = torch.full((len(images),), torch.nan)
    status = [OK if text.strip() else "empty text" for text in texts]
    tokenizer = embedder.judge.tokenizer
    with Progress(len(images), "pairs") as progress:
        for start in range(0, len(images), CHUNK):
            rows = range(start, min(start + CHUNK, len(images)))
            wanted = dict.fromkeys(images[row] for row in rows if status[row] == OK)
            pictures, faults = embed_images(embedder, list(wanted))
            for row in rows:
                if status[row] == OK:
                    status[row] = faults.get(images[row], OK)
            good = [row for row in rows if status[row] == OK]
            if good:
                said = [texts[row] for row in good]
                seen = torch.from_numpy(np.stack([pictures[images[row]] for row in good]))
                cosines[good] = cosine(seen, torch.from_numpy(embedder.texts(said)))
                shortened = cut_texts(tokenizer, said)
                for row in good:
                    if texts[row] in shortened:
                        status[row] = CUT
                    if cosines[row].isnan():
                        status[row] = "the judge's embedding is no number"
            progress.add(len(rows))
    return Scored(cosines.numpy(), from_cosine(cosines).numpy(), status)


def embed_images(embedder: Embedder, paths: Sequence[Path]) -> tuple[dict[Path, np.ndarray], dict[Path, str]]:
    """The embeddings, (d,) each, of those of distinct files that the judge can read; why it cannot read the others."""
    faults = {path: NO_FILE for path in paths if not os.path.isfile(path)}
    there = [path for path in paths if path not in faults]
    try:
        vectors = embedder.images([(path, None) for path in there])
    except Exception:
        # One bad file stops its batch: only then is each looked at by itself.
        faults |= image_faults(embedder.judge, there)
        there = [path for path in there if path not in faults]
        vectors = embedder.images([(path, None) for path in there])
    return dict(zip(there, vectors, strict=True)), faults


def image_faults(judge: Any, paths: Sequence[Path]) -> dict[Path, str]:
    """Of distinct files those that the judge cannot read, and why; each is decoded."""
    return {path: fault for path in paths if (fault := _fault(judge, path))}


def _fault(judge: Any, path: Path) -> str | None:
    # Not Path.is_file, which fails at a name that is too long: a caption, say.
    if not os.path.isfile(path):
        return NO_FILE
    try:
        judge.preprocess.read([(path, None)])
    except Exception:  # as many kinds as Pillow has decoders
        try:
            image_size(path)
        except BrokenImage as error:
            return f"unreadable image: {error}"
        except OSError as error:
            return f"unreadable image: {error.strerror}"
        return "unreadable image"
    return None


def read_pairs(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV, as they stand there.

    Raises UserError for a file that is no UTF-8, has no rows, has a quote that does not close, or whose header is not
    one of pairs.
    """
    header, *rows = [row for _, row in csv_rows(path, decode(path))] or [[]]
    missing = [name for name in (IMAGE, TEXT) if name not in header]
    if missing:
        raise UserError(
            f"{path}: no column {' and no column '.join(missing)}: its first line must name image and text, with commas"
            f" between; it names {', '.join(map(repr, header)) or 'nothing'}"
        )
    for name in header:
        if name in ADDED or header.count(name) > 1:
            raise UserError(
                f"{path}: column {name!r}: rename it, for {'it is added' if name in ADDED else 'two have it'}"
            )
    if not rows:
        raise UserError(f"{path}: no pairs below its first line")
    return header, rows


def score_rows(embedder: Embedder, header: Sequence[str], rows: Sequence[Sequence[str]], folder: Path) -> Scored:
    """``score_pairs`` of a table's rows, images from ``folder``; a row of another number of fields has no score."""
    whole = [number for number, row in enumerate(rows) if len(row) == len(header)]
    image, text = header.index(IMAGE), header.index(TEXT)
    part = score_pairs(embedder, [folder / rows[n][image] for n in whole], [rows[n][text] for n in whole])
    scored = Scored(np.full(len(rows), np.nan, np.float32), np.full(len(rows), np.nan, np.float32), [""] * len(rows))
    scored.cosine[whole], scored.specs[whole] = part.cosine, part.specs
    for number, row in enumerate(rows):
        scored.status[number] = f"{len(row)} fields, not {len(header)}: put quotes around a text that has commas"
    for number, status in zip(whole, part.status, strict=True):
        scored.status[number] = status
    return scored


def write_scores(header: Sequence[str], rows: Sequence[Sequence[str]], scored: Scored, path: Path) -> None:
    """The table with its three columns more, in its order; numbers with six decimals, empty where there is none."""
    with atomic(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*header, *ADDED])
        for row, score, value, status in zip(rows, scored.specs, scored.cosine, scored.status, strict=True):
            fields = [*row, *[""] * len(header)][: len(header)]
            writer.writerow([*fields, *("" if np.isnan(x) else f"{x:.6f}" for x in (score, value)), status])


def main(options: argparse.Namespace) -> None:
    header, rows = read_pairs(options.pairs)
    output = options.output or options.pairs.with_suffix(".specs.csv")
    with open_embedder(options) as embedder:
        many = [len({row[k] for row in rows if len(row) > k}) for k in (header.index(IMAGE), header.index(TEXT))]
        size = sum(many) * (4 * embedder.judge.width + KEY) / 2**20
        log.info("%d pairs: %d images and %d texts, %.1f MiB in the cache", len(rows), *many, size)
        scored = score_rows(embedder, header, rows, options.pairs.parent)
    write_scores(header, rows, scored, output)
    say(scored, header, rows, output)


def say(scored: Scored, header: Sequence[str], rows: Sequence[Sequence[str]], output: Path) -> None:
    """What was scored and what was not; raises UserError where a pair has no score."""
    bad = np.flatnonzero(~scored.done)
    for row in bad[:NAMED]:
        log.warning("pair %d (%s): %s", row + 1, ", ".join(rows[row])[:80], scored.status[row])
    if len(bad) > NAMED:
        log.warning("and %d more", len(bad) - NAMED)
    say_cut(scored.status.count(CUT), len(rows), "texts")
    if scored.done.any():
        log.info("%s: %d pairs scored, SPECS %.4f on average", output, scored.done.sum(), np.nanmean(scored.specs))
    if len(bad):
        raise UserError(f"{len(bad)} of {len(rows)} pairs have no score: {output} says why, in its column status")


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="CSV with the columns image and text")
    parser.add_argument("--output", type=Path, help="CSV with the scores; by default beside --pairs, *.specs.csv")
    embed.add_arguments(parser)
    # The last batch is filled up: with few pairs a large one is mostly that.
    parser.set_defaults(batch=16)
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
