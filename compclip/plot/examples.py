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
Made = Mapping[tuple[str, str, int], "ShownPicture"]


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
    right: bool | None = (
        None  # whether the judge chose the prompt's adjective for the pair; None if it could not
    )


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
    means = {
        name: np.mean([table[name] for table in tables], axis=0)
        for name in ("expected_top1", "adjective_first")
    }
    hits = np.sum([table["hit"] for table in tables], axis=0)
    right = np.sum([table["adjective_first"] > 0.5 for table in tables], axis=0)
    return tables[0].assign(
        **means, hits=hits, right=right, judges=len(tables), hit=2 * hits > len(tables)
    )


def mark(text: str, spans: Iterable[Span]) -> list[Segment]:
    """Return a text as segments (words, kind), given spans (start, end, kind) in characters; kind
    is "" between them.

    Spans of the same kind with only spaces between them form one segment.
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


def made_of(generated: GeneratedImages, images: Collection[str]) -> Made:
    """Return a generator's pictures for captions of ``images``: the first draw of each prompt."""
    manifest = generated.manifest[generated.manifest["image_id"].isin(images)]
    manifest = manifest.sort_values("draw").drop_duplicates(PROMPT_KEY)
    made = {}
    for row in manifest.merge(generated.scores, on=[*PROMPT_KEY, "draw"], how="left").itertuples():
        known = not pd.isna(row.hit)
        made[row.split, row.image_id, row.caption_id] = ShownPicture(
            generated.name,
            row.path if row.status == "ok" else None,
            row.status if row.status != "ok" else _verdict(row) if known else "not scored",
            bool(row.hit) if known else None,
            2 * row.right > row.judges if known and not pd.isna(row.adjective_first) else None,
        )
    return made


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
    rows = rows.sample(frac=1, random_state=generator).drop_duplicates("image_id")
    rank = rows.groupby("pair").cumcount()
    rank_in_class = rows.groupby([rank, rows["image_id"].map(classes)]).cumcount()
    return list(rows.iloc[np.lexsort([rank_in_class, rank])[:n]].itertuples())


def swapped_segments(row: Any, pairs: pd.DataFrame) -> dict[str, list[Segment]]:
    """Return the segments of a seen caption and its swapped one, with each changed adjective and
    its nouns marked.

    ``row`` is of ``tables.SWAPPED``, ``pairs`` are those of all captions.
    """
    pairs = pairs[(pairs["image_id"] == row.image_id) & (pairs["caption_id"] == row.caption_id)]
    seen: list[Span] = []
    swapped: list[Span] = []
    for change in row.changes:
        seen.append((change["start"], change["end"], "seen"))
        swapped.append((change["new_start"], change["new_end"], "swapped"))
        nouns = pairs[
            (pairs["adjective_start"] == change["start"]) & (pairs["noun"] == change["noun"])
        ]
        for start, end in nouns[["noun_start", "noun_end"]].itertuples(index=False):
            # Only adjectives and articles before them change, so a noun moves as far as the end of
            # the change before it.
            shift = ([0] + [c["new_end"] - c["end"] for c in row.changes if c["end"] <= start])[-1]
            seen.append((start, end, "seen"))
            swapped.append((start + shift, end + shift, "swapped"))
    return {"test_seen": mark(row.text, seen), "test_swapped": mark(row.swapped_text, swapped)}


def pair_spans(prompts: pd.DataFrame, pairs: pd.DataFrame) -> dict[tuple[str, int], list[Span]]:
    """Return the spans of the held-out pairs in prompts of test_unseen, by image and caption."""
    named = pairs.assign(pair=pairs["adjective"] + "_" + pairs["noun"])
    spans: dict[tuple[str, int], list[Span]] = {}
    for row in named.merge(
        prompts[[*CAPTION_KEY, "pair"]].drop_duplicates(), on=[*CAPTION_KEY, "pair"]
    ).itertuples():
        words = (
            (row.adjective_start, row.adjective_end, "unseen"),
            (row.noun_start, row.noun_end, "unseen"),
        )
        spans.setdefault((row.image_id, row.caption_id), []).extend(words)
    return spans


def choose_examples(
    generated: Iterable[GeneratedImages],
    n: int,
    stream: np.random.Generator,
    *,
    captions: pd.DataFrame,
    images: pd.DataFrame,
    pairs: pd.DataFrame,
    prompts: pd.DataFrame,
    swapped: pd.DataFrame,
) -> tuple[list[ShownExample], list[ShownExample]]:
    """Return at most ``n`` swapped examples, and unseen ones, from tables of ``core.tables``."""
    classes = dict(
        zip(captions["image_id"], captions["class_id"].fillna(captions["image_id"]), strict=True)
    )
    prompts = prompts.drop_duplicates(PROMPT_KEY)
    drawn = {split: prompts[prompts["split"] == split] for split in TESTS}
    chosen = choose_rows(
        swapped.merge(drawn["test_swapped"][CAPTION_KEY], on=CAPTION_KEY), classes, n, stream
    )
    unseen = drawn["test_unseen"].dropna(subset="pair")
    others = choose_rows(unseen, classes, n // SWAPPED_TO_UNSEEN, stream)
    shown = {row.image_id for row in [*chosen, *others]}
    pairs = pairs[pairs["image_id"].isin(shown)]
    paths = images.set_index("image_id")["path"].dropna()
    # Generators that serve all splits come first, so that each generator's pictures are in one
    # column.
    made = [made_of(each, shown) for each in generated]
    made.sort(key=lambda of_generator: -len({split for split, _, _ in of_generator}))

    def example(row: Any, texts: Mapping[str, list[Segment]]) -> ShownExample:
        path = paths.get(row.image_id)
        real, written = (
            ShownPicture("real image", path, "" if path else "no file"),
            list[ShownCaption](),
        )
        for split, segments in texts.items():
            prompt = (split, row.image_id, row.caption_id)
            pictures = [of_generator[prompt] for of_generator in made if prompt in of_generator]
            written.append(ShownCaption(split.removeprefix("test_"), segments, pictures))
        return ShownExample(row.image_id, pair_words(row.pair), real, written)

    spans = pair_spans(unseen, pairs)
    return [example(row, swapped_segments(row, pairs)) for row in chosen], [
        example(row, {"test_unseen": mark(row.text, spans[row.image_id, row.caption_id])})
        for row in others
    ]
