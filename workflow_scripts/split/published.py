"""A published split taken instead of drawn: its held-out pairs, its images, its swapped captions.

Words are folded to the lexicons' as everywhere (``grey_beaks`` is ``gray_bill``). What cannot be taken is a fault,
of a kind, with a count and names; the audit counts faults among the violations. Nothing here refuses them: a file
that does not fit at all is an error, everything else is the audit's to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any

import pandas as pd

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table
from workflow_scripts.core.published import PublishedSplit
from workflow_scripts.core.tables import SPLITS, SWAPPED
from workflow_scripts.dataset.source import clean, named
from workflow_scripts.split.wording import Caption

# Where an image stands in two lists, it must not stay where it is trained on.
FIRST = ("test_unseen", "test_seen", "train")
Fault = dict[str, Any]


def faults(kinds: Mapping[str, Iterable[str]]) -> list[Fault]:
    """What is wrong, a kind each: guarantee, fault, count, and the first hundred names."""
    found = {what: sorted(names) for what, names in kinds.items()}
    return [{"guarantee": "published files", "fault": what, **named(names)} for what, names in found.items() if names]


def fold(adjective: str, noun: str, adjectives: Mapping[str, str], nouns: Mapping[str, str] | None) -> str | None:
    """The canonical ``adjective_noun``; None where a lexicon does not know a word. Without nouns any noun is known."""
    adjective, noun = adjective.lower(), noun.lower().replace("_", " ")
    word = nouns.get(noun) if nouns is not None else noun
    return f"{adjectives[adjective]}_{word}" if adjective in adjectives and word else None


def take_pairs(
    published: Collection[str], adjectives: Mapping[str, str], nouns: Mapping[str, str] | None, where: str
) -> tuple[list[str], list[Fault]]:
    """``(pairs, faults)``: the held-out pairs, folded and sorted. adjectives, nouns: surface forms to words.

    A pair of a word that the lexicons do not know is a fault: no caption can be searched for it. Raises UserError
    where none is left. ``where`` is the file.
    """
    folded = {pair: fold(*pair.split("_", 1), adjectives, nouns) for pair in published}
    pairs = sorted({pair for pair in folded.values() if pair})
    if not pairs:
        raise UserError(
            f"{where}: the lexicons know none of its {len(folded)} held-out pairs, the first is {min(folded)}: is it "
            "of this composition? else add their words to the lexicons"
        )
    unknown = [pair for pair, found in folded.items() if found is None]
    return pairs, faults({"held-out pairs of words that no lexicon has": unknown})


def take_splits(published: PublishedSplit, images: Collection[str], where: str) -> tuple[pd.DataFrame, list[Fault]]:
    """``(splits, faults)``: columns of ``tables.SPLIT`` for those of ``images`` that the file divides, sorted.

    Raises UserError where a split is left without an image. ``where`` is the file.
    """
    known = set(images)
    split_of: dict[str, str] = {}
    twice = []
    for split in FIRST:
        for image in published.images[split]:
            if image in split_of:
                twice.append(f"{image} ({split_of[image]}, {split})")
            else:
                split_of[image] = split
    taken = sorted(known & set(split_of))
    splits = pd.DataFrame({"image_id": taken, "split": [split_of[image] for image in taken]}, dtype="str")
    for split in SPLITS:
        if not published.images[split]:
            raise UserError(f"{where}: its list {split} is empty")
        if not (splits["split"] == split).any():
            example = f", the first is {min(split_of)}" if split_of else ""
            raise UserError(
                f"{where}: none of its {len(published.images[split])} images of {split} is among the {len(known)} of "
                f"the data set (the first is {min(known)}){example}: is it of this data set?"
            )
    return splits, faults(
        {
            "images in two places of the published split": twice,
            "images of the published split that the data set has not": set(split_of) - known,
            "images of the data set in no published split": known - set(split_of),
        }
    )


def changes_of(
    text: str,
    swapped_text: str,
    stated: tuple[str, str, str],
    bearers: Mapping[int, list[str]],
    adjectives: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The changes of a swapped caption, as in ``tables.SWAPPED``, found by comparing it with the caption word by word.

    stated: noun, original_adj, new_adj (folded) of the one change that the file tells; of the others the noun is that
    of which the caption says the adjective. bearers: start of an adjective in ``text`` to its nouns. A change of
    which the noun is not known has an empty one.
    """
    old, new = Caption(text).words, Caption(swapped_text).words
    blocks = SequenceMatcher(None, [w.text for w in old], [w.text for w in new], autojunk=False).get_opcodes()
    changes = []
    for kind, i, i_end, j, j_end in blocks:
        # Words put in or taken out are no change of an adjective: the audit will not find them among the changes.
        if kind != "replace":
            continue
        # Words of a block that stand opposite each other; of another number, the block is one change.
        sides = [((k, k + 1), (k + j - i, k + j - i + 1)) for k in range(i, i_end)]
        for (a, b), (c, d) in sides if i_end - i == j_end - j else [((i, i_end), (j, j_end))]:
            start, end, new_start, new_end = old[a].start, old[b - 1].end, new[c].start, new[d - 1].end
            was, now = text[start:end].lower(), swapped_text[new_start:new_end].lower()
            if {was, now} == {"a", "an"}:
                continue
            was, now = adjectives.get(was, was), adjectives.get(now, now)
            said = bearers.get(start, [])
            told = stated[0] if (was, now) == stated[1:] else ""
            noun = told if told and (told in said or not said) else said[0] if said else ""
            change = {"noun": noun, "original_adj": was, "new_adj": now, "start": start, "end": end}
            changes.append(change | {"new_start": new_start, "new_end": new_end})
    return changes


def take_swaps(
    published: pd.DataFrame,
    captions: pd.DataFrame,
    splits: pd.DataFrame,
    pairs: pd.DataFrame,
    adjectives: Mapping[str, str],
    nouns: Mapping[str, str] | None,
) -> tuple[pd.DataFrame, list[Fault]]:
    """``(swapped, faults)``: columns of ``tables.SWAPPED``, sorted by image and caption.

    published: columns of ``published.CAPTION``. captions, splits, pairs: of the whole data set. A swapped caption is
    taken where the data set has its caption, word for word, in an image of test_seen.
    """
    rows = published[published["swapped_text"].notna()]
    rows = rows.assign(text=clean(rows["text"]), swapped_text=clean(rows["swapped_text"]))
    rows = rows.merge(captions[["image_id", "caption_id", "text"]].rename(columns={"text": "ours"}), how="left")
    rows = rows.merge(splits, on="image_id", how="left").sort_values(["image_id", "caption_id"])
    place = rows["image_id"] + " " + rows["caption_id"].astype("str")
    absent, other = rows["ours"].isna(), rows["ours"].notna() & (rows["ours"] != rows["text"])
    elsewhere = ~absent & ~other & (rows["split"] != "test_seen")
    wrong = {
        "swapped captions that the data set has not": place[absent],
        "swapped captions of another text than the data set's": place[other],
        "swapped captions of images that are not in test_seen": place[elsewhere],
    }
    rows = rows[~(absent | other | elsewhere)]

    bearers: dict[tuple[str, int], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    said = pairs[pairs["image_id"].isin(rows["image_id"])].sort_values(["adjective_start", "noun_start"])
    for image, number, start, noun in said[["image_id", "caption_id", "adjective_start", "noun"]].itertuples(
        index=False
    ):
        bearers[image, number][start].append(noun)
    records, misstated = [], []
    columns = ["image_id", "caption_id", "text", "swapped_text", "noun", "original_adj", "new_adj"]
    for image, number, text, swapped_text, noun, old, new in rows[columns].itertuples(index=False):
        pair = fold(new, noun, adjectives, nouns) or f"{new}_{noun}".lower()
        stated = (pair.partition("_")[2], adjectives.get(old.lower(), old.lower()), pair.partition("_")[0])
        changes = changes_of(text, swapped_text, stated, bearers[image, number], adjectives)
        # Where nothing makes the pair, the audit says so.
        of_pair = [c["original_adj"] for c in changes if f"{c['new_adj']}_{c['noun']}" == pair]
        if of_pair and stated[1] not in of_pair:
            misstated.append(f"{image} {number}")
        records.append((image, int(number), text, swapped_text, changes, pair))
    swapped = pd.DataFrame(records, columns=list(SWAPPED.columns)) if records else empty_table(SWAPPED)
    return swapped, faults({**wrong, "swapped captions of which another adjective was changed than is told": misstated})
