"""Draw swapped captions for people to read."""

from collections.abc import Collection, Iterable

import pandas as pd
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout
from workflow_scripts.core.io import atomic, read_table, spreadsheet_safe
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Output, Seed, Step
from workflow_scripts.core.tables import SWAPPED

HEADER = """\
A swap reads wrong if the swapped caption is ungrammatical or contradicts itself, or if the changed word does not
modify the named noun, or if the pair that it makes is not held out. What is wrong in the original already does not
count. Words that mean the same count as one: wing for wings, bill for beak.
Held out: {heldout}.
"""


class SampleSwaps(Step):
    """Draw swapped captions for people to read, with the changed words in [brackets].

    The same seed draws the same captions from the same swapped.parquet.
    """

    swapped: Input = Field(description="swapped.parquet")
    heldout: Input = Field(description="heldout.json, whose pairs the text lists")
    number: int = Field(300, ge=1, description="captions to draw")
    seed: Seed
    output: Output = Field(
        description="text, or, if the name ends in .csv, a row per caption with an empty column for the verdict"
    )


def marked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with the characters from start to end (exclusive) of each span in brackets."""
    result, copied = "", 0
    for start, end in sorted(spans):
        result += f"{text[copied:start]}[{text[start:end]}]"
        copied = end
    return result + text[copied:]


def sample_swaps(swapped: pd.DataFrame, number: int, seed: int) -> pd.DataFrame:
    """Draw ``number`` rows (all if there are fewer) of ``tables.SWAPPED`` without replacement."""
    drawn = rng(seed, "sample_swaps").permutation(len(swapped))[:number]
    rows = [
        (
            place,
            row.image_id,
            row.caption_id,
            marked(row.text, [(c["start"], c["end"]) for c in row.changes]),
            marked(row.swapped_text, [(c["new_start"], c["new_end"]) for c in row.changes]),
            ", ".join(c["noun"] for c in row.changes),
            ", ".join(f"{c['new_adj']} {c['noun']}" for c in row.changes),
        )
        for place, row in enumerate(swapped.iloc[drawn].itertuples(index=False), start=1)
    ]
    columns = ["number", "image_id", "caption_id", "original", "swapped", "nouns", "pairs"]
    return pd.DataFrame(rows, columns=columns)


def as_text(sample: pd.DataFrame, heldout: Collection[str]) -> str:
    """Return the sample as numbered items, after an explanation."""
    item = "{number}.\noriginal: {original}\nswapped:  {swapped}\nnoun: {nouns}   pair: {pairs}\n"
    items = [item.format_map(row) for row in sample.to_dict("records")]
    return "\n".join([HEADER.format(heldout=", ".join(pair.replace("_", " ") for pair in sorted(heldout))), *items])


def main(step: SampleSwaps) -> None:
    swapped = read_table(step.swapped, SWAPPED)
    if swapped.empty:
        raise UserError(f"{step.swapped}: no swapped caption to read; hold out other pairs or add captions")
    sample = sample_swaps(swapped, step.number, step.seed)
    with atomic(step.output) as temporary:
        if step.output.suffix == ".csv":
            spreadsheet_safe(sample).assign(wrong="").to_csv(temporary, index=False, lineterminator="\n")
        else:
            temporary.write_text(as_text(sample, read_heldout(step.heldout)), encoding="utf-8")
    log.info("%s: %d of %d swapped captions", step.output, len(sample), len(swapped))


if __name__ == "__main__":
    cli.run(main)
