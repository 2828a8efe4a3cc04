"""The steps of stage human: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from workflow_scripts.core.step import Input, Key, Output, Seed, Step
from workflow_scripts.human.config import Kinds, Notice, Sampling, Screening, Site
from workflow_scripts.score.steps import Bootstrap
from workflow_scripts.split.steps import Captions, CompositionStep, Heldout, Images, Pairs, Ranking, Swapped

Tasks = Annotated[Input, Field(description="tasks.parquet")]
Answers = Annotated[
    list[Input],
    Field(min_length=1, description="the pages' .jsonl, a site's results .csv, or Label Studio's .json export"),
]
Pictures = Annotated[Input, Field(description="folder of the pictures")]


class SampleTasks(CompositionStep):
    """Sample tasks for people from a scored run, balanced over splits and generators, and print their cost.

    Perceptual tasks show two generators' images of one prompt side by side. Tasks of correctness show one image, with
    its caption to agree with (match), or with its caption and another one (caption). The other caption differs in
    adjectives only: for a seen caption it is its swap, for a swapped caption its original, and for an unseen caption
    itself with a wrong adjective in place of the held-out pair's. Seen captions are those that were swapped, if there
    are any, so that seen and swapped tasks are about the same captions. Each page gets tasks with a known answer, and
    repeats some of its own. Interface and pay: appendix 1.2, figures 1 to 3.
    """

    results: Path = Field(description="folder that the paths in tables are relative to")
    generators: list[str] = Field(min_length=1, description="whose images are shown")
    captions: Captions
    images: Images
    pairs: Pairs
    ranking: Ranking
    heldout: Heldout
    swapped: Swapped
    prompts: Input = Field(description="prompts.parquet")
    manifests: list[Input] = Field(description="each generator's manifest.parquet, in the order of generators")
    scores: list[Input] = Field(description="each generator's folder of scores, in the order of generators")
    sampling: Annotated[Sampling, Key("human")] = Sampling()
    seed: Seed
    tasks: Output = Field(description="tasks.parquet")
    pictures: Output = Field(description="folder of the pictures that are shown")
    summary: Output = Field(description="tasks.json: counts and cost")


class WritePages(Step):
    """Write the tasks as web pages: one self-contained HTML file for each batch, and an index.

    A page works by keyboard and by touch, resumes after a reload, keeps the answers in the browser, and offers them
    as a file to download or copy. It sends nothing and loads nothing.
    """

    tasks: Tasks
    pictures: Pictures
    notice: Annotated[Notice, Key("human")] = Notice()
    pages: Output = Field(description="folder of the pages")


class WriteSite(Step):
    """Write the tasks for a crowd-work site: a batch CSV and a layout for each kind.

    The layout is Mechanical Turk's: its ``${variables}`` are the CSV's columns, and one row is one task. The CSV
    names the pictures by the address at which the folder of pictures will be published; its texts are escaped,
    because the site inserts them into the layout unchanged. The site's results CSV is read by ``analyze``.
    """

    tasks: Tasks
    base: Annotated[str, Key("human.site.base"), Site.model_fields["base"]]
    notice: Annotated[Notice, Key("human")] = Notice()
    site: Output = Field(description="folder of the CSVs and layouts")


class WriteLabelStudio(Step):
    """Write a Label Studio project for each kind of task: a labeling configuration (XML) and the tasks (JSON).

    The pictures are in the JSON as data URIs. Label Studio's JSON export is read by ``analyze``.
    """

    tasks: Tasks
    pictures: Pictures
    notice: Annotated[Notice, Key("human")] = Notice()
    label_studio: Output = Field(description="folder of the projects")


class Analyze(Step):
    """Summarize the answers, the agreement of the workers, and the correlation of the scores with the answers.

    The answers of workers who miss too many tasks with a known answer are excluded and counted. Artifacts name
    workers by number, in the order of their names. Intervals are 95 %, over images.
    """

    tasks: Tasks
    answers: Answers
    scores: list[Input] = Field(
        description="each generator's folder of scores by each judge; its name is the generator's"
    )
    other_scores: Annotated[dict[str, str], Key("human.scores")] = Field({}, description="other scores: name and file")
    kinds: Annotated[Kinds, Key("human")] = Kinds()
    screening: Annotated[Screening, Key("human")] = Screening()
    bootstrap: Bootstrap
    seed: Seed
    analysis: Output = Field(description="folder of the tables and the figure")
    summary: Output = Field(description="analysis.json")
