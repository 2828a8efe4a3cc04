"""The interface of a judge: whatever chooses among texts for an image.

Adjective accuracy, the bias check, what is composed and certificates ask nothing else. A judge kind
is a module of ``kinds/`` that defines the fields of ``Kind``. It is imported while rules are read,
so it imports only in its functions what Snakemake does not bring along, such as numpy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from compclip.core.errors import UserError, require
from compclip.core.settings import plugins

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

JUDGE_KINDS = "compclip.judge.kinds"
# How far the sum of an image's chances may be from 1.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class JudgedImage:
    """An image to be judged.

    Attributes:
        path: its file.
        id: names the choice, uniquely in a run; tables of answers are joined by it.
        box: of the object in the image (x, y, width, height, in pixels), which some judges crop to.
        orders: the number of orders of its texts in which a judge that may prefer a place asks;
            None: as its settings say.
    """

    path: Path
    id: str = ""
    box: tuple[float, float, float, float] | None = None
    orders: int | None = None

    def require_file(self) -> None:
        """Raise UserError unless the file exists; reading a pipe might never end."""
        fault = "no such file, or not a regular one"
        require(os.path.isfile(self.path), self.path, fault, "make the image again")

    def read(self) -> Image.Image:
        """Return the image as people see it, in sRGB; raises UserError if it cannot be read."""
        from compclip.core.reading.pictures import BrokenImage, read_rgb

        self.require_file()
        try:
            return read_rgb(self.path)
        except BrokenImage as error:
            raise UserError(f"{self.path}: {error}; make the image again") from error


@runtime_checkable
class Chooser(Protocol):
    """A judge.

    Attributes:
        name: names it in tables and errors.
        hash: changes with everything that decides a choice.
    """

    @property
    def name(self) -> str: ...

    @property
    def hash(self) -> str: ...

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """Return the chances of each image's texts.

        A judge may also have ``prepare(images, options)``, which is called once with all that will
        be asked, before the first choice.

        Args:
            images: n images.
            options: the texts of each, at least two, all different.

        Returns:
            n arrays of a number for each text, from 0 to 1: their sum is 1, or all are 0 where
            there is no usable answer, which counts as wrong.
        """
        ...


@runtime_checkable
class Scorer(Chooser, Protocol):
    """A judge that also has a score for each text; higher is better."""

    def scores(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]: ...


@dataclass(frozen=True)
class Context:
    """With what a judge is opened.

    Attributes:
        model: the folder of a trained judge; None for kinds that are not trained here.
        cache: folder of what may be kept between runs.
        closing: closes what a judge opens, when the run has its choices.
    """

    model: Path | None = None
    cache: Path = Path(".cache")
    threads: int = 2
    seed: int = 0
    device: str = "cpu"
    batch: int = 256
    closing: ExitStack = field(default_factory=ExitStack)


class Asked(NamedTuple):
    """Numbers of choices that a judge is asked in a composition, at most.

    Attributes:
        adjectives: a prompt's adjective.
        prompts: the prompt among captions of other images, in one order of the texts.
        certificate: for its certificate, the order of the texts aside.
    """

    adjectives: int
    prompts: int
    certificate: int


class Kind(plugins.Interface):
    """What a judge kind defines; ``Settings`` are those of an entry of ``judges``."""

    # (settings, context): the judge
    open_chooser: Callable[..., Chooser]
    ABOUT: str = ""  # on the page
    MODEL: bool = False  # whether it runs a torch model
    CERTIFIED: bool = True  # whether it can be asked for a certificate's texts
    # (settings, cache): of the user's files that it reads
    fingerprint: Callable[..., str] | None = None
    # (settings, ``Asked``, or None before prompts are listed): the message of `make check`, such as
    # calls, time and cost
    preview: Callable[..., str] | None = None


@cache
def load_kind(name: str) -> Kind:
    """Return a judge kind by its name; raises UserError if there is none, or its module is
    faulty.
    """
    return Kind.of(plugins.load(JUDGE_KINDS, name))


def chances_of_scores(scores: np.ndarray) -> np.ndarray:
    """Return the chances of texts if the one with the highest score is chosen.

    Texts that tie share the chance. If a score is NaN, there is no usable answer.
    """
    import numpy as np

    if np.isnan(scores).any():
        return np.zeros(len(scores))
    is_highest = scores == scores.max()
    return is_highest / is_highest.sum()


def check_chances(
    chooser: Chooser, chances: Sequence[np.ndarray], options: Sequence[Sequence[str]]
) -> list[np.ndarray]:
    """Return the chances as float64; UserError unless they are as ``Chooser.choose`` promises."""
    import numpy as np

    judge = f"judge {chooser.name}"
    remedy = f"correct {judge}"
    fault = f"expected a list of arrays, got {type(chances).__name__}"
    require(hasattr(chances, "__len__"), judge, fault, remedy)
    count = f"{len(chances)} answers for {len(options)} images"
    require(len(chances) == len(options), judge, count, remedy)
    checked = []
    for row, (values, texts) in enumerate(zip(chances, options, strict=True)):
        location = f"{judge}: choice {row}"
        try:
            array = np.asarray(values, np.float64)
        # numpy raises RuntimeError for a tensor that requires grad.
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            fault = f"expected an array of numbers, got {type(values).__name__}"
            raise UserError(f"{location}: {fault}; {remedy}") from error
        fault = f"{array.size} chances for {len(texts)} texts"
        require(array.shape == (len(texts),), location, fault, remedy)
        is_number = np.isfinite(array).all() and (array >= 0).all()
        total = array.sum()
        is_right = is_number and (total == 0 or abs(total - 1) <= SUM_TOLERANCE)
        fault = f"chances {array.tolist()}: expected a sum of 1, or all 0 without an answer"
        require(is_right, location, fault, remedy)
        checked.append(array)
    return checked
