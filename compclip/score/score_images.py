"""Score a generator's images by a trained judge, and find hubs: captions that are close to many
images.
"""

import math
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from compclip.clip.embed import Embedder, Encoder, mean_embedding, merge_equal, similarities
from compclip.core.cache import Cache
from compclip.core.digests import sha256
from compclip.core.errors import require
from compclip.core.inputs import (
    AS_TEXT,
    Captions,
    Entries,
    Positive,
    Variants,
    Whole,
    checked,
    require_joined,
)
from compclip.core.log import log
from compclip.core.normal import normalize
from compclip.core.rounding import rounded
from compclip.core.tables import CAPTION_KEY
from compclip.score import scores
from compclip.score.choices import Adjustment, Choices, Embed, adjective_choices, with_failed
from compclip.score.config import Scoring
from compclip.score.entries import ENTRY, EntrySet, Numbered, number_set, pool_summary
from compclip.score.scores import Rules, SetScores
from compclip.split.pools import bounded, class_names
from compclip.stats.estimates import ScoreEstimate, estimate_score
from compclip.stats.r_precision import (
    BLOCK,
    Blocks,
    Judged,
    Weights,
    blocks,
    by_class,
    expected_top1,
    weigh,
)

HUBS = 0.01  # fraction of captions that count as hubs


class Nearest:
    """The captions that wrongly rank first, collected by block.

    An image's candidates are its own caption and all captions of other classes in the pool. texts:
    the number of texts.
    """

    def __init__(self, texts: int, numbered: Numbered) -> None:
        self.texts, self.numbered, self.weights = texts, numbered, Weights(numbered.pool, texts)
        self.wrong = np.full(
            len(numbered.entries.own), -1
        )  # the caption ranked first, -1 if it is the own one

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        entries = self.numbered.entries
        for of, part in by_class(entries.classes[rows]):
            no_candidates = np.flatnonzero(self.weights.of(of)[0] == 0)
            of_class, each = values[part], np.arange(part.stop - part.start)
            own, kept = of_class[each, entries.own[rows[part]]], of_class[:, no_candidates]
            of_class[:, no_candidates] = -np.inf
            best = of_class.argmax(axis=1)
            self.wrong[rows[part]] = np.where(of_class[each, best] <= own, -1, best)
            of_class[:, no_candidates] = kept

    def hubness(self, rows: np.ndarray) -> float | None:
        """Return the fraction of the wrong first ranks of ``rows`` that the most frequent 1 % of
        the captions take.
        """
        wins = np.bincount(self.wrong[rows][self.wrong[rows] >= 0], minlength=self.texts)
        hubs = math.ceil(HUBS * len(np.unique(self.numbered.pool.texts)))
        return float(np.sort(wins)[-hubs:].sum() / wins.sum()) if wins.any() else None


def embed_once(embedder: Embedder, texts: Sequence[str]) -> Embed:
    """Return a function that maps texts to their embeddings, (n, d); those of ``texts`` are kept in
    memory.
    """
    place = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = embedder.texts(list(place))

    def embed(chosen: Sequence[str]) -> np.ndarray:
        rows = [place.get(text, -1) for text in chosen]
        return embedder.texts(chosen) if -1 in rows else vectors[rows]

    return embed


def score_by_judge(
    rules: Rules, entry_set: EntrySet, embed: Embed, images: np.ndarray, choices: Choices
) -> SetScores:
    """Return the scores of one set, from the embeddings (n, d) of its images."""
    numbered = number_set(entry_set, rules.classes)
    # Texts with equal embeddings share a number.
    texts, index = merge_equal(embed(numbered.texts))
    entries = replace(numbered.entries, own=index[numbered.entries.own])
    numbered = replace(
        numbered, entries=entries, pool=replace(numbered.pool, texts=index[numbered.pool.texts])
    )
    nearest = Nearest(len(texts), numbered)

    def one_pass() -> Blocks:
        for rows, values in blocks(similarities(images, texts), numbered.entries.classes):
            nearest.add(rows, values)
            yield rows, values

    def controls(rows: np.ndarray, _: Judged) -> dict[str, Any]:
        if not rows.any():
            return {"blind_control": None, "hubness": None}
        mean = mean_embedding(images, rows)[None].repeat(BLOCK, axis=0)
        equal = np.tile(similarities(mean, texts)(np.arange(BLOCK))[0], (BLOCK, 1))
        beaten, tied = np.zeros(len(rows)), np.zeros(len(rows))
        for block, values in blocks(lambda _: equal, numbered.entries.classes):
            beaten[block], tied[block] = weigh(values, numbered.entries, block, nearest.weights)[1:]
        blind = expected_top1(beaten, tied, rules.candidates, rules.scoring.ties)
        return {
            "blind_control": rounded(blind[rows].mean()),
            "hubness": rounded(nearest.hubness(rows)),
        }

    return scores.score_set(rules, entry_set, numbered, one_pass(), len(texts), choices, controls)


def score_images(
    sets: Sequence[EntrySet],
    rules: Rules,
    variants: pd.DataFrame,
    texts: Embed,
    images: Embed,
    adjustment: Adjustment | None = None,
) -> dict[str, SetScores]:
    """Return the scores of a generator's images: how often the judge retrieves the caption that an
    image was made from.

    The summaries add hubness and the blind control, in which each image has the mean embedding of
    all.

    Args:
        sets: sets of a split, which differ only in their pools, must be consecutive.
        variants: columns of ``tables.VARIANTS``.
        texts: maps n captions to their embeddings by the judge, (n, d), of unit length.
        images: the same for the paths of ``sets``.
        adjustment: None: adjective accuracy is not adjusted.

    Returns:
        The scores of each set, by name.
    """
    scored: dict[str, SetScores] = {}
    for split, of_split in groupby(sets, key=lambda part: part.split):
        first, *others = of_split
        shown = images(first.entries["path"].tolist())
        choices = adjective_choices(first.entries, split, variants, texts, shown, adjustment)
        choices = with_failed(choices, first.failed, split, variants)
        scored |= {
            part.name: score_by_judge(rules, part, texts, shown, choices)
            for part in (first, *others)
        }
    return scored


def find_truncated(judge: Encoder, texts: Collection[str]) -> set[str]:
    """Return the distinct ``texts`` that the judge truncates, and warn of them."""
    from compclip.clip.tokens import cut_texts, say_cut  # torch is slow to import

    truncated = cut_texts(judge.tokenizer, texts)
    say_cut(len(truncated), len(texts))
    return truncated


def image_digests(entries: pd.DataFrame) -> dict[str, str]:
    """Return the digest of each image by its path; warn of images and rows that are repeated.

    Raises:
        UserError: a path is not a file.
    """
    for row, path in enumerate(entries["path"]):
        # A pipe or a device may have no end, and a name too long for Path.is_file.
        require(
            os.path.isfile(path),
            "entries",
            f"row {row}: {path[:100]}: no such image file",
            "correct the path",
        )
    digests = {path: sha256(Path(path)) for path in entries["path"].unique()}
    images = entries.assign(image=entries["path"].map(digests))
    is_shared = images.groupby("image")["image_id"].transform("nunique") > 1
    is_repeat = images.duplicated(["image", "image_id", "text"])
    for rows, fault in (
        (is_shared, "have the image of another image_id"),
        (is_repeat, "repeat an image and its text"),
    ):
        if rows.any():
            log.warning(
                "warning: entries: %d of %d rows %s, the first %d",
                rows.sum(),
                len(rows),
                fault,
                rows.argmax(),
            )
    return digests


def as_read(text: str) -> str:
    """Return a text as it is compared: normalized and in lower case, as judges read it."""
    return normalize(text).text.lower()


def warn_of_other_texts(entries: pd.DataFrame, captions: pd.DataFrame) -> None:
    """Warn of entries whose text is not that of their caption: swapped ones, or rows that are mixed
    up.
    """
    given = captions[[*CAPTION_KEY, "text"]]
    both = (
        entries.reset_index(drop=True)
        .reset_index()
        .merge(given, on=CAPTION_KEY, suffixes=("", "_given"))
    )
    rows = both.loc[both["text"].map(as_read) != both["text_given"].map(as_read), "index"]
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
    asked = entries[[*CAPTION_KEY, "text"]]
    require_joined(pd.concat([asked, captions]), "entries and captions", variants=variants)
    of_entries = variants.merge(asked.drop_duplicates(), on=CAPTION_KEY, suffixes=("", "_of_entry"))
    require(len(of_entries), "variants", "none is of an entry", AS_TEXT)
    read, own = (of_entries[name].map(as_read) for name in ("text", "text_of_entry"))
    equal = of_entries.loc[read == own, [*CAPTION_KEY, "text"]].head(1).to_dict("list")
    require(not (read == own).any(), "variants", f"{equal} equals its entry's text", "remove it")
    repeats = variants.loc[
        variants.duplicated([*CAPTION_KEY, "text"]), [*CAPTION_KEY, "text"]
    ].head(1)
    require(repeats.empty, "variants", f"duplicate {repeats.to_dict('list')}", "remove one")
    return variants


@dataclass(frozen=True)
class ImageScores:
    """The scores of images by one judge."""

    r_precision: ScoreEstimate  # exact
    adjective_accuracy: ScoreEstimate | None  # None without variants
    candidates: int  # one row per image
    summary: dict[str, Any]  # the sampled R-precision and the controls, as in summary.json
    table: (
        pd.DataFrame
    )  # ``tables.SCORES``: a row for each image, in the order of image_id, caption_id and draw


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
        variants: image_id, caption_id and text of copies of captions with another adjective, as in
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
    name, scoring = "images", scoring or Scoring()
    entries = entries.assign(path=entries["path"].map(str))
    digests = image_digests(entries)
    captions = entries.drop_duplicates(CAPTION_KEY) if captions is None else captions
    require_joined(captions[["image_id"]], "captions", entries=entries)
    warn_of_other_texts(entries, captions)
    defaults = {"draw": 0, "pair": None}
    entries = entries.assign(
        **{key: value for key, value in defaults.items() if key not in entries}
    )
    classes = class_names(
        pd.concat([captions, entries]).reindex(columns=[*CAPTION_KEY, "class_id"])
    )
    entry_set = EntrySet(
        name, name, "original", entries.sort_values(ENTRY, ignore_index=True), captions
    )
    numbered = number_set(entry_set, classes)
    least = {name: pool_summary(numbered.pool, numbered.entries.classes, 2)["eligible_least"]}
    scoring = scoring.model_copy(
        update={"candidates": bounded(scoring.candidates, least, "the captions")}
    )
    others = entries[[*CAPTION_KEY, "text"]].head(0)
    if variants is not None:
        others = variants_of_captions(variants, entries, captions)
    texts = {*entries["text"], *captions["text"], *others["text"]}
    counts = {"texts": len(texts), "truncated_texts": len(find_truncated(judge, texts))}
    # Imported here, because torch is slow to import. A judge that is not a CLIP has no threads.
    import torch

    from compclip.clip.device import settled

    threads = getattr(judge, "threads", torch.get_num_threads())
    with settled(threads), Cache(":memory:") as cache:
        embedder = Embedder(judge, cache, batch, name)

        def images(paths: Sequence[str]) -> np.ndarray:
            return embedder.images([(Path(path), None) for path in paths], digests)

        rules = Rules(scoring, classes, seed)
        scored = score_images(
            [entry_set], rules, others.assign(split=name), embedder.texts, images
        )[name]
    table = scored.table

    def estimate(column: str) -> ScoreEstimate:
        return estimate_score(table[column], classes.loc[table["image_id"]], table["pair"])

    accuracy = None if table["adjective_first"].isna().all() else estimate("adjective_first")
    return ImageScores(
        estimate("expected_top1"),
        accuracy,
        scoring.candidates or 0,
        scored.summaries[0] | counts,
        table,
    )
