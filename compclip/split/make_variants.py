"""Make the variants of each prompt: its copies with other ranked adjectives of its noun, false of
the image.

A judge that reads the pair ranks a prompt above its variants, which differ from it only in one
adjective. A group of the lexicon, whose words exclude each other, has both adjectives, and no
caption of the image states the new one of the noun.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.heldout import split_pair
from compclip.core.inputs import (
    Captions,
    Pairs,
    Prompts,
    RankedPairs,
    Swapped,
    checked,
    require_joined,
)
from compclip.core.log import log
from compclip.core.rounding import rounded
from compclip.core.tables import PROMPT_KEY, SWAPPED, VARIANTS
from compclip.io import empty_table
from compclip.pairs.counts import nouns_of
from compclip.split.swap_adjectives import Candidate, apply, mentions_by_caption, of_one_noun
from compclip.split.wording import Mention, Wording, contradiction, objection
from compclip.text.grammar import WORDS
from compclip.text.lexicon import Lexicon, find_lexicon, forms_of

# Why an adjective that the prompt itself allows is dropped.
STATED = "stated by another caption"


def overlap(noun: str, other: str) -> bool:
    """Return whether a statement about ``other`` may be true of ``noun``: they are the same or part
    and whole.
    """
    parts = WORDS.parts_of
    return noun in (other, *WORDS.wholes, *parts.get(other, ())) or other in parts.get(noun, ())


def variants_of(
    text: str,
    pair: str,
    mentions: Sequence[Mention],
    changes: Sequence[Mapping[str, Any]],
    ranked: Sequence[str],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    reasons: Counter[str],
    of_image: Collection[str] = (),
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield each adjective that is false of a prompt, the prompt with it, and the changes from the
    original caption.

    Args:
        text: the original caption.
        pair: the target.
        mentions: all pairs of the original caption.
        changes: the changes that a swap made in it.
        ranked: adjectives (canonical), ranked with the target's noun, that exclude the target's.
        adjectives: surface forms of the composition's adjectives to canonical words.
        nouns: surface forms.
        reasons: a counter of why prompts have no variants, and why adjectives are dropped.
        of_image: adjectives that captions of the image state of the target's noun, or of an
            overlapping noun.
    """
    adjective, noun = split_pair(pair)
    by_swap = {(change["start"], change["noun"]): str(change["new_adj"]) for change in changes}
    changed = {m: by_swap[m.start, m.noun] for m in mentions if (m.start, m.noun) in by_swap}
    # The pairs of the prompt: the mentions with their new adjectives.
    stated = {m: replace(m, adjective=changed.get(m, m.adjective)) for m in mentions}
    target = [m for m, new in stated.items() if (new.adjective, m.noun) == (adjective, noun)]
    if not target or not of_one_noun(mentions).issuperset(target):
        reasons["shared or disputed" if target else "no pair"] += 1
        return
    elsewhere = {
        new.adjective for m, new in stated.items() if m not in target and overlap(noun, m.noun)
    }
    caption, as_stated = Wording(text), [replace(m, adjective=adjective) for m in target]
    kept = [Candidate.of(m.noun, new, (m,)) for m, new in changed.items() if m not in target]
    for other in ranked:
        if other in elsewhere:
            reasons["describes the noun elsewhere"] += 1
        elif contradiction(caption, as_stated, other, [*stated.values()]):
            reasons["contradiction"] += 1
        elif any(
            other != m.adjective and objection(caption, m, other, adjectives, nouns) for m in target
        ):
            reasons["wording"] += 1
        elif other in of_image:
            reasons[STATED] += 1
        else:
            yield other, *apply(text, [Candidate.of(noun, other, tuple(target)), *kept])


def count_variants(made: Mapping[str, int], reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return the entry of variants.json for a split.

    Args:
        made: numbers of prompts by their number of variants and of adjectives that only another
            caption states, as ``"5 1"``.
        reasons: numbers of prompts (`shared or disputed`, `no pair`) or of dropped adjectives
            (other reasons).

    Returns:
        Counts, and ``ceiling``: the expected adjective accuracy of a random choice among the prompt
            and the
        alternatives that captions of the image state, if these were kept: the mean of 1 / (1 +
            stated alternatives)
        over the prompts with alternatives, kept or stated; None without any.
    """
    numbers = np.array(
        [[*map(int, key.split()), count] for key, count in sorted(made.items())] or [[0, 0, 0]]
    )
    variants, stated, prompts = numbers.T
    asked = prompts * (variants + stated > 0)
    return {
        "prompts": int(prompts.sum()),
        "with_variants": int(prompts[variants > 0].sum()),
        "alternatives": int(prompts @ variants),
        "dropped": {reason: count for reason, count in sorted(reasons.items()) if count},
        "ceiling": rounded(float(asked @ (1 / (1 + stated))) / int(asked.sum()))
        if asked.any()
        else None,
    }


def vary(
    prompts: pd.DataFrame,
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    swapped: pd.DataFrame,
    adjectives: Lexicon | str,
    nouns: Lexicon | str | None,
    known_nouns: Collection[str],
) -> tuple[pd.DataFrame, dict[str, list[Counter[str]]]]:
    """Return the variants of prompts, in their order, and the arguments of ``count_variants`` for
    each split.

    Captions and pairs of other images are ignored. Other arguments as in ``make_variants``.
    """
    forms, noun_forms = forms_of(adjectives, nouns)
    excluded_by = cache(find_lexicon(adjectives, "adjectives").excluded_by)
    all_nouns = {*known_nouns, *(noun_forms or ())}
    captions, pairs = (
        table[table["image_id"].isin(prompts["image_id"])] for table in (captions, pairs)
    )
    texts = captions.set_index(["image_id", "caption_id"])["text"].to_dict()
    mentions = mentions_by_caption(pairs)
    sure = pairs.loc[
        pairs["relation"] != "disputed", ["image_id", "adjective", "noun"]
    ].drop_duplicates()
    stated = {
        image: list(zip(of["adjective"], of["noun"], strict=True))
        for image, of in sure.groupby("image_id")
    }
    changes = {
        (row.image_id, row.caption_id): row.changes for row in swapped.itertuples(index=False)
    }
    ranked = ranking.sort_values("adjective").groupby("noun")["adjective"].agg(list).to_dict()
    rows, counts = [], dict[str, list[Counter[str]]]()
    asked = prompts[[*PROMPT_KEY, "pair"]].drop_duplicates(PROMPT_KEY)
    for split, image, caption, pair in asked.itertuples(index=False):
        made, reasons = counts.setdefault(split, [Counter(), Counter()])
        if pd.isna(pair):
            made["0 0"] += 1
            continue
        key, (adjective, noun), before = (image, int(caption)), split_pair(pair), reasons[STATED]
        swap, of_image = [], {word for word, other in stated.get(image, ()) if overlap(noun, other)}
        if split == "test_swapped":
            swap, of_image = changes.get(key, []), set()
        others = [other for other in ranked.get(noun, []) if other != adjective]
        excluded = [other for other in others if other in excluded_by(adjective)]
        reasons["may both be true"] += len(others) - len(excluded)
        words = excluded, forms, all_nouns
        variants = [*variants_of(texts[key], pair, mentions[key], swap, *words, reasons, of_image)]
        rows += [(split, *key, *variant) for variant in variants]
        made[f"{len(variants)} {reasons[STATED] - before}"] += 1
    return (
        pd.DataFrame(rows, columns=list(VARIANTS.columns)) if rows else empty_table(VARIANTS)
    ), counts


def summarize_variants(counts: Mapping[str, Sequence[Mapping[str, int]]]) -> dict[str, Any]:
    """Return and log ``count_variants`` of each split."""
    result = {split: count_variants(*of_split) for split, of_split in counts.items()}
    for split, of in result.items():
        why = ", ".join(f"{reason}: {count}" for reason, count in of["dropped"].items()) or "all"
        log.info(
            "%s: %d of %d prompts have variants (%s)",
            split,
            of["with_variants"],
            of["prompts"],
            why,
        )
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
    tables = captions, pairs, ranking, swapped
    variants, counts = vary(
        prompts, *tables, adjectives, nouns, nouns_of(captions, pairs, captions["image_id"])
    )
    return variants, summarize_variants(counts)
