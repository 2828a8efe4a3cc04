"""Print a seeded sample of swapped captions for readers, the changed words in brackets
(docs/swaps.md).

python -m benchmarks.swaps results/c-cub/C-CUB/color/swapped.parquet 300 4711
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from compclip.core.artifacts.parquet import read_table
from compclip.core.seeds import rng
from compclip.core.tables import SWAPPED


def bracketed(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with the characters from start to end (exclusive) of each span in
    brackets.
    """
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


if __name__ == "__main__":
    swapped, number, seed = (
        read_table(Path(sys.argv[1]), SWAPPED),
        int(sys.argv[2]),
        int(sys.argv[3]),
    )
    drawn = swapped.iloc[rng(seed, "sample_swaps").permutation(len(swapped))[:number]]
    for place, row in enumerate(drawn.itertuples(), 1):
        pairs = ", ".join(f"{change['new_adj']} {change['noun']}" for change in row.changes)
        print(f"{place}. {row.image_id} {row.caption_id}: {pairs}")
        print("   ", bracketed(row.text, [(c["start"], c["end"]) for c in row.changes]))
        print(
            "   ",
            bracketed(row.swapped_text, [(c["new_start"], c["new_end"]) for c in row.changes]),
        )
