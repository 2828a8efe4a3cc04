"""What the page shows of the judges of one composition: what it was trained on, and how well it chooses adjectives."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import Layout
from workflow_scripts.plot.page import PageSection

# By ``judge.train_on``.
TRAINED_ON = {
    "train": "the train split alone",
    "half": "the train split and half of the images of each test split, which are not judged",
    "all": "all images, including the judged ones",
}


def section(layout: Layout, judges: Sequence[str]) -> PageSection:
    """Return the section of one composition."""
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in judges]
    choices = [read_json(layout.place / "adjective_choice" / f"{name}.json") for name in judges]
    context = {
        "judges": list(zip(judges, manifests, choices, strict=True)),
        "judge": manifests[0],
        "trained_on": TRAINED_ON[manifests[0]["train_on"]],
    }
    return PageSection("The judge", "score_section.html.j2", context)
