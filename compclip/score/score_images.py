"""Score a generator's images by a trained judge, and find hubs: captions that are close to many
images.
"""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder, Encoder, mean_embedding, merge_equal, similarities
from compclip.core.artifacts.rounding import rounded
from compclip.core.errors import require
from compclip.core.identity.digests import sha256
from compclip.core.identity.vector_cache import VectorCache
from compclip.core.log import log
from compclip.core.reading.normal import normalize
from compclip.core.settings.arguments import (
    AS_TEXT,
    Captions,
    Entries,
    Positive,
    Variants,
    Whole,
    require_joined,
)
from compclip.core.settings.calls import checked
from compclip.core.tables import CAPTION_KEY
from compclip.score import score_table
from compclip.score.choices import Adjustment, Choices, Embed, adjective_choices, with_failed
from compclip.score.config import Scoring
from compclip.score.entries import ENTRY, EntrySet, Numbered, pool_summary
from compclip.score.score_table import Rules, SetScores
from compclip.split.pools import choose_candidates, class_names
from compclip.stats.estimates import ScoreEstimate, estimate_score
from compclip.stats.r_precision import (
    BLOCK,
    Blocks,
    Weights,
    blocks,
    by_class,
    expected_top1,
)

# Fraction of captions that count as hubs: a choice, so few that hubs cannot have a large part of
# the first ranks unless embeddings crowd around them (Radovanović et al. 2010, JMLR 11:2487).
HUBS = 0.01
SET_NAME = "images"  # of the set that ``score_with_judge`` scores, which is of no split


class WrongFirstRanks:
    """The captions that wrongly rank first, collected by block.

    An image's candidates are its own caption and all captions of other classes in the pool.
    n_texts: the number of distinct texts.
    """

    def __init__(self, n_texts: int, numbered: Numbered) -> None:
        self.n_texts = n_texts
        self.numbered = numbered
        self.weights = Weights(numbered.pool, n_texts)
        # The caption ranked first, -1 if it is the own one.
        self.wrong = np.full(len(numbered.entries.own), -1)

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Add the similarities ``values`` of the entries ``rows``, sorted by class."""
        entries = self.numbered.entries
        for class_number, block in by_class(entries.classes[rows]):
            weights, _ = self.weights.of(class_number)
            no_candidates = np.flatnonzero(weights == 0)
            class_rows = rows[block]
            # A view of the block, which other measures read: what is hidden in it is restored.
            similarities_of_class = values[block]
            block_rows = np.arange(len(class_rows))
            of_own = similarities_of_class[block_rows, entries.own[class_rows]]
            hidden = similarities_of_class[:, no_candidates]
            similarities_of_class[:, no_candidates] = -np.inf
            best = similarities_of_class.argmax(axis=1)
            # A tie with the own caption is not a wrong first rank.
            is_own = similarities_of_class[block_rows, best] <= of_own
            self.wrong[class_rows] = np.where(is_own, -1, best)
            similarities_of_class[:, no_candidates] = hidden

    def hubness(self, rows: np.ndarray) -> float | None:
        """Return the fraction of the wrong first ranks of ``rows`` that the most frequent 1 % of
        the pool's distinct captions take.
        """
        wrong = self.wrong[rows]
        # -1 is an entry whose own caption is first.
        winners = wrong[wrong >= 0]
        wins = np.bincount(winners, minlength=self.n_texts)
        if not wins.any():
            return None
        n_captions = len(np.unique(self.numbered.pool.texts))
        # At least one caption, however small the pool is.
        hubs = math.ceil(HUBS * n_captions)
        wins_of_hubs = np.sort(wins)[-hubs:].sum()
        return float(wins_of_hubs / wins.sum())


def embed_once(embedder: Embedder, texts: Sequence[str]) -> Embed:
    """Return a function that maps texts to their embeddings, (n, d); those of ``texts`` are kept in
    memory.
    """
    distinct = list(dict.fromkeys(texts))
    row_by_text = {text: row for row, text in enumerate(distinct)}
    embeddings = embedder.texts(distinct)

    def embed(chosen: Sequence[str]) -> np.ndarray:
        try:
            rows = [row_by_text[text] for text in chosen]
        except KeyError:
            # Others, such as prompts with a synonym, are encoded when they are asked for.
            return embedder.texts(chosen)
        return embeddings[rows]

    return embed


# From a set to what ``number_by_embedding`` returns.
NumberByEmbedding = Callable[[Numbered], tuple[Numbered, np.ndarray]]


def number_by_embedding(numbered: Numbered, embed_texts: Embed) -> tuple[Numbered, np.ndarray]:
    """Return a set in integers and the distinct embeddings (m, d) of its texts.

    Texts with equal embeddings share a number, so that they tie whatever a product's rounding is.
    """
    # (m, d), and (k,) the row of each of the k texts.
    embeddings, index = merge_equal(embed_texts(numbered.texts))
    own = index[numbered.entries.own]
    texts = index[numbered.pool.texts]
    # ``texts`` stay those before equal embeddings were merged; only their numbers change.
    entries = replace(numbered.entries, own=own)
    pool = replace(numbered.pool, texts=texts)
    return replace(numbered, entries=entries, pool=pool), embeddings


def blind_control(
    rules: Rules,
    wrong_firsts: WrongFirstRanks,
    image_embeddings: np.ndarray,
    text_embeddings: np.ndarray,
    rows: np.ndarray,
) -> float:
    """Return R-precision with the mean embedding of the images ``rows`` in place of each of them.

    Args:
        image_embeddings, text_embeddings: (n, d) and (m, d).
        wrong_firsts: whose weights and numbered entries are used.
        rows: (n,) booleans.
    """
    entries = wrong_firsts.numbered.entries
    # A whole block of equal images, because a product's rounding depends on the number of rows.
    mean = mean_embedding(image_embeddings, rows)[None].repeat(BLOCK, axis=0)
    values = similarities(mean, text_embeddings)(np.arange(BLOCK))[0]  # (m,)
    # All images are equal, so one sort of the texts serves all entries.
    ascending = np.argsort(values)
    own = values[entries.own]
    # How many of the values are below and not above that of each entry's own caption.
    lower = np.searchsorted(values[ascending], own, "left")
    not_above = np.searchsorted(values[ascending], own, "right")
    beaten = np.zeros(len(rows))
    tied = np.zeros(len(rows))
    by_classes = np.argsort(entries.classes, kind="stable")
    for class_number, span in by_class(entries.classes[by_classes]):
        in_class = by_classes[span]
        weights, total = wrong_firsts.weights.of(class_number)
        # (m + 1,) the weight of the values below each, exact as ``Weights`` are.
        sums = np.zeros(len(values) + 1)
        np.cumsum(weights[ascending], out=sums[1:])
        beaten[in_class] = (sums[-1] - sums[not_above[in_class]]) / total
        tied[in_class] = (sums[not_above[in_class]] - sums[lower[in_class]]) / total
    expected = expected_top1(beaten, tied, rules.candidates, rules.scoring.ties)
    return expected[rows].mean()


def judge_set(
    rules: Rules,
    entry_set: EntrySet,
    number: NumberByEmbedding,
    image_embeddings: np.ndarray,
    choices: Choices,
) -> SetScores:
    """Return the scores of one set by a judge, from the embeddings (n, d) of its images."""
    numbered, text_embeddings = number(entry_set.numbered)
    wrong_firsts = WrongFirstRanks(len(text_embeddings), numbered)

    def one_pass() -> Blocks:
        # All similarities of a large set would not fit into memory, so one pass serves R-precision
        # and the hubs.
        cosines = similarities(image_embeddings, text_embeddings)
        for rows, values in blocks(cosines, numbered.entries.classes):
            wrong_firsts.add(rows, values)
            yield rows, values

    judged = rules.judge(entry_set, numbered.entries, one_pass(), wrong_firsts.weights)

    # Called when all blocks have passed, which fill ``wrong_firsts``.
    def controls(rows: np.ndarray) -> dict[str, Any]:
        if not rows.any():
            return {"blind_control": None, "hubness": None}
        return {
            "blind_control": rounded(
                blind_control(rules, wrong_firsts, image_embeddings, text_embeddings, rows)
            ),
            "hubness": rounded(wrong_firsts.hubness(rows)),
        }

    return score_table.score_set(rules, entry_set, numbered, judged, choices, controls)


def score_images(
    sets: Sequence[EntrySet],
    rules: Rules,
    embed_texts: Embed,
    embed_images: Embed,
    adjustment: Adjustment | None = None,
    number: NumberByEmbedding | None = None,
) -> dict[str, SetScores]:
    """Return the scores of a generator's images: how often the judge retrieves the caption that an
    image was made from, and how often it chooses the caption's adjective.

    The summaries add hubness and the blind control, in which each image has the mean embedding of
    all.

    Args:
        sets: sets of a split, which differ only in their pools, must be consecutive.
        embed_texts: maps n captions to their embeddings by the judge, (n, d), of unit length.
        embed_images: the same for the paths of ``sets``.
        adjustment: None: adjective accuracy is not adjusted.
        number: ``number_by_embedding`` for these embeddings, which may remember its results.

    Returns:
        The scores of each set, by name.
    """
    number = number or partial(number_by_embedding, embed_texts=embed_texts)
    scored: dict[str, SetScores] = {}
    for _, split_sets in groupby(sets, key=lambda entry_set: entry_set.split):
        # Sets of a split have the same images, so these are embedded and their adjectives chosen
        # once.
        same_images = list(split_sets)
        first = same_images[0]
        embeddings = embed_images(first.entries["path"].tolist())
        choices = adjective_choices(first.options, embed_texts, embeddings, adjustment)
        # Prompts without an image come last, and count as wrong.
        choices = with_failed(choices, first.failed, first.split, first.variants)
        for entry_set in same_images:
            scored[entry_set.name] = judge_set(rules, entry_set, number, embeddings, choices)
    return scored


def find_truncated(judge: Encoder, texts: Collection[str]) -> set[str]:
    """Return the distinct ``texts`` that the judge truncates, and warn of them."""
    from compclip.clip.tokens import report_truncated, truncated_texts  # torch is slow to import

    truncated = truncated_texts(judge.tokenizer, texts)
    report_truncated(len(truncated), len(texts))
    return truncated


def image_digests(entries: pd.DataFrame) -> dict[str, str]:
    """Return the digest of each image by its path; warn of images and rows that are repeated.

    Raises:
        UserError: a path is not a file.
    """
    for row, path in enumerate(entries["path"]):
        # A pipe or a device may have no end, and a name too long for Path.is_file.
        is_file = os.path.isfile(path)
        fault = f"row {row}: {path[:100]}: no such image file"
        require(is_file, "entries", fault, "correct the path")
    digests = {path: sha256(Path(path)) for path in entries["path"].unique()}
    images = entries.assign(image=entries["path"].map(digests))
    # By content, since copies of a file have other paths.
    is_shared = images.groupby("image")["image_id"].transform("nunique") > 1
    is_repeat = images.duplicated(["image", "image_id", "text"])
    _warn_of_rows(is_shared, "have the image of another image_id")
    _warn_of_rows(is_repeat, "repeat an image and its text")
    return digests


def _warn_of_rows(rows: pd.Series, fault: str) -> None:
    """Warn of the entries ``rows``, (n,) booleans, if there are any."""
    if rows.any():
        counts = (rows.sum(), len(rows), fault, rows.argmax())
        log.warning("warning: entries: %d of %d rows %s, the first %d", *counts)


def as_read(text: str) -> str:
    """Return a text as it is compared: normalized and in lower case, as judges read it."""
    return normalize(text).text.lower()


def warn_of_other_texts(entries: pd.DataFrame, captions: pd.DataFrame) -> None:
    """Warn of entries whose text is not that of their caption: swapped ones, or rows that are mixed
    up.
    """
    numbered = entries.reset_index(drop=True).reset_index()
    caption_texts = captions[[*CAPTION_KEY, "text"]]
    both = numbered.merge(caption_texts, on=CAPTION_KEY, suffixes=("", "_of_caption"))
    is_other = both["text"].map(as_read) != both["text_of_caption"].map(as_read)
    rows = both.loc[is_other, "index"]
    if len(rows):
        fault = "rows have another text than their caption"
        remedy = "correct it unless it is swapped"
        counts = len(rows), len(entries), fault, rows.iloc[0], remedy
        log.warning("warning: entries: %d of %d %s, the first %d; %s", *counts)


def variants_of_captions(
    variants: pd.DataFrame, entries: pd.DataFrame, captions: pd.DataFrame
) -> pd.DataFrame:
    """Return the variants of the entries' splits; UserError unless each is a new text of an entry
    or a caption.
    """
    if "split" in variants and "split" in entries:
        variants = variants[variants["split"].isin(entries["split"])]
    key_and_text = [*CAPTION_KEY, "text"]
    entry_texts = entries[key_and_text]
    require_joined(pd.concat([entry_texts, captions]), "entries and captions", variants=variants)
    of_entries = variants.merge(
        entry_texts.drop_duplicates(), on=CAPTION_KEY, suffixes=("", "_of_entry")
    )
    require(len(of_entries), "variants", "none is of an entry", AS_TEXT)
    # A variant that reads like its prompt would always tie with it.
    is_equal = of_entries["text"].map(as_read) == of_entries["text_of_entry"].map(as_read)
    equal = of_entries.loc[is_equal, key_and_text].head(1).to_dict("list")
    require(not is_equal.any(), "variants", f"{equal} equals its entry's text", "remove it")
    # A repeated variant would count twice.
    is_repeat = variants.duplicated(key_and_text)
    repeat = variants.loc[is_repeat, key_and_text].head(1).to_dict("list")
    require(not is_repeat.any(), "variants", f"duplicate {repeat}", "remove one")
    return variants


@dataclass(frozen=True)
class ImageScores:
    """The scores of images by one judge."""

    r_precision: ScoreEstimate  # exact
    adjective_accuracy: ScoreEstimate | None  # None without variants
    candidates: int  # the captions among which each is ranked, including its own
    # the sampled R-precision and the controls, as in summary.json, and the numbers of texts
    summary: dict[str, Any]
    # ``tables.SCORES``: a row for each image, in the order of image_id, caption_id and draw
    table: pd.DataFrame


@checked
def score_with_judge(
    entries: Entries,
    judge: Encoder,
    captions: Captions | None = None,
    variants: Variants | None = None,
    *,
    scoring: Scoring | None = None,
    batch: Positive = 256,
    seed: Whole = 0,
) -> ImageScores:
    """Score images by a judge: R-precision, exact and sampled, and adjective accuracy, with their
    95 % intervals.

    Source: Park et al., "Benchmark for Compositional Text-to-Image Synthesis" (NeurIPS 2021), for
    R-precision; ``docs/measurement.md`` for adjective accuracy; ``estimate_score`` for the
    intervals.

    Args:
        entries: a row for each image: path of its file, image_id and text of the caption that it
            was made from. Also caption_id (default: 0, 1 and so on within an image_id); draw, if a
            caption has several images; pair (``adjective_noun``), over which the intervals then
            extend.
        judge: as ``clip.model.load_judge`` returns it.
        captions: possible distractors: image_id and text; class_id, if images have classes, since
            captions of an image's class are not its distractors. None: the captions of ``entries``.
        variants: image_id, caption_id and text of captions with another adjective, as in
            ``make_variants``.
        scoring: None: the defaults of the config.
        batch: items encoded at once; changes floating-point rounding.

    Texts that the judge truncates or that differ from their caption's, equal images of different
    ids and repeated rows are counted in warnings.

    Raises:
        UserError: an image cannot be read, there are too few distractors, an entry's image is not
            among captions, a variant is of no entry or caption, or equals its entry's text, or an
            argument is refused (docs/library.md).
    """
    entries = entries.assign(path=entries["path"].map(str))
    digests = image_digests(entries)
    captions = entries.drop_duplicates(CAPTION_KEY) if captions is None else captions
    require_joined(captions[["image_id"]], "captions", entries=entries)
    warn_of_other_texts(entries, captions)
    # Without pairs, intervals do not extend over pairs.
    for column, value in {"draw": 0, "pair": None}.items():
        if column not in entries:
            entries[column] = value
    # Either table may lack classes; each image is then its own class.
    class_columns = [*CAPTION_KEY, "class_id"]
    classes = class_names(pd.concat([captions, entries]).reindex(columns=class_columns))
    if variants is None:
        variants = entries[[*CAPTION_KEY, "text"]].head(0)
    else:
        variants = variants_of_captions(variants, entries, captions)
    entry_set = EntrySet(
        name=SET_NAME,
        split=SET_NAME,
        distractors="original",
        entries=entries.sort_values(ENTRY, ignore_index=True),
        pool=captions,
        classes=classes,
        # The set is of no split of a run, and its variants are all of it.
        variants=variants.assign(split=SET_NAME),
    )
    scoring = with_candidates(scoring or Scoring(), entry_set)
    texts = {*entries["text"], *captions["text"], *variants["text"]}
    counts = {"texts": len(texts), "truncated_texts": len(find_truncated(judge, texts))}
    rules = Rules(scoring, seed)
    scored = embed_and_score(entry_set, rules, judge, digests, batch)
    table = scored.table

    def estimate(column: str) -> ScoreEstimate:
        return estimate_score(table[column], classes.loc[table["image_id"]], table["pair"])

    has_variants = table["adjective_first"].notna().any()
    return ImageScores(
        r_precision=estimate("expected_top1"),
        adjective_accuracy=estimate("adjective_first") if has_variants else None,
        candidates=rules.candidates,
        summary=scored.summaries[0] | counts,
        table=table,
    )


def with_candidates(scoring: Scoring, entry_set: EntrySet) -> Scoring:
    """Return the settings with the number of candidates; UserError for too few captions."""
    numbered = entry_set.numbered
    classes_of_entries = numbered.entries.classes
    # Any number of candidates, since only ``eligible_least`` is read.
    pool = pool_summary(numbered.pool, classes_of_entries, candidates=2)
    # The entry with the fewest eligible captions decides.
    least = {entry_set.name: pool["eligible_least"]}
    candidates = choose_candidates(scoring.candidates, least, "the captions")
    return scoring.model_copy(update={"candidates": candidates})


def embed_and_score(
    entry_set: EntrySet,
    rules: Rules,
    judge: Encoder,
    digests: Mapping[str, str],
    batch: int,
) -> SetScores:
    """Return the scores of one set of images that are not in a run, without a cache on disk."""
    # Imported here, because torch is slow to import. A judge that is not a CLIP has no threads.
    import torch

    from compclip.clip.device import settled

    threads = getattr(judge, "threads", torch.get_num_threads())
    with settled(threads), VectorCache(":memory:") as cache:
        embedder = Embedder(judge, cache, batch)

        def images(paths: Sequence[str]) -> np.ndarray:
            return embedder.images([(Path(path), None) for path in paths], digests)

        scored = score_images([entry_set], rules, embedder.texts, images)
    return scored[entry_set.name]
