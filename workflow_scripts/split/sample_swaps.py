"""Draw swapped captions for people to read, with what changed in [brackets].

A file that ends in ``.csv`` gets a row a caption with an empty column for the reader's verdict; any other is text.
The same seed draws the same captions from the same swapped.parquet.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import atomic, read_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import SWAPPED

HEADER = """\
A swap reads wrong if the swapped caption is ungrammatical or contradicts itself, or if the changed word does not
modify the named noun, or if the pair that it makes is not held out. What is wrong in the original already does not
count. Words that mean the same count as one: wing for wings, bill for beak.
Held out: {heldout}.
"""


def marked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """``text`` with its characters from start to end (exclusive) of each span in brackets."""
    done, copied = "", 0
    for start, end in sorted(spans):
        done += f"{text[copied:start]}[{text[start:end]}]"
        copied = end
    return done + text[copied:]


def sample_swaps(swapped: pd.DataFrame, number: int, seed: int) -> pd.DataFrame:
    """``number`` rows (all where there are fewer) drawn without replacement; columns number (from 1), image_id,
    caption_id, original, swapped, nouns, pairs.

    swapped: columns of ``tables.SWAPPED``.
    """
    drawn = rng(seed, "sample_swaps").permutation(len(swapped))[:number]
    rows: list[dict[str, Any]] = []
    for place, row in enumerate(swapped.iloc[drawn].itertuples(index=False), start=1):
        rows.append(
            {
                "number": place,
                "image_id": row.image_id,
                "caption_id": row.caption_id,
                "original": marked(row.text, [(c["start"], c["end"]) for c in row.changes]),
                "swapped": marked(row.swapped_text, [(c["new_start"], c["new_end"]) for c in row.changes]),
                "nouns": ", ".join(c["noun"] for c in row.changes),
                "pairs": ", ".join(f"{c['new_adj']} {c['noun']}" for c in row.changes),
            }
        )
    columns = ["number", "image_id", "caption_id", "original", "swapped", "nouns", "pairs"]
    return pd.DataFrame(rows, columns=columns)


def as_text(sample: pd.DataFrame, heldout: Collection[str]) -> str:
    """The sample as numbered items under a word of explanation."""
    items = [
        f"{row.number}.\noriginal: {row.original}\nswapped:  {row.swapped}\nnoun: {row.nouns}   pair: {row.pairs}\n"
        for row in sample.itertuples(index=False)
    ]
    return "\n".join([HEADER.format(heldout=", ".join(pair.replace("_", " ") for pair in sorted(heldout))), *items])


def main(options: argparse.Namespace) -> None:
    swapped = read_table(options.swapped, SWAPPED)
    if swapped.empty:
        raise UserError(f"{options.swapped}: holds no swapped caption: there is nothing to read")
    sample = sample_swaps(swapped, options.number, options.seed)
    with atomic(options.output) as temporary:
        if options.output.suffix == ".csv":
            sample.assign(wrong="").to_csv(temporary, index=False, lineterminator="\n")
        else:
            temporary.write_text(as_text(sample, read_heldout(options.heldout)), encoding="utf-8")
    log.info("%s: %d of %d swapped captions", options.output, len(sample), len(swapped))


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--swapped", type=Path, required=True, help="swapped.parquet")
    result.add_argument("--heldout", type=Path, required=True, help="heldout.json, named in the text")
    result.add_argument("--number", type=int, default=300, help="captions to draw (default: %(default)s)")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--output", type=Path, required=True, help="text, or CSV by its ending")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
