"""The steps of stage human: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from compclip.core.step import Input, Key, Output, Seed, Step
from compclip.human.config import HumanConfig, Sampling
from compclip.score.steps import Bootstrap
from compclip.split.steps import Captions, CompositionStep, Heldout, Images, Pairs, Ranking, Swapped

Tasks = Annotated[Input, Field(description="tasks.parquet")]
Answers = Annotated[list[Input], Field(min_length=1, description="CSV: task_id, annotator, choice, lead_time")]
Consent = HumanConfig.model_fields["consent"]
Keep = HumanConfig.model_fields["keep"]


class SamplesTasks(Step):
    """The base of steps that write tasks for people: their table, pictures and Label Studio projects.

    A project is a labeling configuration (XML) and tasks (JSON, with their pictures as data URIs).
    """

    consent: str | None = None
    seed: Seed
    tasks: Output = Field(description="tasks.parquet")
    pictures: Output = Field(description="folder of the pictures that are shown")
    label_studio: Output = Field(description="folder of a Label Studio project for each kind of task")
    summary: Output = Field(description="tasks.json: counts")


class SampleTasks(CompositionStep, SamplesTasks):
    """Sample tasks for people from a scored run, balanced over splits and generators.

    Perceptual tasks show two generators' images of one prompt side by side. Tasks of correctness show one image, with
    its caption to agree with (match), or with its caption and another one (caption). The other caption differs in
    adjectives only: for a seen caption it is its swap, for a swapped caption its original, and for an unseen caption
    itself with a wrong adjective in place of the held-out pair's. Seen captions are those that were swapped, if there
    are any, so that seen and swapped tasks are about the same captions. Each page gets tasks with a known answer, and
    repeats some of its own. Interface: appendix 1.2, figures 1 to 3.
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
    consent: Annotated[str | None, Key("human.consent"), Consent] = None


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
    keep: Annotated[float, Key("human.keep"), Keep]
    bootstrap: Bootstrap
    seed: Seed
    analysis: Output = Field(description="folder of the tables and the figure")
    summary: Output = Field(description="analysis.json")
