"""Make the variants of each prompt: with other ranked adjectives of its noun, false of
the image.

A judge that reads the pair ranks a prompt above its variants, which differ from it only in one
adjective. A group of the lexicon, whose words exclude each other, has both adjectives, and no
caption of the image states the new one of the noun.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.artifacts.parquet import empty_table
from compclip.core.artifacts.rounding import rounded
from compclip.core.log import log
from compclip.core.settings.arguments import (
    Captions,
    Pairs,
    Prompts,
    RankedPairs,
    Swapped,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, PROMPT_KEY, SWAPPED, VARIANTS
from compclip.pairs.counts import nouns_of
from compclip.split.swap_adjectives import SwapOption, apply, mentions_by_caption, of_one_noun
from compclip.split.wording import Mention, Wording, contradiction, objection
from compclip.text.grammar import WORDS
from compclip.text.lexicon import Lexicon, find_lexicon, forms_of

# Why an adjective that the prompt itself allows is dropped.
STATED = "stated by another caption"


class PromptCounts(NamedTuple):
    """The numbers of variants of a prompt, and of adjectives that only another caption states."""

    variants: int
    stated: int


@dataclass
class VariantCounts:
    """Counts of the prompts of a split, which add up over blocks of images."""

    prompts: Counter[PromptCounts] = field(default_factory=Counter)
    # Prompts (`shared or disputed`, `no pair`) or dropped adjectives (other reasons).
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, more: "VariantCounts") -> None:
        self.prompts.update(more.prompts)
        self.reasons.update(more.reasons)

    def to_json(self) -> list[dict[str, int]]:
        """Return the counts as a shard writes them; the keys of JSON are texts."""
        prompts = {f"{key.variants} {key.stated}": n for key, n in self.prompts.items()}
        return [prompts, dict(self.reasons)]

    @classmethod
    def from_json(cls, content: Sequence[Mapping[str, int]]) -> "VariantCounts":
        prompts, reasons = content
        counts = cls(reasons=Counter(reasons))
        for text, number in prompts.items():
            variants, stated = map(int, text.split())
            key = PromptCounts(variants, stated)
            counts.prompts[key] = number
        return counts


class CaptionPrompt(NamedTuple):
    """A prompt, and the caption that it was made from."""

    caption: str  # the original text
    pair: str  # the target
    mentions: Sequence[Mention]  # all pairs of the original caption
    changes: Sequence[Mapping[str, Any]]  # the changes that a swap made in it


def overlap(noun: str, other: str) -> bool:
    """Return whether a statement about ``other`` may be true of ``noun``: they are the same or part
    and whole.
    """
    if noun == other or noun in WORDS.wholes:
        return True
    parts_of = WORDS.parts_of
    if noun in parts_of.get(other, ()):
        return True
    return other in parts_of.get(noun, ())


def _with_new_adjective(mention: Mention, new_adjectives: Mapping[tuple[int, str], str]) -> Mention:
    adjective = new_adjectives.get((mention.start, mention.noun), mention.adjective)
    return replace(mention, adjective=adjective)


def variants_of(
    prompt: CaptionPrompt,
    ranked: Sequence[str],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    reasons: Counter[str],
    stated_of_noun: Collection[str] = (),
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield each adjective that is false of a prompt, the prompt with it, and the changes from the
    original caption.

    Args:
        ranked: adjectives (canonical), ranked with the target's noun, that exclude the target's.
        adjectives: surface forms of the composition's adjectives to canonical words.
        nouns: surface forms.
        reasons: a counter of why prompts have no variants, and why adjectives are dropped.
        stated_of_noun: adjectives that captions of the image state of the target's noun, or of an
            overlapping noun.
    """
    adjective, noun = split_pair(prompt.pair)
    # One adjective may modify several nouns; a swap names one of them.
    new_adjectives = {(c["start"], c["noun"]): str(c["new_adj"]) for c in prompt.changes}
    # The pairs of the prompt: the mentions with their new adjectives.
    prompted = {m: _with_new_adjective(m, new_adjectives) for m in prompt.mentions}
    target = [m for m, new in prompted.items() if (new.adjective, m.noun) == (adjective, noun)]
    if not target:
        reasons["no pair"] += 1
        return
    # Another adjective would change another noun, too.
    if not of_one_noun(prompt.mentions).issuperset(target):
        reasons["shared or disputed"] += 1
        return
    caption = Wording(prompt.caption)
    as_prompted = [replace(mention, adjective=adjective) for mention in target]
    further = {mention: new for mention, new in prompted.items() if mention not in target}
    # Adjectives that the prompt itself states of the noun, or of its parts.
    elsewhere = {new.adjective for m, new in further.items() if overlap(noun, m.noun)}
    # A variant of a swapped caption keeps its other changes.
    kept_changes = [
        SwapOption.of(mention.noun, new.adjective, (mention,))
        for mention, new in further.items()
        if (mention.start, mention.noun) in new_adjectives
    ]

    def reason_against(new: str) -> str | None:
        if new in elsewhere:
            return "describes the noun elsewhere"
        if contradiction(caption, as_prompted, new, list(prompted.values())):
            return "contradiction"
        if _has_objection(caption, target, new, adjectives, nouns):
            return "wording"
        return STATED if new in stated_of_noun else None

    for new in ranked:
        reason = reason_against(new)
        if reason is not None:
            reasons[reason] += 1
            continue
        change = SwapOption.of(noun, new, tuple(target))
        text, changes = apply(prompt.caption, [change, *kept_changes])
        yield new, text, changes


def _has_objection(
    caption: Wording,
    target: Sequence[Mention],
    new: str,
    adjectives: Mapping[str, str],
    nouns: Collection[str],
) -> bool:
    """Return whether ``wording`` objects to ``new``; the word of the original caption is fine."""
    # In a swapped caption, the new adjective may be the original one.
    changing = [mention for mention in target if mention.adjective != new]
    return any(objection(caption, mention, new, adjectives, nouns) for mention in changing)


def count_variants(counts: VariantCounts) -> dict[str, Any]:
    """Return the entry of variants.json for a split.

    Returns:
        Counts, and ``ceiling``: the expected adjective accuracy of a random choice among the prompt
            and the variants that captions of the image state, if these were kept: the mean of
            1 / (1 + stated variants) over the prompts with variants, kept or stated; None
            without any.
    """
    # Sorted as texts: another order of the sum would give other last bits.
    keys = sorted(counts.prompts, key=lambda key: f"{key.variants} {key.stated}")
    variants = np.array([key.variants for key in keys], int)
    stated = np.array([key.stated for key in keys], int)
    prompts = np.array([counts.prompts[key] for key in keys], int)
    # Prompts without variants cannot be ranked wrongly, so they do not count.
    rankable = prompts * (variants + stated > 0)
    ceiling = None
    if rankable.any():
        expected = float(rankable @ (1 / (1 + stated)))
        ceiling = rounded(expected / int(rankable.sum()))
    excluded = {reason: count for reason, count in sorted(counts.reasons.items()) if count}
    return {
        "prompts": int(prompts.sum()),
        "with_variants": int(prompts[variants > 0].sum()),
        "variants": int(prompts @ variants),
        "excluded": excluded,
        "ceiling": ceiling,
    }


@dataclass(frozen=True)
class VariantWords:
    """The words of a composition that variants are made of."""

    lexicon: Lexicon  # adjectives
    forms: Mapping[str, str]  # of its adjectives, to canonical words
    nouns: Collection[str]  # surface forms
    ranked: Mapping[str, Sequence[str]]  # the ranked adjectives of each noun, sorted

    @classmethod
    def read(
        cls,
        ranking: pd.DataFrame,
        adjectives: Lexicon | str,
        nouns: Lexicon | str | None,
        known_nouns: Collection[str],
    ) -> "VariantWords":
        """Return the words of a ranking and of lexicons; ``known_nouns``: forms in the captions
        (``nouns_of``).
        """
        lexicon = find_lexicon(adjectives, "adjectives")
        forms, noun_forms = forms_of(lexicon, nouns)
        all_nouns = {*known_nouns, *(noun_forms or ())}
        # Sorted, so that variants do not depend on ranks.
        ordered = ranking.sort_values("adjective")
        ranked = ordered.groupby("noun")["adjective"].agg(list)
        return cls(lexicon, forms, all_nouns, ranked.to_dict())


def _stated_by_image(pairs: pd.DataFrame) -> dict[str, list[tuple[str, str]]]:
    """Return the adjectives and nouns of each image's undisputed pairs."""
    # A disputed pair may not be in the caption.
    undisputed = pairs[pairs["relation"] != "disputed"]
    distinct = undisputed[["image_id", "adjective", "noun"]].drop_duplicates()
    stated: dict[str, list[tuple[str, str]]] = {}
    for row in distinct.itertuples():
        of_image = stated.setdefault(row.image_id, [])
        of_image.append((row.adjective, row.noun))
    return stated


def vary_prompts(
    prompts: pd.DataFrame,
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    swapped: pd.DataFrame,
    words: VariantWords,
) -> tuple[pd.DataFrame, dict[str, VariantCounts]]:
    """Return the variants of prompts, in their order, and counts of the prompts of each split.

    Captions and pairs of other images are ignored.
    """
    captions = captions[captions["image_id"].isin(prompts["image_id"])]
    pairs = pairs[pairs["image_id"].isin(prompts["image_id"])]
    texts = captions.set_index(CAPTION_KEY)["text"].to_dict()
    mentions = mentions_by_caption(pairs)
    stated = _stated_by_image(pairs)
    changes = {(row.image_id, row.caption_id): row.changes for row in swapped.itertuples()}
    excluded_by = cache(words.lexicon.excluded_by)
    rows = []
    counts: dict[str, VariantCounts] = {}
    targets = prompts[[*PROMPT_KEY, "pair"]].drop_duplicates(PROMPT_KEY)
    for split, image, number, pair in targets.itertuples(index=False):
        split_counts = counts.setdefault(split, VariantCounts())
        reasons = split_counts.reasons
        # Captions without a pair are prompts if every caption is one.
        if pd.isna(pair):
            split_counts.prompts[PromptCounts(0, 0)] += 1
            continue
        key = (image, int(number))
        adjective, noun = split_pair(pair)
        swap: Sequence[Mapping[str, Any]] = []
        stated_of_noun: set[str] = set()
        if split == "test_swapped":
            # The image's captions do not describe the image to be made.
            swap = changes.get(key, [])
        else:
            for stated_adjective, stated_noun in stated.get(image, ()):
                if overlap(noun, stated_noun):
                    stated_of_noun.add(stated_adjective)
        ranked = [word for word in words.ranked.get(noun, []) if word != adjective]
        excluded = [word for word in ranked if word in excluded_by(adjective)]
        reasons["may both be true"] += len(ranked) - len(excluded)
        # The counter is that of the split; the prompt's part is the difference.
        dropped_before = reasons[STATED]
        prompt = CaptionPrompt(texts[key], pair, mentions[key], swap)
        variants = list(
            variants_of(prompt, excluded, words.forms, words.nouns, reasons, stated_of_noun)
        )
        rows += [(split, *key, *variant) for variant in variants]
        dropped = reasons[STATED] - dropped_before
        split_counts.prompts[PromptCounts(len(variants), dropped)] += 1
    if not rows:
        return empty_table(VARIANTS), counts
    return pd.DataFrame(rows, columns=list(VARIANTS.columns)), counts


def summarize_variants(counts: Mapping[str, VariantCounts]) -> dict[str, Any]:
    """Return and log ``count_variants`` of each split."""
    result = {}
    for split, split_counts in counts.items():
        entry = count_variants(split_counts)
        excluded = [f"{reason}: {count}" for reason, count in entry["excluded"].items()]
        reasons = ", ".join(excluded) or "all"
        numbers = (entry["with_variants"], entry["prompts"])
        log.info("%s: %d of %d prompts have variants (%s)", split, *numbers, reasons)
        result[split] = entry
    return result


@checked
def make_variants(
    prompts: Prompts,
    captions: Captions,
    pairs: Pairs,
    ranking: RankedPairs,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None = None,
    swapped: Swapped | None = None,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the variants of prompts, and the numbers of prompts and adjectives without one, by
    reason.

    Captions of test_swapped do not describe the image to be made, so there only the prompt's own
    text counts.

    Args:
        prompts: as ``make_prompts`` returns them; further draws of a prompt are ignored.
        captions: all, as ``extract_pairs`` takes them.
        pairs, ranking: as in ``tables``: all occurrences, and the pairs that count.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: only those of pairs
            are known.
        swapped: as ``swap_adjectives`` returns them, for prompts of test_swapped.

    Returns:
        ``tables.VARIANTS``: a row for each prompt and other ranked adjective of its noun that is
        false of the image; and ``count_variants`` of each split.

    Raises:
        UserError: a row of another table is not among captions, or an argument is refused
            (docs/library.md).
    """
    require_joined(captions, "captions", prompts=prompts, pairs=pairs, swapped=swapped)
    swapped = empty_table(SWAPPED) if swapped is None else swapped
    # Forms of nouns that the lexicon lacks; all without one.
    known_nouns = nouns_of(captions, pairs, captions["image_id"])
    words = VariantWords.read(ranking, adjectives, nouns, known_nouns)
    variants, counts = vary_prompts(prompts, captions, pairs, swapped, words)
    return variants, summarize_variants(counts)
