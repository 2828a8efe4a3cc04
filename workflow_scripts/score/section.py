"""What the page shows of the judge of one composition: what it was trained on, and how well it chooses adjectives."""

from __future__ import annotations

from workflow_scripts.core.io import read_json
from workflow_scripts.core.layout import Layout
from workflow_scripts.plot.page import PageSection

# By ``judge.train_on``.
TRAINED_ON = {
    "train": "the train split alone",
    "half": "the train split and half of the images of each test split, which are not judged",
    "all": "all images, including the judged ones",
}


def section(layout: Layout) -> PageSection:
    """Return the section of one composition."""
    judge = read_json(layout.place / "judge" / "manifest.json")
    context = {
        "judge": judge,
        "choice": read_json(layout.place / "adjective_choice.json"),
        "trained_on": TRAINED_ON[judge["train_on"]],
    }
    return PageSection("The judge", "score_section.html.j2", context)
