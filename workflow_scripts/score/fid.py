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
    result = fids.get(generator, {"splits": {}})["splits"].get(split, {})
    value = (result.get("balanced", {}) if balanced else result).get("fid")
    return "" if value is None else f"{value:.2f}"


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def fid_note(fids: Fids) -> str:
    """Return the numbers of images and where they are too few; an empty text without distances."""
    if not fids:
        return ""
    notes = []
    for split in TESTS:
        results = [fid["splits"][split] for fid in fids.values() if split in fid["splits"]]
        if not results:
            continue
        text = f"{SPLIT_NAMES[split]}: {_range([r['generated'] for r in results])} generated"
        text += f" and {_range([r['real'] for r in results])} real images"
        if any(r["singular"] for r in results):
            text += f", too few for {results[0]['features']:,} features: biased upwards"
        notes.append(text)
    network = next(iter(fids.values()))["network"]
    return f"FID is the Fréchet distance from the real images of the split ({network}). {'; '.join(notes)}."
