"""Count captions and their pairs."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.log import log
from compclip.core.reading.normal import normalize
from compclip.core.tables import CAPTION_KEY, RELATIONS, Blocks, in_blocks


def surfaces(pairs: pd.DataFrame, role: str) -> list[str]:
    """Return the nouns or adjectives (``role``) of pairs as read, in lower case; ``text`` is that
    of the caption.
    """
    # Lists, because iterating over columns takes several times as long.
    texts = pairs["text"].tolist()
    starts = pairs[f"{role}_start"].tolist()
    ends = pairs[f"{role}_end"].tolist()
    forms = []
    for text, start, end in zip(texts, starts, ends, strict=True):
        form = normalize(text[start:end]).text
        forms.append(form.lower())
    return forms


class PairCounts:
    """Counts of captions and their pairs that grow block by block, so that no block but the last is
    in memory.
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.relations = Counter[str]()
        self.forms = {"adjective": Counter[str](), "noun": Counter[str]()}
        self.texts = np.empty(0, np.uint64)  # hashes of the distinct ones

    def add(self, captions: pd.DataFrame, pairs: pd.DataFrame) -> None:
        """Add captions and all their pairs (``tables.CAPTIONS``, ``tables.PAIRS``)."""
        self.counts["captions"] += len(captions)
        self.counts["with_pairs"] += len(pairs[CAPTION_KEY].drop_duplicates())
        self.counts["empty"] += sum(not text.strip() for text in captions["text"])
        self.relations.update(pairs["relation"].tolist())
        hashes = pd.util.hash_array(captions["text"].to_numpy(), categorize=False)
        self.texts = np.union1d(self.texts, hashes)
        # The forms are those in the caption, not the canonical words.
        pairs = pairs.merge(captions[[*CAPTION_KEY, "text"]], on=CAPTION_KEY)
        for role, forms in self.forms.items():
            forms.update(surfaces(pairs, role))

    def nouns(self) -> set[str]:
        """Return the lower-case forms that occur in pairs more often as nouns than as adjectives,
        listed or not.
        """
        adjectives = self.forms["adjective"]
        nouns = self.forms["noun"]
        return {form for form, count in nouns.items() if count > adjectives[form]}

    def summary(self, model: str) -> dict[str, Any]:
        """Return and log the content of pairs.json; warn if most captions have no pair. ``model``:
        its identity.
        """
        captions = self.counts["captions"]
        with_pairs = self.counts["with_pairs"]
        empty = self.counts["empty"]
        summary = {
            "model": model,
            "captions": captions,
            "distinct": len(self.texts),
            "with_pairs": with_pairs,
            "without_pairs": captions - with_pairs - empty,
            "empty": empty,
            "pairs": self.relations.total(),
            "relations": {name: self.relations[name] for name in RELATIONS},
        }
        counts = (
            "%(captions)d captions, %(with_pairs)d with pairs, %(without_pairs)d without, "
            "%(empty)d empty"
        )
        log.info(f"{counts}; %(pairs)d pairs", summary)
        if 2 * with_pairs < captions:
            summary["warning"] = (
                "most captions have no pair: are they in the language of pairs.model?"
            )
            log.warning("warning: %s", summary["warning"])
        return summary | {"nouns": sorted(self.nouns())}


def nouns_of(captions: Blocks, pairs: Blocks, images: Collection[str]) -> set[str]:
    """Return the nouns of ``PairCounts`` in the captions of these images."""
    counts = PairCounts()
    for texts, occurrences in in_blocks(captions, pairs):
        has_text = texts["image_id"].isin(images)
        has_pair = occurrences["image_id"].isin(images)
        counts.add(texts[has_text], occurrences[has_pair])
    return counts.nouns()
