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
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from compclip.core.heldout import pair_names, split_pair
from compclip.core.inputs import (
    Captions,
    Facts,
    PairNames,
    Pairs,
    Splits,
    Swapped,
    checked,
    require_joined,
)
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.tables import CAPTION_KEY, SPLITS
from compclip.split.disagreement import compare_readings, drawn_pairs, join_readings
from compclip.split.reading import Reader, near, reader_of, stated, swap_faults, word_pairs
from compclip.text.lexicon import Lexicon, forms_of, require_occurring

MAX_EXAMPLES = 3  # captions listed for each suspicion
MAX_LOGGED = 20  # violations in the log; audit.json lists all


def read_heldout_pairs(
    texts: Collection[str], heldout: set[tuple[str, str]], reader: Reader
) -> pd.DataFrame:
    """Return text, pair and reading of the held-out pairs that texts state, or may state.

    reading is ``stated`` or, if the adjective is only near the noun, ``explained`` by another noun
    that it modifies or ``unexplained``.
    """
    adjectives, nouns = ({pair[side] for pair in heldout} for side in (0, 1))
    rows = []
    for text in track(texts, len(texts), "texts"):
        items = reader.read(text)
        words = {item.word for item in items}
        if not (words & adjectives and words & nouns):
            continue
        pairs, close = stated(text, items), near(items)
        violated, modifying = word_pairs(pairs), {adjective.start for adjective, _ in pairs}
        unexplained = word_pairs(pair for pair in close if pair[0].start not in modifying)
        for pair in sorted((violated | word_pairs(close)) & heldout):
            reading = (
                "stated"
                if pair in violated
                else "unexplained"
                if pair in unexplained
                else "explained"
            )
            rows.append((text, "_".join(pair), reading))
    return pd.DataFrame(rows, columns=["text", "pair", "reading"], dtype="str")


def audit_captions(read: pd.DataFrame) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the violations and suspicions of captions (image_id, caption_id, split, text, pair and
    reading).
    """
    row = ["image_id", "caption_id", "split", "text"]
    violations = read[read["reading"] == "stated"].assign(guarantee="held out")
    suspicions = {}
    for pair, of_pair in read[read["reading"] != "stated"].groupby("pair", sort=False):
        unexplained = of_pair.loc[of_pair["reading"] == "unexplained", row]
        examples = unexplained.head(MAX_EXAMPLES).to_dict("records")
        suspicions[str(pair)] = {
            "captions": len(of_pair),
            "unexplained": len(unexplained),
            "examples": examples,
        }
    return violations[["guarantee", "pair", *row]].to_dict("records"), suspicions


def _joined(parts: Sequence[Mapping[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the suspicions of several blocks together; the most unexplained come first."""
    suspicions = {}
    for pair in {pair for of in parts for pair in of}:
        found = [of[pair] for of in parts if pair in of]
        # Python's sort keeps the order of rows with the same text, which is that of the images.
        examples = sorted(
            (row for of in found for row in of["examples"]), key=lambda row: str(row["text"])
        )
        sums = {name: sum(of[name] for of in found) for name in ("captions", "unexplained")}
        suspicions[pair] = sums | {"examples": examples[:MAX_EXAMPLES]}
    return dict(
        sorted(
            suspicions.items(),
            key=lambda item: (-item[1]["unexplained"], -item[1]["captions"], item[0]),
        )
    )


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
    copied, copied_new = 0, 0
    for change in sorted(changes, key=lambda c: c["start"]):
        noun, new = change["noun"], change["new_adj"]
        if (new, noun) not in heldout:
            faults.append(f"{new}_{noun} is not held out")
        before, before_new = (
            text[copied : change["start"]],
            swapped_text[copied_new : change["new_start"]],
        )
        if _without_article(before) != _without_article(before_new):
            faults.append(f"more than the adjective changed before {new}")
        copied, copied_new = change["end"], change["new_end"]
        surfaces = text[change["start"] : copied], swapped_text[change["new_start"] : copied_new]
        for label, surface in zip(("original_adj", "new_adj"), surfaces, strict=True):
            if [(item.kind, item.word) for item in reader.read(surface)] != [
                ("adjective", change[label])
            ]:
                faults.append(f"{label} {change[label]} is not at its offsets")
    if text[copied:] != swapped_text[copied_new:]:
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
    original = captions.set_index(["image_id", "caption_id"])[["split", "text"]].to_dict("index")
    violations = []
    columns = ["pair", "image_id", "caption_id", "text", "swapped_text"]
    for row, changes in zip(
        swapped[columns].to_dict("records"), swapped["changes"].map(list), strict=True
    ):
        text, swapped_text = row["text"], row["swapped_text"]
        faults = [] if changes else ["nothing is changed"]
        if changes:
            faults += _offset_faults(text, swapped_text, changes, heldout, reader)
            faults += swap_faults(reader.pairs(text), reader.pairs(swapped_text), changes, heldout)
        source = original.get((row["image_id"], row["caption_id"]))
        if source is None or source["text"] != text:
            faults.append("its text is not the caption's")
        elif source["split"] != "test_seen":
            faults.append(f"its image is in {source['split']}")
        if row["pair"] not in {f"{c['new_adj']}_{c['noun']}" for c in changes}:
            faults.append(f"its pair {row['pair']} is not one of its changed pairs")
        violations += [{"guarantee": "swapped", "fault": fault, **row} for fault in faults]
    return violations


def audit_block(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    splits: pd.DataFrame,
    swapped: pd.DataFrame,
    heldout: Collection[str],
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    facts: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Return what ``join_audits`` needs of some images with all their captions; arguments as in
    ``audit``.
    """
    held = {split_pair(pair) for pair in heldout}
    forms, noun_forms = forms_of(adjectives, nouns)
    reader = reader_of(heldout, forms, noun_forms, compounds)
    split_of = splits.set_index("image_id")["split"]
    captions = captions[[*CAPTION_KEY, "text"]].assign(split=captions["image_id"].map(split_of))
    read = read_heldout_pairs(captions["text"].unique(), held, reader)
    read = read.merge(captions.sort_values(CAPTION_KEY), on="text").sort_values(
        "text", kind="stable"
    )
    violations, suspicions = audit_captions(read[read["split"].isin(["train", "test_seen"])])
    drawn = drawn_pairs(facts, forms, noun_forms) if facts is not None and noun_forms else None
    return {
        "violations": violations,
        "of_swaps": audit_swapped(swapped, captions, held, reader),
        "suspicions": suspicions,
        "without_split": sorted(set(captions.loc[captions["split"].isna(), "image_id"])),
        "images": splits["split"].value_counts().to_dict(),
        "captions": captions["split"].value_counts().to_dict(),
        "swapped": len(swapped),
        "disagreement": compare_readings(
            captions, pairs, read[read["reading"] == "stated"], heldout, drawn
        ),
    }


def join_audits(
    parts: Sequence[Mapping[str, Any]],
    *,
    heldout: Collection[str],
    reported: Sequence[dict[str, Any]] = (),
    unused: Collection[str] = (),
    tolerance: str = "refuse",
    where: str = "split",
) -> dict[str, Any]:
    """Return the content of audit.json. ``parts``: ``audit_block`` of blocks of images, in
    order.
    """
    without_split = {image for of in parts for image in of["without_split"]}
    # The steps that read a published split report these.
    lost = [] if reported else sorted(without_split.difference(unused))
    violations = [
        *reported,
        *({"guarantee": "every image has a split", "image_id": image} for image in lost),
    ]
    of_captions = (row for of in parts for row in of["violations"])
    violations += sorted(of_captions, key=lambda row: (row["text"], split_pair(row["pair"])))
    violations += [row for of in parts for row in of["of_swaps"]]
    suspicions = _joined([of["suspicions"] for of in parts])
    kinds = ("images", "captions")
    images, captions = (
        {name: sum(of[kind].get(name, 0) for of in parts) for name in SPLITS} for kind in kinds
    )
    counts = {
        "violations": sum(violation.get("count", 1) for violation in violations),
        "suspicions": sum(s["captions"] for s in suspicions.values()),
        "suspicions_unexplained": sum(s["unexplained"] for s in suspicions.values()),
        "heldout_pairs": len(set(heldout)),
        "images": images,
        "images_unused": len(without_split.intersection(unused)),
        "captions": captions,
        "captions_read": captions["train"] + captions["test_seen"],
        "swapped": sum(of["swapped"] for of in parts),
    }
    disagreement = join_readings([of["disagreement"] for of in parts])
    for warning in disagreement["warnings"]:
        log.warning("warning: %s: %s", where, warning)
    for violation in violations[:MAX_LOGGED]:
        log.warning("violation: %s", in_words(violation))
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
        "tolerance": tolerance,
    }


@checked
def audit(
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
    reported: Sequence[dict[str, Any]] = (),
    unused: Sequence[str] = (),
    tolerance: str = "refuse",
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
        reported: violations that were found in a published split; an entry may count for several
            (``count``).
        unused: images that may be in no split.
        tolerance: whether ``accept_split`` refuses violations or counts them.
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
    part = audit_block(
        captions, pairs, splits, swapped, heldout, adjectives, nouns, compounds, facts
    )
    return join_audits(
        [part], heldout=heldout, reported=reported, unused=unused, tolerance=tolerance, where=where
    )


def in_words(violation: dict[str, Any]) -> str:
    """Return a violation on one line, with its first name."""
    fields = {key: value[:1] if key == "names" else value for key, value in violation.items()}
    return ", ".join(f"{key} {value}" for key, value in fields.items())


def unused_images(summary: dict[str, Any]) -> list[str]:
    """Return the images that splits.json reports as in no split."""
    contested = [record["image_id"] for record in summary.get("contested", ())]
    return [*summary.get("unused", ()), *summary.get("left_out", ()), *contested]
