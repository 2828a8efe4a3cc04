"""Examples for the page and for print: captions with their pairs marked, and the pictures made from them."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workflow_scripts.core.io import read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, SCORES, SWAPPED, TESTS
from workflow_scripts.plot.labels import pair_words, percent

# Swapped examples on a printed page.
PER_PAGE = 6
# Swapped examples for each unseen example.
SWAPPED_TO_UNSEEN = 2

Segment = tuple[str, str]
Span = tuple[int, int, str]
# split, image_id, caption_id
Prompt = tuple[str, str, int]


@dataclass(frozen=True)
class Picture:
    """A picture.

    Attributes:
        path: below the results folder; None if there is no picture.
        verdict: the exact score; without a picture, the reason.
        hit: whether the judge retrieved the caption; None if not scored.
        right: whether the judge chose the prompt's adjective for the pair; None if it could not.
    """

    title: str
    path: str | None
    verdict: str = ""
    hit: bool | None = None
    right: bool | None = None


@dataclass(frozen=True)
class Caption:
    """A caption in segments, and the pictures that generators made from it."""

    label: str
    segments: list[Segment]
    pictures: list[Picture]


@dataclass(frozen=True)
class Example:
    """A real image with its captions; ``pair`` in words."""

    image_id: str
    pair: str
    real: Picture
    captions: list[Caption]


def spread(keys: Sequence[tuple[str, ...]], n: int, generator: np.random.Generator) -> list[int]:
    """Return positions of at most ``n`` keys, spread evenly over their values.

    One key with each first element is taken before a second key with any, in random order; ties are decided by the
    next elements in the same way.
    """
    left = [int(i) for i in generator.permutation(len(keys))]
    taken: list[Counter[str]] = [Counter() for _ in (keys[0] if keys else ())]
    chosen: list[int] = []
    while left and len(chosen) < n:
        best = min(left, key=lambda i: [count[part] for count, part in zip(taken, keys[i], strict=True)])
        for count, part in zip(taken, keys[best], strict=True):
            count[part] += 1
        left.remove(best)
        chosen.append(best)
    return chosen


def mark(text: str, spans: Iterable[Span]) -> list[Segment]:
    """Return a text as (words, kind) segments; kind is empty between spans, which are (start, end, kind) in characters.

    Spans of one kind with only spaces between them are one segment.
    """
    segments: list[Segment] = []
    at = 0
    for start, end, kind in sorted(set(spans)):
        if start < at:
            continue
        if segments and segments[-1][1] == kind and text[at:start].isspace():
            segments[-1] = (segments[-1][0] + text[at:end], kind)
        else:
            segments += [(text[at:start], ""), (text[start:end], kind)]
        at = end
    return [segment for segment in [*segments, (text[at:], "")] if segment[0]]


@dataclass(frozen=True)
class Made:
    """What one generator made, by prompt: (status, path), and (hit, exact score, right) if it was scored."""

    name: str
    files: Mapping[Prompt, tuple[str, str | None]]
    scores: Mapping[Prompt, tuple[bool, float, bool | None]]


def read_made(layout: Layout, generator: str, judge: str, images: Collection[str]) -> Made:
    """Return what a generator made of the captions of ``images``: the first draw of each prompt."""
    manifest = read_table(layout.generated(generator) / "manifest.parquet", MANIFEST)
    manifest = manifest[manifest["image_id"].isin(images)]
    first = manifest.sort_values("draw").drop_duplicates(["split", "image_id", "caption_id"])
    files = {(r.split, r.image_id, r.caption_id): (r.status, r.path) for r in first.itertuples()}
    draws = {(r.split, r.image_id, r.caption_id, r.draw) for r in first.itertuples()}
    tables = {split: layout.scores(generator, judge) / f"{split}.parquet" for split in TESTS}
    scored = {
        (split, r.image_id, r.caption_id): (
            bool(r.hit), float(r.expected_top1), None if math.isnan(r.adjective_first) else r.adjective_first > 0.5
        )
        for split, file in tables.items() if file.is_file()
        for r in read_table(file, SCORES).itertuples()
        if (split, r.image_id, r.caption_id, r.draw) in draws
    }  # fmt: skip
    return Made(generator, files, scored)


@dataclass(frozen=True)
class Gallery:
    """Generated pictures, and real ones by image_id."""

    real: Mapping[str, str]
    made: Sequence[Made]

    def pictures(self, prompt: Prompt) -> list[Picture]:
        pictures = []
        for made in self.made:
            if prompt not in made.files:
                continue
            status, path = made.files[prompt]
            hit, exact, right = made.scores.get(prompt, (None, None, None))
            scored = "not scored" if hit is None else f"{percent(exact, 0)} %"
            verdict = scored if status == "ok" else status
            pictures.append(Picture(made.name, path if status == "ok" else None, verdict, hit, right))
        return pictures

    def example(self, image_id: str, caption_id: int, pair: str, captions: Mapping[str, list[Segment]]) -> Example:
        """Return an example. captions: the segments of each caption by the split whose prompt it is."""
        path = self.real.get(image_id)
        return Example(
            image_id,
            pair_words(pair),
            Picture("real image", path, "" if path else "no file"),
            [
                Caption(name.removeprefix("test_"), segments, self.pictures((name, image_id, caption_id)))
                for name, segments in captions.items()
            ],
        )


def choose(rows: pd.DataFrame, classes: Mapping[str, str], n: int, generator: np.random.Generator) -> list[Any]:
    """Return at most ``n`` rows as named tuples, spread over pairs and then over classes; an image at most once.

    ``rows`` have columns image_id, caption_id, pair and more; ``classes`` are by image_id.
    """
    rows = rows.sample(frac=1, random_state=generator).drop_duplicates("image_id").reset_index(drop=True)
    keys = list(zip(rows["pair"], rows["image_id"].map(classes), strict=True))
    return list(rows.loc[spread(keys, n, generator)].itertuples())


def swapped_spans(row: Any, nouns: Mapping[int, list[tuple[int, int]]]) -> tuple[list[Span], list[Span]]:
    """Return what to mark in a seen caption and in its swapped one: each changed adjective and its nouns.

    ``row`` is of ``tables.SWAPPED``; ``nouns`` are spans in the seen caption, by the start of their adjective.
    """
    seen: list[Span] = []
    swapped: list[Span] = []
    for change in row.changes:
        seen.append((change["start"], change["end"], "seen"))
        swapped.append((change["new_start"], change["new_end"], "swapped"))
        for start, end in nouns.get(change["start"], []):
            # Only adjectives and articles before them change, so a noun moves by as much as the end of the change
            # before it.
            before = [c["new_end"] - c["end"] for c in row.changes if c["end"] <= start]
            shift = before[-1] if before else 0
            seen.append((start, end, "seen"))
            swapped.append((start + shift, end + shift, "swapped"))
    return seen, swapped


def swapped_segments(row: Any, pairs: pd.DataFrame) -> dict[str, list[Segment]]:
    """Return the segments of a seen caption and its swapped one, a row of ``tables.SWAPPED``, changed pairs marked."""
    nouns: dict[int, list[tuple[int, int]]] = {}
    for pair in _of_caption(pairs, row).itertuples():
        if any((pair.adjective_start, pair.noun) == (c["start"], c["noun"]) for c in row.changes):
            nouns.setdefault(pair.adjective_start, []).append((pair.noun_start, pair.noun_end))
    seen, swapped = swapped_spans(row, nouns)
    return {"test_seen": mark(row.text, seen), "test_swapped": mark(row.swapped_text, swapped)}


def unseen_examples(chosen: Sequence[Any], pairs: pd.DataFrame, gallery: Gallery) -> list[Example]:
    """Return captions of test_unseen. chosen: rows of ``tables.PROMPTS``; pairs: columns of ``tables.PAIRS``."""
    examples = []
    for row in chosen:
        own = _of_caption(pairs, row)
        held = own[own["adjective"] + "_" + own["noun"] == row.pair]
        spans = [(p.adjective_start, p.adjective_end, "unseen") for p in held.itertuples()]
        spans += [(p.noun_start, p.noun_end, "unseen") for p in held.itertuples()]
        captions = {"test_unseen": mark(row.text, spans)}
        examples.append(gallery.example(row.image_id, int(row.caption_id), row.pair, captions))
    return examples


def _of_caption(pairs: pd.DataFrame, row: Any) -> pd.DataFrame:
    return pairs[(pairs["image_id"] == row.image_id) & (pairs["caption_id"] == row.caption_id)]


def read_examples(
    layout: Layout, generators: Sequence[str], judge: str, n: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Return at most ``n`` swapped examples, and unseen ones; the same for the page and for print."""
    data, place = layout.data, layout.place
    captions = read_table(data / "captions.parquet", CAPTIONS)
    classes = dict(zip(captions["image_id"], captions["class_id"].fillna(captions["image_id"]), strict=True))
    prompts = read_table(place / "prompts.parquet", PROMPTS).drop_duplicates(["split", "image_id", "caption_id"])
    drawn = {split: prompts[prompts["split"] == split] for split in TESTS}
    swapped = read_table(place / "swapped.parquet", SWAPPED)
    swapped = swapped.merge(drawn["test_swapped"][["image_id", "caption_id"]], on=["image_id", "caption_id"])
    unseen = drawn["test_unseen"].dropna(subset="pair")
    draw = rng(seed, "examples", layout.dataset, layout.composition)
    chosen = choose(swapped, classes, n, draw), choose(unseen, classes, n // SWAPPED_TO_UNSEEN, draw)
    shown = {row.image_id for rows in chosen for row in rows}
    pairs = read_table(layout.read / "pairs.parquet", PAIRS)
    pairs = pairs[pairs["image_id"].isin(shown)]
    images = read_table(data / "images.parquet", IMAGES).dropna(subset="path")
    real = dict(zip(images["image_id"], images["path"], strict=True))
    made = [read_made(layout, name, judge, shown) for name in generators]
    # Generators of all splits come first, so that each generator's pictures are in one column.
    made.sort(key=lambda one: -len({split for split, _, _ in one.files}))
    gallery = Gallery(real, made)
    with_originals = [
        gallery.example(row.image_id, int(row.caption_id), row.pair, swapped_segments(row, pairs)) for row in chosen[0]
    ]
    return with_originals, unseen_examples(chosen[1], pairs, gallery)
