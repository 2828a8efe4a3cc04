"""The page's section on the judges of one composition: their training data and their health."""

from collections.abc import Mapping, Sequence
from typing import Any

from compclip.io import read_json
from compclip.plot.labels import interval, percent
from compclip.plot.page import PageSection
from compclip.plot.table_view import Line, TableCell
from compclip.score.health import IMAGE_KINDS, Health
from workflow_scripts.layout import Layout

# By ``judge.train_on``.
TRAINED_ON = {
    "train": "the train split alone",
    "half": "the train split and half of the images of each test split, which are not judged",
    "all": "all images, including the judged ones",
}


def _accuracy(of: Mapping[str, Any] | None, name: str = "accuracy") -> TableCell | None:
    if not of or not of.get("n", 1):
        return None
    ends = (
        interval(of["same_pairs_low"], of["same_pairs_high"])
        if name in ("accuracy", "value")
        else ""
    )
    return TableCell(percent(of[name]), ends)


def health_lines(health: Health) -> list[Line]:
    """Return a line for each judge and kind of images: accuracies on seen and held-out pairs, and
    their difference.
    """
    lines = []
    for judge, content in health.judges.items():
        for kind, of in content["images"].items():
            cells = [_accuracy(of[side]) for side in ("seen", "matched", "held_out")]
            cells.append(_accuracy(of["difference"], "value"))
            shown = (
                ("held_out", "chance"),
                ("held_out", "two_way"),
                ("matched", "adjusted"),
                ("held_out", "adjusted"),
            )
            cells += [_accuracy(of[side], name) for side, name in shown]
            lines.append(Line(f"{judge}, {IMAGE_KINDS[kind]}", cells))
    return lines


def read_health(layout: Layout, judges: Sequence[str], loss: float) -> Health:
    return Health(
        {name: read_json(layout.place / "health" / f"{name}.json") for name in judges}, loss
    )


def section(layout: Layout, judges: Sequence[str], loss: float) -> PageSection:
    """Return the section of one composition; loss: ``score.health``."""
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in judges]
    health = read_health(layout, judges, loss)
    context = {
        "judges": list(zip(judges, manifests, strict=True)),
        "judge": manifests[0],
        "trained_on": TRAINED_ON[manifests[0]["train_on"]],
        "health": health,
        "health_lines": health_lines(health),
        "synonyms": [
            (name, of["synonyms"]) for name, of in health.judges.items() if of["synonyms"]["n"]
        ],
    }
    return PageSection("The judge", "score_section.html.j2", context)
