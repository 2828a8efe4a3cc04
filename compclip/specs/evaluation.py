"""Functions of all evaluations of a judge: handling of broken images, and the format of
results.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from compclip.clip.embed import Embedder, InvalidEmbedding
from compclip.core.reading.pictures import BrokenImage, image_size
from compclip.plot import labels
from compclip.score.score_table import rounded
from compclip.stats import interval

NO_FILE = "no such image file"
SPECS_RESAMPLES = 2000  # number of resamples of images

Device = Annotated[
    Literal["auto", "cpu", "cuda"], Field("auto", description="auto: a GPU if there is one")
]


def embed_readable(embedder: Embedder, paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings (n, d) of files, zero for a faulty one, and each file's fault (n,), "" if
    it has none.
    """
    # os.path, because Path.is_file fails if a name is too long, for example a caption.
    faults = {path: NO_FILE for path in set(paths) if not os.path.isfile(path)}

    def embed() -> np.ndarray:
        return embedder.files([path for path in paths if path not in faults])

    try:
        vectors = embed()
    except InvalidEmbedding:
        # an error of the judge, not of a file
        raise
    except Exception:
        # A bad file fails its batch; only then are files decoded one by one.
        broken = {}
        for path in set(paths).difference(faults):
            fault = _fault(path)
            if fault:
                broken[path] = fault
        if not broken:
            raise
        faults |= broken
        vectors = embed()
    fault_by_row = np.array([faults.get(path, "") for path in paths], dtype=object)
    # rows of faulty files stay 0
    rows = np.zeros((len(paths), vectors.shape[1]), vectors.dtype)
    rows[fault_by_row == ""] = vectors
    return rows, fault_by_row


def _fault(path: Path) -> str:
    try:
        image_size(path)
    except (BrokenImage, OSError) as error:
        # str() of an OSError has the path, too.
        reason = error.strerror if isinstance(error, OSError) else error
        return f"broken image: {reason}"
    return ""


def mean_over_images(
    values: np.ndarray, images: np.ndarray, generator: np.random.Generator, *, paired: bool = False
) -> dict[str, float | int | None]:
    """Return the mean of ``values`` (n,) with a 95 % interval over images, as an entry of a result.

    ``paired``: the values are differences, not hits, so 0 and 1 have no exact intervals.
    """
    estimate: dict[str, float | int | None] = {"value": None, "low": None, "high": None}
    if len(values):
        estimator = interval.bootstrap_mean if paired else interval.bootstrap_fraction
        weights = np.ones(len(values))  # all captions count equally, whatever their image
        mean = estimator(images, values, weights, SPECS_RESAMPLES, generator)
        estimate = {key: rounded(getattr(mean, key)) for key in estimate}
    estimate["n"] = len(values)
    estimate["images"] = len(np.unique(np.asarray(images, dtype=str)))
    return estimate


def result_head(data: Path, definition: str, seed: int) -> dict[str, Any]:
    """Return the first entries of every result."""
    return {
        "data": data.resolve().name,
        "definition": definition,
        "level": interval.LEVEL,
        "resamples": SPECS_RESAMPLES,
        "seed": seed,
    }


def show_estimate(estimate: Mapping[str, Any]) -> str:
    """Format an estimate for the log: ``61.2 [58.0, 64.1]``."""
    value = labels.percent(estimate["value"])
    return f"{value} {labels.interval(estimate['low'], estimate['high'])}"
