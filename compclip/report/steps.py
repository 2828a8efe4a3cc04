"""The steps of stage report: their inputs, outputs and settings."""

from typing import Annotated, Any

from pydantic import Field

from compclip.core.step import Cache, HalvesSeed, Input, Key, Output, Seed, Step, Threads
from compclip.plot.steps import OfResults
from compclip.report.config import ReportConfig
from compclip.score.config import ScoreConfig
from compclip.score.steps import Batch, Device
from compclip.split.config import TrainOn
from compclip.split.steps import CompositionStep

Shown = dict[str, Any]
Generators = Annotated[list[str], Field(min_length=1, description="names of the generators, in the order of the rows")]
Oracle = Annotated[list[str], Field([], description="generators that the oracle has scored too")]
Fid = Annotated[list[str], Field([], description="generators with a Fréchet distance")]
Reference = Annotated[str | None, Field(None, description="generator against which falls are read")]
Judges = Annotated[list[str], Field(min_length=1, description="names of the judges, whose scores are averaged")]
Examples = Annotated[int, Key("report.examples"), ReportConfig.model_fields["examples"]]
Chunks = Annotated[int, Key("score.chunks"), ScoreConfig.model_fields["chunks"]]
Bootstrap = Annotated[int, Key("score.bootstrap"), ScoreConfig.model_fields["bootstrap"]]
LeastHealth = Annotated[float, Key("score.health"), ScoreConfig.model_fields["health"]]
Compositions = Annotated[list[str], Key("compositions"), Field(min_length=1, description="names of the compositions")]


Shows: Any = Field({}, description="section of the config to show")


class MakeTable(OfResults):
    """Gather all scores in the table, compare them, and print it.

    metrics.json contains the exact scores that are compared, in percent, for ``dvc metrics``.
    """

    compositions: Compositions
    generators: Generators
    oracle: Oracle
    fid: Fid
    judges: Judges
    reference: Reference
    chunks: Chunks
    bootstrap: Bootstrap
    health: LeastHealth
    csv: Output = Field(description="table.csv")
    md: Output = Field(description="table.md")
    tex: Output = Field(description="table.tex")
    comparisons: Output = Field(description="comparisons.csv")
    pairs: Output = Field(description="pairs.csv")
    metrics: Output = Field(description="metrics.json")


class DrawScores(CompositionStep):
    """Draw the scores, the falls from seen, also by pair, and the judges' training."""

    judges: list[Input] = Field(min_length=1, description="folders of the judges, with log.csv")
    table: Input = Field(description="table.csv")
    differences: Input = Field(description="comparisons.csv")
    by_pair: Input = Field(description="pairs.csv")
    seed: Seed
    scores: Output = Field(description="figure of the scores (SVG)")
    gaps: Output = Field(description="figure of each generator's splits against seen, and beyond the reference (SVG)")
    pairs: Output = Field(description="figure of each held-out pair's falls (SVG)")
    loss: Output = Field(description="figure of the judges' training (SVG)")


class ListEntries(OfResults):
    """Write the page of every judged image, with its prompt, its rank and the nearest wrong caption."""

    compositions: Compositions
    generators: Generators
    judge: str = Field(description="name of the judge whose scores are shown")
    train_on: Annotated[TrainOn, Key("judge.train_on")]
    halves: HalvesSeed
    batch: Batch
    threads: Threads
    device: Device
    cache: Cache
    page: Output = Field(description="entries.html")
    data: Output = Field(description="folder of the page's data, a file for each composition")


class MakePage(OfResults):
    """Write report.html, which loads figures and images from its folder."""

    compositions: Compositions
    generators: list[str] = Field([], description="names of the generators, in the order of the rows; none: no scores")
    oracle: Oracle
    fid: Fid
    judges: list[str] = Field([], description="names of the judges; none: no scores")
    reference: Reference
    about: dict[str, str] = Field({}, description="what each generator does, by name")
    sections: list[str] = Field([], description="further stages with a section")
    examples: Examples
    health: LeastHealth
    seed: Seed
    source: Annotated[str, Key("dataset.source")] = Field("table", description="source of the data set")
    pairs: Annotated[Shown, Key("pairs")] = Shows
    split: Annotated[Shown, Key("split")] = Shows
    divergence: Annotated[Shown, Key("divergence")] = Shows
    judge: Annotated[Shown, Key("judge")] = Shows
    generate: Annotated[Shown, Key("generate")] = Shows
    score: Annotated[Shown, Key("score")] = Shows
    page: Output = Field(description="report.html")

    @property
    def settings(self) -> Shown:
        """Return the settings that a score or a divergence depends on."""
        return self.model_dump(include={"pairs", "split", "divergence", "judge", "generate", "score"})


class JoinTables(Step):
    """Join the tables of several runs: rows, or chapters of those to read, by run."""

    runs: list[str] = Field(min_length=1, description="names of the runs")
    tables: list[Input] = Field(min_length=1, description="tables to join, in the order of the runs")
    joined: list[Output] = Field(min_length=1, description="tables to write; each joins the tables of its file name")
