"""Measure a judge's bias: whether it reads held-out pairs as well as seen ones on images that
show what they should.

A judge that has learned from the same captions as the generators may know a seen pair better than a
held-out one. Then a perfect generator falls too, and falls cannot be distinguished from the judge's
bias. The measure is adjective accuracy: k-way among the noun's ranked adjectives, and two-way
against one of them. A judge also reads frequent pairs better than rare ones, and held-out pairs are
less frequent than most seen ones: they are compared with seen pairs of the same frequency.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.heldout import matched_pairs, split_pair
from compclip.core.artifacts.rounding import json_values
from compclip.core.tables import CAPTION_KEY, is_further
from compclip.score.choices import (
    Adjustment,
    Choices,
    Embed,
    Options,
    adjective_choices,
    options_of,
)
from compclip.score.entries import judged_entries, real_entries
from compclip.split.pools import class_names
from compclip.split.swap_adjectives import SwapOption, apply, mentions_by_caption
from compclip.stats.estimates import INTERVAL_COLUMNS, compare_scores, estimate_score

# A form is a synonym if it is at least this fraction of its word's occurrences; rarer ones are
# mostly misspelled.
COMMON = 0.01
# The splits of the images that show seen pairs, and of those that show held-out ones.
REAL_SPLITS = ("test_seen", "test_unseen")
DRAWN_SPLITS = ("test_seen", "test_swapped")
Synonyms = dict[tuple[str, str], str]


def synonyms(captions: pd.DataFrame, pairs: pd.DataFrame) -> Synonyms:
    """Return, for an adjective (canonical) and a form of it, its most frequent other form in these
    captions.
    """
    # An adjective of several nouns has a row for each of them.
    occurrences = pairs.drop_duplicates([*CAPTION_KEY, "adjective_start"])
    columns = [*CAPTION_KEY, "adjective", "adjective_start", "adjective_end"]
    rows = occurrences[columns].merge(captions[[*CAPTION_KEY, "text"]], on=CAPTION_KEY)
    # Lists, because iterating over a column of strings takes several times as long.
    spans = [rows[name].tolist() for name in ("text", "adjective_start", "adjective_end")]
    forms = [text[start:end].lower() for text, start, end in zip(*spans, strict=True)]
    rows = rows.assign(form=forms)
    counts = rows.groupby(["adjective", "form"])["form"].size()
    # Sorted, so that the first other form is the most frequent one; ties keep their order by name.
    counts = counts.sort_values(ascending=False, kind="stable").rename("count").reset_index()
    totals = counts.groupby("adjective")["count"].transform("sum")
    common = counts[counts["count"] >= COMMON * totals]
    others = counts.merge(common, on="adjective", suffixes=("", "_other"))
    others = others[others["form"] != others["form_other"]].drop_duplicates(["adjective", "form"])
    return others.set_index(["adjective", "form"])["form_other"].to_dict()


def with_synonyms(entries: pd.DataFrame, pairs: pd.DataFrame, synonym_of: Synonyms) -> pd.DataFrame:
    """Return the entries whose adjective has a synonym, wherever the caption has the pair, with it
    in their text.
    """
    mentions = mentions_by_caption(pairs[pairs["image_id"].isin(entries["image_id"])])
    rows = entries[[*CAPTION_KEY, "text", "pair"]].itertuples(index=False)
    texts = []
    for image, caption, text, pair in rows:
        pair_mentions = [
            mention
            for mention in mentions[image, caption]
            if f"{mention.adjective}_{mention.noun}" == pair
        ]
        candidates = []
        for mention in pair_mentions:
            form = text[mention.start : mention.end].lower()
            synonym = synonym_of.get((mention.adjective, form))
            if synonym is not None:
                candidates.append(SwapOption.of(mention.noun, synonym, (mention,)))
        # One mention without a synonym would keep the adjective in the text.
        is_complete = candidates and len(candidates) == len(pair_mentions)
        texts.append(apply(text, candidates)[0] if is_complete else None)
    return entries.assign(text=texts).dropna(subset="text")


def choices_table(entries: pd.DataFrame, choices: Choices, classes: pd.Series) -> pd.DataFrame:
    """Return a row for each entry that has another adjective: class of the image, pair, and the
    columns of choices.
    """
    table = entries[["pair"]].assign(
        image_class=entries["image_id"].map(classes),
        adjectives=choices.n_adjectives,
        first=choices.first,
        adjusted=np.nan if choices.adjusted is None else choices.adjusted,
        two_way=choices.two_way,
    )
    return table[table["adjectives"] > 1]


def accuracy(chosen: pd.DataFrame) -> dict[str, Any]:
    """Return the accuracy of a ``choices_table`` and its intervals, as of ``estimate_score``; only
    ``n`` if empty.
    """
    if chosen.empty:
        return {"n": 0}
    estimate = estimate_score(chosen["first"], chosen["image_class"], chosen["pair"])
    result: dict[str, Any] = {"n": len(chosen)}
    result["pairs"] = chosen["pair"].nunique()
    result["accuracy"] = estimate.value
    result |= {name: getattr(estimate, name) for name in INTERVAL_COLUMNS}
    result["adjusted"] = chosen["adjusted"].mean()
    result["chance"] = (1 / chosen["adjectives"]).mean()
    result["two_way"] = chosen["two_way"].mean()
    return result


def accuracy_difference(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, Any] | None:
    """Return the accuracy of one ``choices_table`` minus that of another, and its intervals; None
    if one is empty.
    """
    if a.empty or b.empty:
        return None
    # Unpaired: held-out and seen pairs have different images.
    b_names = {"b_images": b["image_class"], "b_pairs": b["pair"]}
    difference = compare_scores(a["first"], b["first"], a["image_class"], a["pair"], **b_names)
    result = {"value": difference.value}
    result |= {name: getattr(difference, name) for name in INTERVAL_COLUMNS}
    return result


class WithOptions(NamedTuple):
    """Entries, and the texts that their images are compared with."""

    rows: pd.DataFrame
    options: Options


@dataclass(frozen=True)
class BiasEntries:
    """The entries that the bias of every judge of a composition is measured on."""

    # of seen and of held-out pairs, by split, by kind of images
    by_images: dict[str, dict[str, WithOptions]]
    # the real ones whose adjective has a synonym, with it in their text, by split
    replaced: dict[str, WithOptions]
    classes: pd.Series  # the class of each image
    matched: set[str]  # the seen pairs that are as frequent as held-out ones
    heldout: list[str]  # sorted


def entries_by_images(
    prompts: pd.DataFrame, images: pd.DataFrame, manifest: pd.DataFrame | None = None
) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the entries with ``real`` images and, given a ``manifest``, those with ``drawn`` ones,
    of seen and of held-out pairs, by split.

    Args:
        prompts, images: columns of ``PROMPTS`` and ``IMAGES`` in ``tables``.
        manifest: images drawn as asked, of seen and of swapped captions.
    """
    # Further draws would give the prompts of matched pairs more weight.
    prompts = prompts[~is_further(prompts)]
    entries = {"real": {split: real_entries(prompts, images, split) for split in REAL_SPLITS}}
    if manifest is not None:
        entries["drawn"] = {
            split: judged_entries(prompts, manifest, split)[0] for split in DRAWN_SPLITS
        }
    return entries


def bias_entries(
    entries: Mapping[str, Mapping[str, pd.DataFrame]],
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    heldout: Sequence[str],
    variants: pd.DataFrame,
) -> BiasEntries:
    """Return the entries for ``measure_bias``.

    Args:
        entries: as of ``entries_by_images``.
        captions, pairs, ranking, variants: columns of ``CAPTIONS`` and so on in ``tables``.
        heldout: the held-out pairs.
    """

    def with_options(by_split: Mapping[str, pd.DataFrame]) -> dict[str, WithOptions]:
        return {
            split: WithOptions(rows, options_of(rows, split, variants))
            for split, rows in by_split.items()
        }

    real = entries["real"]
    # Other adjectives are replaced in no entry.
    names = pd.concat(rows["pair"] for rows in real.values()).dropna().unique()
    judged_pairs = pairs[pairs["adjective"].isin({split_pair(name)[0] for name in names})]
    synonym_of = synonyms(captions, judged_pairs)
    replaced = {
        split: with_synonyms(rows, judged_pairs, synonym_of) for split, rows in real.items()
    }
    return BiasEntries(
        by_images={kind: with_options(by_split) for kind, by_split in entries.items()},
        replaced=with_options(replaced),
        classes=class_names(captions),
        matched=matched_pairs(ranking, heldout),
        heldout=sorted(heldout),
    )


def measure_bias(
    embed_texts: Embed,
    embed_images: Embed,
    adjustment: Adjustment | None,
    entries: BiasEntries,
) -> dict[str, Any]:
    """Measure the adjective accuracy of a judge on seen and on held-out pairs.

    Args:
        embed_texts: from n captions to their embeddings by the judge, (n, d), of unit length.
        embed_images: the same from paths in the entries.
        adjustment: as of ``choose_adjustment``.
        entries: as of ``bias_entries``.

    Returns:
        For real and drawn ``images`` the accuracies on all ``seen`` pairs, on those ``matched`` in
        frequency and on ``held_out`` ones, and the ``difference`` of the last two; for each of the
        held-out ``pairs`` the accuracy on real images; the multiple of the ``adjustment``; for what
        fraction of the real images the choice stays the same with a ``synonym`` in the prompt.
    """

    def choose(asked: WithOptions) -> Choices:
        images = embed_images(asked.rows["path"].tolist())
        return adjective_choices(asked.options, embed_texts, images, adjustment)

    result: dict[str, Any] = {"images": {}}
    agreements = []
    for kind, by_split in entries.by_images.items():
        choices = {split: choose(asked) for split, asked in by_split.items()}
        tables = [
            choices_table(asked.rows, choices[split], entries.classes)
            for split, asked in by_split.items()
        ]
        # The first split has seen pairs, the second held-out ones.
        seen, held_out = tables
        matched = seen[seen["pair"].isin(entries.matched)]
        result["images"][kind] = {
            "seen": accuracy(seen),
            "matched": accuracy(matched),
            "held_out": accuracy(held_out),
            "difference": accuracy_difference(held_out, matched),
        }
        if kind == "real":
            result["pairs"] = {
                pair: accuracy(held_out[held_out["pair"] == pair]) for pair in entries.heldout
            }
            for split, replaced in entries.replaced.items():
                original = choices[split].first[replaced.rows.index]
                with_synonym = choose(replaced).first
                # NaN without another adjective.
                differences = np.abs(original - with_synonym)
                agreements.append(1 - differences[~np.isnan(differences)])
    agreed = np.concatenate(agreements)
    result["adjustment"] = adjustment and adjustment.multiple
    result["synonyms"] = {"n": len(agreed), "agreement": agreed.mean() if len(agreed) else None}
    return json_values(result)
