"""Examples for the page: captions with their pairs marked, and the pictures made from them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.tables import CAPTION_KEY, PROMPT_KEY, TESTS
from compclip.plot.labels import pair_words, percent

# Swapped examples for each unseen example.
SWAPPED_TO_UNSEEN = 2

Segment = tuple[str, str]
Span = tuple[int, int, str]
# A generator's pictures by prompt.
GeneratedBy = Mapping[tuple[str, str, int], "ShownPicture"]


class GeneratedImages(NamedTuple):
    """A generator's images (``tables.MANIFEST``), their scores (``of_all_judges``) with their
    split, and a summary.
    """

    name: str
    manifest: pd.DataFrame
    scores: pd.DataFrame
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class ShownPicture:
    """A real or a generated image to show."""

    title: str
    path: str | None  # below the results folder; None if there is no picture
    verdict: str = ""  # the exact score; without a picture, the reason
    hit: bool | None = None  # whether the judge retrieved the caption; None if not scored
    # Whether the judge chose the prompt's adjective for the pair; None if it could not.
    right: bool | None = None


@dataclass(frozen=True)
class ShownCaption:
    """A caption in segments, and the pictures that generators made from it."""

    label: str
    segments: list[Segment]
    pictures: list[ShownPicture]


@dataclass(frozen=True)
class ShownExample:
    """A real image with its captions; ``pair`` in words."""

    image_id: str
    pair: str
    real: ShownPicture
    captions: list[ShownCaption]


def of_all_judges(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the first judge's scores (``tables.SCORES``), with each entry's results over all
    judges.

    ``hits`` and ``right`` count the judges that rank the caption and the prompt's own adjective
    first; ``hit`` is their majority, ``expected_top1`` and ``adjective_first`` are means.
    """
    judges = len(tables)
    merged = tables[0].copy()
    for name in ("expected_top1", "adjective_first"):
        merged[name] = np.mean([table[name] for table in tables], axis=0)
    hits = np.sum([table["hit"] for table in tables], axis=0)
    merged["hits"] = hits
    # A tie of two adjectives is half a first rank, and not a right choice.
    is_right = [table["adjective_first"] > 0.5 for table in tables]
    merged["right"] = np.sum(is_right, axis=0)
    merged["judges"] = judges
    merged["hit"] = 2 * hits > judges
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


def generated_by(generated: GeneratedImages, images: Collection[str]) -> GeneratedBy:
    """Return a generator's pictures for captions of ``images``: the first draw of each prompt."""
    manifest = generated.manifest
    is_chosen = manifest["image_id"].isin(images)
    draws = manifest[is_chosen].sort_values("draw")
    first_draws = draws.drop_duplicates(PROMPT_KEY)
    rows = first_draws.merge(generated.scores, on=[*PROMPT_KEY, "draw"], how="left")
    return {
        (row.split, row.image_id, row.caption_id): _picture(row, generated.name)
        for row in rows.itertuples()
    }


def _picture(row: Any, name: str) -> ShownPicture:
    """Return a generated image with its verdict, or why there is none."""
    path = row.path if row.status == "ok" else None
    # Images of a failed generation, and those that no judge has scored, have no row of scores.
    if pd.isna(row.hit):
        return ShownPicture(name, path, row.status if path is None else "not scored")
    verdict = row.status if path is None else _verdict(row)
    right = None if pd.isna(row.adjective_first) else 2 * row.right > row.judges
    return ShownPicture(name, path, verdict, bool(row.hit), right)


def _verdict(row: Any) -> str:
    """Return how many judges retrieve an image's caption and the mean of its exact scores, as
    text.
    """
    several = f"{row.hits:.0f} of {row.judges:.0f} judges, " if row.judges > 1 else ""
    return f"{several}{percent(row.expected_top1, 0)} %"


def choose_rows(
    rows: pd.DataFrame, classes: Mapping[str, str], n: int, generator: np.random.Generator
) -> list[Any]:
    """Return at most ``n`` rows as named tuples, spread evenly over pairs and then over classes; an
    image at most once.

    ``rows`` have columns image_id, caption_id, pair and more; ``classes`` are by image_id.
    """
    shuffled = rows.sample(frac=1, random_state=generator).drop_duplicates("image_id")
    # First the first row of each pair, among these the first of each class, and so on.
    rank = shuffled.groupby("pair").cumcount()
    row_classes = shuffled["image_id"].map(classes)
    rank_in_class = shuffled.groupby([rank, row_classes]).cumcount()
    order = np.lexsort([rank_in_class, rank])
    return list(shuffled.iloc[order[:n]].itertuples())


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


def pair_spans(prompts: pd.DataFrame, pairs: pd.DataFrame) -> dict[tuple[str, int], list[Span]]:
    """Return the spans of the held-out pairs in prompts of test_unseen, by image and caption."""
    key = [*CAPTION_KEY, "pair"]
    named = pairs.assign(pair=pairs["adjective"] + "_" + pairs["noun"])
    # A pair of a caption may have several prompts.
    prompted = named.merge(prompts[key].drop_duplicates(), on=key)
    spans: dict[tuple[str, int], list[Span]] = {}
    for row in prompted.itertuples():
        of_caption = spans.setdefault((row.image_id, row.caption_id), [])
        of_caption.append((row.adjective_start, row.adjective_end, "unseen"))
        of_caption.append((row.noun_start, row.noun_end, "unseen"))
    return spans


def choose_examples(
    generated: Iterable[GeneratedImages],
    n: int,
    stream: np.random.Generator,
    tables: Mapping[str, pd.DataFrame],
) -> tuple[list[ShownExample], list[ShownExample]]:
    """Return at most ``n`` swapped examples, and unseen ones.

    Args:
        tables: captions, images, pairs, prompts and swapped, as in ``core.tables``.
    """
    classes = _classes(tables["captions"])
    prompts = tables["prompts"].drop_duplicates(PROMPT_KEY)
    prompts_by_split = {split: prompts[prompts["split"] == split] for split in TESTS}
    prompted_swaps = tables["swapped"].merge(
        prompts_by_split["test_swapped"][CAPTION_KEY], on=CAPTION_KEY
    )
    swapped_rows = choose_rows(prompted_swaps, classes, n, stream)
    unseen = prompts_by_split["test_unseen"].dropna(subset="pair")
    unseen_rows = choose_rows(unseen, classes, n // SWAPPED_TO_UNSEEN, stream)
    shown = {row.image_id for row in [*swapped_rows, *unseen_rows]}
    pairs = tables["pairs"][tables["pairs"]["image_id"].isin(shown)]
    paths = tables["images"].set_index("image_id")["path"].dropna()
    pictures = [generated_by(generator, shown) for generator in generated]
    # Generators that serve all splits come first, so that each generator's pictures are in one
    # column.
    pictures.sort(key=_served_splits, reverse=True)
    spans = pair_spans(unseen, pairs)
    swapped_examples = [
        _example(row, swapped_segments(row, pairs), paths, pictures) for row in swapped_rows
    ]
    unseen_examples = []
    for row in unseen_rows:
        segments = mark(row.text, spans[row.image_id, row.caption_id])
        unseen_examples.append(_example(row, {"test_unseen": segments}, paths, pictures))
    return swapped_examples, unseen_examples


def _classes(captions: pd.DataFrame) -> dict[str, str]:
    """Return the class of each image; an image without one is its own class."""
    classes = captions["class_id"].fillna(captions["image_id"])
    return dict(zip(captions["image_id"], classes, strict=True))


def _served_splits(pictures: GeneratedBy) -> int:
    return len({split for split, _, _ in pictures})


def _example(
    row: Any,
    segments_by_split: Mapping[str, list[Segment]],
    paths: pd.Series,
    pictures: Sequence[GeneratedBy],
) -> ShownExample:
    """Return an image with its captions and, for each of these, the generators' pictures."""
    path = paths.get(row.image_id)
    real = ShownPicture("real image", path, "" if path else "no file")
    shown_captions = []
    for split, segments in segments_by_split.items():
        prompt = (split, row.image_id, row.caption_id)
        of_prompt = [by_prompt[prompt] for by_prompt in pictures if prompt in by_prompt]
        shown_captions.append(ShownCaption(split.removeprefix("test_"), segments, of_prompt))
    return ShownExample(row.image_id, pair_words(row.pair), real, shown_captions)
