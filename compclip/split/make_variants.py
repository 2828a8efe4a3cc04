"""Make the variants of each prompt: its copies with every other ranked adjective of the noun in its pair.

A judge that reads the pair ranks a prompt above its variants, which differ from it in one adjective alone.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core.heldout import split_pair
from compclip.core.log import log
from compclip.core.tables import SWAPPED, VARIANTS, as_captions
from compclip.io import empty_table
from compclip.split.swap_adjectives import Candidate, apply, mentions_by_caption, nouns_of, of_one_noun
from compclip.split.wording import Mention, Wording, contradiction, objection
from compclip.text.lexicon import Lexicon, forms_of

PROMPT = ["split", "image_id", "caption_id"]


def variants_of(
    text: str, pair: str, mentions: Sequence[Mention], changes: Sequence[Mapping[str, Any]], ranked: Sequence[str],
    adjectives: Mapping[str, str], nouns: Collection[str], reasons: Counter[str],
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:  # fmt: skip
    """Yield each other adjective that fits a prompt, the prompt with it, and its changes of the original caption.

    Args:
        text: the original caption.
        pair: the target.
        mentions: all pairs of the original caption.
        changes: what a swap changed in it.
        ranked: adjectives (canonical) ranked with the target's noun.
        adjectives: surface forms of the composition's adjectives to canonical words.
        nouns: surface forms.
        reasons: counts why prompts have no variants, and why adjectives are skipped.
    """
    adjective, noun = split_pair(pair)
    by_swap = {(change["start"], change["noun"]): str(change["new_adj"]) for change in changes}
    changed = {m: by_swap[m.start, m.noun] for m in mentions if (m.start, m.noun) in by_swap}
    # What the prompt says: the mentions with their new adjectives.
    stated = {m: replace(m, adjective=changed.get(m, m.adjective)) for m in mentions}
    target = [m for m, new in stated.items() if (new.adjective, m.noun) == (adjective, noun)]
    if not target or not of_one_noun(mentions).issuperset(target):
        reasons["shared or disputed" if target else "no pair"] += 1
        return
    elsewhere = {new.adjective for m, new in stated.items() if new.noun == noun and m not in target}
    caption, as_stated = Wording(text), [replace(m, adjective=adjective) for m in target]
    kept = [Candidate(m.noun, new, (m,)) for m, new in changed.items() if m not in target]
    for other in ranked:
        if other == adjective:
            continue
        if other in elsewhere:
            reasons["describes the noun elsewhere"] += 1
        elif contradiction(caption, as_stated, other, [*stated.values()]):
            reasons["contradiction"] += 1
        elif any(other != m.adjective and objection(caption, m, other, adjectives, nouns) for m in target):
            reasons["wording"] += 1
        else:
            yield other, *apply(text, [Candidate(noun, other, tuple(target)), *kept])


def make_variants(
    prompts: pd.DataFrame, captions: pd.DataFrame | Sequence[str], pairs: pd.DataFrame, ranking: pd.DataFrame,
    adjectives: Lexicon | str, nouns: Lexicon | str | None = None, swapped: pd.DataFrame | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Make the variants of prompts, and log why prompts or adjectives have none.

    Args:
        prompts: as of ``make_prompts``; further draws of a prompt are ignored.
        captions: all, as ``extract_pairs`` takes them.
        pairs, ranking: as in ``tables``: all occurrences, and the pairs that count.
        adjectives, nouns: lexicons or their names in ``lexicons``; nouns None: only those of pairs are known.
        swapped: as of ``swap_adjectives``, for prompts of test_swapped.

    Returns:
        ``tables.VARIANTS``: a row for each prompt and other ranked adjective of its noun that fits.
    """
    captions, (forms, noun_forms) = as_captions(captions), forms_of(adjectives, nouns)
    known_nouns = nouns_of(captions, pairs).union(noun_forms or ())
    swapped = empty_table(SWAPPED) if swapped is None else swapped
    texts = captions.set_index(["image_id", "caption_id"])["text"]
    mentions = mentions_by_caption(pairs[pairs["image_id"].isin(prompts["image_id"])])
    changes = {(row.image_id, row.caption_id): row.changes for row in swapped.itertuples(index=False)}
    ranked = ranking.sort_values("adjective").groupby("noun")["adjective"].agg(list).to_dict()
    rows = []
    for name, of_split in prompts.drop_duplicates(PROMPT).groupby("split", sort=False):
        reasons, tested = Counter[str](), 0
        asked = of_split[of_split["pair"].notna()]
        for split, image, caption, pair in asked[[*PROMPT, "pair"]].itertuples(index=False):
            key = image, int(caption)
            swap = changes.get(key, []) if split == "test_swapped" else []
            words = ranked.get(split_pair(pair)[1], []), forms, known_nouns
            variants = [*variants_of(texts[key], pair, mentions[key], swap, *words, reasons)]
            rows += [(split, *key, *variant) for variant in variants]
            tested += bool(variants)
        why = ", ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items())) or "all"
        log.info("%s: %d of %d prompts have variants (%s)", name, tested, len(of_split), why)
    return pd.DataFrame(rows, columns=list(VARIANTS.columns)) if rows else empty_table(VARIANTS)
