"""Use a published split instead of drawing one: its held-out pairs, images and swapped captions.

Words are folded to the lexicons' canonical words (``grey_beaks`` is ``gray_bill``). Entries that
cannot be used become faults (kind, count and names), which the audit counts as violations. Only a
file without usable entries is an error. ``adjectives`` and ``nouns`` map surface forms to canonical
words, unless they are lexicons.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.artifacts.parquet import empty_table
from compclip.core.errors import require
from compclip.core.reading.published_files import PublishedSplit
from compclip.core.tables import CAPTION_KEY, SPLITS, SWAPPED
from compclip.dataset.source import named, unbroken
from compclip.split.wording import CaptionWord, Wording
from compclip.text.lexicon import Lexicon, fold

# An image in two lists goes to the first of these splits: it must not stay in train.
PRECEDENCE = ("test_unseen", "test_seen", "train")
Fault = dict[str, Any]


def published_faults(names_by_kind: Mapping[str, Iterable[str]]) -> list[Fault]:
    """Return a fault for each kind that has names: guarantee, fault, count, and the first hundred
    names.
    """
    faults = []
    for kind, names in names_by_kind.items():
        # Sorted, because names may come from a set.
        ordered = sorted(names)
        if ordered:
            faults.append({"guarantee": "published files", "fault": kind, **named(ordered)})
    return faults


def take_pairs(
    published: Collection[str],
    adjectives: Mapping[str, str],
    nouns: Mapping[str, str] | None,
    file: str | Path,
) -> tuple[list[str], list[Fault]]:
    """Return the held-out pairs, folded and sorted, and the faults; raises UserError if no pair is
    left.

    A pair with a word that the lexicons lack is a fault, because captions cannot be searched for
    it.
    """
    pairs = set()
    unlisted = []
    names = set(published)
    for pair in names:
        canonical = fold(*split_pair(pair), adjectives, nouns)
        if canonical is None:
            unlisted.append(pair)
        else:
            pairs.add(canonical)
    first = min(names, default="none")
    fault = f"the lexicons list none of its {len(names)} held-out pairs (first: {first})"
    remedy = "choose the file of this composition or add the words to the lexicons"
    require(pairs, file, fault, remedy)
    faults = published_faults({"held-out pairs of words that no lexicon has": unlisted})
    return sorted(pairs), faults


def take_splits(
    published: PublishedSplit, images: Collection[str], file: str | Path
) -> tuple[pd.DataFrame, list[Fault]]:
    """Return the splits of the ``images`` that are in the file, sorted, and the faults."""
    in_data = set(images)
    split_of: dict[str, str] = {}
    duplicates = []
    for split in PRECEDENCE:
        for image in published.images[split]:
            # PRECEDENCE decides, and the audit reports the image.
            if image in split_of:
                duplicates.append(f"{image} ({split_of[image]}, {split})")
            else:
                split_of[image] = split
    image_ids = sorted(in_data & set(split_of))
    columns = {"image_id": image_ids, "split": [split_of[image] for image in image_ids]}
    splits = pd.DataFrame(columns, dtype="str")
    for split in SPLITS:
        listed = published.images[split]
        require(listed, file, f"list {split} is empty", "choose a split with images in it")
        fault = (
            f"none of its {len(listed)} images in {split} (first: {min(split_of)}) is among "
            f"the {len(in_data)} of the data set (first: {min(in_data)})"
        )
        require((splits["split"] == split).any(), file, fault, "choose the file of this data set")
    faults = {
        "images in two places of the published split": duplicates,
        "images of the published split that the data set has not": set(split_of) - in_data,
        "images of the data set in no published split": in_data - set(split_of),
    }
    return splits, published_faults(faults)


def _replacements(
    old: list[CaptionWord], new: list[CaptionWord]
) -> Iterator[tuple[list[CaptionWord], list[CaptionWord]]]:
    """Yield the words of ``old`` that were replaced and their replacements, one by one if the
    numbers are equal.

    Inserted and deleted words are ignored: the audit reports them, because they are not among the
    changes.
    """
    old_texts = [word.text for word in old]
    new_texts = [word.text for word in new]
    # Without autojunk, which ignores frequent words in texts of 200 words or more.
    matcher = SequenceMatcher(None, old_texts, new_texts, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind != "replace":
            continue
        removed = old[start:end]
        inserted = new[new_start:new_end]
        if len(removed) == len(inserted):
            yield from (([a], [b]) for a, b in zip(removed, inserted, strict=True))
        else:
            yield removed, inserted


class StatedChange(NamedTuple):
    """The one change that a published file states of a swapped caption, folded."""

    noun: str
    original_adj: str
    new_adj: str


def changes_of(
    text: str,
    swapped_text: str,
    stated: StatedChange,
    bearers: Mapping[int, list[str]],
    adjectives: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return the changes between a caption and its swapped text, as in ``tables.SWAPPED``.

    Args:
        stated: other changes get the noun that the adjective modifies in the caption, or "" if it
            is unknown.
        bearers: the nouns of each adjective, by its start in ``text``.
    """
    changes = []
    for old, new in _replacements(Wording(text).words, Wording(swapped_text).words):
        start = old[0].start
        end = old[-1].end
        new_start = new[0].start
        new_end = new[-1].end
        original_adj = text[start:end].lower()
        new_adj = swapped_text[new_start:new_end].lower()
        # The article follows the new adjective: it is no change of its own.
        if {original_adj, new_adj} == {"a", "an"}:
            continue
        original_adj = adjectives.get(original_adj, original_adj)
        new_adj = adjectives.get(new_adj, new_adj)
        candidates = bearers.get(start, [])
        # Of several nouns, the first in the text.
        noun = candidates[0] if candidates else ""
        is_stated = (original_adj, new_adj) == (stated.original_adj, stated.new_adj)
        # The file knows the noun best, unless the adjective is of another one.
        if is_stated and (stated.noun in candidates or not candidates):
            noun = stated.noun
        words = {"noun": noun, "original_adj": original_adj, "new_adj": new_adj}
        offsets = {"start": start, "end": end, "new_start": new_start, "new_end": new_end}
        changes.append({**words, **offsets})
    return changes


def _usable_rows(
    published: pd.DataFrame, captions: pd.DataFrame, splits: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Iterable[str]]]:
    """Return the published swaps whose caption is, word for word, in test_seen here, and the others
    by fault.
    """
    rows = published[published["swapped_text"].notna()]
    # As texts of the data set are read, without line breaks.
    rows = rows.assign(text=unbroken(rows["text"]), swapped_text=unbroken(rows["swapped_text"]))
    texts = captions[[*CAPTION_KEY, "text"]].rename(columns={"text": "ours"})
    rows = rows.merge(texts, how="left")
    rows = rows.merge(splits, on="image_id", how="left").sort_values(CAPTION_KEY)
    names = rows["image_id"] + " " + rows["caption_id"].astype("str")
    # Each row has at most one fault, the first of these.
    is_absent = rows["ours"].isna()
    is_different = ~is_absent & (rows["ours"] != rows["text"])
    is_elsewhere = ~is_absent & ~is_different & (rows["split"] != "test_seen")
    faults = {
        "swapped captions that the data set has not": names[is_absent],
        "swapped captions of another text than the data set's": names[is_different],
        "swapped captions of images that are not in test_seen": names[is_elsewhere],
    }
    return rows[~(is_absent | is_different | is_elsewhere)], faults


def _bearers_by_caption(
    pairs: pd.DataFrame, images: Iterable[str]
) -> Mapping[tuple[str, int], Mapping[int, list[str]]]:
    """Return, for each caption, the nouns that each adjective modifies, by its start."""
    bearers: dict[tuple[str, int], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    rows = pairs[pairs["image_id"].isin(images)]
    in_order = rows.sort_values(["adjective_start", "noun_start"])
    for row in in_order.itertuples(index=False):
        by_start = bearers[row.image_id, row.caption_id]
        by_start[row.adjective_start].append(row.noun)
    return bearers


def take_swaps(
    published: pd.DataFrame,
    captions: pd.DataFrame,
    splits: pd.DataFrame,
    pairs: pd.DataFrame,
    adjectives: Lexicon,
    nouns: Mapping[str, str] | None,
) -> tuple[pd.DataFrame, list[Fault]]:
    """Return the swapped captions that fit the data set, sorted by image and caption, and the
    faults.

    ``published`` is what ``published_files.read_data`` returns; the other tables are those of the
    whole data set.
    """
    rows, faults = _usable_rows(published, captions, splits)
    bearers = _bearers_by_caption(pairs, rows["image_id"])
    forms = adjectives.forms
    records = []
    misstated = []
    for row in rows.itertuples(index=False):
        key = (row.image_id, row.caption_id)
        new_adj = row.new_adj
        # A pair of words that no lexicon has stays as it is.
        pair = fold(new_adj, row.noun, forms, nouns) or f"{new_adj}_{row.noun}".lower()
        adjective, _, noun = pair.partition("_")
        original_adj = row.original_adj.lower()
        stated = StatedChange(noun, forms.get(original_adj, original_adj), adjective)
        changes = changes_of(row.text, row.swapped_text, stated, bearers[key], forms)
        # If no change makes the pair, the audit reports it.
        originals = [c["original_adj"] for c in changes if f"{c['new_adj']}_{c['noun']}" == pair]
        if originals and stated.original_adj not in originals:
            misstated.append(f"{row.image_id} {row.caption_id}")
        exclusive = adjectives.excludes((c["original_adj"], c["new_adj"]) for c in changes)
        swap = (row.text, row.swapped_text, changes, pair, exclusive)
        records.append((row.image_id, int(row.caption_id), *swap))
    swapped = empty_table(SWAPPED)
    if records:
        swapped = pd.DataFrame(records, columns=list(SWAPPED.columns))
    faults["swapped captions in which a different adjective changed than recorded"] = misstated
    return swapped, published_faults(faults)
