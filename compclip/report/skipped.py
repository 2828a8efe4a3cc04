"""Data without a split or a prompt; images without a score are in the notes of ``readable``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compclip.core.tables import Blocks, in_blocks
from compclip.plot.labels import SPLIT_NAMES

# Number of names that are shown; the summaries contain more.
MOST_NAMES = 5


@dataclass(frozen=True)
class SkippedLine:
    """A kind of skipped data, its count, the total (None: unknown), and the first names."""

    what: str
    count: int
    of: int | None = None
    names: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """The first names, with a mark if there are more."""
        first = ", ".join(self.names[:MOST_NAMES])
        return f"{first} …" if first and self.count > len(self.names[:MOST_NAMES]) else first


def in_dataset(summary: Mapping[str, Any]) -> Iterator[SkippedLine]:
    """Yield the kinds that loading skipped. ``summary``: dataset.json."""
    for name, value in summary.items():
        if isinstance(value, dict) and {"count", "names"} <= set(value):
            yield SkippedLine(name.replace("_", " "), value["count"], None, value["names"])


def in_pairs(captions: int, pairs: Blocks, ranking: pd.DataFrame) -> Iterator[SkippedLine]:
    """Yield captions and pairs that are not ranked. ``captions``: their number; ``pairs``: maybe in
    blocks.
    """
    with_pair = disputed = number = 0
    for (block,) in in_blocks(pairs):
        ranked = block[
            block["adjective"].isin(ranking["adjective"]) & block["noun"].isin(ranking["noun"])
        ]
        with_pair += len(ranked[["image_id", "caption_id"]].drop_duplicates())
        disputed, number = (
            disputed + int((ranked["relation"] == "disputed").sum()),
            number + len(ranked),
        )
    yield SkippedLine("captions without a ranked pair", captions - with_pair, captions)
    what = "pairs on which parse and surface disagree: held out, not ranked or swapped"
    yield SkippedLine(what, disputed, number)


def in_splits(
    captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame
) -> Iterator[SkippedLine]:
    """Yield images in no split and captions that are not swapped."""
    images = captions["image_id"].nunique()
    yield SkippedLine("images in no split", images - len(splits), images)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    of = int(captions["image_id"].isin(seen).sum())
    yield SkippedLine("captions of seen without a swap", of - len(swapped), of)


def in_prompts(summary: Mapping[str, Any]) -> Iterator[SkippedLine]:
    """Yield images without a prompt. ``summary``: prompts.json."""
    for split, counts in summary["splits"].items():
        if split != "test_swapped":
            name, of = SPLIT_NAMES[split], counts["images_in_split"]
            what = f"images of {name} without a file or used for training the judge"
            yield SkippedLine(what, counts["images_not_judged"], of)
            yield SkippedLine(
                f"images of {name} without a prompt", counts["images_without_prompt"], of
            )
