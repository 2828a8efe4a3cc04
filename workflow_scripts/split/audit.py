"""Re-establish what the splits promise, from words and the lexicons' surface forms alone.

Two guarantees: (1) no caption of train or test_seen has a held-out pair; (2) in a swapped caption only adjectives (and
a/an before them) changed, and each changed pair is held out. Nothing of the pair extraction is imported, so that a
fault there is found here. A violation ends the step with an error; suspicions are listed for people to read.

A pair counts (``stated``) if the adjective is before the noun (`black and white wings`, `white breast and belly`) or
its predicate (`the bill is black`, `wings that are brown`). A word list cannot distinguish `a black wing with` from
`black wing tips`, whose tips are black: a noun before an unlisted word counts only if that word is a function word. Of
nouns in a row the first bears the adjective (`yellow breast belly sides`), unless the second names a mark or feathers
on it (`black cheek patch`). What these rules miss is a suspicion, like every held-out adjective within three words of
its noun; most of those are between two nouns (`a black bill and white wings`: black near wings).

What the steps could not take of a published split (``violations`` in their summaries) is added to its violations.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout, split_pair
from workflow_scripts.core.io import read_json, read_table, write_json
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import CAPTIONS, SPLIT, SPLITS, SWAPPED
from workflow_scripts.split.steps import Audit
from workflow_scripts.text.lexicon import load_lexicon, word_set

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]|_")
MAX_DISTANCE = 3  # words between an adjective and a noun that are a suspicion
MAX_EXAMPLES = 3  # captions listed for each suspicion
MAX_LOGGED = 20  # violations in the log; audit.json lists all

JOINS = frozenset(("and", "or", "&", ","))
# After a noun, these words show that it is the last of its phrase.
FUNCTION_WORDS = word_set(
    "a an the this that these those it its his her their which who whose there and or but nor yet as while if "
    "with without on in of at to from by for under over above below around near along across through throughout "
    "between behind beneath beside inside off into upon than then also plus including both all some is are was "
    "were be being been has have had does do can looks look appears appear seems seem very not"
)
# `the bill is black`, `wings that are brown`.
COPULAS = word_set("is are was were")
VERBS = COPULAS | word_set("be being been looks look appears appear seems seem")
RELATIVES = word_set("that which")
OWNERS = word_set("the its it's his her their s")
DETERMINERS = OWNERS | word_set("a an this that these those")
PREPOSITIONS = word_set(
    "of on in at under over above around to from near with below behind between by along across than for like inside"
)
# After a coordinated noun, these open a predicate of its own.
PREDICATES = VERBS | RELATIVES | word_set("has have had")
# Nouns for marks on another noun, which take its adjective.
MARKS = word_set("patch spot stripe feather eyering wingbar")
# `black with white speckled feathers`: black feathers.
PATTERNS = word_set("speckled spotted striped streaked barred mottled flecked dotted splotched")
# Nouns that only tell which noun follows: `black primary wings`.
ORDINALS = word_set("primary secondary")


@dataclass(frozen=True)
class Item:
    """A word, a form of several words or a sign of a text, from character ``start`` to ``end`` (exclusive)."""

    kind: str  # adjective or noun if a lexicon lists it, else other
    word: str  # canonical if listed
    start: int
    end: int


class Reader:
    """Reads texts as items, by the surface forms of adjectives and nouns to their canonical words."""

    def __init__(self, adjectives: Mapping[str, str], nouns: Mapping[str, str]) -> None:
        self.forms: dict[tuple[str, ...], tuple[str, str]] = {}
        for kind, forms in (("noun", nouns), ("adjective", adjectives)):
            for form, canonical in forms.items():
                self.forms[tuple(m.group() for m in self._tokens(form.lower()))] = (kind, canonical)
        self.longest = max(len(form) for form in self.forms)

    @staticmethod
    def _tokens(text: str) -> list[re.Match[str]]:
        """Return the tokens; a hyphen joins like a space."""
        return [m for m in TOKEN.finditer(text) if m.group() != "-"]

    def read(self, text: str) -> list[Item]:
        """Return the items of a text, the longest form first."""
        tokens = self._tokens(text)
        lowers = [m.group().lower() for m in tokens]
        items = []
        i = 0
        while i < len(tokens):
            for length in range(min(self.longest, len(tokens) - i), 0, -1):
                if known := self.forms.get(tuple(lowers[i : i + length])):
                    break
            else:
                length, known = 1, None
            kind, word = known or ("other", lowers[i])
            items.append(Item(kind, word, tokens[i].start(), tokens[i + length - 1].end()))
            i += length
        return items


Reading = list[tuple[Item, Item]]  # adjectives, each with its noun


def _is_participle(text: str, noun: Item) -> bool:
    """Return whether a noun is used as in `red headed`."""
    return text[noun.start : noun.end].lower().endswith("ed")


def _ends_phrase(text: str, items: list[Item], noun: int) -> bool:
    """Return whether the noun is surely the last of its phrase, not the first half of a compound."""
    # `red headed bird`; but a `red feathered tip` is a red tip.
    if _is_participle(text, items[noun]) and items[noun].word not in MARKS or noun + 1 == len(items):
        return True
    after = items[noun + 1]
    return after.kind != "other" or after.word in FUNCTION_WORDS or not after.word[0].isalnum()


def _bearer(text: str, items: list[Item], noun: int) -> int | None:
    """Return which of the nouns in a row that begin at ``noun`` bears the adjective before them."""
    while noun + 1 < len(items) and items[noun + 1].kind == "noun":
        if items[noun + 1].word not in MARKS and items[noun].word not in ORDINALS:
            break
        noun += 1
        if noun + 1 < len(items) and items[noun + 1].word in COPULAS:  # `a red bill feathers are black`
            return None
    return noun if _ends_phrase(text, items, noun) else None


def _joined(items: list[Item], index: int, step: int, kind: str) -> int | None:
    """Return the item of this kind that is joined to the one at ``index`` (`and`, a comma, or both between them)."""
    i = index + step
    while 0 <= i < len(items) and items[i].word in JOINS:
        i += step
    return i if abs(i - index) > 1 and 0 <= i < len(items) and items[i].kind == kind else None


def _is_predicate(items: list[Item], adjective: int) -> bool:
    """Return whether a verb is before the adjective: `a tail that is red and pink wings` states no red wings."""
    i = adjective - 1
    while i >= 0 and items[i].kind != "noun" and (items[i].word in JOINS or items[i].word not in FUNCTION_WORDS):
        i -= 1
    return i >= 0 and items[i].word in VERBS


def _opens_clause(items: list[Item], noun: int) -> bool:
    """Return whether a verb follows the nouns that begin here: `the crown is red throat and belly are blue`."""
    while noun < len(items) and (items[noun].kind == "noun" or items[noun].word in JOINS):
        noun += 1
    return noun < len(items) and items[noun].word in VERBS


def _adjectives_before(items: list[Item], noun: int) -> list[Item]:
    """Return the adjective before a noun, and those coordinated with it; none if it is a predicate."""
    if noun == 0 or items[noun - 1].kind != "adjective":
        return []
    if _is_predicate(items, noun - 1) and _opens_clause(items, noun):
        return []
    adjectives = [items[noun - 1]]
    i = _joined(items, noun - 1, -1, "adjective")
    while i is not None and not _is_predicate(items, i):
        adjectives.append(items[i])
        i = _joined(items, i, -1, "adjective")
    return adjectives


def _bearers(text: str, items: list[Item], first: int) -> list[Item]:
    """Return the nouns that bear the adjectives before the noun ``first``."""
    noun = _bearer(text, items, first)
    bearers: list[Item] = []
    while noun is not None:
        bearers.append(items[noun])
        # `red headed and tailed bird` is left to the suspicions.
        joined = None if _is_participle(text, items[noun]) else _joined(items, noun, 1, "noun")
        noun = None if joined is None else _bearer(text, items, joined)
        if noun is not None and _has_predicate(items, noun):
            break
    return bearers


def _has_predicate(items: list[Item], noun: int) -> bool:
    """Return whether a coordinated noun has a predicate of its own: `black head and wings that are white`.

    A relative clause without a listed adjective is none: `brown tarsus and feet that is flappy`.
    """
    after = [item.word for item in items[noun + 1 : noun + 3]]
    if after and after[0] in RELATIVES:
        is_listed = any(item.kind == "adjective" for item in items[noun + 3 : noun + 6])
        return after[-1] not in VERBS or is_listed
    return bool(PREDICATES.intersection(after))


def _of_pattern(items: list[Item], noun: int) -> Item | None:
    """Return the adjective of the ground of a pattern: black in `black with white speckled feathers`."""
    if noun < 4 or items[noun - 1].word not in PATTERNS or items[noun - 3].word != "with":
        return None
    is_phrase = items[noun - 4].kind == items[noun - 2].kind == "adjective" and not _is_predicate(items, noun - 4)
    return items[noun - 4] if is_phrase else None


def _before_noun(text: str, items: list[Item]) -> Reading:
    """Return the pairs of `black wings`, `black and white wings`, `white breast and belly`."""
    pairs: Reading = []
    for index, item in enumerate(items):
        adjectives = _adjectives_before(items, index) if item.kind == "noun" else []
        if item.kind == "noun" and (ground := _of_pattern(items, index)):
            adjectives = [ground]
        if adjectives:
            bearers = _bearers(text, items, index)
            pairs.extend((adjective, bearer) for adjective in adjectives for bearer in bearers)
    return pairs


def _is_subject(items: list[Item], noun: int) -> bool:
    """Return whether the noun heads `the …` or `its …` that no preposition makes part of something else."""
    i = noun - 1
    while i >= 0 and (items[i].kind != "other" or items[i].word in JOINS):
        i -= 1
    return i >= 0 and items[i].word in OWNERS and (i == 0 or items[i - 1].word not in PREPOSITIONS)


def _other_subjects(items: list[Item], noun: int) -> list[int]:
    """Return the nouns coordinated with a subject: `a crown and nape that are`, `the crown down to nape are`.

    None if one of them has an adjective: `a black crown and nape that are gray` leaves open what the crown is.
    """
    others = []
    while (other := _span_top(items, noun)) is not None or (other := _joined(items, noun, -1, "noun")) is not None:
        others.append(noun := other)
    has_determiner = noun == 0 or items[noun - 1].word in DETERMINERS | PREPOSITIONS | {"and", "has"}
    return others if has_determiner else []


def _span_top(items: list[Item], noun: int) -> int | None:
    """Return the noun from which a span goes down to ``noun``: the crown in `the crown down to the nape`."""
    i = noun - (noun > 0 and items[noun - 1].word in OWNERS)
    before = [item.word for item in items[max(0, i - 2) : i]]
    return i - 3 if before == ["down", "to"] and i > 2 and items[i - 3].kind == "noun" else None


def _predicate_start(items: list[Item], noun: int) -> int | None:
    """Return where the predicate of a noun begins: after `is` in `its bill is`, after `are` in `wings that are`."""
    i = noun + 1
    is_relative = i < len(items) and items[i].word in RELATIVES
    i += is_relative
    if i == len(items) or items[i].word not in COPULAS:
        return None
    if is_relative:
        before = {item.word for item in items[max(0, noun - MAX_DISTANCE) : noun]}
        return None if before & (PREPOSITIONS - {"with"}) else i + 1
    top = _span_top(items, noun)
    return i + 1 if _is_subject(items, noun if top is None else top) else None


def _as_predicate(items: list[Item]) -> Reading:
    """Return the pairs of `the bill is black and white`, `wings that are brown`."""
    pairs: Reading = []
    for index, item in enumerate(items):
        i = _predicate_start(items, index) if item.kind == "noun" else None
        others = [] if i is None else _other_subjects(items, index)
        while i is not None and i < len(items) and items[i].kind == "adjective":
            following = items[i + 1] if i + 1 < len(items) else None
            if following is None or not following.word[0].isalnum() or following.word in FUNCTION_WORDS:
                pairs += [(items[i], items[noun]) for noun in (index, *others)]
            i = i + 2 if following and following.word in JOINS else None
    return pairs


def stated(text: str, items: list[Item]) -> Reading:
    """Return the adjective and noun of every pair that the order of words alone states (module docstring)."""
    return _before_noun(text, items) + _as_predicate(items)


def near(items: list[Item]) -> Reading:
    """Return every adjective and noun at most ``MAX_DISTANCE`` items apart."""
    return [
        (item, other)
        for index, item in enumerate(items)
        if item.kind == "adjective"
        for other in items[max(0, index - MAX_DISTANCE) : index + MAX_DISTANCE + 1]
        if other.kind == "noun"
    ]


def words_of(pairs: Iterable[tuple[Item, Item]]) -> set[tuple[str, str]]:
    return {(adjective.word, noun.word) for adjective, noun in pairs}


def plain_forms(nouns: Iterable[str]) -> dict[str, str]:
    """Return nouns and their regular plurals, for nouns that no lexicon lists."""
    forms: dict[str, str] = {}
    for noun in nouns:
        ending = "es" if re.search("(s|x|z|ch|sh)$", noun) else "s"
        plural = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else noun + ending
        forms |= {noun: noun, plural: noun}
    return forms


def audit_captions(
    captions: pd.DataFrame, heldout: set[tuple[str, str]], reader: Reader
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the violations and suspicions of ``captions`` (image_id, caption_id, split and text).

    A suspicion is unexplained if no reading gives the adjective to another noun; the most unexplained come first.
    """
    violations: list[dict[str, Any]] = []
    suspected, unexplained = Counter[str](), Counter[str]()
    examples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    adjectives, nouns = ({pair[side] for pair in heldout} for side in (0, 1))
    captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)
    texts = captions.pop("text").tolist()
    columns = {name: captions[name].tolist() for name in ("image_id", "caption_id", "split")}
    # The places of equal texts together, each text's in the captions' order.
    by_text = groupby(sorted(range(len(texts)), key=texts.__getitem__), key=texts.__getitem__)
    for text, places in track(by_text, len(set(texts)), "texts"):
        items = reader.read(text)
        words = {item.word for item in items}
        if not (words & adjectives and words & nouns):
            continue
        reading, close = stated(text, items), near(items)
        violated = words_of(reading) & heldout
        suspicious = (words_of(close) & heldout) - violated
        if not (violated or suspicious):
            continue
        rows = [{name: column[place] for name, column in columns.items()} for place in places]
        explained = {adjective.start for adjective, _ in reading}
        open_questions = words_of(pair for pair in close if pair[0].start not in explained) & suspicious
        for pair in map("_".join, sorted(violated)):
            violations += [{"guarantee": "held out", "pair": pair, **row, "text": text} for row in rows]
        for adjective, noun in sorted(suspicious):
            pair = f"{adjective}_{noun}"
            suspected[pair] += len(rows)
            if (adjective, noun) in open_questions:
                unexplained[pair] += len(rows)
                examples[pair] += [{**row, "text": text} for row in rows[: MAX_EXAMPLES - len(examples[pair])]]
    suspicions = {
        pair: {"captions": suspected[pair], "unexplained": unexplained[pair], "examples": examples[pair]}
        for pair in sorted(suspected, key=lambda p: (-unexplained[p], -suspected[p], p))
    }
    return violations, suspicions


def _offset_faults(
    text: str, swapped_text: str, changes: list[dict[str, Any]], heldout: set[tuple[str, str]], reader: Reader
) -> list[str]:
    """Return what is wrong with the changes of a swapped caption, and with the text between them."""
    faults = []
    copied, copied_new = 0, 0
    for change in sorted(changes, key=lambda c: c["start"]):
        noun, old, new = change["noun"], change["original_adj"], change["new_adj"]
        if (new, noun) not in heldout:
            faults.append(f"{new}_{noun} is not held out")
        before, before_new = text[copied : change["start"]], swapped_text[copied_new : change["new_start"]]
        if _without_article(before) != _without_article(before_new):
            faults.append(f"more than the adjective changed before {new}")
        for label, word, source, start, end in (
            ("original_adj", old, text, change["start"], change["end"]),
            ("new_adj", new, swapped_text, change["new_start"], change["new_end"]),
        ):
            if [(item.kind, item.word) for item in reader.read(source[start:end])] != [("adjective", word)]:
                faults.append(f"{label} {word} does not stand at its offsets")
        copied, copied_new = change["end"], change["new_end"]
    if text[copied:] != swapped_text[copied_new:]:
        faults.append("more than the adjective changed at the end")
    return faults


def _reading_faults(
    text: str, swapped_text: str, changes: list[dict[str, Any]], heldout: set[tuple[str, str]], reader: Reader
) -> list[str]:
    """Return what is wrong with the words of a swapped caption, as they are read."""
    faults = []
    items, new_items = reader.read(text), reader.read(swapped_text)
    if [i.word for i in items if i.kind == "noun"] != [i.word for i in new_items if i.kind == "noun"]:
        faults.append("the nouns changed")
    # What only the swapped caption states must be held out too.
    reading = stated(text, items)
    added = words_of(stated(swapped_text, new_items)) - words_of(reading) - heldout
    faults += [f"it also says {adjective}_{noun}, which is not held out" for adjective, noun in sorted(added)]
    changed = {change["start"]: change["noun"] for change in changes}
    if any(a.start in changed and n.word != changed[a.start] for a, n in reading):
        faults.append("the adjective is also about another noun")
    return faults


def _without_article(text: str) -> str:
    """Return ``text`` with an a or an at its end written a."""
    return re.sub(r"(?i)(?<![^\W_])an?(?=\s+$)", "a", text)


def audit_swapped(
    swapped: pd.DataFrame, captions: pd.DataFrame, heldout: set[tuple[str, str]], reader: Reader
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the violations and counts of swapped captions.

    Args:
        captions: image_id, caption_id, split and text, of all images.
    """
    captions = captions[captions["image_id"].isin(swapped["image_id"])]
    original = captions.set_index(["image_id", "caption_id"])[["split", "text"]].to_dict("index")
    violations = []
    counts = Counter({"changes": 0, "adjective_not_by_its_noun": 0})
    columns = ["image_id", "caption_id", "text", "swapped_text", "changes", "pair"]
    for image, number, text, swapped_text, changes, pair in swapped[columns].itertuples(index=False):
        changes = list(changes)
        faults = ["nothing is changed"]
        if changes:
            faults = _offset_faults(text, swapped_text, changes, heldout, reader)
            faults += _reading_faults(text, swapped_text, changes, heldout, reader)
        source = original.get((image, number))
        if source is None or source["text"] != text:
            faults.append("its text is not the caption's")
        elif source["split"] != "test_seen":
            faults.append(f"its image is in {source['split']}")
        if pair not in {f"{c['new_adj']}_{c['noun']}" for c in changes}:
            faults.append(f"its pair {pair} is none of its changed pairs")
        close = words_of(near(reader.read(swapped_text)))
        counts["changes"] += len(changes)
        counts["adjective_not_by_its_noun"] += sum((c["new_adj"], c["noun"]) not in close for c in changes)
        row = {"pair": pair, "image_id": image, "caption_id": int(number), "text": text, "swapped_text": swapped_text}
        violations += [{"guarantee": "swapped", "fault": fault, **row} for fault in faults]
    return violations, dict(counts)


def audit(
    captions: pd.DataFrame,
    splits: pd.DataFrame,
    swapped: pd.DataFrame,
    heldout: Collection[str],
    adjectives: Mapping[str, str],
    nouns: Mapping[str, str] | None,
    reported: Sequence[dict[str, Any]] = (),
    unused: Collection[str] = (),
) -> dict[str, Any]:
    """Return the content of audit.json.

    Args:
        adjectives: surface forms to canonical words.
        nouns: likewise; None for the held-out nouns and their regular plurals.
        reported: violations that the steps have found, some of which stand for several (``count``).
        unused: images that may be in no split.
    """
    held = {split_pair(pair) for pair in heldout}
    reader = Reader(adjectives, plain_forms(noun for _, noun in held) if nouns is None else nouns)
    captions = captions.assign(split=captions["image_id"].map(splits.set_index("image_id")["split"]))
    captions = captions[["image_id", "caption_id", "split", "text"]]
    violations = list(reported)
    without_split = set(captions.loc[captions["split"].isna(), "image_id"])
    # The steps that take a published split report these.
    lost = [] if reported else sorted(without_split.difference(unused))
    violations += [{"guarantee": "every image has a split", "image_id": image} for image in lost]
    clean = captions[captions["split"].isin(["train", "test_seen"])]
    caption_violations, suspicions = audit_captions(clean, held, reader)
    swap_violations, swap_counts = audit_swapped(swapped, captions, held, reader)
    violations += caption_violations + swap_violations
    sizes, images = captions["split"].value_counts(), splits["split"].value_counts()
    return {
        "violations": violations,
        "counts": {
            "violations": sum(violation.get("count", 1) for violation in violations),
            "suspicions": sum(s["captions"] for s in suspicions.values()),
            "suspicions_unexplained": sum(s["unexplained"] for s in suspicions.values()),
            "heldout_pairs": len(held),
            "images": {name: int(images.get(name, 0)) for name in SPLITS},
            "images_unused": len(without_split.intersection(unused)),
            "captions": {name: int(sizes.get(name, 0)) for name in SPLITS},
            "captions_read": len(clean),
            "swapped": len(swapped),
            **swap_counts,
        },
        "suspicions": suspicions,
    }


def in_words(violation: dict[str, Any]) -> str:
    """Return a violation on a line, with the first of its names."""
    fields = {key: value[:1] if key == "names" else value for key, value in violation.items()}
    return ", ".join(f"{key} {value}" for key, value in fields.items())


def unused_images(summary: dict[str, Any]) -> list[str]:
    """Return the images that a division leaves in no split, by its splits.json."""
    return [*summary["unused"], *summary["left_out"]]


def main(step: Audit) -> None:
    result = audit(
        read_table(step.captions, CAPTIONS),
        read_table(step.splits, SPLIT),
        read_table(step.swapped, SWAPPED),
        read_heldout(step.heldout),
        load_lexicon(step.adjectives).forms,
        load_lexicon(step.nouns).forms if step.nouns else None,
        [violation for summary in step.reports for violation in read_json(summary).get("violations", [])],
        unused_images(read_json(step.unused)) if step.unused else (),
    )
    if step.published:
        result["published"] = step.published.violations
    write_json(result, step.audit)
    violations, counts = result["violations"], result["counts"]
    for violation in violations[:MAX_LOGGED]:
        log.error("violation: %s", in_words(violation))
    if not violations:
        suspicions = counts["suspicions"], counts["suspicions_unexplained"]
        log.info("%s: no violation; %d suspicions, %d of them unexplained", step.where, *suspicions)
    elif step.published and step.published.violations == "count":
        log.warning("warning: %s: %d audit violations in the published split", step.where, counts["violations"])
    else:
        advice = (
            "to use this published split nevertheless, set split.published.violations to count"
            if step.published
            else "add the missing form to a lexicon, or set pairs.nouns so that pairs are found by a lexicon"
        )
        raise UserError(
            f"{step.where}: {counts['violations']} audit violations (first: {in_words(violations[0])}); {advice}"
        )


if __name__ == "__main__":
    cli.run(main)
