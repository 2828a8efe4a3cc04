"""Re-establish what the splits promise, from words and the lexicons' surface forms alone.

Two guarantees: (1) no caption of train or test_seen holds a held-out pair; (2) in a swapped caption only
adjectives (and a/an before them) changed, and each changed pair is held out. Nothing of the pair
extraction is imported, so that a fault there shows here. A violation ends the step with an error;
suspicions are listed for people to read.

How words are read (``stated``), and why no stricter: an adjective directly before a noun, or coordinated with
one that is (`black and white wings`), or before coordinated nouns (`white breast and belly`). A word list
cannot tell `a black wing with` from `black wing tips`, whose tips are black: a noun before an unlisted word
counts only where that word is a function word. Of nouns in a row the first bears the adjective (`yellow breast
belly sides`), unless the second is one that names a mark or feathers on it (`black cheek patch`). A
coordinated noun with a predicate of its own (`black head and wings that are white`) shares nothing. A predicate
(`the bill is black`, `wings that are brown`) counts where no preposition makes its subject part of something else
(`the top of the wings is red`) and no noun follows it (`the belly is red wings`). What these rules let through is
a suspicion, as is every held-out adjective within three words of its noun; most of those stand between two
nouns (`a black bill and white wings`: black near wings).

A published split (``split.published``) is read in the same way, and what the steps that took it could not take
(``violations`` in their summaries) is added. Such a split may be used all the same, where the config says so: the
violations are then counted in audit.json, and no error. Every image has a split, but for those that a division by
divergence leaves unused.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout, split_pair
from workflow_scripts.core.io import read_json, read_table, write_json
from workflow_scripts.core.progress import track
from workflow_scripts.core.tables import CAPTIONS, SPLIT, SPLITS, SWAPPED
from workflow_scripts.split.wording import word_set
from workflow_scripts.text.lexicon import load_lexicon

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|[^\w\s]|_")
NEAR = 3  # words within which an adjective and a noun are a suspicion
EXAMPLES = 3  # captions shown for each suspicion
SHOWN = 20  # violations in the log; audit.json has all

JOINS = frozenset(("and", "or", "&", ","))
# After a noun, these words say that it is the last of its phrase.
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
PREPOSITIONS = word_set(
    "of on in at under over above around to from near with below behind between by along across than for like inside"
)
# After a coordinated noun, these open a predicate of its own.
PREDICATES = VERBS | RELATIVES | word_set("has have had")
# Nouns that stand on another noun and take its adjective.
MARKS = word_set("patch spot stripe feather eyering wingbar")
# Nouns that before another noun only say which: `black primary wings`.
ORDINALS = word_set("primary secondary")


@dataclass(frozen=True)
class Item:
    """A word of a text, a form of several words, or a sign.

    kind: ``adjective`` or ``noun`` where the lexicons know it, with its canonical word; else ``other``.
    """

    kind: str
    word: str
    start: int
    end: int


class Reader:
    """Reads texts as items; ``adjectives`` and ``nouns`` map surface forms to canonical words."""

    def __init__(self, adjectives: dict[str, str], nouns: dict[str, str]) -> None:
        self.forms: dict[tuple[str, ...], tuple[str, str]] = {}
        for kind, forms in (("noun", nouns), ("adjective", adjectives)):
            for form, canonical in forms.items():
                self.forms[tuple(self._tokens(form.lower()))] = (kind, canonical)
        self.longest = max(len(form) for form in self.forms)

    @staticmethod
    def _tokens(text: str) -> list[str]:
        return [m.group() for m in TOKEN.finditer(text) if m.group() != "-"]

    def read(self, text: str) -> list[Item]:
        """The items of a text, the longest form first; a hyphen joins like a space."""
        matches = [m for m in TOKEN.finditer(text) if m.group() != "-"]
        lowers = [m.group().lower() for m in matches]
        items = []
        i = 0
        while i < len(matches):
            for length in range(min(self.longest, len(matches) - i), 0, -1):
                known = self.forms.get(tuple(lowers[i : i + length]))
                if known:
                    break
            else:
                length, known = 1, None
            kind, word = known or ("other", lowers[i])
            items.append(Item(kind, word, matches[i].start(), matches[i + length - 1].end()))
            i += length
        return items


def _is_participle(text: str, noun: Item) -> bool:
    """Whether a noun stands as in `red headed`."""
    return text[noun.start : noun.end].lower().endswith("ed")


def _ends_phrase(text: str, items: list[Item], noun: int) -> bool:
    """Whether the noun at this index is surely the last of its phrase, not the first half of a compound."""
    # `red headed bird`; but a `red feathered tip` is a red tip.
    if _is_participle(text, items[noun]) and items[noun].word not in MARKS:
        return True
    if noun + 1 == len(items):
        return True
    after = items[noun + 1]
    return after.kind != "other" or after.word in FUNCTION_WORDS or not after.word[0].isalnum()


def _bearer(text: str, items: list[Item], noun: int) -> int | None:
    """Of the nouns in a row that begin at ``noun``, the one that the adjective before them is about."""
    while noun + 1 < len(items) and items[noun + 1].kind == "noun":
        if items[noun + 1].word not in MARKS and items[noun].word not in ORDINALS:
            break
        noun += 1
        if noun + 1 < len(items) and items[noun + 1].word in COPULAS:  # `a red bill feathers are black`
            return None
    return noun if _ends_phrase(text, items, noun) else None


def _joined(items: list[Item], index: int, step: int, kind: str) -> int | None:
    """The item of this kind that is joined to the one at ``index`` (`and`, a comma, or both between them)."""
    i = index + step
    while 0 <= i < len(items) and items[i].word in JOINS:
        i += step
    return i if abs(i - index) > 1 and 0 <= i < len(items) and items[i].kind == kind else None


def _is_predicate(items: list[Item], adjective: int) -> bool:
    """Whether a verb stands before the adjective: `a tail that is red and pink wings` says no red wings."""
    i = adjective - 1
    while i >= 0 and items[i].kind != "noun" and (items[i].word in JOINS or items[i].word not in FUNCTION_WORDS):
        i -= 1
    return i >= 0 and items[i].word in VERBS


def _opens_clause(items: list[Item], noun: int) -> bool:
    """Whether a verb follows the nouns that begin here: `the crown is red throat and belly are blue`."""
    while noun < len(items) and (items[noun].kind == "noun" or items[noun].word in JOINS):
        noun += 1
    return noun < len(items) and items[noun].word in VERBS


def _before_noun(text: str, items: list[Item]) -> list[tuple[Item, Item]]:
    """`black wings`, `black and white wings`, `white breast and belly`."""
    found = []
    for index, item in enumerate(items):
        if item.kind != "noun" or index == 0 or items[index - 1].kind != "adjective":
            continue
        i = index - 1
        if _is_predicate(items, i) and _opens_clause(items, index):
            continue
        adjectives = [items[i]]
        while (i := _joined(items, i, -1, "adjective")) is not None and not _is_predicate(items, i):
            adjectives.append(items[i])
        noun = _bearer(text, items, index)
        if noun is None:
            continue
        bearers = [items[noun]]
        # `red headed and tailed bird` is left to the suspicions.
        while not _is_participle(text, items[noun]) and (joined := _joined(items, noun, 1, "noun")) is not None:
            noun_after = _bearer(text, items, joined)
            if noun_after is None or {i.word for i in items[noun_after + 1 : noun_after + 3]} & PREDICATES:
                break
            noun = noun_after
            bearers.append(items[noun])
        found.extend((adjective, bearer) for adjective in adjectives for bearer in bearers)
    return found


def _is_subject(items: list[Item], noun: int) -> bool:
    """Whether the noun at this index heads `the …` or `its …` that no preposition makes part of something else."""
    i = noun - 1
    while i >= 0 and (items[i].kind != "other" or items[i].word in JOINS):
        i -= 1
    return i >= 0 and items[i].word in OWNERS and (i == 0 or items[i - 1].word not in PREPOSITIONS)


def _as_predicate(items: list[Item]) -> list[tuple[Item, Item]]:
    """`the bill is black and white`, `wings that are brown`."""
    found = []
    for index, item in enumerate(items):
        if item.kind != "noun":
            continue
        i = index + 1
        relative = i < len(items) and items[i].word in RELATIVES
        i += relative
        if i == len(items) or items[i].word not in COPULAS:
            continue
        if relative:
            if {before.word for before in items[max(0, index - NEAR) : index]} & (PREPOSITIONS - {"with"}):
                continue
        elif not _is_subject(items, index):
            continue
        i += 1
        while i < len(items) and items[i].kind == "adjective":
            following = items[i + 1] if i + 1 < len(items) else None
            if following is None or not following.word[0].isalnum() or following.word in FUNCTION_WORDS:
                found.append((items[i], item))
            if following is None or following.word not in JOINS:
                break
            i += 2
    return found


def stated(text: str, items: list[Item]) -> list[tuple[Item, Item]]:
    """The adjective and noun of every pair that the order of words alone states (module docstring)."""
    return _before_noun(text, items) + _as_predicate(items)


def near(items: list[Item]) -> list[tuple[Item, Item]]:
    """Every adjective and noun at most ``NEAR`` items apart."""
    return [
        (item, other)
        for index, item in enumerate(items)
        if item.kind == "adjective"
        for other in items[max(0, index - NEAR) : index + NEAR + 1]
        if other.kind == "noun"
    ]


def words_of(pairs: Iterable[tuple[Item, Item]]) -> set[tuple[str, str]]:
    """Items as canonical words."""
    return {(adjective.word, noun.word) for adjective, noun in pairs}


def plain_forms(nouns: Iterable[str]) -> dict[str, str]:
    """Nouns and their regular plurals, where no lexicon lists their forms."""
    forms = {}
    for noun in nouns:
        plural = (
            f"{noun[:-1]}ies"
            if re.search("[^aeiou]y$", noun)
            else noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")
        )
        forms |= {noun: noun, plural: noun}
    return forms


def audit_captions(
    captions: pd.DataFrame, heldout: set[tuple[str, str]], reader: Reader
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """``(violations, suspicions)`` of captions (image_id, caption_id, split, text) of train and test_seen.

    A suspicion is unexplained where no reading gives the adjective to another noun: these come first to the eye.
    """
    violations: list[dict[str, Any]] = []
    suspected: Counter[str] = Counter()
    unexplained: Counter[str] = Counter()
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
        reading = stated(text, items)
        said = words_of(reading) & heldout
        close = near(items)
        suspicious = (words_of(close) & heldout) - said
        if not (said or suspicious):
            continue
        where = [{name: column[place] for name, column in columns.items()} for place in places]
        explained = {adjective.start for adjective, _ in reading}
        open_questions = words_of(pair for pair in close if pair[0].start not in explained) & suspicious
        for adjective, noun in sorted(said):
            pair = f"{adjective}_{noun}"
            violations += [{"guarantee": "held out", "pair": pair, **row, "text": text} for row in where]
        for adjective, noun in sorted(suspicious):
            pair = f"{adjective}_{noun}"
            suspected[pair] += len(where)
            if (adjective, noun) in open_questions:
                unexplained[pair] += len(where)
                examples[pair] += [{**row, "text": text} for row in where[: EXAMPLES - len(examples[pair])]]
    suspicions = {
        pair: {"captions": suspected[pair], "unexplained": unexplained[pair], "examples": examples[pair]}
        for pair in sorted(suspected, key=lambda p: (-unexplained[p], -suspected[p], p))
    }
    return violations, suspicions


def _faults(
    text: str, swapped_text: str, changes: list[dict[str, Any]], heldout: set[tuple[str, str]], reader: Reader
) -> list[str]:
    """What is wrong with one swapped caption, in words."""
    faults = []
    if not len(changes):
        return ["nothing is changed"]
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
            kinds = [(item.kind, item.word) for item in reader.read(source[start:end])]
            if kinds != [("adjective", word)]:
                faults.append(f"{label} {word} does not stand at its offsets")
        copied, copied_new = change["end"], change["new_end"]
    if text[copied:] != swapped_text[copied_new:]:
        faults.append("more than the adjective changed at the end")
    items, items_new = reader.read(text), reader.read(swapped_text)
    if [i.word for i in items if i.kind == "noun"] != [i.word for i in items_new if i.kind == "noun"]:
        faults.append("the nouns changed")
    # What the swapped caption says anew, by the order of its words, must be held out too.
    reading = stated(text, items)
    anew = words_of(stated(swapped_text, items_new)) - words_of(reading) - heldout
    faults += [f"it also says {adjective}_{noun}, which is not held out" for adjective, noun in sorted(anew)]
    changed = {change["start"]: change["noun"] for change in changes}
    if any(a.start in changed and n.word != changed[a.start] for a, n in reading):
        faults.append("the adjective is also about another noun")
    return faults


def _without_article(text: str) -> str:
    """``text`` with an a or an at its end written a."""
    return re.sub(r"(?i)(?<![^\W_])an?(?=\s+$)", "a", text)


def audit_swapped(
    swapped: pd.DataFrame, captions: pd.DataFrame, heldout: set[tuple[str, str]], reader: Reader
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """``(violations, counts)`` of swapped captions; captions: image_id, caption_id, split, text of all images."""
    captions = captions[captions["image_id"].isin(swapped["image_id"])]
    original = captions.set_index(["image_id", "caption_id"])[["split", "text"]].to_dict("index")
    violations = []
    counts = Counter({"changes": 0, "adjective_not_by_its_noun": 0})
    columns = ["image_id", "caption_id", "text", "swapped_text", "changes", "pair"]
    for image, number, text, swapped_text, changes, pair in swapped[columns].itertuples(index=False):
        changes = list(changes)
        faults = _faults(text, swapped_text, changes, heldout, reader)
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
    adjectives: dict[str, str],
    nouns: dict[str, str] | None,
    found_before: Sequence[dict[str, Any]] = (),
    unused: Collection[str] = (),
) -> dict[str, Any]:
    """The content of audit.json.

    captions, splits, swapped: columns of the tables of those names. adjectives, nouns: surface forms to
    canonical words; without nouns, the held-out nouns and their regular plurals. found_before: violations that the
    steps have found, some of which stand for several (``count``). unused: images that may be in no split.
    """
    held = {split_pair(pair) for pair in heldout}
    reader = Reader(adjectives, plain_forms(noun for _, noun in held) if nouns is None else nouns)
    captions = captions.assign(split=captions["image_id"].map(splits.set_index("image_id")["split"]))
    captions = captions[["image_id", "caption_id", "split", "text"]]
    violations = list(found_before)
    # Of a published split the steps have said so already.
    homeless = set(captions.loc[captions["split"].isna(), "image_id"])
    lost = [] if found_before else sorted(homeless.difference(unused))
    violations += [{"guarantee": "every image has a split", "image_id": image} for image in lost]
    clean = captions[captions["split"].isin(["train", "test_seen"])]
    found, suspicions = audit_captions(clean, held, reader)
    swap_faults, swap_counts = audit_swapped(swapped, captions, held, reader)
    violations += found + swap_faults
    sizes, images = captions["split"].value_counts(), splits["split"].value_counts()
    return {
        "violations": violations,
        "counts": {
            "violations": sum(violation.get("count", 1) for violation in violations),
            "suspicions": sum(s["captions"] for s in suspicions.values()),
            "suspicions_unexplained": sum(s["unexplained"] for s in suspicions.values()),
            "heldout_pairs": len(held),
            "images": {name: int(images.get(name, 0)) for name in SPLITS},
            "images_unused": len(homeless.intersection(unused)),
            "captions": {name: int(sizes.get(name, 0)) for name in SPLITS},
            "captions_read": len(clean),
            "swapped": len(swapped),
            **swap_counts,
        },
        "suspicions": suspicions,
    }


def in_words(violation: dict[str, Any]) -> str:
    """A violation on a line; of many names, the first."""
    parts = {key: value[:1] if key == "names" else value for key, value in violation.items()}
    return ", ".join(f"{key} {value}" for key, value in parts.items())


def unused_images(summary: dict[str, Any]) -> list[str]:
    """The images that a division leaves in no split, by its splits.json."""
    return [*summary["unused"], *summary["left_out"]]


def main(options: argparse.Namespace) -> None:
    result = audit(
        read_table(options.captions, CAPTIONS),
        read_table(options.splits, SPLIT),
        read_table(options.swapped, SWAPPED),
        read_heldout(options.heldout),
        load_lexicon(options.adjectives).forms,
        load_lexicon(options.nouns).forms if options.nouns else None,
        [violation for summary in options.reports for violation in read_json(summary).get("violations", [])],
        unused_images(read_json(options.unused)) if options.unused else (),
    )
    if options.reports:
        result["published"] = options.violations
    write_json(result, options.output)
    for violation in result["violations"][:SHOWN]:
        log.error("violation: %s", in_words(violation))
    where = f"{options.dataset}/{options.composition}"
    counts = result["counts"]
    if result["violations"] and options.violations == "refuse":
        cause = (
            "it is the published split that does not keep the guarantees; to use it all the same, with the violations "
            "counted in audit.json, set split.published.violations to count"
            if options.reports
            else "a lexicon lacks a form, or the extraction of pairs (surest with a lexicon, pairs.nouns) misses "
            "something"
        )
        first = in_words(result["violations"][0])
        raise UserError(f"{where}: the audit found {counts['violations']} violations, the first is {first}: {cause}")
    if result["violations"]:
        log.warning(
            "warning: %s: %d violations of the published split, taken all the same (split.published.violations: count)",
            where,
            counts["violations"],
        )
        return
    log.info(
        "%s: no violation; %d suspicions, %d of them unexplained",
        where,
        counts["suspicions"],
        counts["suspicions_unexplained"],
    )


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("captions", "heldout", "splits", "swapped"):
        result.add_argument(f"--{name}", type=Path, required=True)
    result.add_argument("--adjectives", type=Path, required=True, help="the composition's lexicon")
    result.add_argument("--nouns", type=Path, nargs="?", help="the noun lexicon, where there is one")
    result.add_argument(
        "--reports", type=Path, nargs="*", default=[], help="JSON of the steps that took what is published"
    )
    result.add_argument(
        "--unused", type=Path, nargs="?", help="splits.json of a division by divergence: which images it leaves unused"
    )
    result.add_argument("--violations", choices=("refuse", "count"), default="refuse", help="count: no error")
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="audit.json")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
