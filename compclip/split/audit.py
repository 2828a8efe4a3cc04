"""Verify the guarantees of the splits from words and the lexicons' surface forms alone.

Two guarantees: (1) no caption of train or test_seen has a held-out pair; (2) in a swapped caption
only adjectives (and a/an before them) changed, and each changed pair is held out. This module
imports no pair extraction, so it finds faults there. ``accept_split`` refuses a split with
violations; suspicions are listed for people to check.

Pairs that ``reading`` may miss are suspicions: every held-out adjective within three words of its
noun; most belong to another noun (`a black bill and white wings`: black near wings). Where the pair
extraction disagrees with ``reading`` about a held-out pair, ``make_splits`` has put the image in no
split, so it is not a violation.

Faults that earlier steps found in a published split (``violations`` in their summaries) count as
violations.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.heldout import pair_names, split_pair
from compclip.core.errors import require
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.settings.arguments import (
    Captions,
    Facts,
    PairNames,
    Pairs,
    Splits,
    Swapped,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, SPLITS
from compclip.split.composition import Lexicons
from compclip.split.disagreement import compare_readings, drawn_pairs, join_readings
from compclip.split.reading import (
    Reader,
    group_by_adjective,
    has_both_words,
    near,
    reader_of,
    stated_pairs,
    swap_faults,
    word_pairs,
)
from compclip.text.lexicon import Lexicon, require_occurring

MAX_EXAMPLES = 3  # captions listed for each suspicion
MAX_LOGGED = 20  # violations in the log; audit.json lists all


def read_heldout_pairs(
    texts: Collection[str], heldout: set[tuple[str, str]], reader: Reader
) -> pd.DataFrame:
    """Return text, pair and reading of the held-out pairs that texts state, or may state.

    reading is ``stated`` or, if the adjective is only near the noun, ``explained`` by another noun
    that it modifies or ``unexplained``.
    """
    nouns_by_adjective = group_by_adjective(heldout)
    rows = []
    for text in track(texts, len(texts), "texts"):
        items = reader.read(text)
        if not has_both_words(items, nouns_by_adjective):
            continue
        # Pairs that are only near may belong to other words.
        stated_items = stated_pairs(text, items)
        stated_words = word_pairs(stated_items)
        close = near(items)
        modifying = {adjective.start for adjective, _ in stated_items}
        unexplained = word_pairs(pair for pair in close if pair[0].start not in modifying)
        possible = stated_words | word_pairs(close)
        # Sorted, because sets have another order in each run.
        for pair in sorted(possible & heldout):
            if pair in stated_words:
                reading = "stated"
            elif pair in unexplained:
                reading = "unexplained"
            else:
                reading = "explained"
            rows.append((text, "_".join(pair), reading))
    return pd.DataFrame(rows, columns=["text", "pair", "reading"], dtype="str")


def audit_captions(read: pd.DataFrame) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the violations and suspicions of captions (image_id, caption_id, split, text, pair and
    reading).
    """
    caption = ["image_id", "caption_id", "split", "text"]
    is_stated = read["reading"] == "stated"
    # What word order states is certain, what is only near a suspicion.
    violations = read[is_stated].assign(guarantee="held out")
    suspicions = {}
    for pair, rows in read[~is_stated].groupby("pair", sort=False):
        is_unexplained = rows["reading"] == "unexplained"
        examples = rows.loc[is_unexplained, caption].head(MAX_EXAMPLES)
        suspicions[str(pair)] = {
            "captions": len(rows),
            "unexplained": int(is_unexplained.sum()),
            "examples": examples.to_dict("records"),
        }
    columns = ["guarantee", "pair", *caption]
    return violations[columns].to_dict("records"), suspicions


def _joined_suspicions(
    blocks: Sequence[Mapping[str, dict[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """Return the suspicions of several blocks together; the most unexplained come first."""
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for block in blocks:
        for pair, suspicion in block.items():
            by_pair.setdefault(pair, []).append(suspicion)
    suspicions = {pair: _added(of_blocks) for pair, of_blocks in by_pair.items()}

    def order(pair: str) -> tuple[int, int, str]:
        suspicion = suspicions[pair]
        return -suspicion["unexplained"], -suspicion["captions"], pair

    return {pair: suspicions[pair] for pair in sorted(suspicions, key=order)}


def _added(suspicions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the suspicions of a pair in several blocks as one."""
    examples = [example for suspicion in suspicions for example in suspicion["examples"]]
    # Python's sort keeps the order of rows with the same text, which is that of the images.
    examples.sort(key=lambda example: str(example["text"]))
    return {
        "captions": sum(suspicion["captions"] for suspicion in suspicions),
        "unexplained": sum(suspicion["unexplained"] for suspicion in suspicions),
        "examples": examples[:MAX_EXAMPLES],
    }


def _offset_faults(
    text: str,
    swapped_text: str,
    changes: list[dict[str, Any]],
    heldout: set[tuple[str, str]],
    reader: Reader,
) -> list[str]:
    """Return what is wrong with the changes of a swapped caption, and with the text between
    them.
    """
    faults = []
    end = 0  # of the change before, in each text
    new_end = 0
    # The text between two changes must be the same in both texts.
    for change in sorted(changes, key=lambda change: change["start"]):
        new = change["new_adj"]
        if (new, change["noun"]) not in heldout:
            faults.append(f"{new}_{change['noun']} is not held out")
        gap = text[end : change["start"]]
        new_gap = swapped_text[new_end : change["new_start"]]
        if _without_article(gap) != _without_article(new_gap):
            faults.append(f"more than the adjective changed before {new}")
        end = change["end"]
        new_end = change["new_end"]
        surfaces = {
            "original_adj": text[change["start"] : end],
            "new_adj": swapped_text[change["new_start"] : new_end],
        }
        for label, surface in surfaces.items():
            # Offsets may be those of another word, or of a part of one.
            items = [(item.kind, item.word) for item in reader.read(surface)]
            if items != [("adjective", change[label])]:
                faults.append(f"{label} {change[label]} is not at its offsets")
    if text[end:] != swapped_text[new_end:]:
        faults.append("more than the adjective changed at the end")
    return faults


def _without_article(text: str) -> str:
    """Return ``text`` with a final ``an`` replaced by ``a``."""
    return re.sub(r"(?i)(?<![^\W_])an?(?=\s+$)", "a", text)


def audit_swapped(
    swapped: pd.DataFrame, captions: pd.DataFrame, heldout: set[tuple[str, str]], reader: Reader
) -> list[dict[str, Any]]:
    """Return the violations of swapped captions; ``captions`` are those of all images, with their
    split.
    """
    captions = captions[captions["image_id"].isin(swapped["image_id"])]
    # The captions as they are now, which a published file may not have.
    originals = captions.set_index(CAPTION_KEY)[["split", "text"]].to_dict("index")
    violations = []
    rows = swapped[["pair", *CAPTION_KEY, "text", "swapped_text"]].to_dict("records")
    for row, changes in zip(rows, swapped["changes"].map(list), strict=True):
        faults = _swap_violations(row["text"], row["swapped_text"], changes, heldout, reader)
        source = originals.get((row["image_id"], row["caption_id"]))
        if source is None or source["text"] != row["text"]:
            faults.append("its text is not the caption's")
        elif source["split"] != "test_seen":
            faults.append(f"its image is in {source['split']}")
        if row["pair"] not in {f"{c['new_adj']}_{c['noun']}" for c in changes}:
            faults.append(f"its pair {row['pair']} is not one of its changed pairs")
        violations += [{"guarantee": "swapped", "fault": fault, **row} for fault in faults]
    return violations


def _swap_violations(
    text: str,
    swapped_text: str,
    changes: list[dict[str, Any]],
    heldout: set[tuple[str, str]],
    reader: Reader,
) -> list[str]:
    """Return the faults of the changes, by their offsets and by the order of words."""
    if not changes:
        return ["nothing is changed"]
    offset_faults = _offset_faults(text, swapped_text, changes, heldout, reader)
    original = reader.pairs(text)
    return offset_faults + swap_faults(original, reader.pairs(swapped_text), changes, heldout)


def audit_block(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    splits: pd.DataFrame,
    swapped: pd.DataFrame,
    heldout: Collection[str],
    lexicons: Lexicons,
    facts: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Return what ``join_audits`` needs of some images with all their captions; arguments as in
    ``audit``.
    """
    forms, noun_forms = lexicons.forms()
    reader = reader_of(heldout, forms, noun_forms, lexicons.compounds)
    heldout_words = {split_pair(pair) for pair in heldout}
    split_of = splits.set_index("image_id")["split"]
    captions = captions[[*CAPTION_KEY, "text"]].assign(split=captions["image_id"].map(split_of))
    # A text may belong to many captions, so each is read once.
    readings = read_heldout_pairs(captions["text"].unique(), heldout_words, reader)
    read = readings.merge(captions.sort_values(CAPTION_KEY), on="text")
    # Stable: captions of the same text stay in the order of images.
    read = read.sort_values("text", kind="stable")
    # Captions of test_unseen may state held-out pairs.
    violations, suspicions = audit_captions(read[read["split"].isin(["train", "test_seen"])])
    # What captions of drawn images state is known only with the words of a noun lexicon.
    drawn = None
    if facts is not None and noun_forms:
        drawn = drawn_pairs(facts, forms, noun_forms)
    by_words = read[read["reading"] == "stated"]
    without_split = captions.loc[captions["split"].isna(), "image_id"]
    return {
        "violations": violations,
        "of_swaps": audit_swapped(swapped, captions, heldout_words, reader),
        "suspicions": suspicions,
        "without_split": sorted(set(without_split)),
        "images": splits["split"].value_counts().to_dict(),
        "captions": captions["split"].value_counts().to_dict(),
        "swapped": len(swapped),
        "disagreement": compare_readings(captions, pairs, by_words, heldout, drawn),
        "has_nouns": noun_forms is not None,
    }


def _joined_violations(
    blocks: Sequence[Mapping[str, Any]],
    without_split: Iterable[str],
    reported: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    violations = list(reported)
    # The steps that read a published split report images without a split themselves.
    if not reported:
        guarantee = "every image has a split"
        for image in sorted(without_split):
            violations.append({"guarantee": guarantee, "image_id": image})
    # The order must not depend on the division into blocks.
    of_captions = [violation for block in blocks for violation in block["violations"]]
    of_captions.sort(key=lambda row: (row["text"], split_pair(row["pair"])))
    violations += of_captions
    for block in blocks:
        violations += block["of_swaps"]
    return violations


def _counts_by_split(blocks: Sequence[Mapping[str, Any]], kind: str) -> dict[str, int]:
    return {split: sum(block[kind].get(split, 0) for block in blocks) for split in SPLITS}


def join_audits(
    blocks: Sequence[Mapping[str, Any]],
    *,
    heldout: Collection[str],
    reported: Sequence[dict[str, Any]] = (),
    excluded: Collection[str] = (),
    on_violation: str = "error",
    where: str = "split",
) -> dict[str, Any]:
    """Return the content of audit.json.

    Args:
        blocks: ``audit_block`` of blocks of images, in order.
        reported: violations that were found in a published split; an entry may count for several
            (``count``).
        on_violation: whether ``accept_split`` refuses violations (error) or counts them (warn).
        heldout, excluded, where: as in ``audit``.
    """
    without_split = {image for block in blocks for image in block["without_split"]}
    # Excluded images may be in no split, but no others.
    lost = without_split.difference(excluded)
    violations = _joined_violations(blocks, lost, reported)
    suspicions = _joined_suspicions([block["suspicions"] for block in blocks])
    captions = _counts_by_split(blocks, "captions")
    counts = {
        # An entry of a published file may stand for several faults.
        "violations": sum(violation.get("count", 1) for violation in violations),
        "suspicions": sum(s["captions"] for s in suspicions.values()),
        "suspicions_unexplained": sum(s["unexplained"] for s in suspicions.values()),
        "heldout_pairs": len(set(heldout)),
        "images": _counts_by_split(blocks, "images"),
        "images_excluded": len(without_split) - len(lost),
        "captions": captions,
        "captions_read": captions["train"] + captions["test_seen"],
        "swapped": sum(block["swapped"] for block in blocks),
    }
    readings = [block["disagreement"] for block in blocks]
    disagreement = join_readings(readings, blocks[0]["has_nouns"])
    for warning in disagreement["warnings"]:
        log.warning("warning: %s: %s", where, warning)
    for violation in violations[:MAX_LOGGED]:
        log.warning("violation: %s", describe_violation(violation))
    log.info(
        "%(violations)d violations; %(suspicions)d suspicions, %(suspicions_unexplained)d of them "
        "unexplained",
        counts,
    )
    return {
        "violations": violations,
        "counts": counts,
        "suspicions": suspicions,
        "disagreement": disagreement,
        "on_violation": on_violation,
    }


@checked
def audit(  # noqa: PLR0913
    captions: Captions,
    pairs: Pairs,
    splits: Splits,
    swapped: Swapped,
    heldout: PairNames,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    facts: Facts | None = None,
    excluded: Sequence[str] = (),
    where: str = "split",
) -> dict[str, Any]:
    """Check a split and its swapped captions by word order alone, and compare word order with the
    pair extraction.

    Args:
        captions: all, as ``extract_pairs`` takes them.
        pairs: as in ``tables``: all occurrences, used only for the comparison with word order.
        splits, swapped: as ``make_splits`` and ``swap_adjectives`` return them.
        heldout: the held-out pairs.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: the held-out ones
            and their possible forms.
        compounds: None: ``lexicons/compounds/common.yaml``.
        facts: image_id, part and value that drawn captions state: both readers are compared with
            them, if ``nouns`` is given.
        excluded: images that may be in no split.
        where: what is audited, for messages.

    Returns:
        The content of audit.json: violations, counts, suspicions by pair, and disagreement
        (``join_readings``).

    Raises:
        UserError: a row of pairs, splits or facts is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, splits=splits, facts=facts)
    require_occurring(heldout, {*pair_names(pairs)}, adjectives, nouns)
    lexicons = Lexicons(adjectives, nouns, compounds)
    block = audit_block(captions, pairs, splits, swapped, heldout, lexicons, facts)
    return join_audits([block], heldout=heldout, excluded=excluded, where=where)


def accept_split(
    audit: Mapping[str, Any], audit_file: Path, where: str, remedy: str
) -> dict[str, int]:
    """Return the content of accepted.json; ``audit``: that of audit.json.

    Raises:
        UserError: there are violations, and the audit does not say that they are only counted.
    """
    # A record of a published split may stand for several violations, so records are not counted.
    count = int(audit["counts"]["violations"])
    violations = audit["violations"]
    if violations:
        description = describe_violation(violations[0])
        fault = f"{count} audit violations, listed in {audit_file} (first: {description})"
        require(audit["on_violation"] == "warn", where, fault, remedy)
        log.warning("warning: %s: continues despite %d audit violations", where, count)
    return {"violations": count}


def describe_violation(violation: dict[str, Any]) -> str:
    """Return a violation on one line, with its first name."""
    fields = dict(violation)
    if "names" in fields:
        # An entry may name a hundred images.
        fields["names"] = fields["names"][:1]
    return ", ".join(f"{key} {value}" for key, value in fields.items())


def excluded_images(summary: dict[str, Any]) -> list[str]:
    """Return the images that splits.json reports as in no split."""
    return list(chain.from_iterable(summary["excluded_images"].values()))
