"""The page's section on divergence: how far the test splits of one composition are from train."""

from typing import Any

import pandas as pd

from compclip.core.tables import TESTS
from compclip.divergence.results import divergence_lines, read_divergences
from compclip.io import read_json
from compclip.plot.labels import SPLIT_NAMES
from compclip.plot.page import PageSection
from workflow_scripts.layout import Layout


def divergence_cells(divergences: pd.DataFrame, texts: str) -> list[dict[str, Any]]:
    """Return a line per kind of part: its divergence for each test split, None if it was not measured."""
    return [
        {"name": name, "cells": [cell and {"value": cell[0], "interval": cell[1], "bold": False} for cell in cells]}
        for name, cells in divergence_lines(divergences, texts)
    ]


def section(layout: Layout) -> PageSection:
    divergences = read_divergences(layout.place)
    context = {
        "of_prompts": divergence_cells(divergences, "prompts"),
        "of_captions": divergence_cells(divergences, "captions"),
        "tests": [SPLIT_NAMES[split] for split in TESTS],
        "warnings": read_json(layout.place / "divergence.json")["warnings"],
        "shuffles": divergences["shuffles"].max(),
        "measured": len(divergences) > 0,
    }
    return PageSection("How far test is from train", "divergence_section.html.j2", context)
