"""Swap adjectives in the captions of test_seen so that each changed pair is held out, nouns kept.

Paper, section "Compositional Split Generation". ``wording`` decides which words a swap may change.
Adjectives that exclude the original one are preferred, because a photograph of a small wing may
also show a flat one. Pairs that would dominate are avoided if a caption has another candidate.
By rule ``distinct``, one adjective changes, and no noun gets the adjective of another: a generator
that draws everything in one color would be right about `a brown giraffe and a brown vase`.
Published swapped captions are used unchanged; the audit reports their faults.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import pair_names, split_pair
from compclip.core.artifacts.parquet import empty_table
from compclip.core.log import log
from compclip.core.settings.arguments import (
    Captions,
    PairNames,
    Pairs,
    Splits,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, OFFERS, PAIRS, SWAPPED, Blocks, in_blocks
from compclip.pairs.counts import nouns_of
from compclip.split.composition import Lexicons, Seeding
from compclip.split.config import SwapRule
from compclip.split.reading import Reader, reader_of, swap_faults
from compclip.split.wording import Mention, Wording, article, cased, contradiction, objection
from compclip.text.grammar import WORDS
from compclip.text.lexicon import Lexicon, find_lexicon, require_occurring

REPEATED = "repeats the adjective of another noun"  # reason why a candidate is not offered
BLOCK_ROWS = 50_000  # swapped captions that are made at once


class SwapOption(NamedTuple):
    """A possible change of a caption: some mentions of one noun get the adjective ``new``."""

    noun: str
    new: str
    places: Sequence[tuple[int, int, str]]  # start, end and adjective of each mention

    @classmethod
    def of(cls, noun: str, new: str, mentions: Iterable[Mention]) -> "SwapOption":
        return cls(noun, new, [(m.start, m.end, m.adjective) for m in mentions])

    @property
    def pair(self) -> str:
        return f"{self.new}_{self.noun}"

    def repeats(self, mentions: Iterable[Mention]) -> bool:
        """Return whether another noun of the caption has the adjective, in any relation."""
        return any(m.adjective == self.new and m.noun != self.noun for m in mentions)

    def is_exclusive(self, adjectives: Lexicon) -> bool:
        """Return whether the adjective excludes the original one of each mention."""
        return adjectives.excludes((original, self.new) for _, _, original in self.places)


class Offers(NamedTuple):
    """What ``offer_swaps`` finds in captions of test_seen."""

    table: pd.DataFrame  # ``tables.OFFERS``: the captions that can be swapped, sorted
    captions: int  # number of all captions of test_seen
    reasons: Counter[str]  # of mentions that cannot be changed


class Swaps(NamedTuple):
    """The chosen swaps."""

    tables: Iterator[pd.DataFrame]  # ``tables.SWAPPED``, sorted, in blocks
    counts: Counter[str]  # swapped captions by pair
    exclusive: int  # captions in which each new adjective excludes the original one


def _groups(mentions: Sequence[Mention]) -> list[tuple[Mention, ...]]:
    """Return which mentions of a noun change together; [] if they cannot.

    A noun with adjectives in two places stays consistent only if all change, so all must have the
    same adjective.
    """
    # In one place: each adjective can change alone, `a small red wing`.
    nouns = {mention.noun_start for mention in mentions}
    if len(nouns) == 1:
        return [(mention,) for mention in mentions]
    adjectives = {mention.adjective for mention in mentions}
    return [tuple(mentions)] if len(adjectives) == 1 else []


def of_one_noun(mentions: Sequence[Mention]) -> set[Mention]:
    """Return the mentions whose adjective certainly modifies only their noun."""
    links = {(m.start, m.noun_start) for m in mentions}
    nouns_of_adjective = Counter(start for start, _ in links)
    return {
        mention
        for mention in mentions
        if mention.relation not in ("shared", "disputed") and nouns_of_adjective[mention.start] == 1
    }


def candidates_of(
    text: str,
    mentions: Sequence[Mention],
    partners: Mapping[str, Sequence[str]],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    reasons: Counter[str],
) -> list[SwapOption]:
    """Return the possible changes of a caption, in the order of the text.

    Args:
        mentions: all mentions in the caption, of any adjective.
        partners: the held-out adjectives of each noun.
        reasons: a counter of why mentions were not changed.
    """
    caption = Wording(text)
    plain = of_one_noun(mentions)
    # Only adjectives of the composition are swapped.
    canonical = set(adjectives.values())
    candidates = []
    for noun in dict.fromkeys(m.noun for m in mentions if m.noun in partners):
        swappable = [m for m in mentions if m.noun == noun and m.adjective in canonical]
        groups = _groups(swappable) if swappable else []
        if swappable and not groups:
            reasons["noun named twice"] += 1
        for group in groups:
            if not plain.issuperset(group):
                reasons["shared or disputed"] += 1
                continue
            for new in partners[noun]:
                if contradiction(caption, group, new, mentions):
                    reason: str | None = "contradiction"
                else:
                    objections = (objection(caption, m, new, adjectives, nouns) for m in group)
                    reason = next(filter(None, objections), None)
                if reason is None:
                    candidates.append(SwapOption.of(noun, new, group))
                else:
                    reasons[reason] += 1
    return candidates


class _Choice:
    """Which of the offered pairs each caption gets, as ``choose_changes`` says.

    Args:
        offers: the pairs that each caption can get.
        choices: the positions of the pairs that it may get, the first preferred if both are
            as rare.
    """

    def __init__(self, offers: Sequence[Sequence[str]], choices: list[list[int]]) -> None:
        self.offers = offers
        self.choices = choices
        self.counts: Counter[str] = Counter()
        self.chosen = [0] * len(offers)

    def rarest(self, caption: int, positions: Iterable[int]) -> int:
        """Return the position of the rarest pair; of equally rare ones, the first."""
        pairs = self.offers[caption]
        return min(positions, key=lambda position: self.counts[pairs[position]])

    def take(self, caption: int) -> None:
        """Give a caption its rarest pair."""
        rarest = self.rarest(caption, self.choices[caption])
        self.chosen[caption] = rarest
        self.counts[self.offers[caption][rarest]] += 1

    def move(self, caption: int) -> bool:
        """Move a caption to a rarer pair; return False if there is none."""
        rarest = self.rarest(caption, self.choices[caption])
        new = self.offers[caption][rarest]
        old = self.offers[caption][self.chosen[caption]]
        # Otherwise the move would only exchange the two counts.
        if self.counts[new] + 1 >= self.counts[old]:
            return False
        self.counts[old] -= 1
        self.counts[new] += 1
        self.chosen[caption] = rarest
        return True

    def add_nouns(self, caption: int, limit: int) -> list[int]:
        """Return the positions to change, also of further nouns with pairs rarer than ``limit``."""
        pairs = self.offers[caption]
        changes = [self.chosen[caption]]
        nouns = [split_pair(pair)[1] for pair in pairs]
        # A noun that is already changed is not changed twice.
        offered_nouns = {nouns[position] for position in self.choices[caption]}
        for noun in sorted(offered_nouns - {nouns[changes[0]]}):
            positions = [i for i in self.choices[caption] if nouns[i] == noun]
            rarest = self.rarest(caption, positions)
            if self.counts[pairs[rarest]] < limit:
                self.counts[pairs[rarest]] += 1
                changes.append(rarest)
        return changes


def choose_changes(
    offers: Sequence[Sequence[str]],
    preferred: Sequence[Collection[int]],
    generator: np.random.Generator,
    rule: SwapRule,
) -> list[list[int]]:
    """Return the positions of the offered pairs to make in each caption: of one noun, and by rule
    ``published`` of further nouns unless a pair would dominate.

    Only ``preferred`` positions of a caption are chosen from. A caption takes its rarest pair so
    far, captions with the fewest pairs first; then captions move to a rarer pair as long as this
    evens out the counts. Further nouns of a caption are changed unless a pair would become more
    frequent than the most frequent one.
    """
    # A seeded order breaks ties between captions and between candidates.
    choices = []
    for pairs, allowed in zip(offers, preferred, strict=True):
        shuffled = generator.permutation(len(pairs)).tolist()
        choices.append([position for position in shuffled if position in allowed])
    captions = generator.permutation(len(offers)).tolist()

    def number_of_pairs(caption: int) -> int:
        return len({offers[caption][position] for position in choices[caption]})

    captions.sort(key=number_of_pairs)
    choice = _Choice(offers, choices)
    for caption in captions:
        choice.take(caption)
    # Each move lowers the sum of squared counts, so this terminates.
    has_moved = True
    while has_moved:
        has_moved = False
        for caption in captions:
            # Captions move one after the other, so each sees the counts of those before.
            has_moved |= choice.move(caption)
    if rule == "distinct":
        return [[position] for position in choice.chosen]
    # No further pair may become more frequent than the most frequent one.
    highest = max(choice.counts.values(), default=0)
    return [choice.add_nouns(caption, highest) for caption in range(len(offers))]


def apply(text: str, changes: Sequence[SwapOption]) -> tuple[str, list[dict[str, Any]]]:
    """Return the swapped text, and the changes as in ``tables.SWAPPED``, in the order of the
    text.
    """
    words = Wording(text).words
    replacements = []
    for change in changes:
        for start, end, old in change.places:
            replacements.append((start, end, change.noun, old, change.new))
    result = ""
    copied = 0  # characters of ``text`` that ``result`` has
    records: list[dict[str, Any]] = []
    # From left to right, so that new offsets are known.
    for start, end, noun, old, new in sorted(replacements):
        for word in words:
            is_article = word.text in WORDS.indefinite_articles and word.start >= copied
            # `a` becomes `an` before the new adjective, if only spaces are between.
            if is_article and text[word.end : start].isspace():
                result += text[copied : word.start]
                result += cased(article(new), text[word.start : word.start + 1])
                copied = word.end
        result += text[copied:start]
        record = {"noun": noun, "original_adj": old, "new_adj": new, "start": start, "end": end}
        new_start = len(result)
        records.append({**record, "new_start": new_start, "new_end": new_start + len(new)})
        # `Black wings` become `Brown wings`.
        result += cased(new, text[start:end])
        copied = end
    return result + text[copied:], records


def mentions_by_caption(pairs: pd.DataFrame) -> dict[tuple[str, int], list[Mention]]:
    """Return the mentions of each caption, in the order of the text."""
    mentions: dict[tuple[str, int], list[Mention]] = defaultdict(list)
    order = [*CAPTION_KEY, "adjective_start", "noun_start", "adjective"]
    ordered = pairs.sort_values(order)
    # Lists, because iterating over a column of strings takes several times as long.
    columns = [ordered[name].tolist() for name in PAIRS.columns]
    for image, number, *fields in zip(*columns, strict=True):
        mention = Mention(*fields)
        mentions[image, number].append(mention)
    return mentions


def _without_faults(
    text: str,
    candidates: Sequence[SwapOption],
    reader: Reader,
    heldout_words: Collection[tuple[str, str]],
) -> list[SwapOption]:
    """Return the candidates without faults by word order (``swap_faults``)."""
    original = reader.pairs(text)
    faultless = []
    for candidate in candidates:
        swapped, changes = apply(text, [candidate])
        if not swap_faults(original, reader.pairs(swapped), changes, heldout_words):
            faultless.append(candidate)
    return faultless


def _candidates(encoded: str) -> list[SwapOption]:
    """Return the candidates of a row of ``tables.OFFERS``."""
    return [SwapOption(*fields) for fields in json.loads(encoded)]


def choose_swaps(
    offers: pd.DataFrame, adjectives: Lexicon | str, rule: SwapRule, seeding: Seeding
) -> Swaps:
    """Choose among the offered changes of all captions (``tables.OFFERS``)."""
    lexicon = find_lexicon(adjectives, "adjectives")
    pairs_offered: list[list[str]] = []
    preferred: list[Sequence[int]] = []
    is_exclusive: list[bool] = []
    for encoded in offers["offers"]:
        candidates = _candidates(encoded)
        # One object for equal names: there are many captions, and few pairs.
        pairs_offered.append([sys.intern(candidate.pair) for candidate in candidates])
        exclusive = [i for i, candidate in enumerate(candidates) if candidate.is_exclusive(lexicon)]
        is_exclusive.append(bool(exclusive))
        # Without an exclusive candidate, all are allowed.
        preferred.append(exclusive or range(len(candidates)))
    generator = seeding.rng("swap_adjectives")
    chosen = choose_changes(pairs_offered, preferred, generator, rule)
    pairs_made = [
        [pairs[position] for position in positions]
        for pairs, positions in zip(pairs_offered, chosen, strict=True)
    ]
    counts = Counter(pair for pairs in pairs_made for pair in set(pairs))
    # A caption with several new pairs counts as one of its rarest.
    entries = [min(pairs, key=lambda pair: (counts[pair], pair)) for pairs in pairs_made]

    def tables() -> Iterator[pd.DataFrame]:
        for begin in range(0, len(offers), BLOCK_ROWS):
            records = []
            block = offers[begin : begin + BLOCK_ROWS]
            for row, fields in enumerate(block.itertuples(index=False), begin):
                # Decoded again, so that only the candidates of one caption are in memory.
                candidates = _candidates(fields.offers)
                changes = [candidates[position] for position in chosen[row]]
                swapped_text, change_records = apply(fields.text, changes)
                caption = (fields.image_id, fields.caption_id, fields.text)
                swap = (swapped_text, change_records, entries[row], is_exclusive[row])
                records.append((*caption, *swap))
            yield pd.DataFrame(records, columns=list(SWAPPED.columns))

    return Swaps(tables(), Counter(entries), sum(is_exclusive))


def count_swaps(
    counts: Mapping[str, int], captions: int, heldout: Collection[str], entries: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the content of swapped.json.

    Args:
        counts: swapped captions by pair.
        captions: number of captions of test_seen.
        entries: further entries of swapped.json.
    """
    pairs = {pair: counts.get(pair, 0) for pair in heldout}
    return {"captions": captions, "swapped": sum(counts.values()), "pairs": pairs, **entries}


def log_swaps(summary: Mapping[str, Any], where: str) -> None:
    """Log the content of swapped.json."""
    swapped = summary["swapped"]
    if not swapped:
        log.warning(
            "warning: %s: no caption of test_seen can be swapped, so test_swapped is empty", where
        )
    log.info("%s: %d of %d captions of test_seen are swapped", where, swapped, summary["captions"])
    if "exclusive" in summary:
        log.info(
            "%s: in %d of them, each new adjective excludes the original one",
            where,
            summary["exclusive"],
        )


def offer_swaps(
    captions: Blocks,
    pairs: Blocks,
    splits: pd.DataFrame,
    heldout: Collection[str],
    lexicons: Lexicons,
    rule: SwapRule,
    known_nouns: Collection[str] = (),
) -> Offers:
    """Return the captions of test_seen that can be swapped; arguments of ``swap_adjectives``.

    Captions and pairs may come in blocks (``tables.in_blocks``). ``known_nouns``: of test_seen
    (``nouns_of``). Swaps that, by word order, state another pair are not offered.
    """
    forms, noun_forms = lexicons.forms()
    reader = reader_of(heldout, forms, noun_forms, lexicons.compounds)
    nouns = {*known_nouns, *(noun_forms or ())}
    heldout_words = set(map(split_pair, heldout))
    partners: dict[str, list[str]] = defaultdict(list)
    # Sorted, so that candidates come in the same order in each run.
    for adjective, noun in sorted(heldout_words):
        partners[noun].append(adjective)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    number = 0
    reasons: Counter[str] = Counter()
    tables = [empty_table(OFFERS)]
    for block_texts, occurrences in in_blocks(captions, pairs):
        texts = block_texts[block_texts["image_id"].isin(seen)].sort_values(CAPTION_KEY)
        number += len(texts)
        # All relations: a disputed mention keeps others from being swapped.
        mentions = mentions_by_caption(occurrences[occurrences["image_id"].isin(seen)])
        rows = []
        for image, caption, text in texts[[*CAPTION_KEY, "text"]].itertuples(index=False):
            # What the parse and the rules of ``wording`` allow.
            stated = mentions[image, caption]
            possible = candidates_of(text, stated, partners, forms, nouns, reasons)
            if rule == "distinct":
                distinct = [candidate for candidate in possible if not candidate.repeats(stated)]
                reasons[REPEATED] += len(possible) - len(distinct)
                possible = distinct
            if not possible:
                continue
            # What word order allows, too.
            candidates = _without_faults(text, possible, reader, heldout_words)
            reasons["order of words disagrees"] += len(possible) - len(candidates)
            if candidates:
                rows.append((image, caption, text, json.dumps(candidates)))
        if rows:
            tables.append(pd.DataFrame(rows, columns=list(OFFERS.columns)))
    # The unary + leaves out reasons that never occurred.
    return Offers(pd.concat(tables, ignore_index=True), number, +reasons)


def swap_captions(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    splits: pd.DataFrame,
    heldout: Collection[str],
    lexicons: Lexicons,
    rule: SwapRule,
    seeding: Seeding,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return what ``swap_adjectives`` returns, without logging it."""
    require_occurring(heldout, {*pair_names(pairs)}, lexicons.adjectives, lexicons.nouns)
    seen = splits.loc[splits["split"] == "test_seen", "image_id"]
    known_nouns = nouns_of(captions, pairs, seen)
    offers = offer_swaps(captions, pairs, splits, heldout, lexicons, rule, known_nouns)
    swaps = choose_swaps(offers.table, lexicons.adjectives, rule, seeding)
    # With the types of columns that an empty list has not.
    swapped = empty_table(SWAPPED)
    if len(offers.table):
        swapped = pd.concat(swaps.tables, ignore_index=True)
    entries = {
        "exclusive": swaps.exclusive,
        "excluded": dict(sorted(offers.reasons.items())),
        "seed": seeding.seed,
    }
    return swapped, count_swaps(swaps.counts, offers.captions, heldout, entries)


@checked
def swap_adjectives(  # noqa: PLR0913
    captions: Captions,
    pairs: Pairs,
    splits: Splits,
    heldout: PairNames,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    compounds: Lexicon | None = None,
    *,
    rule: SwapRule = "distinct",
    seed: Whole = 0,
    dataset: str = "dataset",
    composition: str = "composition",
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Swap adjectives in the captions of test_seen so that each changed pair is held out.

    Args:
        captions: all, as ``extract_pairs`` takes them.
        pairs, splits: as in ``tables``: all occurrences, and the split of each image.
        heldout: the held-out pairs.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: only those of pairs
            are known.
        compounds: None: ``lexicons/compounds/common.yaml``.
        rule: distinct: one adjective changes, to one that no other noun of the caption has;
            published: several may change, and nouns may get the same adjective.
        dataset, composition: names for the random seeding and for messages.

    Returns:
        The swapped captions (``tables.SWAPPED``), sorted by image and caption, and the content of
        swapped.json.

    Raises:
        UserError: a row of pairs or splits is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", pairs=pairs, splits=splits)
    lexicons = Lexicons(adjectives, nouns, compounds)
    seeding = Seeding(seed, dataset, composition)
    swapped, summary = swap_captions(captions, pairs, splits, heldout, lexicons, rule, seeding)
    log_swaps(summary, seeding.location)
    return swapped, summary
