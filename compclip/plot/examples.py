"""Examples for pages: captions with their pairs marked, and what the judges say of their images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.tables import CAPTION_KEY, PROMPT_KEY

Segment = tuple[str, str]
Span = tuple[int, int, str]


class GeneratedImages(NamedTuple):
    """A generator's images (``tables.MANIFEST``), their scores (``of_all_judges``) with their
    split, and a summary.
    """

    name: str
    manifest: pd.DataFrame
    scores: pd.DataFrame
    summary: Mapping[str, Any]


def of_all_judges(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the first judge's scores (``tables.SCORES``), with each entry's results over all
    judges.

    ``hits`` and ``right`` count the judges that rank the caption and the prompt's own adjective
    first; ``p_beaten`` and ``p_tied`` are means.
    """
    merged = tables[0].copy()
    for name in ("p_beaten", "p_tied"):
        merged[name] = np.mean([table[name] for table in tables], axis=0)
    merged["hits"] = np.sum([table["hit"] for table in tables], axis=0)
    # A tie of two adjectives is half a first rank, and not a right choice.
    is_right = [table["adjective_first"] > 0.5 for table in tables]
    merged["right"] = np.sum(is_right, axis=0)
    return merged


def mark(text: str, spans: Iterable[Span]) -> list[Segment]:
    """Return a text as segments (words, kind), given spans (start, end, kind) in characters; kind
    is "" between them.

    Spans of the same kind with only spaces between them form one segment.
    """
    segments: list[Segment] = []
    position = 0
    for start, end, kind in sorted(set(spans)):
        # Of overlapping spans, the first counts.
        if start < position:
            continue
        between = text[position:start]
        if segments and segments[-1][1] == kind and between.isspace():
            words, _ = segments.pop()
            segments.append((words + text[position:end], kind))
        else:
            segments.append((between, ""))
            segments.append((text[start:end], kind))
        position = end
    segments.append((text[position:], ""))
    return [(words, kind) for words, kind in segments if words]


def choose_rows(
    rows: pd.DataFrame, spread: str, n: int, generator: np.random.Generator
) -> pd.DataFrame:
    """Return at most ``n`` rows, spread evenly over the values of column ``spread``; an image at
    most once.
    """
    shuffled = rows.sample(frac=1, random_state=generator).drop_duplicates("image_id")
    # First the first row of each value, then the second of each, and so on.
    rank = shuffled.groupby(spread).cumcount().to_numpy()
    order = np.argsort(rank, kind="stable")
    return shuffled.iloc[order[:n]]


def swapped_segments(row: Any, pairs: pd.DataFrame) -> dict[str, list[Segment]]:
    """Return the segments of a seen caption and its swapped one, with each changed adjective and
    its nouns marked.

    ``row`` is of ``tables.SWAPPED``, ``pairs`` are those of all captions.
    """
    in_caption = (pairs["image_id"] == row.image_id) & (pairs["caption_id"] == row.caption_id)
    pairs = pairs[in_caption]
    seen = []
    swapped = []
    for change in row.changes:
        seen.append((change["start"], change["end"], "seen"))
        swapped.append((change["new_start"], change["new_end"], "swapped"))
        of_adjective = pairs["adjective_start"] == change["start"]
        nouns = pairs[of_adjective & (pairs["noun"] == change["noun"])]
        for start, end in nouns[["noun_start", "noun_end"]].itertuples(index=False):
            # ``pairs`` have the offsets in the seen caption.
            shift = _shift(row.changes, start)
            seen.append((start, end, "seen"))
            swapped.append((start + shift, end + shift, "swapped"))
    return {"test_seen": mark(row.text, seen), "test_swapped": mark(row.swapped_text, swapped)}


def _shift(changes: Sequence[Mapping[str, Any]], start: int) -> int:
    """Return by how many characters the changes of a caption move a noun that begins at ``start``.

    Only adjectives and articles before them change, so a noun moves as far as the end of the last
    change before it.
    """
    shift = 0
    for change in changes:
        if change["end"] <= start:
            shift = change["new_end"] - change["end"]
    return shift


def marked_prompts(
    prompts: pd.DataFrame, swapped: pd.DataFrame, pairs: pd.DataFrame
) -> list[list[Segment]]:
    """Return each prompt in segments: its pair is marked with its split's name, in a swapped prompt
    each new adjective.
    """
    spans = _pair_spans(prompts, pairs)
    for row in swapped.itertuples():
        # The offsets are those of the swapped text.
        spans["test_swapped", row.image_id, row.caption_id] = [
            (change["new_start"], change["new_end"], "swapped") for change in row.changes
        ]
    keys = prompts[PROMPT_KEY].itertuples(index=False, name=None)
    return [mark(text, spans.get(key, [])) for key, text in zip(keys, prompts["text"], strict=True)]


def _pair_spans(prompts: pd.DataFrame, pairs: pd.DataFrame) -> dict[tuple[Any, ...], list[Span]]:
    """Return the spans of each prompt's pair by split, image and caption; a swapped prompt's pair
    is not in its original caption.
    """
    asked = prompts.loc[prompts["split"] != "test_swapped", [*PROMPT_KEY, "pair"]]
    named = pairs.assign(pair=pairs["adjective"] + "_" + pairs["noun"])
    # A prompt may be drawn several times.
    prompted = named.merge(asked.drop_duplicates(), on=[*CAPTION_KEY, "pair"])
    spans: dict[tuple[Any, ...], list[Span]] = {}
    for row in prompted.itertuples():
        kind = row.split.removeprefix("test_")
        of_prompt = spans.setdefault((row.split, row.image_id, row.caption_id), [])
        of_prompt.append((row.adjective_start, row.adjective_end, kind))
        of_prompt.append((row.noun_start, row.noun_end, kind))
    return spans
