"""Adjective accuracy: how often a judge ranks a prompt above its variants, which differ only in one
adjective.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from compclip.clip.embed import gathered
from compclip.core.artifacts.heldout import split_pair
from compclip.core.settings.arguments import Indices, Vector, require_below, require_length
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY

# Maps n texts, or paths in the manifest, to their embeddings, (n, d).
Embed = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class Choices:
    """For each entry (n,), the chances that its own adjective is chosen; NaN where there is no
    other.
    """

    n_adjectives: np.ndarray  # to choose from, including the own
    first: np.ndarray  # the chance that the own adjective is ranked first
    two_way: np.ndarray  # the chance that it is ranked above one of the others, drawn at random
    # ``first`` by adjusted similarities; None: there is no ``Adjustment``
    adjusted: np.ndarray | None = None
    # the adjective that is ranked first; None without an image or another adjective
    chosen: np.ndarray | None = None


@dataclass(frozen=True)
class Adjustment:
    """The term to subtract from a similarity: a multiple of the text's mean similarity over the
    calibration images.

    A judge prefers texts with adjectives that were frequent in its training data, whatever an image
    shows.
    """

    mean: np.ndarray  # (d,) the mean of the embeddings of the calibration images
    multiple: float
    of_seen: Mapping[str, float]  # the multiple for each seen pair, chosen without that pair

    def multiples(self, pairs: pd.Series) -> np.ndarray:
        """Return the multiple for each of the pairs (n,)."""
        return pairs.map(self.of_seen).fillna(self.multiple).to_numpy(float)


def variants_of_entries(
    entries: pd.DataFrame, split: str, variants: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (m,), in the order of entries: the entry's row, and the row of a variant of
    its prompt.
    """
    variant_rows = variants[["split", *CAPTION_KEY]].assign(variant=range(len(variants)))
    variant_rows = variant_rows[variant_rows["split"] == split]
    entry_rows = entries[CAPTION_KEY].assign(entry=range(len(entries)))
    rows = entry_rows.merge(variant_rows, on=CAPTION_KEY)
    rows = rows.sort_values(["entry", "variant"])
    return rows["entry"].to_numpy(), rows["variant"].to_numpy()


@checked
def adjective_accuracy(own: Vector, of_variants: Vector, entry: Indices) -> Choices:
    """Compare each image's similarity with its prompt to those with the prompt's variants; ties are
    broken at random.

    Args:
        own: (n,) the similarity of each image with its prompt.
        of_variants: (m,) similarities of images with variants of their prompts.
        entry: (m,) the image of each.

    Returns:
        Arrays (n,): ``np.nanmean(first)`` is the adjective accuracy; chance is the mean of
            ``1 / n_adjectives`` where that is below 1.

    Raises:
        UserError: an argument is refused (docs/library.md).
    """
    require_length(len(of_variants), "variants", entry=entry)
    require_below(len(own), "images", entry=entry)
    return choose_adjectives(own, of_variants, entry.astype(np.int64))


def choose_adjectives(
    of_prompts: np.ndarray, of_variants: np.ndarray, entry: np.ndarray
) -> Choices:
    """Do the same as ``adjective_accuracy`` without its checks, because prompts without an image
    have the similarity minus infinity (``with_failed``).
    """
    n = len(of_prompts)
    # A comparison with NaN is false, so with NaN on either side the prompt loses.
    is_better = ~(of_variants <= of_prompts[entry])
    is_tied = of_variants == of_prompts[entry]
    # All (n,): the variants of each image's prompt, and how many of them win or tie.
    variants = np.bincount(entry, minlength=n)
    better = np.bincount(entry, weights=is_better, minlength=n)
    tied = np.bincount(entry, weights=is_tied, minlength=n)
    # Of t tied variants and the prompt, each is first with chance 1 / (1 + t).
    first = np.where(better > 0, 0.0, 1 / (1 + tied))
    with np.errstate(invalid="ignore"):
        # Without variants, 0 / 0 is NaN.
        two_way = 1 - (better + tied / 2) / variants
    return Choices(
        n_adjectives=variants.astype(np.int64) + 1,
        first=np.where(variants > 0, first, np.nan),
        two_way=two_way,
    )


def ranked_first(of_prompts: np.ndarray, of_variants: np.ndarray, entry: np.ndarray) -> np.ndarray:
    """Return (n,): the index of the variant that is ranked first for each image, the last of
    several that tie; -1 where its own prompt, or a tie with it, is first.
    """
    # NaN is sorted last and is not below the prompt's similarity, so a variant with NaN wins.
    descending = np.lexsort((of_variants, entry))[::-1]
    # The first row of each image is that of its most similar variant.
    images, first = np.unique(entry[descending], return_index=True)
    highest = descending[first]
    # A tie is not above, so the prompt wins it.
    is_above = ~(of_variants[highest] <= of_prompts[images])
    result = np.full(len(of_prompts), -1)
    result[images[is_above]] = highest[is_above]
    return result


def with_failed(
    choices: Choices, failed: pd.DataFrame, split: str, variants: pd.DataFrame
) -> Choices:
    """Append the choices for prompts without an image, for which every variant is ranked above the
    prompt.
    """
    n = len(failed)
    if n == 0:
        return choices
    entry, _ = variants_of_entries(failed, split, variants)
    # Any similarity is above minus infinity.
    lowest = np.full(n, -np.inf)
    wrong = choose_adjectives(lowest, np.zeros(len(entry)), entry)
    n_adjectives = np.append(choices.n_adjectives, wrong.n_adjectives)
    first = np.append(choices.first, wrong.first)
    two_way = np.append(choices.two_way, wrong.two_way)
    adjusted = choices.adjusted
    if adjusted is not None:
        adjusted = np.append(adjusted, wrong.first)
    chosen = choices.chosen
    if chosen is not None:
        chosen = np.append(chosen, np.full(n, None))
    return Choices(n_adjectives, first, two_way, adjusted, chosen)


@dataclass(frozen=True)
class Options:
    """The texts that the images of n entries are compared with, which are the same for all judges:
    n prompts, and m variants of them.
    """

    pairs: pd.Series  # (n,)
    entry: np.ndarray  # (m,) the entry of each variant
    texts: list[str]  # distinct
    text_rows: np.ndarray  # (n + m,) the row in ``texts`` of each prompt, then of each variant
    adjectives: np.ndarray | None  # (n + m,); None if the table of variants has none


def options_of(entries: pd.DataFrame, split: str, variants: pd.DataFrame) -> Options:
    """Return the texts that the images of a split's entries are compared with."""
    entry, variant = variants_of_entries(entries, split, variants)
    # Draws share prompts and variants, so each distinct text has one row.
    all_texts = pd.concat([entries["text"], variants["text"].iloc[variant]])
    text_rows, texts = pd.factorize(all_texts)
    adjectives = None
    if "adjective" in variants:
        pairs = entries["pair"].tolist()
        names = [None if pd.isna(pair) else sys.intern(split_pair(pair)[0]) for pair in pairs]
        names += map(sys.intern, variants["adjective"].iloc[variant].tolist())
        adjectives = np.array(names, object)
    # All generators' options are in memory at once: equal texts are one object, and numbers short.
    return Options(
        pairs=entries["pair"],
        entry=entry.astype(np.int32),
        texts=list(map(sys.intern, texts.tolist())),
        text_rows=text_rows.astype(np.int32),
        adjectives=adjectives,
    )


def compare_texts(
    options: Options, embed_texts: Embed, images: np.ndarray, mean: np.ndarray
) -> Callable[[np.ndarray], Choices]:
    """Return a function from multiples (n,) to the choices of adjectives for the entries, by
    adjusted similarities.

    These are the similarities of the entries' images (n, d) with their prompts and variants, minus
    the entry's multiple of the similarity of ``mean`` (d,) with the same text.
    """
    n = len(images)
    entry = options.entry
    text_rows = options.text_rows
    embeddings = embed_texts(options.texts)
    cosines = gathered(images, embeddings)
    of_prompts = cosines(np.arange(n), text_rows[:n])  # (n,)
    of_variants = cosines(entry, text_rows[n:])  # (m,)
    # (n + m,) of the same texts, with the mean image.
    rows = np.arange(len(embeddings))
    with_mean = gathered(mean[None], embeddings)(np.zeros_like(rows), rows)[text_rows]

    def choices_for(multiples: np.ndarray) -> Choices:
        adjusted = of_prompts - multiples * with_mean[:n]
        adjusted_variants = of_variants - multiples[entry] * with_mean[n:]
        choices = choose_adjectives(adjusted, adjusted_variants, entry)
        if options.adjectives is None:
            return choices
        best = ranked_first(adjusted, adjusted_variants, entry)
        chosen = options.adjectives[np.where(best < 0, np.arange(n), n + best)]
        # Without variants, there is no choice.
        chosen[choices.n_adjectives == 1] = None
        return replace(choices, chosen=chosen)

    return choices_for


def adjective_choices(
    options: Options,
    embed_texts: Embed,
    images: np.ndarray,
    adjustment: Adjustment | None = None,
) -> Choices:
    """Return the judge's choice of adjective for each entry, from the embeddings (n, d) of the
    images.
    """
    mean = np.zeros(images.shape[1], np.float32) if adjustment is None else adjustment.mean
    choices_for = compare_texts(options, embed_texts, images, mean)
    # Multiples of 0 leave the similarities as they are.
    unadjusted = np.zeros(len(images))
    choices = choices_for(unadjusted)
    if adjustment is None:
        return choices
    multiples = adjustment.multiples(options.pairs)
    adjusted = choices_for(multiples)
    return replace(choices, adjusted=adjusted.first)
