"""The Fréchet distances that the stage ``score`` wrote, where it was asked for them, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.core.io import read_json
from workflow_scripts.core.tables import TESTS
from workflow_scripts.plot.labels import SPLIT_NAMES

# By generator: the content of fid/G.json.
Fids = Mapping[str, Mapping[str, Any]]


def read_fids(place: Path, generators: Sequence[str]) -> Fids:
    """place: the folder of a composition."""
    return {name: read_json(place / "fid" / f"{name}.json") for name in generators}


def distance(fids: Fids, generator: str, split: str, *, balanced: bool = False) -> str:
    """A distance with two decimals; nothing where there is none."""
    found = fids.get(generator, {"splits": {}})["splits"].get(split, {})
    value = (found.get("balanced", {}) if balanced else found).get("fid")
    return "" if value is None else f"{value:.2f}"


def _reach(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def fid_note(fids: Fids) -> str:
    """Of how many images the distances are, and where these are too few; nothing without distances."""
    if not fids:
        return ""
    said = []
    for split in TESTS:
        found = [fid["splits"][split] for fid in fids.values() if split in fid["splits"]]
        if not found:
            continue
        text = f"{SPLIT_NAMES[split]}: {_reach([f['generated'] for f in found])} generated"
        text += f" and {_reach([f['real'] for f in found])} real images"
        if any(f["singular"] for f in found):
            text += f", too few for {found[0]['features']:,} features: biased upwards"
        said.append(text)
    network = next(iter(fids.values()))["network"]
    return f"FID is the Fréchet distance from the real images of the split ({network}). {'; '.join(said)}."
