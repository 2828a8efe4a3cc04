"""The Fréchet distances that ``score_fid`` wrote, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.tables import TESTS
from workflow_scripts.plot.labels import SPLIT_NAMES

# The content of fid/G.json by generator.
Fids = Mapping[str, Mapping[str, Any]]


def read_fids(layout: Layout, generators: Sequence[str]) -> Fids:
    """Return the distances of these generators."""
    return {name: read_json(layout.fid(name)) for name in generators}


def distance(fids: Fids, generator: str, split: str, *, balanced: bool = False) -> str:
    """Return a distance with two decimals; an empty text if there is none."""
    value = fids.get(generator, {"splits": {}})["splits"].get(split, {}).get("balanced" if balanced else "fid")
    return "" if value is None else f"{value:.2f}"


def fid_note(fids: Fids) -> str:
    """Return the numbers of images and where they are too few; an empty text without distances."""
    of_splits = [(split, fid["splits"][split]) for split in TESTS for fid in fids.values() if split in fid["splits"]]
    notes = dict.fromkeys(f"{SPLIT_NAMES[split]}: {result['about']}" for split, result in of_splits)
    return f"FID is the Fréchet distance from the real images of the split. {'; '.join(notes)}." if fids else ""
