"""The interface of a dataset source: a module of ``sources/`` that defines the fields of
``DatasetSource``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from compclip.core import seeds
from compclip.core.settings import plugins
from compclip.core.tables import Blocks

if TYPE_CHECKING:
    import pandas as pd

SOURCES = "compclip.dataset.sources"
NAMES_LISTED = 100
BOX = ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]  # in pixels


@dataclass(frozen=True)
class Loaded:
    """The result of a source's ``load``; captions that are not in memory come in blocks of whole
    images, ascending.

    ``captions`` has image_id, caption_id (from 0 for each image), class_id (null: none) and text.
    ``images`` has image_id, path relative to ``folder`` (null: no file) and, if there are boxes,
    bbox_x, bbox_y, bbox_w and bbox_h in pixels as the file stores them; where EXIF turns the image,
    the box is turned with it.
    """

    captions: Blocks
    images: pd.DataFrame
    # further ones by name (scenes, facts)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    # counts and names of what was skipped, for dataset.json
    summary: dict[str, Any] = field(default_factory=dict)


class DatasetSource(plugins.Interface):
    """What a dataset source defines.

    ``Settings.reads()`` returns the user's files, whose changes rerun the data set, and
    ``Settings.places()`` files that can be downloaded before a run.
    """

    # (settings, *, seed, limit, folder, cache): writes image files below ``folder``, at most
    # ``limit`` (None: all); ``cache`` keeps downloads between runs
    load: Callable[..., Loaded]
    TABLES: tuple[str, ...] = ()  # further ones that it makes
    PARALLEL: bool = False  # whether ``load`` also takes ``processes``
    SCRATCH: bool = False  # whether it also takes ``scratch``, a folder for temporary files
    # Whether a noun has at most one color and one shape, so that all adjectives of a composition
    # exclude each other, whatever groups its lexicon has.
    ONE_VALUE: bool = False


@cache
def load_source(name: str) -> DatasetSource:
    """Return a dataset source by its name; raises UserError if there is none, or its module is
    faulty.
    """
    return DatasetSource.of(plugins.load(SOURCES, name))


def named(names: Sequence[str]) -> dict[str, Any]:
    """Return the number of names, and the first hundred, for a summary."""
    return {"count": len(names), "names": list(names[:NAMES_LISTED])}


def named_differences(names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the summary's entries on images that were stored as people see them, by what differed
    in their files.
    """
    return {f"images_{difference}": named(images) for difference, images in sorted(names.items())}


def unbroken(texts: pd.Series) -> pd.Series:
    """Return captions on one line each, because several exports have one caption per line."""
    one_line = texts.str.replace(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", regex=True)
    return one_line.str.strip()


def spread_over_classes(images: pd.DataFrame, limit: int | None, seed: int) -> set[str]:
    """Choose at most ``limit`` images (None: all), as evenly over the classes (null: none) as
    possible.

    With the same seed, a smaller limit gives a subset.
    """
    ids = images.sort_values("image_id")
    if limit is None or limit >= len(ids):
        return set(ids["image_id"])
    generator = seeds.rng(seed, "dataset", "limit")
    shuffled = ids.iloc[generator.permutation(len(ids))]
    # Each class gives its first image, then each its second, and so on; stable, so that classes
    # keep the order of the permutation within a round.
    rounds = shuffled.groupby(shuffled["class_id"].fillna("")).cumcount()
    order = rounds.sort_values(kind="stable").index
    return set(shuffled.loc[order[:limit], "image_id"])
