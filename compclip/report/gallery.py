"""The gallery of a page: prompts of each held-out pair, with the images of all generators."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from compclip.core.tables import HELD_OUT_SPLITS, PROMPT_KEY
from compclip.generate.generator import PROMPT_KEYS
from compclip.plot.examples import GeneratedImages, Segment, choose_rows, marked_prompts
from compclip.plot.labels import SPLIT_NAMES, pair_words
from compclip.report.composed import ANCHOR_NAMES, Anchors

# Prompts of a pair that are drawn by seed, and the most others among which one more is chosen: a
# bound, because the images of all generators are compared in memory.
DRAWN, MOST_COMPARED = 2, 500


@dataclass(frozen=True)
class GalleryImage:
    """A generator's image of a prompt.

    Attributes:
        role: "reference" or "usual pair", "" for other generators.
        path: below the results folder; None without an image.
        note: how many judges choose the prompt's adjective, or why that is unknown.
        right: whether most judges do; None if unknown.
    """

    generator: str
    role: str
    path: str | None
    note: str
    right: bool | None


@dataclass(frozen=True)
class GalleryPrompt:
    """A prompt in segments, and its images: the reference and the usual pair first."""

    label: str  # its split, and why it is shown
    segments: Sequence[Segment]
    images: Sequence[GalleryImage]


@dataclass(frozen=True)
class GalleryPair:
    """A held-out pair in words, with its prompts; ``is_recognized``: None if unknown."""

    name: str
    is_recognized: bool | None
    prompts: Sequence[GalleryPrompt]


def choose_gallery(
    generated: Iterable[GeneratedImages],
    tables: Mapping[str, pd.DataFrame],
    *,
    anchors: Anchors,
    recognized: Collection[str],
    judges: int,
    n: int,
    stream: np.random.Generator,
) -> list[GalleryPair]:
    """Return at most ``n`` held-out pairs, those that the judges recognize first.

    Args:
        generated: the images of each generator.
        tables: pairs, prompts and swapped, as in ``core.tables``.
        anchors: reference and usual pair of each split.
        recognized: the pairs that the judges recognize; empty if unknown.
        judges: the number of judges.
        stream: draws pairs and prompts.
    """
    candidates = _draw_candidates(tables["prompts"], recognized, n, stream)
    # One generator's tables in memory at a time.
    images = pd.concat([_images(generator, candidates) for generator in generated])
    images["disagreement"] = images["right"] * (judges - images["right"])
    chosen = _choose_prompts(candidates, images)
    segments = marked_prompts(chosen, tables["swapped"], tables["pairs"])
    images_by_prompt = images.groupby(PROMPT_KEY).indices
    prompts_by_pair = dict[str, list[GalleryPrompt]]()
    for prompt, words in zip(chosen.itertuples(), segments, strict=True):
        key = (prompt.split, prompt.image_id, prompt.caption_id)
        rows = images.iloc[images_by_prompt[key]]
        shown = [_shown(row, anchors, judges) for row in rows.itertuples()]
        # A stable sort keeps the order of the config among other generators.
        shown.sort(key=lambda image: (*ANCHOR_NAMES, "").index(image.role))
        label = f"{SPLIT_NAMES[prompt.split]}, {prompt.reason}"
        prompts_by_pair.setdefault(prompt.pair, []).append(GalleryPrompt(label, words, shown))
    return [
        GalleryPair(pair_words(pair), pair in recognized if recognized else None, prompts)
        for pair, prompts in prompts_by_pair.items()
    ]


def _draw_candidates(
    prompts: pd.DataFrame, recognized: Collection[str], n: int, stream: np.random.Generator
) -> pd.DataFrame:
    """Return the prompts of at most ``n`` held-out pairs, in an order drawn by seed."""
    has_pair = prompts["split"].isin(HELD_OUT_SPLITS) & prompts["pair"].notna()
    # Of several draws of a prompt, the first is shown.
    draws = prompts[has_pair].sort_values("draw", kind="stable")
    held_out = draws.drop_duplicates(PROMPT_KEY)
    pairs = stream.permutation(sorted(held_out["pair"].unique())).tolist()
    # A stable sort keeps the order drawn among recognized pairs, and among others.
    pairs.sort(key=lambda pair: pair not in recognized)
    candidates = [held_out.head(0)]
    for pair in pairs[:n]:
        rows = held_out[held_out["pair"] == pair]
        # Spread over unseen and swapped, which not all generators serve.
        candidates.append(choose_rows(rows, "split", DRAWN + MOST_COMPARED, stream))
    return pd.concat(candidates)


def _images(generated: GeneratedImages, prompts: pd.DataFrame) -> pd.DataFrame:
    """Return a generator's rows of these prompts in its manifest, with ``right``: how many judges
    choose the prompt's adjective; NaN without an image, or if there is no other adjective.
    """
    rows = generated.manifest.merge(prompts[PROMPT_KEYS], on=PROMPT_KEYS)
    with_variants = generated.scores["adjectives"] > 1
    choices = generated.scores.loc[with_variants, [*PROMPT_KEYS, "right"]]
    rows = rows.merge(choices, on=PROMPT_KEYS, how="left")
    # A missing image counts as wrong, but no judge has chosen anything.
    right = rows["right"].where(rows["status"] == "ok")
    return rows.assign(generator=generated.name, right=right)


def _choose_prompts(candidates: pd.DataFrame, images: pd.DataFrame) -> pd.DataFrame:
    """Return the prompts of each pair to show, with the reason; ``images``: of all generators."""
    # Of J judges, k choose the adjective: k (J - k) pairs of judges disagree.
    disagreement = images.groupby(PROMPT_KEY, as_index=False)["disagreement"].mean()
    # Without prompts that no generator serves.
    candidates = candidates.merge(disagreement, on=PROMPT_KEY)
    chosen = [candidates.head(0).assign(reason="")]
    for _, rows in candidates.groupby("pair", sort=False):
        chosen.append(rows.head(DRAWN).assign(reason="drawn by seed"))
        # Of equal prompts the first, which is drawn by seed.
        last = rows.iloc[DRAWN:].nlargest(1, "disagreement")
        disagree = last["disagreement"] > 0
        reasons = np.where(disagree, "judges disagree most", "drawn by seed")
        chosen.append(last.assign(reason=reasons))
    return pd.concat(chosen)


def _shown(row: Any, anchors: Anchors, judges: int) -> GalleryImage:
    """Return the image of a row of ``_images``."""
    role = ""
    for anchor, name in zip(anchors[row.split], ANCHOR_NAMES, strict=True):
        if anchor == row.generator:
            role = name
    if row.status != "ok":
        return GalleryImage(row.generator, role, None, row.status, None)
    if pd.isna(row.right):
        return GalleryImage(row.generator, role, row.path, "not judged", None)
    note = f"{row.right:.0f} of {judges} judge{'s' if judges > 1 else ''}"
    return GalleryImage(row.generator, role, row.path, note, 2 * row.right > judges)
