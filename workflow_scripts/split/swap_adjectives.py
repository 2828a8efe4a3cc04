"""Swap adjectives in the captions of test_seen so that each changed pair is held out, nouns kept.

Paper, section "Compositional Split Generation". Which words a swap may touch: ``wording``. Pairs that would
come to dominate are avoided where a caption offers another candidate. Or take the swapped captions that were
published, whatever they hold; the audit says what is wrong with them.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.heldout import read_heldout, split_pair
from workflow_scripts.core.io import empty_table, read_table, write_json, write_table
from workflow_scripts.core.published import read_data
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, PAIRS, SPLIT, SWAPPED
from workflow_scripts.split.published import take_swaps
from workflow_scripts.split.wording import Caption, Mention, article, cased, contradiction, objection
from workflow_scripts.text.lexicon import load_lexicon


@dataclass(frozen=True)
class Candidate:
    """A change that a caption offers: these mentions, of one noun, get the adjective ``new``."""

    noun: str
    new: str
    mentions: tuple[Mention, ...]

    @property
    def pair(self) -> str:
        return f"{self.new}_{self.noun}"


def candidates_of(
    text: str,
    mentions: Sequence[Mention],
    partners: dict[str, list[str]],
    adjectives: dict[str, str],
    nouns: Collection[str],
    why: Counter[str],
) -> list[Candidate]:
    """The changes that a caption offers, in the order of the text.

    mentions: all of the caption, of any adjective. partners: a noun's held-out adjectives. adjectives, nouns:
    surface forms, as ``wording.objection`` takes them. ``why`` counts the reasons for which mentions were left alone.
    """
    caption = Caption(text)
    ours = set(adjectives.values())
    bearers: dict[int, set[int]] = defaultdict(set)
    by_noun: dict[str, list[Mention]] = defaultdict(list)
    for mention in mentions:
        bearers[mention.start].add(mention.noun_start)
        by_noun[mention.noun].append(mention)
    found = []
    for noun, said in by_noun.items():
        own = [m for m in said if m.adjective in ours]
        if not own or noun not in partners:
            continue
        # A noun that has adjectives in two places stays consistent only where both change, so both must be the same.
        if len({m.noun_start for m in own}) > 1:
            if len({m.adjective for m in own}) > 1:
                why["noun named twice"] += 1
                continue
            groups = [tuple(own)]
        else:
            groups = [(m,) for m in own]
        for group in groups:
            if any(m.relation in ("shared", "disputed") or len(bearers[m.start]) > 1 for m in group):
                why["shared or disputed"] += 1
                continue
            for new in partners[noun]:
                if contradiction(caption, group, new, mentions):
                    why["contradiction"] += 1
                    continue
                objections = [objection(caption, m, new, adjectives, nouns) for m in group]
                if any(objections):
                    why[next(o for o in objections if o)] += 1
                    continue
                found.append(Candidate(noun, new, group))
    return found


def choose(offers: Sequence[Sequence[Candidate]], generator: np.random.Generator) -> list[list[Candidate]]:
    """For each caption, the changes to make: of one noun, and of further nouns where no pair comes to dominate.

    A caption takes its candidate whose pair is the rarest so far, captions with the fewest pairs first; then
    captions move to a rarer pair until none gains by it. Further nouns of a caption are changed as long as no
    pair becomes more frequent than the most frequent one already is.
    """
    # A seeded order settles ties, of captions and of candidates.
    offers = [[row[i] for i in generator.permutation(len(row))] for row in offers]
    order = sorted(generator.permutation(len(offers)), key=lambda i: len({c.pair for c in offers[i]}))
    counts: Counter[str] = Counter()
    chosen: dict[int, Candidate] = {}
    for i in order:
        chosen[i] = min(offers[i], key=lambda c: counts[c.pair])
        counts[chosen[i].pair] += 1
    moved = True
    while moved:  # Each move lowers the sum of the squared counts, so this ends.
        moved = False
        for i in order:
            best = min(offers[i], key=lambda c: counts[c.pair])
            if counts[best.pair] + 1 < counts[chosen[i].pair]:
                counts[chosen[i].pair] -= 1
                counts[best.pair] += 1
                chosen[i], moved = best, True
    most = max(counts.values(), default=0)
    result: list[list[Candidate]] = []
    for i, row in enumerate(offers):
        changes = [chosen[i]]
        for noun in sorted({c.noun for c in row} - {chosen[i].noun}):
            best = min((c for c in row if c.noun == noun), key=lambda c: counts[c.pair])
            if counts[best.pair] < most:
                counts[best.pair] += 1
                changes.append(best)
        result.append(changes)
    return result


def apply(text: str, changes: Sequence[Candidate]) -> tuple[str, list[dict[str, Any]]]:
    """``(swapped_text, changes)``, the latter as in ``tables.SWAPPED``, in the order of the text."""
    caption = Caption(text)
    places = sorted((m.start, m.end, c.noun, m.adjective, c.new) for c in changes for m in c.mentions)
    done, copied = "", 0
    records: list[dict[str, Any]] = []
    for start, end, noun, old, new in places:
        before = [w for w in caption.words if w.end <= start][-1:]
        for word in before:
            if word.text in ("a", "an") and text[word.end : start].isspace() and word.start >= copied:
                done += text[copied : word.start] + cased(article(new), text[word.start : word.start + 1])
                copied = word.end
        done += text[copied:start]
        record = {"noun": noun, "original_adj": old, "new_adj": new, "start": start, "end": end}
        records.append(record | {"new_start": len(done), "new_end": len(done) + len(new)})
        done += cased(new, text[start:end])
        copied = end
    return done + text[copied:], records


def swap_adjectives(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    heldout: Collection[str],
    adjectives: dict[str, str],
    nouns: Collection[str],
    seed: int,
    dataset: str,
    composition: str,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """``(swapped, summary)``: columns of ``tables.SWAPPED``, sorted by image and caption, and counts for people.

    captions: those of test_seen; pairs: their occurrences, of all adjectives (others are ignored). adjectives: surface
    forms of the composition's adjectives to canonical words. nouns: surface forms of nouns.
    """
    partners: dict[str, list[str]] = defaultdict(list)
    for pair in sorted(heldout):
        adjective, noun = split_pair(pair)
        partners[noun].append(adjective)

    captions = captions.sort_values(["image_id", "caption_id"], ignore_index=True)
    mentions: dict[tuple[str, int], list[Mention]] = defaultdict(list)
    inside = pairs[pairs["image_id"].isin(captions["image_id"])]
    inside = inside.sort_values(["image_id", "caption_id", "adjective_start", "noun_start", "adjective"])
    columns = [
        "image_id",
        "caption_id",
        "adjective",
        "noun",
        "adjective_start",
        "adjective_end",
        "noun_start",
        "noun_end",
    ]
    for image, number, *rest in inside[[*columns, "relation"]].itertuples(index=False):
        mentions[image, number].append(Mention(*rest))

    why: Counter[str] = Counter()
    rows, offers = [], []
    for image, number, text in captions[["image_id", "caption_id", "text"]].itertuples(index=False):
        offer = candidates_of(text, mentions[image, number], partners, adjectives, nouns, why)
        if offer:
            rows.append((image, number, text))
            offers.append(offer)
    chosen = choose(offers, rng(seed, "swap_adjectives", dataset, composition))
    counts = Counter(pair for changes in chosen for pair in {c.pair for c in changes})
    records = []
    for (image, number, text), changes in zip(rows, chosen, strict=True):
        swapped_text, made = apply(text, changes)
        pair = min((c.pair for c in changes), key=lambda p: (counts[p], p))
        records.append((image, number, text, swapped_text, made, pair))
    swapped = pd.DataFrame(records, columns=list(SWAPPED.columns)) if records else empty_table(SWAPPED)
    summary = counts_of(swapped, captions, heldout)
    return swapped, summary | {"left_alone": {reason: why[reason] for reason in sorted(why)}, "seed": seed}


def counts_of(swapped: pd.DataFrame, captions: pd.DataFrame, heldout: Collection[str]) -> dict[str, Any]:
    """What was swapped, in counts. captions: those of test_seen."""
    entries = Counter(swapped["pair"])
    counts = Counter(
        pair for changes in swapped["changes"] for pair in {f"{c['new_adj']}_{c['noun']}" for c in changes}
    )
    frequency = sorted(counts, key=lambda p: (-counts[p], p))
    largest = max(entries.values(), default=0)
    return {
        "captions": len(captions),
        "swapped": len(swapped),
        "without_candidate": len(captions) - len(swapped),
        "images": int(captions["image_id"].nunique()),
        "images_swapped": int(swapped["image_id"].nunique()),
        "changes": int(sum(counts.values())),
        "largest_share": round(largest / len(swapped), 6) if len(swapped) else None,
        "pairs": [{"pair": p, "entries": entries[p], "changed": counts[p]} for p in frequency],
        "pairs_without_entry": sorted(set(heldout) - set(entries)),
    }


def nouns_of(captions: pd.DataFrame, pairs: pd.DataFrame) -> set[str]:
    """The surface forms, lower case, that stand in pairs as nouns more often than as adjectives.

    They tell which words are nouns beyond the lexicon's, whose list may end long before the captions' words do.
    """
    found = pairs.merge(captions[["image_id", "caption_id", "text"]], on=["image_id", "caption_id"])
    counts: dict[str, Counter[str]] = {}
    for role in ("adjective", "noun"):
        places = found[["text", f"{role}_start", f"{role}_end"]].itertuples(index=False)
        counts[role] = Counter(text[start:end].lower() for text, start, end in places)
    return {form for form, count in counts["noun"].items() if count > counts["adjective"][form]}


def main(options: argparse.Namespace) -> None:
    splits = read_table(options.splits, SPLIT)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    everything = read_table(options.captions, CAPTIONS)
    captions = everything[everything["image_id"].isin(seen)]
    pairs, heldout = read_table(options.pairs, PAIRS), read_heldout(options.heldout)
    adjectives = load_lexicon(options.adjectives).forms
    nouns = load_lexicon(options.nouns).forms if options.nouns else None
    if options.published:
        published, _ = read_data(options.published)
        swapped, wrong = take_swaps(published, everything, splits, pairs, adjectives, nouns)
        summary = counts_of(swapped, captions, heldout) | {"source": "published", "violations": wrong}
    else:
        swapped, summary = swap_adjectives(
            captions,
            pairs,
            heldout,
            adjectives,
            nouns_of(captions, pairs).union(nouns or ()),
            options.seed,
            options.dataset,
            options.composition,
        )
    write_table(swapped, options.output, SWAPPED)
    write_json(summary, options.summary)
    where = f"{options.dataset}/{options.composition}"
    if swapped.empty:
        log.warning("warning: %s: no caption of test_seen can be swapped: test_swapped is empty", where)
    log.info(
        "%s: %d of %d captions of test_seen are swapped; %d are not",
        where,
        summary["swapped"],
        summary["captions"],
        summary["without_candidate"],
    )


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    result.add_argument("--captions", type=Path, required=True)
    result.add_argument("--pairs", type=Path, required=True)
    result.add_argument("--heldout", type=Path, required=True)
    result.add_argument("--splits", type=Path, required=True)
    result.add_argument("--adjectives", type=Path, required=True, help="the composition's lexicon")
    result.add_argument("--nouns", type=Path, nargs="?", help="the noun lexicon; without, the nouns of pairs")
    result.add_argument("--published", type=Path, nargs="?", help="take the swapped captions of this data.pkl")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="swapped.parquet")
    result.add_argument("--summary", type=Path, required=True, help="counts as JSON")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
