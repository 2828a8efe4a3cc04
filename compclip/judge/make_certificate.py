"""Make a certificate table from a split: right and wrong texts of real images, from their captions.

Wrong texts differ from a caption in one thing that no caption of the image states:

- ``adjective``: the prompt's variants, with other adjectives of the same group (``make_variants``);
- ``binding``: the adjectives of two nouns are exchanged;
- ``noun``: another noun, which occurs with the adjective elsewhere. The image may show the new pair
  although no caption states it, so judges do not pass or fail by this kind.

A ``synonym`` item has two right texts, with two forms of the adjective, and the variants as wrong
ones.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import split_pair
from compclip.core.errors import require
from compclip.core.seeds import rng
from compclip.core.settings.arguments import (
    Captions,
    Images,
    Pairs,
    Prompts,
    Variants,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY, PROMPT_KEY
from compclip.judge.certificate_tables import (
    ADJECTIVE,
    BINDING,
    BOX_KEYS,
    NOUN,
    SYNONYM,
    check_certificate_table,
)
from compclip.pairs.counts import nouns_of
from compclip.split.make_variants import CaptionPrompt, overlap, variants_of
from compclip.split.swap_adjectives import SwapOption, apply, mentions_by_caption, of_one_noun
from compclip.split.wording import Mention, located_words
from compclip.text.lexicon import Lexicon, find_lexicon, plural

# Their prompts are captions of photographs; swapped prompts describe no real image.
REAL_SPLITS = ("test_seen", "test_unseen")
# A form is a synonym if it is at least this fraction of its word's occurrences; rarer ones are
# mostly misspelled.
COMMON = 0.01
Pair = tuple[str, str]  # adjective and noun


class _Prompt(NamedTuple):
    """A caption of a real image, and what the captions of the image say."""

    text: str
    pair: Pair  # the target
    mentions: Sequence[Mention]
    stated: Collection[Pair]  # by any caption of the image, also doubtfully
    captions: str  # all, in lower case

    def mentions_of(self, pair: Pair) -> list[Mention]:
        return [m for m in self.mentions if (m.adjective, m.noun) == pair]


@dataclass
class _Words:
    """The words of which texts are made."""

    captions: pd.DataFrame
    lexicon: Lexicon  # adjectives
    nouns: Collection[str]  # surface forms
    nouns_by_adjective: pd.Series  # ranked nouns that occur with it, sorted

    @cached_property
    def synonyms(self) -> dict[str, str]:
        """The most common other form of an adjective, by form."""
        counts: Counter[str] = Counter()
        for text in self.captions["text"]:
            counts.update(word.text for word in located_words(text))
        forms = pd.Series(self.lexicon.forms, name="word").rename_axis("form").reset_index()
        forms["count"] = forms["form"].map(counts)
        forms["total"] = forms.groupby("word")["count"].transform("sum")
        common = forms[forms["count"] > COMMON * forms["total"]]
        ordered = forms.merge(common, on="word", suffixes=("", "_other"))
        # Stable, so that ties stay in the lexicon's order.
        ordered = ordered.sort_values("count_other", ascending=False, kind="stable")
        synonyms = ordered[ordered["form"] != ordered["form_other"]].drop_duplicates("form")
        return dict(zip(synonyms["form"], synonyms["form_other"], strict=True))

    def with_synonym(self, prompt: _Prompt) -> str | None:
        """Return the prompt with a synonym of its adjective; None if a mention has none."""
        changes = []
        for mention in prompt.mentions_of(prompt.pair):
            form = prompt.text[mention.start : mention.end].lower()
            if form not in self.synonyms:
                return None
            changes.append(SwapOption.of(mention.noun, self.synonyms[form], (mention,)))
        return apply(prompt.text, changes)[0]

    def exchanged(self, prompt: _Prompt, generator: np.random.Generator) -> str | None:
        """Return the prompt with its adjective and that of another noun exchanged; None if none
        can be.
        """
        adjective, noun = prompt.pair
        excluded = self.lexicon.excluded_by(adjective)
        partners = set()
        for mention in prompt.mentions:
            if mention.adjective in excluded and not overlap(noun, mention.noun):
                partners.add((mention.adjective, mention.noun))
        ordered = sorted(partners)
        for position in generator.permutation(len(ordered)):
            partner = ordered[position]
            # Each of both changes must be allowed.
            text = self._exchange(prompt, prompt.pair, partner)
            if text and self._exchange(prompt, partner, prompt.pair):
                return text
        return None

    def _exchange(self, prompt: _Prompt, pair: Pair, partner: Pair) -> str | None:
        """Return the prompt with the adjectives of both pairs exchanged; None if the adjective of
        the first cannot change.
        """
        adjective, noun = pair
        # A swapped caption, as it were, which states ``adjective`` of the other noun.
        changes = [
            {"start": mention.start, "noun": mention.noun, "new_adj": adjective}
            for mention in prompt.mentions_of(partner)
        ]
        swapped = CaptionPrompt(prompt.text, "_".join(pair), prompt.mentions, changes)
        stated = {word for word, stated_noun in prompt.stated if overlap(noun, stated_noun)}
        forms = self.lexicon.forms
        variants = variants_of(swapped, [partner[0]], forms, self.nouns, Counter(), stated)
        texts = [text for _, text, _ in variants]
        return texts[0] if texts else None

    def with_other_noun(self, prompt: _Prompt, generator: np.random.Generator) -> str | None:
        """Return the prompt with another noun; None if none can be."""
        adjective, noun = prompt.pair
        mention = prompt.mentions_of(prompt.pair)[0]
        form = prompt.text[mention.noun_start : mention.noun_end].lower()
        # A second mention of the noun would contradict the new one.
        is_single = prompt.text.lower().count(form) == 1
        is_regular = form in (noun, plural(noun))
        if not (is_single and is_regular and mention in of_one_noun(prompt.mentions)):
            return None
        stated_nouns = {stated_noun for _, stated_noun in prompt.stated}
        candidates = []
        # Only pairs that occur: others are known to be wrong without the image.
        for new in self.nouns_by_adjective[adjective]:
            # Inside a longer word, too, so that none is overlooked.
            is_written = new in prompt.captions
            is_stated = any(overlap(new, stated_noun) for stated_noun in stated_nouns)
            if not (is_written or is_stated):
                candidates.append(new)
        if not candidates:
            return None
        new = candidates[generator.integers(len(candidates))]
        new_form = new if form == noun else plural(new)
        span = (mention.noun_start, mention.noun_end, noun)
        return apply(prompt.text, [SwapOption(noun, new_form, [span])])[0]


@checked
def make_certificate(
    prompts: Prompts,
    captions: Captions,
    pairs: Pairs,
    variants: Variants,
    images: Images,
    adjectives: Lexicon | str,
    seed: Whole = 0,
) -> pd.DataFrame:
    """Make a certificate table of the real images of a split.

    Args:
        prompts, captions, pairs, images: as in ``tables``; prompts of swapped captions and those
            without a pair or a real image are ignored.
        variants: as ``make_variants`` returns them.
        adjectives: the composition's lexicon or its name in ``lexicons``.
        seed: of which adjectives are exchanged, and which nouns replace others.

    Returns:
        The table, as of ``check_certificate_table``, with paths as in ``images``.

    Raises:
        UserError: rows do not join, an argument is refused (docs/library.md), or no item could be
            made.
    """
    require_joined(captions, "captions", prompts=prompts, pairs=pairs, variants=variants)
    require("split" in variants, "variants", "no column split", "give those of make_variants")
    rows = _real_prompts(prompts, captions, images)
    wrong_texts = variants.groupby(PROMPT_KEY)["text"].agg(list).to_dict()
    mentions = mentions_by_caption(pairs[pairs["image_id"].isin(rows["image_id"])])
    stated: dict[str, set[Pair]] = {}
    for image, adjective, noun in pairs[["image_id", "adjective", "noun"]].itertuples(index=False):
        stated.setdefault(image, set()).add((adjective, noun))
    lower = captions["text"].str.lower()
    captions_by_image = lower.groupby(captions["image_id"]).agg(" ".join)
    lexicon = find_lexicon(adjectives, "adjectives")
    nouns = nouns_of(captions, pairs, captions["image_id"])
    ranked_nouns = {split_pair(pair)[1] for pair in rows["pair"]}
    ranked = pairs[pairs["noun"].isin(ranked_nouns)].sort_values("noun")
    nouns_by_adjective = ranked.groupby("adjective")["noun"].unique()
    words = _Words(captions, lexicon, nouns, nouns_by_adjective)
    items = []
    for split, image, number, pair, text, path, box in rows.itertuples(index=False):
        key = (split, image, number)
        target = split_pair(pair)
        prompt = _Prompt(
            text=text,
            pair=target,
            mentions=mentions[image, number],
            stated=stated.get(image, set()),
            captions=captions_by_image[image],
        )
        # A pair that is not in the caption has nothing to change.
        if not prompt.mentions_of(target):
            continue
        generator = rng(seed, "make_certificate", *key)
        texts_by_kind = _texts_by_kind(prompt, words, wrong_texts.get(key, []), generator)
        for kind, (right, wrong) in texts_by_kind.items():
            name = "/".join([kind, split, image, str(number)])
            item = {"item": name, "image": path, "right": right, "wrong": wrong}
            items.append(item | {"kind": kind, "box": box})
    require(items, "prompts", "no prompt of a real image has a wrong text", "give other prompts")
    return check_certificate_table(pd.DataFrame(items))


def _real_prompts(
    prompts: pd.DataFrame, captions: pd.DataFrame, images: pd.DataFrame
) -> pd.DataFrame:
    """Return PROMPT_KEY, pair, text, path and box of the prompts with a pair and a real image."""
    is_real = prompts["split"].isin(REAL_SPLITS) & prompts["pair"].notna()
    rows = prompts.loc[is_real, [*PROMPT_KEY, "pair"]].drop_duplicates(PROMPT_KEY)
    rows = rows.merge(captions[[*CAPTION_KEY, "text"]], on=CAPTION_KEY)
    # People may write the same of an image twice.
    rows = rows.sort_values(PROMPT_KEY).drop_duplicates(["image_id", "text"])
    boxes = images.reindex(columns=BOX_KEYS)
    has_box = boxes.notna().all(axis=1)
    box = pd.Series(boxes.to_numpy(float).tolist(), index=images.index, dtype=object)
    with_box = images[["image_id", "path"]].assign(box=box.where(has_box, None))
    return rows.merge(with_box.dropna(subset="path"), on="image_id")


def _texts_by_kind(
    prompt: _Prompt, words: _Words, variants: list[str], generator: np.random.Generator
) -> Mapping[str, tuple[list[str], list[str]]]:
    """Return the right and the wrong texts of each kind that the prompt has."""
    texts = {}
    right = [prompt.text]
    if variants:
        texts[ADJECTIVE] = right, variants
        synonym = words.with_synonym(prompt)
        if synonym:
            texts[SYNONYM] = [*right, synonym], variants
    exchanged = words.exchanged(prompt, generator)
    if exchanged:
        texts[BINDING] = right, [exchanged]
    other_noun = words.with_other_noun(prompt, generator)
    if other_noun:
        texts[NOUN] = right, [other_noun]
    return texts


def sample_items(table: pd.DataFrame, n: int, seed: int = 0) -> pd.DataFrame:
    """Return at most n random items of each kind of a certificate table."""
    parts = []
    for kind, rows in table.groupby("kind", sort=False):
        stream = rng(seed, "certificate items", str(kind))
        chosen = stream.permutation(rows["item"].unique())[:n]
        parts.append(rows[rows["item"].isin(chosen)])
    return pd.concat(parts, ignore_index=True)
