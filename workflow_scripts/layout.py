"""Paths of artifacts that steps read by their layout instead of one input each."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compclip.text.lexicon import SHARED


@dataclass(frozen=True)
class Layout:
    """The artifacts of a data set, or of one of its compositions."""

    results: Path
    dataset: str
    composition: str = ""  # empty: of the whole data set
    shared: bool = True  # whether compositions share the judges

    @property
    def data(self) -> Path:
        return self.results / self.dataset

    @property
    def folder(self) -> Path:
        return self.data / self.composition

    @property
    def read(self) -> Path:
        """The folder of the composition's pairs."""
        # Compositions with common lexicons parse the captions once, for the whole data set.
        return self.data if self.composition in SHARED else self.folder

    def figure(self, name: str) -> Path:
        # Figures of a whole data set have no composition in their name.
        words = filter(None, [self.dataset, self.composition, name])
        return self.results / "figures" / f"{'_'.join(words)}.svg"

    def judge(self, name: str) -> Path:
        return (self.data if self.shared else self.folder) / "judges" / name

    def scores(self, generator: str, judge: str) -> Path:
        """Return the folder of a generator's scores by a trained judge, or by the oracle."""
        return self.folder / "scores" / judge / generator

    def generated(self, generator: str) -> Path:
        return self.folder / "generated" / generator

    def examples(self, generators: Iterable[str], judge: str) -> list[str]:
        """Return the artifacts of judged images and their prompts, except pairs."""
        files = [self.folder / "swapped.parquet", self.folder / "prompts.parquet"]
        for generator in generators:
            files.append(self.generated(generator) / "manifest.parquet")
            files.append(self.scores(generator, judge))
        return [str(file) for file in files]

    def fid(self, generator: str) -> Path:
        return self.folder / "fid" / f"{generator}.json"
