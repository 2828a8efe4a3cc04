"""Captions to show, with the words that matter marked, and the pictures made for them."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from workflow_scripts.report.labels import pair_words, percent

# Longer side of a picture on the page, pixels: sharp at the size it is shown.
THUMBNAIL = 176

Segment = tuple[str, str]


@dataclass(frozen=True)
class Picture:
    """title: what it is. source: a data URI, or None with the reason in ``verdict``. hit: None where not scored.

    asked: False where the generator was not asked for this caption; its place is kept free, so that the pictures
    of a generator stand in one column.
    """

    title: str
    source: str | None
    verdict: str = ""
    hit: bool | None = None
    asked: bool = True


@dataclass(frozen=True)
class Caption:
    """A caption in segments, and what each generator made of it."""

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


def spread(keys: Sequence[str], n: int, generator: np.random.Generator) -> list[int]:
    """Positions of at most ``n`` of ``keys``, taken in turns: one of each key before a second of any."""
    order = generator.permutation(len(keys))
    turn: dict[str, int] = {}
    turns = []
    for place, i in enumerate(order):
        turns.append((turn.get(keys[i], 0), place, int(i)))
        turn[keys[i]] = turn.get(keys[i], 0) + 1
    return [i for _, _, i in sorted(turns)[:n]]


def mark(text: str, spans: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """``text`` in (words, kind) segments; kind is empty between ``spans``, which are (start, end, kind) characters."""
    segments, at = [], 0
    for start, end, kind in sorted(set(spans)):
        if start < at:
            continue
        segments += [(text[at:start], ""), (text[start:end], kind)]
        at = end
    return [segment for segment in [*segments, (text[at:], "")] if segment[0]]


def data_uri(raw: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def thumbnail(path: Path) -> str | None:
    """A picture as a data URI, made small enough for a page; None where it cannot be read."""
    try:
        with Image.open(path) as image:
            small = image.convert("RGB")
    # Pillow's decoders raise nearly anything on damaged files; the page shows the gap.
    except Exception:
        return None
    buffer = io.BytesIO()
    if max(small.size) <= THUMBNAIL:
        small.save(buffer, "PNG", optimize=True)
        return data_uri(buffer.getvalue(), "png")
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    small.save(buffer, "JPEG", quality=85)
    return data_uri(buffer.getvalue(), "jpeg")


@dataclass(frozen=True)
class Made:
    """What one generator made, by (split, image_id, caption_id): (status, path), and (hit, exact) where scored."""

    name: str
    files: Mapping[tuple[str, str, int], tuple[str, str | None]]
    scores: Mapping[tuple[str, str, int], tuple[bool, float]]


def read_made(name: str, manifest: pd.DataFrame, scores: Mapping[str, pd.DataFrame]) -> Made:
    """The first draw of each prompt. manifest, scores[split]: columns of ``tables.MANIFEST``, ``tables.SCORES``."""
    first = manifest.sort_values("draw").drop_duplicates(["split", "image_id", "caption_id"])
    files = {(r.split, r.image_id, r.caption_id): (r.status, r.path) for r in first.itertuples()}
    draws = {(r.split, r.image_id, r.caption_id, r.draw) for r in first.itertuples()}
    scored = {
        (split, r.image_id, r.caption_id): (bool(r.hit), float(r.expected_top1))
        for split, table in scores.items()
        for r in table.itertuples()
        if (split, r.image_id, r.caption_id, r.draw) in draws
    }
    return Made(name, files, scored)


def pictures(made: Sequence[Made], key: tuple[str, str, int], results: Path) -> list[Picture]:
    """What each generator made of the prompt ``key``; nothing where none was asked."""
    if not any(key in one.files for one in made):
        return []
    found = []
    for one in made:
        if key not in one.files:
            found.append(Picture(one.name, None, asked=False))
            continue
        status, path = one.files[key]
        source = thumbnail(results / path) if path and status == "ok" else None
        hit, exact = one.scores.get(key, (None, None))
        if source is None:
            verdict = status if status != "ok" else "unreadable"
        elif hit is None:
            verdict = "not scored"
        else:
            verdict = f"{'hit' if hit else 'miss'}, {percent(exact, 0)} %"
        found.append(Picture(one.name, source, verdict, hit))
    return found


def _real(image_id: str, paths: Mapping[str, str], results: Path) -> Picture:
    path = paths.get(image_id)
    source = thumbnail(results / path) if path else None
    return Picture("real image", source, "" if source else "no file")


def swapped_examples(
    swapped: pd.DataFrame,
    prompts: pd.DataFrame,
    n: int,
    made: Sequence[Made],
    paths: Mapping[str, str],
    results: Path,
    generator: np.random.Generator,
) -> list[Example]:
    """Swapped captions that are prompts, spread over pairs, each beside its original; an image once at most.

    swapped, prompts: columns of ``tables.SWAPPED``, ``tables.PROMPTS``. paths: image_id to a file in ``results``.
    """
    keys = prompts.loc[prompts["split"] == "test_swapped", ["image_id", "caption_id"]].drop_duplicates()
    rows = swapped.merge(keys, on=["image_id", "caption_id"]).sample(frac=1, random_state=generator)
    rows = rows.drop_duplicates("image_id").reset_index(drop=True)
    examples = []
    for i in spread(rows["pair"].tolist(), n, generator):
        row = rows.loc[i]
        key = (row["image_id"], int(row["caption_id"]))
        seen = mark(row["text"], [(c["start"], c["end"], "seen") for c in row["changes"]])
        new = mark(row["swapped_text"], [(c["new_start"], c["new_end"], "swapped") for c in row["changes"]])
        examples.append(
            Example(
                key[0],
                pair_words(row["pair"]),
                _real(key[0], paths, results),
                [
                    Caption("seen", seen, pictures(made, ("test_seen", *key), results)),
                    Caption("swapped", new, pictures(made, ("test_swapped", *key), results)),
                ],
            )
        )
    return examples


def unseen_examples(
    pairs: pd.DataFrame,
    prompts: pd.DataFrame,
    n: int,
    made: Sequence[Made],
    paths: Mapping[str, str],
    results: Path,
    generator: np.random.Generator,
) -> list[Example]:
    """Captions of test_unseen with their held-out pair marked, spread over pairs; an image once at most."""
    rows = prompts[(prompts["split"] == "test_unseen") & prompts["pair"].notna()].drop_duplicates(
        ["image_id", "caption_id"]
    )
    rows = rows.sample(frac=1, random_state=generator).drop_duplicates("image_id").reset_index(drop=True)
    chosen = rows.loc[spread(rows["pair"].tolist(), n, generator)]
    near = pairs[pairs["image_id"].isin(chosen["image_id"])]
    examples = []
    for row in chosen.itertuples():
        own = near[(near["image_id"] == row.image_id) & (near["caption_id"] == row.caption_id)]
        held = own[own["adjective"] + "_" + own["noun"] == row.pair]
        spans = [(p.adjective_start, p.adjective_end, "unseen") for p in held.itertuples()]
        spans += [(p.noun_start, p.noun_end, "unseen") for p in held.itertuples()]
        caption = Caption(
            "unseen",
            mark(row.text, spans),
            pictures(made, ("test_unseen", row.image_id, int(row.caption_id)), results),
        )
        examples.append(Example(row.image_id, pair_words(row.pair), _real(row.image_id, paths, results), [caption]))
    return examples
