"""Make the page of all results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compclip.plot.page import render


@dataclass(frozen=True)
class RunOnPage:
    """What the page says of the run as a whole.

    Attributes:
        dataset: the name of the data set.
        source: the kind of source that it comes from.
        about: what each generator does, by its name.
        seed: the run's seed.
        settings: the sections of the config, by their names.
        scored: whether there are scores; a run of only captions, or without generators, has none.
    """

    dataset: str
    source: str
    about: Mapping[str, str]
    seed: int
    settings: Mapping[str, Any]
    scored: bool


def ignored_line(run: RunOnPage) -> str:
    """Return a line that says why there are no scores, and names the judge and the generators."""
    judge = run.settings["judge"].get("model")
    generators = run.settings["generate"].get("generators")
    if not generators:
        return (
            f"No generators are configured (generate.generators), so the judge ({judge}) is "
            "ignored."
        )
    names = ", ".join(generator["name"] for generator in generators)
    folder = f"dataset.{run.source}.images"
    return (
        f"The data set has no images, so the judge ({judge}) and the generators ({names}) are "
        f"ignored; to score images, name their folder in {folder}."
    )


def make_page(run: RunOnPage, compositions: Sequence[Any], sections: Sequence[Any]) -> str:
    """Return the page, which loads figures and images from its folder.

    Args:
        run: what concerns the whole run.
        compositions: the variables of each composition in ``report.html.j2``.
        sections: the sections of the whole data set.
    """
    context = asdict(run) | {
        "ignored": ignored_line(run),
        "compositions": compositions,
        "sections": sections,
    }
    return render("report.html.j2", context)
