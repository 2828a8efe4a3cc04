"""Cross draws of held-out pairs with judges: how far a score moves if its study is repeated. See ``docs/seeds.md``.

The images of the data set stay the same. A draw holds out other pairs, which changes train, the prompts and what judges
have seen. Judges differ in the seed of their training.
"""

import datetime
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.errors import UserError
from compclip.core.tables import MEASUREMENTS, TESTS
from compclip.io import read_table, write_text
from compclip.plot.labels import SPLIT_NAMES, percent
from compclip.report.measures import COMPARED
from compclip.report.rows import main_rows, of_measure
from compclip.report.values import ERROR_SOURCES
from workflow_scripts.workflow.config import read_config

SEEDS_PAGE = ROOT / "docs" / "seeds.md"
SEEDS_BEGIN = "<!-- measured by `make seeds` -->"
# The two generators that are compared: one composes, one does not.
A, B = "faithful", "memorizer"
HEADS = ("score", "mean", "SD, draws", "judges", "both", *(f"SE, {source}" for source in ERROR_SOURCES), "in interval")


@dataclass(frozen=True)
class Spread:
    """Standard deviations of a score: of the effects of draws, of judges, and of what neither explains."""

    draws: float
    judges: float
    both: float


def deviations(values: np.ndarray) -> Spread:
    """Return the spread of scores (draws, judges), at least two of each; a negative estimate of a variance is 0.

    Analysis of variance of two crossed random factors without replication (Searle, Casella and McCulloch 1992).
    """
    draws, judges = values.mean(axis=1), values.mean(axis=0)
    residuals = values - draws[:, None] - judges + values.mean()
    both = float((residuals**2).sum() / ((len(draws) - 1) * (len(judges) - 1)))
    variances = draws.var(ddof=1) - both / len(judges), judges.var(ddof=1) - both / len(draws), both
    return Spread(*(max(0.0, float(variance)) ** 0.5 for variance in variances))


@dataclass(frozen=True)
class Repeated:
    """A score in all runs: by draw and judge, (draws, judges); its interval by draw; standard errors by source."""

    name: str
    values: np.ndarray
    intervals: np.ndarray
    errors: Mapping[str, float]

    def cells(self) -> list[str]:
        """Return its row, by ``HEADS``, in points."""
        of, mean = deviations(self.values), self.values.mean()
        inside = int(((self.intervals[:, 0] <= mean) & (mean <= self.intervals[:, 1])).sum())
        numbers = [mean, of.draws, of.judges, of.both, *(self.errors.get(source) for source in ERROR_SOURCES)]
        return [self.name, *map(percent, numbers), f"{inside} of {len(self.values)}"]


def one_row(rows: pd.DataFrame, what: str) -> pd.Series:
    if len(rows) != 1:
        raise UserError(f"{what}: expected one row, found {len(rows)}; run `make seeds` with empty results/seeds")
    return rows.iloc[0]


def level(tables: Sequence[pd.DataFrame], generator: str, split: str, measure: str) -> Repeated:
    """Return a generator's score; ``tables``: rows of scores.parquet of one composition, by draw."""
    values, intervals, errors = [], [], []
    for table in tables:
        mine = of_measure(table[(table["generator"] == generator) & (table["split"] == split)], measure)
        mean = one_row(main_rows(mine), f"scores.parquet, {generator}, {split}")
        same = (mine["prompts"] == mean["prompts"]) & (mine["distractors"] == mean["distractors"])
        values.append(mine[same & mine["judge_seed"].notna()].sort_values("judge_seed")["value"].to_numpy())
        intervals.append([mean["low"], mean["high"]])
        errors.append({source: mean[f"se_{source}"] for source in ERROR_SOURCES})
    squares = pd.DataFrame(errors) ** 2
    name = f"{generator}, {SPLIT_NAMES[split]}"
    return Repeated(name, np.array(values), np.array(intervals), (squares.mean() ** 0.5).to_dict())


def score_difference(
    tables: Sequence[pd.DataFrame], differences: Sequence[pd.DataFrame], split: str, measure: str
) -> Repeated:
    """Return ``A`` minus ``B``; ``differences``: rows of comparisons.csv of one composition, by draw."""
    intervals = []
    for table in differences:
        rows = of_measure(table, measure)
        rows = rows[(rows["a"] == A) & (rows["b"] == B) & (rows["split"] == split)]
        intervals.append(one_row(rows, f"comparisons.csv, {A}, {B}, {split}")[["low", "high"]].to_numpy(float))
    a, b = (level(tables, name, split, measure).values for name in (A, B))
    return Repeated(f"{A} − {B}, {SPLIT_NAMES[split]}", a - b, np.array(intervals), {})


def report_lines(folders: Sequence[Path], compositions: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the report on runs, one for each draw."""
    read = [
        [read_table(folder / "scores.parquet", MEASUREMENTS) for folder in folders],
        [pd.read_csv(folder / "comparisons.csv") for folder in folders],
    ]
    for composition in compositions:
        tables, differences = ([of[of["composition"] == composition] for of in runs] for runs in read)
        for measure, of in COMPARED.items():
            yield from ["", f"## {composition}: {of.title}", "", f"| {' | '.join(HEADS)} |"]
            yield "|:--" + "|--:" * (len(HEADS) - 1) + "|"
            scores = [level(tables, name, split, measure) for name in (A, B) for split in TESTS]
            scores += [score_difference(tables, differences, split, measure) for split in TESTS]
            for score in scores:
                yield f"| {' | '.join(score.cells())} |"


class Seeds(Command):
    """Run a config with several draws of held-out pairs and several judges, and write docs/seeds.md."""

    config: Path = Field(Path("config.yaml"), description="the run that is repeated")
    draws: list[int] = Field([0, 1, 2, 3, 4], min_length=2, description="seeds of held-out pairs, splits and swaps")
    judges: list[int] = Field([0, 1, 2], min_length=2, description="seeds of the judges")
    cores: int = Field(os.cpu_count() or 1, ge=1, description="cores that Snakemake may use")
    document: Path = Field(SEEDS_PAGE, description="document whose end is replaced by the report")


def main(command: Seeds) -> None:
    document, config = command.document.resolve(), command.config.resolve()
    os.chdir(ROOT)
    settings = read_config(config)
    folders = [Path(settings.results, "seeds", str(draw)) for draw in command.draws]
    for draw, folder in zip(command.draws, folders, strict=True):
        cli.log.info("draw %d of the held-out pairs, into %s", draw, folder)
        changed = [f"results={folder}", f"seeds={{split: {draw}}}", f"judge={{seeds: {command.judges}}}"]
        changed.append(f"generate={{generators: [{A}, {B}]}}")
        snakemake = ["snakemake", "--cores", str(command.cores), "--quiet", "rules", "--configfile", str(config)]
        if subprocess.run([*snakemake, "--config", *changed, "--", str(folder / "scores.parquet")]).returncode:
            raise UserError(f"draw {draw}: the run failed; correct the error above and run `make seeds` again")
    when = f"{datetime.date.today()}, {command.cores} cores, {platform.machine()}, {platform.system()}"
    seeds = f"`{command.config}`, draws {command.draws}, judges {command.judges}; {when}."
    head = document.read_text(encoding="utf-8").split(SEEDS_BEGIN)[0] if document.is_file() else ""
    lines = [seeds, *report_lines(folders, settings.compositions)]
    write_text("\n".join([head + SEEDS_BEGIN, "", *lines, ""]), document)
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
