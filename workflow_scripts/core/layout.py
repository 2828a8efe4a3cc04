"""Where the artifacts are that a step reads by their layout instead of one path each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """The artifacts of a data set and, where ``composition`` is given, of that composition.

    Attributes:
        results: folder of the artifacts.
        dataset: name of the data set.
        composition: name of the composition; empty for what all compositions share.
    """

    results: Path
    dataset: str
    composition: str = ""

    @property
    def data(self) -> Path:
        """Return the folder of the data set."""
        return self.results / self.dataset

    @property
    def place(self) -> Path:
        """Return the folder of the composition."""
        return self.data / self.composition

    def figure(self, name: str, suffix: str = "svg") -> Path:
        """Return the path of a figure."""
        words = [self.dataset, self.composition, name]
        return self.results / "figures" / f"{'_'.join(filter(None, words))}.{suffix}"

    def scores(self, generator: str, judge: str = "") -> Path:
        """Return the folder of a generator's scores by the trained judge, or by ``oracle``."""
        return self.place / ("scores_oracle" if judge == "oracle" else "scores") / generator

    def generated(self, generator: str) -> Path:
        """Return the folder of a generator's images."""
        return self.place / "generated" / generator

    def fid(self, generator: str) -> Path:
        """Return the file of a generator's Fréchet distances."""
        return self.place / "fid" / f"{generator}.json"
