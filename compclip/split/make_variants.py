"""Make the variants of each prompt: its copies with every other ranked adjective of the noun in its pair.

A judge that reads the pair ranks a prompt above its variants, which differ from it in one adjective alone.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from compclip.core import cli
from compclip.core.heldout import split_pair
from compclip.core.log import log
from compclip.core.tables import CAPTIONS, PAIRS, PROMPTS, RANKING, SWAPPED, VARIANTS
from compclip.io import empty_table, read_table, write_table
from compclip.split.steps import MakeVariants
from compclip.split.swap_adjectives import Candidate, apply, mentions_by_caption, nouns_of, of_one_noun
from compclip.split.wording import Caption, Mention, contradiction, objection
from compclip.text.lexicon import load_lexicon

PROMPT = ["split", "image_id", "caption_id"]


def variants_of(
    text: str,
    pair: str,
    mentions: Sequence[Mention],
    changes: Sequence[Mapping[str, Any]],
    ranked: Sequence[str],
    adjectives: Mapping[str, str],
    nouns: Collection[str],
    reasons: Counter[str],
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
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
    caption, as_stated = Caption(text), [replace(m, adjective=adjective) for m in target]
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
    prompts: pd.DataFrame,
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    swapped: pd.DataFrame,
    ranking: pd.DataFrame,
    adjectives: Mapping[str, str],
    nouns: Collection[str],
) -> tuple[pd.DataFrame, Counter[str]]:
    """Return the variants (``tables.VARIANTS``), and how often a prompt or an adjective has none and why.

    Args:
        prompts: of a split, each once; captions, pairs, swapped: at least those of their images.
    """
    texts = captions.set_index(["image_id", "caption_id"])["text"]
    mentions = mentions_by_caption(pairs)
    changes = {(row.image_id, row.caption_id): row.changes for row in swapped.itertuples(index=False)}
    ranked = ranking.sort_values("adjective").groupby("noun")["adjective"].agg(list).to_dict()
    reasons: Counter[str] = Counter()
    rows = []
    asked = prompts[prompts["pair"].notna()]
    for split, image, caption, pair in asked[[*PROMPT, "pair"]].itertuples(index=False):
        key = image, int(caption)
        swap = changes.get(key, []) if split == "test_swapped" else []
        noun = split_pair(pair)[1]
        of_prompt = variants_of(texts[key], pair, mentions[key], swap, ranked.get(noun, []), adjectives, nouns, reasons)
        rows += [(split, *key, *variant) for variant in of_prompt]
    return pd.DataFrame(rows, columns=list(VARIANTS.columns)) if rows else empty_table(VARIANTS), reasons


def main(step: MakeVariants) -> None:
    captions, pairs = read_table(step.captions, CAPTIONS), read_table(step.pairs, PAIRS)
    swapped = read_table(step.swapped, SWAPPED)
    nouns = nouns_of(captions, pairs).union(load_lexicon(step.nouns).forms if step.nouns else ())
    words = read_table(step.ranking, RANKING), load_lexicon(step.adjectives).forms, nouns
    prompts = read_table(step.prompts, PROMPTS, [*PROMPT, "pair"]).drop_duplicates(PROMPT)
    pairs = pairs[pairs["image_id"].isin(prompts["image_id"])]
    tables = [empty_table(VARIANTS)]
    for split, of_split in prompts.groupby("split", sort=False):
        variants, reasons = make_variants(of_split, captions, pairs, swapped, *words)
        tables.append(variants)
        tested, why = len(variants.drop_duplicates(PROMPT)), ", ".join(f"{r}: {n}" for r, n in sorted(reasons.items()))
        log.info("%s: %s: %d of %d prompts have variants (%s)", step.where, split, tested, len(of_split), why or "all")
    write_table(pd.concat(tables, ignore_index=True), step.variants, VARIANTS)


if __name__ == "__main__":
    cli.run(main)
