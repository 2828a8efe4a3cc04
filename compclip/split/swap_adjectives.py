"""Swap adjectives in the captions of test_seen so that each changed pair is held out, nouns kept.

Paper, section "Compositional Split Generation". ``wording`` decides which words a swap may change.
Adjectives that exclude the original one are preferred, because a photograph of a small wing may
also show a flat one. Pairs that would dominate are avoided if a caption has another candidate.
Published swapped captions are used unchanged; the audit reports their faults.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.heldout import pair_names, split_pair
from compclip.core.inputs import Captions, PairNames, Pairs, Splits, Whole, checked, require_joined
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, OFFERS, PAIRS, SWAPPED, Blocks, in_blocks
from compclip.io import empty_table
from compclip.pairs.counts import nouns_of
from compclip.split.reading import Reader, reader_of, swap_faults
from compclip.split.wording import Mention, Wording, article, cased, contradiction, objection
from compclip.text.grammar import WORDS
from compclip.text.lexicon import Lexicon, find_lexicon, forms_of, require_occurring

PART = 50_000  # swapped captions that are made at once


class Candidate(NamedTuple):
    """A possible change of a caption: some mentions of one noun get the adjective ``new``."""

    noun: str
    new: str
    places: Sequence[tuple[int, int, str]]  # start, end and adjective of each mention

    @classmethod
    def of(cls, noun: str, new: str, mentions: Iterable[Mention]) -> "Candidate":
        return cls(noun, new, [(m.start, m.end, m.adjective) for m in mentions])

    @property
    def pair(self) -> str:
        return f"{self.new}_{self.noun}"

    def is_exclusive(self, adjectives: Lexicon) -> bool:
        """Return whether the adjective excludes the original one of each mention."""
        return adjectives.excludes((original, self.new) for _, _, original in self.places)


def _groups(mentions: Sequence[Mention]) -> list[tuple[Mention, ...]]:
    """Return which mentions of a noun change together; [] if they cannot.

    A noun with adjectives in two places stays consistent only if all change, so all must have the
    same adjective.
    """
    if len({m.noun_start for m in mentions}) == 1:
        return [(m,) for m in mentions]
    return [tuple(mentions)] if len({m.adjective for m in mentions}) == 1 else []


def of_one_noun(mentions: Sequence[Mention]) -> set[Mention]:
    """Return the mentions whose adjective certainly modifies only their noun."""
    nouns = Counter(start for start, _ in {(m.start, m.noun_start) for m in mentions})
    return {m for m in mentions if m.relation not in ("shared", "disputed") and nouns[m.start] == 1}


def candidates_of(
    text: str,
    mentions: Sequence[Mention],
    partners: Mapping[str, Sequence[str]],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    reasons: Counter[str],
) -> list[Candidate]:
    """Return the possible changes of a caption, in the order of the text.

    Args:
        mentions: all mentions in the caption, of any adjective.
        partners: the held-out adjectives of each noun.
        reasons: a counter of why mentions were not changed.
    """
    caption, plain = Wording(text), of_one_noun(mentions)
    canonical = set(adjectives.values())
    candidates = []
    for noun in dict.fromkeys(m.noun for m in mentions if m.noun in partners):
        swappable = [m for m in mentions if m.noun == noun and m.adjective in canonical]
        groups = _groups(swappable) if swappable else []
        reasons["noun named twice"] += bool(swappable) and not groups
        for group in groups:
            if not plain.issuperset(group):
                reasons["shared or disputed"] += 1
                continue
            for new in partners[noun]:
                objections = (objection(caption, m, new, adjectives, nouns) for m in group)
                is_contradicted = contradiction(caption, group, new, mentions)
                reason = (
                    "contradiction" if is_contradicted else next(filter(None, objections), None)
                )
                if reason:
                    reasons[reason] += 1
                else:
                    candidates.append(Candidate.of(noun, new, group))
    return candidates


def choose_changes(
    offers: Sequence[Sequence[str]],
    preferred: Sequence[Collection[int]],
    generator: np.random.Generator,
) -> list[list[int]]:
    """Return the places of the offered pairs to make in each caption: of one noun, and of further
    nouns unless a pair would dominate.

    Only ``preferred`` places of a caption are chosen from. A caption takes its rarest pair so far,
    captions with the fewest pairs first; then captions move to a rarer pair as long as this evens
    out the counts. Further nouns of a caption are changed unless a pair would become more frequent
    than the most frequent one.
    """
    # A seeded order breaks ties between captions and between candidates.
    shuffled = [generator.permutation(len(row)).tolist() for row in offers]
    places = [
        [place for place in row if place in allowed]
        for row, allowed in zip(shuffled, preferred, strict=True)
    ]
    order = generator.permutation(len(offers)).tolist()
    order.sort(key=lambda i: len({offers[i][place] for place in places[i]}))
    counts: Counter[str] = Counter()

    def rarest(i: int, of: Iterable[int]) -> int:
        return min(of, key=lambda place: counts[offers[i][place]])

    chosen = [0] * len(offers)
    for i in order:
        chosen[i] = rarest(i, places[i])
        counts[offers[i][chosen[i]]] += 1
    moved = True
    while moved:  # Each move lowers the sum of squared counts, so this terminates.
        moved = False
        for i in order:
            best = rarest(i, places[i])
            if counts[offers[i][best]] + 1 < counts[offers[i][chosen[i]]]:
                counts[offers[i][chosen[i]]] -= 1
                counts[offers[i][best]] += 1
                chosen[i], moved = best, True
    most = max(counts.values(), default=0)
    result: list[list[int]] = []
    for i, row in enumerate(offers):
        changes, nouns = [chosen[i]], [split_pair(pair)[1] for pair in row]
        for noun in sorted({nouns[place] for place in places[i]} - {nouns[chosen[i]]}):
            best = rarest(i, (place for place in places[i] if nouns[place] == noun))
            if counts[row[best]] < most:
                counts[row[best]] += 1
                changes.append(best)
        result.append(changes)
    return result


def apply(text: str, changes: Sequence[Candidate]) -> tuple[str, list[dict[str, Any]]]:
    """Return the swapped text, and the changes as in ``tables.SWAPPED``, in the order of the
    text.
    """
    caption = Wording(text)
    places = sorted(
        (start, end, c.noun, old, c.new) for c in changes for start, end, old in c.places
    )
    result, copied = "", 0
    records: list[dict[str, Any]] = []
    for start, end, noun, old, new in places:
        for word in caption.words:
            if (
                word.text in WORDS.indefinite_articles
                and text[word.end : start].isspace()
                and word.start >= copied
            ):
                result += text[copied : word.start] + cased(
                    article(new), text[word.start : word.start + 1]
                )
                copied = word.end
        result += text[copied:start]
        record = {"noun": noun, "original_adj": old, "new_adj": new, "start": start, "end": end}
        records.append(record | {"new_start": len(result), "new_end": len(result) + len(new)})
        result += cased(new, text[start:end])
        copied = end
    return result + text[copied:], records


def mentions_by_caption(pairs: pd.DataFrame) -> dict[tuple[str, int], list[Mention]]:
    """Return the mentions of each caption, in the order of the text."""
    mentions: dict[tuple[str, int], list[Mention]] = defaultdict(list)
    ordered = pairs.sort_values(
        ["image_id", "caption_id", "adjective_start", "noun_start", "adjective"]
    )
    # Lists, because iterating over a column of strings takes several times as long.
    for image, number, *mention in zip(
        *(ordered[name].tolist() for name in PAIRS.columns), strict=True
    ):
        mentions[image, number].append(Mention(*mention))
    return mentions


def _offered(
    text: str,
    candidates: Sequence[Candidate],
    reader: Reader,
    held: Collection[tuple[str, str]],
    reasons: Counter[str],
) -> list[Candidate]:
    """Return the candidates without faults by word order (``swap_faults``)."""
    read = reader.pairs(text)
    swaps = [(candidate, *apply(text, [candidate])) for candidate in candidates]
    offered = [
        of
        for of, swapped, changes in swaps
        if not swap_faults(read, reader.pairs(swapped), changes, held)
    ]
    reasons["order of words disagrees"] += len(candidates) - len(offered)
    return offered


def choose_swaps(
    offers: pd.DataFrame, adjectives: Lexicon | str, seed: int, dataset: str, composition: str
) -> tuple[Iterator[pd.DataFrame], Counter[str], int]:
    """Return the swapped captions (``tables.SWAPPED``), sorted, in parts; their number by pair; and
    how many of them are exclusive.
    """
    lexicon = find_lexicon(adjectives, "adjectives")
    names: list[list[str]] = []
    preferred: list[Sequence[int]] = []
    is_exclusive: list[bool] = []
    for row in offers["offers"]:
        candidates = [Candidate(*offer) for offer in json.loads(row)]
        names.append([sys.intern(candidate.pair) for candidate in candidates])
        exclusive = [i for i, candidate in enumerate(candidates) if candidate.is_exclusive(lexicon)]
        is_exclusive.append(bool(exclusive))
        preferred.append(exclusive or range(len(candidates)))
    chosen = choose_changes(names, preferred, rng(seed, "swap_adjectives", dataset, composition))
    made = [[of[place] for place in places] for of, places in zip(names, chosen, strict=True)]
    counts = Counter(pair for of_caption in made for pair in set(of_caption))
    entries = [min(of_caption, key=lambda pair: (counts[pair], pair)) for of_caption in made]

    def parts() -> Iterator[pd.DataFrame]:
        for begin in range(0, len(offers), PART):
            records = []
            for row, (*caption, of_caption) in enumerate(
                offers[begin : begin + PART].itertuples(index=False), begin
            ):
                candidates = [Candidate(*offer) for offer in json.loads(of_caption)]
                swap = apply(caption[2], [candidates[place] for place in chosen[row]])
                records.append((*caption, *swap, entries[row], is_exclusive[row]))
            yield pd.DataFrame(records, columns=list(SWAPPED.columns))

    return parts(), Counter(entries), sum(is_exclusive)


def count_swaps(
    entries: Mapping[str, int],
    captions: int,
    heldout: Collection[str],
    where: str,
    quiet: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Return and, unless ``quiet``, log the content of swapped.json; ``captions``: number of those
    of test_seen.
    """
    swapped = sum(entries.values())
    if not swapped and not quiet:
        log.warning(
            "warning: %s: no caption of test_seen can be swapped, so test_swapped is empty", where
        )
    if not quiet:
        log.info("%s: %d of %d captions of test_seen are swapped", where, swapped, captions)
    if "exclusive" in more and not quiet:
        log.info(
            "%s: in %d of them, each new adjective excludes the original one",
            where,
            more["exclusive"],
        )
    pairs = {pair: entries.get(pair, 0) for pair in heldout}
    return {"captions": captions, "swapped": swapped, "pairs": pairs, **more}


def offer_swaps(
    captions: Blocks,
    pairs: Blocks,
    splits: pd.DataFrame,
    heldout: Collection[str],
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    known_nouns: Collection[str] = (),
) -> tuple[pd.DataFrame, int, Counter[str]]:
    """Return the captions of test_seen that can be swapped (``tables.OFFERS``), sorted, the number
    of all captions of test_seen, and counts of unchanged mentions by reason; arguments of
    ``swap_adjectives``.

    Captions and pairs may come in blocks (``tables.in_blocks``). ``known_nouns``: of test_seen
    (``nouns_of``). Swaps that, by word order, state another pair are not offered.
    """
    forms, noun_forms = forms_of(adjectives, nouns)
    reader, all_nouns = (
        reader_of(heldout, forms, noun_forms, compounds),
        {*known_nouns, *(noun_forms or ())},
    )
    held = set(map(split_pair, heldout))
    partners: dict[str, list[str]] = defaultdict(list)
    for adjective, noun in sorted(held):
        partners[noun].append(adjective)
    seen, number, reasons = (
        splits.loc[splits["split"] == "test_seen", "image_id"],
        0,
        Counter[str](),
    )
    offers = [empty_table(OFFERS)]
    for block in in_blocks(captions, pairs):
        texts, occurrences = (table[table["image_id"].isin(seen)] for table in block)
        number += len(texts)
        mentions, rows = mentions_by_caption(occurrences), list[tuple[str, int, str, str]]()
        for image, caption, text in texts.sort_values(CAPTION_KEY)[
            [*CAPTION_KEY, "text"]
        ].itertuples(index=False):
            candidates = candidates_of(
                text, mentions[image, caption], partners, forms, all_nouns, reasons
            )
            if offered := candidates and _offered(text, candidates, reader, held, reasons):
                rows.append((image, caption, text, json.dumps(offered)))
        if rows:
            offers.append(pd.DataFrame(rows, columns=list(OFFERS.columns)))
    return pd.concat(offers, ignore_index=True), number, +reasons


@checked
def swap_adjectives(
    captions: Captions,
    pairs: Pairs,
    splits: Splits,
    heldout: PairNames,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
    quiet: bool = False,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Swap adjectives in the captions of test_seen so that each changed pair is held out.

    Args:
        captions: all, as ``extract_pairs`` takes them.
        pairs, splits: as in ``tables``: all occurrences, and the split of each image.
        heldout: the held-out pairs.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: only those of pairs
            are known.
        compounds: None: ``lexicons/compounds/common.yaml``.
        dataset, composition: names for the random stream and for messages.
        quiet: log nothing.

    Returns:
        The swapped captions (``tables.SWAPPED``), sorted by image and caption, and the content of
        swapped.json.

    Raises:
        UserError: a row of pairs or splits is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, splits=splits)
    require_occurring(heldout, {*pair_names(pairs)}, adjectives, nouns)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    known_nouns = nouns_of(captions, pairs, seen)
    offers, number, reasons = offer_swaps(
        captions, pairs, splits, heldout, adjectives, nouns, compounds, known_nouns
    )
    parts, entries, exclusive = choose_swaps(offers, adjectives, seed, dataset, composition)
    swapped = pd.concat(parts, ignore_index=True) if len(offers) else empty_table(SWAPPED)
    summary = count_swaps(
        entries,
        number,
        heldout,
        f"{dataset}/{composition}",
        quiet,
        exclusive=exclusive,
        left_alone=dict(sorted(reasons.items())),
        seed=seed,
    )
    return swapped, summary
