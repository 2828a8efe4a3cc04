"""Data without a split or a prompt; images without a score are in the notes of ``summary``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compclip.core.tables import CAPTION_KEY, Blocks, in_blocks
from compclip.plot.labels import SPLIT_NAMES

# Number of names that are shown; the summaries contain more.
MOST_NAMES = 5


@dataclass(frozen=True)
class SkippedLine:
    """A kind of skipped data, its count, the total (None: unknown), and the first names."""

    kind: str
    count: int
    total: int | None = None
    names: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """The first names, with a mark if there are more."""
        first_names = self.names[:MOST_NAMES]
        text = ", ".join(first_names)
        return f"{text} …" if text and self.count > len(first_names) else text


def in_dataset(summary: Mapping[str, Any]) -> Iterator[SkippedLine]:
    """Yield the kinds that loading skipped. ``summary``: dataset.json."""
    for name, value in summary.items():
        # Other entries of dataset.json are not about skipped data.
        is_skipped = isinstance(value, dict) and {"count", "names"} <= set(value)
        if is_skipped:
            kind = name.replace("_", " ")
            yield SkippedLine(kind, value["count"], names=value["names"])


def in_pairs(captions: int, pairs: Blocks, ranking: pd.DataFrame) -> Iterator[SkippedLine]:
    """Yield captions and pairs that are not ranked. ``captions``: their number; ``pairs``: maybe in
    blocks.
    """
    with_pair = 0
    disputed = 0
    total = 0
    sizes: list[pd.Series] = []
    for (block,) in in_blocks(pairs):
        is_adjective = block["adjective"].isin(ranking["adjective"])
        is_noun = block["noun"].isin(ranking["noun"])
        ranked = block[is_adjective & is_noun]
        # A block has whole images, so no caption is counted twice.
        with_pair += len(ranked[CAPTION_KEY].drop_duplicates())
        disputed += int((ranked["relation"] == "disputed").sum())
        total += len(ranked)
        sizes.append(ranked.groupby(["adjective", "noun"]).size())
    yield SkippedLine("captions without a ranked pair", captions - with_pair, captions)
    kind = "pairs on which parse and surface disagree: held out, not ranked or swapped"
    yield SkippedLine(kind, disputed, total)
    by_pair = pd.concat(sizes).groupby(level=["adjective", "noun"]).sum()
    # As often as a ranked pair, if disputed occurrences counted.
    frequent = int((by_pair >= ranking["count"].min()).sum())
    yield SkippedLine(
        "pairs not ranked because of disputed occurrences", frequent - len(ranking), frequent
    )


def in_splits(
    captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame
) -> Iterator[SkippedLine]:
    """Yield images in no split and captions that are not swapped."""
    # Images that a division leaves unused have no row in ``splits``.
    images = captions["image_id"].nunique()
    yield SkippedLine("images in no split", images - len(splits), images)
    seen_images = splits.loc[splits["split"] == "test_seen", "image_id"]
    seen_captions = int(captions["image_id"].isin(seen_images).sum())
    not_swapped = seen_captions - len(swapped)
    yield SkippedLine("captions of seen without a swap", not_swapped, seen_captions)


def in_prompts(summary: Mapping[str, Any]) -> Iterator[SkippedLine]:
    """Yield images without a prompt. ``summary``: prompts.json."""
    for split, counts in summary["splits"].items():
        # Swapped prompts are of the images of seen.
        if split == "test_swapped":
            continue
        name = SPLIT_NAMES[split]
        images = counts["images_in_split"]
        kind = f"images of {name} without a file or used for training the judge"
        yield SkippedLine(kind, counts["images_not_judged"], images)
        kind = f"images of {name} without a prompt"
        yield SkippedLine(kind, counts["images_without_prompt"], images)
