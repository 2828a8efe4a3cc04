"""The page's section on the judges of one composition: their training data and their bias check."""

from collections.abc import Mapping, Sequence
from typing import Any

from compclip.core.artifacts.files import read_json
from compclip.plot.labels import interval, percent
from compclip.plot.page import PageSection
from compclip.plot.table_view import Line, TableCell
from compclip.score.bias import IMAGE_KINDS, BiasCheck
from workflow_scripts.layout import Layout

# By ``judge.train_on``.
TRAINED_ON = {
    "train": "the train split alone",
    "half": "the train split and half of the images of each test split, which are not judged",
    "all": "all images, including the judged ones",
}


def _accuracy(result: Mapping[str, Any] | None, name: str = "accuracy") -> TableCell | None:
    # Without entries, there is no accuracy; differences have no number of entries.
    if not result or not result.get("n", 1):
        return None
    # The other numbers, such as chance, have no interval.
    if name not in ("accuracy", "value"):
        return TableCell(percent(result[name]), "")
    ends = interval(result["same_pairs_low"], result["same_pairs_high"])
    return TableCell(percent(result[name]), ends)


def bias_lines(bias_check: BiasCheck) -> list[Line]:
    """Return a line for each judge and kind of images: accuracies on seen and held-out pairs, and
    their difference.
    """
    lines = []
    for judge, content in bias_check.judges.items():
        for kind, results in content["images"].items():
            held_out = results["held_out"]
            matched = results["matched"]
            # In the order of the table's columns in score_section.html.j2.
            cells = [
                _accuracy(results["seen"]),
                _accuracy(matched),
                _accuracy(held_out),
                _accuracy(results["difference"], "value"),
                _accuracy(held_out, "chance"),
                _accuracy(held_out, "two_way"),
                _accuracy(matched, "adjusted"),
                _accuracy(held_out, "adjusted"),
            ]
            lines.append(Line(f"{judge}, {IMAGE_KINDS[kind]}", cells))
    return lines


def read_bias_check(layout: Layout, judges: Sequence[str], max_bias: float) -> BiasCheck:
    folder = layout.folder / "bias"
    return BiasCheck({name: read_json(folder / f"{name}.json") for name in judges}, max_bias)


def section(layout: Layout, judges: Sequence[str], max_bias: float) -> PageSection:
    """Return the section of one composition; max_bias: ``score.max_bias``."""
    manifests = [read_json(layout.judge(name) / "manifest.json") for name in judges]
    # Judges differ in their seed alone, so the first one stands for all.
    first = manifests[0]
    bias_check = read_bias_check(layout, judges, max_bias)
    synonyms = []
    for name, content in bias_check.judges.items():
        # A lexicon without synonyms has none to compare.
        if content["synonyms"]["n"]:
            synonyms.append((name, content["synonyms"]))
    context = {
        "judges": list(zip(judges, manifests, strict=True)),
        "judge": first,
        "trained_on": TRAINED_ON[first["train_on"]],
        "bias_check": bias_check,
        "bias_lines": bias_lines(bias_check),
        "synonyms": synonyms,
    }
    return PageSection("The judge", "score_section.html.j2", context)
