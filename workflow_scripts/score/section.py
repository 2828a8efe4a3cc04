"""What the page shows of the judges of one composition: what they were trained on, and their health."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compclip.core.tables import TESTS
from compclip.io import read_json
from compclip.plot.labels import interval, percent
from compclip.plot.page import PageSection
from compclip.score.health import Health
from workflow_scripts.layout import Layout

# By ``judge.train_on``.
TRAINED_ON = {
    "train": "the train split alone",
    "half": "the train split and half of the images of each test split, which are not judged",
    "all": "all images, including the judged ones",
}
IMAGE_KINDS = {"real": "real images", "drawn": "images drawn as asked"}
PageCell = dict[str, Any] | None


def _page_cell(value: str, beside: str = "") -> PageCell:
    return {"value": value, "interval": beside, "bold": False}


def _accuracy(of: Mapping[str, Any]) -> PageCell:
    return _page_cell(percent(of["accuracy"]), interval(of["low"], of["high"])) if of["n"] else None


def health_lines(health: Health) -> list[dict[str, Any]]:
    """Return a line for each judge and kind of images: accuracies of seen and held-out pairs, chance, ratio."""
    return [
        {
            "name": f"{judge}, {IMAGE_KINDS[kind]}",
            "cells": [
                _accuracy(of["seen"]),
                _accuracy(of["held_out"]),
                _page_cell(percent(of["held_out"]["chance"])) if of["held_out"]["n"] else None,
                None if of["ratio"] is None else _page_cell(f"{of['ratio']:.2f}"),
                _page_cell(percent(of["held_out"]["two_way"])) if of["held_out"]["n"] else None,
            ],
        }
        for judge, content in health.judges.items()
        for kind, of in content["images"].items()
    ]


def read_health(layout: Layout, judges: Sequence[str], least: float) -> Health:
    return Health({name: read_json(layout.place / "health" / f"{name}.json") for name in judges}, least)


def hub_lines(layout: Layout, generators: Sequence[str], judges: Sequence[str]) -> list[dict[str, Any]]:
    """Return a line for each generator: the hubness of each split, as the mean over the judges."""
    lines = []
    for generator in generators:
        summaries = [read_json(layout.scores(generator, judge) / "summary.json")["scores"] for judge in judges]
        cells: list[PageCell] = []
        for split in TESTS:
            # The first score of a set is of all its prompts.
            first = [next((score for score in scores if score["set"] == split), None) for scores in summaries]
            known = [score["hubness"] for score in first if score and score["hubness"] is not None]
            cells.append(_page_cell(percent(float(np.mean(known)))) if known else None)
        lines.append({"name": generator, "cells": cells})
    return lines


def section(layout: Layout, generators: Sequence[str], judges: Sequence[str], least: float) -> PageSection:
    """Return the section of one composition; least: ``score.health``."""
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in judges]
    health = read_health(layout, judges, least)
    context = {
        "judges": list(zip(judges, manifests, strict=True)),
        "judge": manifests[0],
        "trained_on": TRAINED_ON[manifests[0]["train_on"]],
        "health": health,
        "health_lines": health_lines(health),
        "synonyms": [(name, of["synonyms"]) for name, of in health.judges.items() if of["synonyms"]["n"]],
        "hub_lines": hub_lines(layout, generators, judges),
    }
    return PageSection("The judge", "score_section.html.j2", context)
