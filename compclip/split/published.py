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
from typing import Any

import pandas as pd

from compclip.core.errors import require
from compclip.core.heldout import split_pair
from compclip.core.published import PublishedSplit
from compclip.core.tables import SPLITS, SWAPPED
from compclip.dataset.source import named, unbroken
from compclip.io import empty_table
from compclip.split.wording import CaptionWord, Wording
from compclip.text.lexicon import Lexicon, fold

# An image in two lists goes to the first of these splits: it must not stay in train.
PRECEDENCE = ("test_unseen", "test_seen", "train")
Fault = dict[str, Any]


def published_faults(names_by_kind: Mapping[str, Iterable[str]]) -> list[Fault]:
    """Return a fault for each kind that has names: guarantee, fault, count, and the first hundred
    names.
    """
    kinds = {kind: sorted(names) for kind, names in names_by_kind.items()}
    return [
        {"guarantee": "published files", "fault": kind, **named(names)}
        for kind, names in kinds.items()
        if names
    ]


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
    folded = {pair: fold(*split_pair(pair), adjectives, nouns) for pair in published}
    pairs = sorted({pair for pair in folded.values() if pair})
    fault = (
        f"the lexicons list none of its {len(folded)} held-out pairs (first: "
        f"{min(folded, default='none')})"
    )
    require(
        pairs, file, fault, "choose the file of this composition or add the words to the lexicons"
    )
    unknown = [pair for pair, canonical in folded.items() if canonical is None]
    return pairs, published_faults({"held-out pairs of words that no lexicon has": unknown})


def take_splits(
    published: PublishedSplit, images: Collection[str], file: str | Path
) -> tuple[pd.DataFrame, list[Fault]]:
    """Return the splits of the ``images`` that are in the file, sorted, and the faults."""
    known = set(images)
    split_of: dict[str, str] = {}
    duplicates = []
    for split in PRECEDENCE:
        for image in published.images[split]:
            if image in split_of:
                duplicates.append(f"{image} ({split_of[image]}, {split})")
            else:
                split_of[image] = split
    taken = sorted(known & set(split_of))
    splits = pd.DataFrame(
        {"image_id": taken, "split": [split_of[image] for image in taken]}, dtype="str"
    )
    for split in SPLITS:
        listed = published.images[split]
        require(listed, file, f"list {split} is empty", "choose a split with images in it")
        fault = (
            f"none of its {len(listed)} images in {split} (first: {min(split_of)}) is among "
            f"the {len(known)} of the"
        )
        fault += f" data set (first: {min(known)})"
        require((splits["split"] == split).any(), file, fault, "choose the file of this data set")
    return splits, published_faults(
        {
            "images in two places of the published split": duplicates,
            "images of the published split that the data set has not": set(split_of) - known,
            "images of the data set in no published split": known - set(split_of),
        }
    )


def _replacements(
    old: list[CaptionWord], new: list[CaptionWord]
) -> Iterator[tuple[list[CaptionWord], list[CaptionWord]]]:
    """Yield the words of ``old`` that were replaced and their replacements, one by one if the
    numbers are equal.

    Inserted and deleted words are ignored: the audit reports them, because they are not among the
    changes.
    """
    blocks = SequenceMatcher(
        None, [w.text for w in old], [w.text for w in new], autojunk=False
    ).get_opcodes()
    for kind, i, i_end, j, j_end in blocks:
        if kind != "replace":
            continue
        if i_end - i == j_end - j:
            yield from (([a], [b]) for a, b in zip(old[i:i_end], new[j:j_end], strict=True))
        else:
            yield old[i:i_end], new[j:j_end]


def changes_of(
    text: str,
    swapped_text: str,
    stated: tuple[str, str, str],
    bearers: Mapping[int, list[str]],
    adjectives: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return the changes between a caption and its swapped text, as in ``tables.SWAPPED``.

    Args:
        stated: noun, original_adj and new_adj (folded) of the one change in the file. Other changes
            get the noun that the adjective modifies in the caption, or "" if it is unknown.
        bearers: the nouns of each adjective, by its start in ``text``.
    """
    changes = []
    for old, new in _replacements(Wording(text).words, Wording(swapped_text).words):
        start, end, new_start, new_end = old[0].start, old[-1].end, new[0].start, new[-1].end
        original_adj, new_adj = text[start:end].lower(), swapped_text[new_start:new_end].lower()
        if {original_adj, new_adj} == {"a", "an"}:
            continue
        original_adj, new_adj = (
            adjectives.get(original_adj, original_adj),
            adjectives.get(new_adj, new_adj),
        )
        candidates = bearers.get(start, [])
        noun = candidates[0] if candidates else ""
        if (original_adj, new_adj) == stated[1:] and (stated[0] in candidates or not candidates):
            noun = stated[0]
        change = {
            "noun": noun,
            "original_adj": original_adj,
            "new_adj": new_adj,
            "start": start,
            "end": end,
        }
        changes.append(change | {"new_start": new_start, "new_end": new_end})
    return changes


def _usable_rows(
    published: pd.DataFrame, captions: pd.DataFrame, splits: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Iterable[str]]]:
    """Return the published swaps whose caption is, word for word, in test_seen here, and the others
    by fault.
    """
    rows = published[published["swapped_text"].notna()]
    rows = rows.assign(text=unbroken(rows["text"]), swapped_text=unbroken(rows["swapped_text"]))
    rows = rows.merge(
        captions[["image_id", "caption_id", "text"]].rename(columns={"text": "ours"}), how="left"
    )
    rows = rows.merge(splits, on="image_id", how="left").sort_values(["image_id", "caption_id"])
    place = rows["image_id"] + " " + rows["caption_id"].astype("str")
    absent, different = rows["ours"].isna(), rows["ours"].notna() & (rows["ours"] != rows["text"])
    elsewhere = ~absent & ~different & (rows["split"] != "test_seen")
    return rows[~(absent | different | elsewhere)], {
        "swapped captions that the data set has not": place[absent],
        "swapped captions of another text than the data set's": place[different],
        "swapped captions of images that are not in test_seen": place[elsewhere],
    }


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

    ``published`` is what ``core.published.read_data`` returns; the other tables are those of the
    whole data set.
    """
    rows, unusable = _usable_rows(published, captions, splits)
    # For each caption, the nouns that each adjective modifies, by its start.
    bearers: dict[tuple[str, int], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    of_rows = pairs[pairs["image_id"].isin(rows["image_id"])].sort_values(
        ["adjective_start", "noun_start"]
    )
    for row in of_rows.itertuples(index=False):
        bearers[row.image_id, row.caption_id][row.adjective_start].append(row.noun)
    records, misstated, forms = [], [], adjectives.forms
    columns = ["image_id", "caption_id", "text", "swapped_text", "noun", "original_adj", "new_adj"]
    for image, number, text, swapped_text, noun, old, new in rows[columns].itertuples(index=False):
        pair = fold(new, noun, forms, nouns) or f"{new}_{noun}".lower()
        stated = (
            pair.partition("_")[2],
            forms.get(old.lower(), old.lower()),
            pair.partition("_")[0],
        )
        changes = changes_of(text, swapped_text, stated, bearers[image, number], forms)
        # If no change makes the pair, the audit reports it.
        originals = [c["original_adj"] for c in changes if f"{c['new_adj']}_{c['noun']}" == pair]
        if originals and stated[1] not in originals:
            misstated.append(f"{image} {number}")
        exclusive = adjectives.excludes(
            (change["original_adj"], change["new_adj"]) for change in changes
        )
        records.append((image, int(number), text, swapped_text, changes, pair, exclusive))
    swapped = (
        pd.DataFrame(records, columns=list(SWAPPED.columns)) if records else empty_table(SWAPPED)
    )
    kinds = {
        **unusable,
        "swapped captions in which a different adjective changed than recorded": misstated,
    }
    return swapped, published_faults(kinds)
