"""The steps of stage score: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from compclip.core.step import Cache, HalvesSeed, Input, Key, Output, Seed, Step, Threads
from compclip.generate.steps import Prompts
from compclip.judge.config import JudgeConfig
from compclip.score.config import Balance, Fid, ScoreConfig, Scoring
from compclip.split.config import PromptRule, TrainOn
from compclip.split.steps import Captions, CompositionStep, Images, Pairs, Splits, Swapped

Device = Annotated[Literal["auto", "cpu", "cuda"], Key("judge.device"), JudgeConfig.model_fields["device"]]
Batch = Annotated[int, Key("score.batch"), ScoreConfig.model_fields["batch"]]
Bootstrap = Annotated[int, Key("score.bootstrap"), ScoreConfig.model_fields["bootstrap"]]
TestSplit = Literal["test_seen", "test_unseen", "test_swapped"]
Served = Annotated[list[TestSplit], Field(min_length=1, description="test splits that the generator serves")]
Results = Annotated[Path, Field(description="folder that paths in tables are relative to")]
Manifest = Annotated[Input, Field(description="manifest.parquet of the generator")]
Generator = Annotated[str, Field(description="name of the generator")]


class Encoding(Step):
    """What a step needs that encodes images or captions with a judge."""

    judge: Input = Field(description="folder of the judge")
    batch: Batch
    threads: Threads
    device: Device
    cache: Cache


class ScoreStep(CompositionStep):
    """What all steps need that score generators."""

    captions: Captions
    images: Images
    splits: Splits
    swapped: Swapped
    prompts: Prompts
    variants: Input = Field(description="variants.parquet")
    manifests: list[Input] = Field(
        min_length=1, description="manifest.parquet of each generator; its folder has its name"
    )
    results: Results
    serves: dict[str, Served] = Field(description="test splits that each generator serves, in the order of manifests")
    prompt_rule: Annotated[PromptRule, Key("split.prompts")]
    train_on: Annotated[TrainOn, Key("judge.train_on")]
    halves: HalvesSeed
    scoring: Annotated[Scoring, Key("score")] = Scoring()
    seed: Seed
    scores: list[Output] = Field(
        description="each generator's folder of scores: for each set a table and predictions, and summary.json"
    )


class ScoreImages(ScoreStep, Encoding):
    """Score generators' images by a trained judge: does it retrieve the caption that an image was made from?

    Writes for each split that a generator serves (and for each other pool of distractors) a table of scores and the
    sampled predictions in the published format, and summary.json. Distinct images and captions are encoded once, also
    over runs, so that a new generator costs little more than its own images.
    """


class ScoreOracle(ScoreStep):
    """Score generators' drawn scenes by the oracle, which knows what was drawn (sketches only).

    Writes tables of scores and predictions as score_images does, and summary.json with the fraction of distractors
    that are true of the image and the ceiling that follows from it.
    """

    scenes: Input = Field(description="scenes.parquet of the data set")
    facts: Input = Field(description="facts.parquet of the data set")
    drawn: list[Input] = Field(
        [], description="scenes.parquet beside the manifest of each generator that drew its images"
    )


class MeasureHealth(CompositionStep, Encoding):
    """Measure a judge's health: adjective accuracy on seen and on held-out pairs where images show what they should.

    On real images (prompts of test_seen and test_unseen) and, with --manifest, on images drawn as asked (captions
    before and after a swap): k-way among the noun's ranked adjectives, and two-way against one of them. The ratio is
    that of the accuracies above chance, the lower of both kinds of images. Beside it: for what fraction of the real
    images the choice stays the same with a synonym in the prompt.
    """

    captions: Captions
    images: Images
    pairs: Pairs
    prompts: Prompts
    swapped: Swapped
    variants: Input = Field(description="variants.parquet")
    manifest: Input | None = Field(None, description="manifest.parquet of a generator that draws what is asked")
    results: Results
    health: Output = Field(description="health.json")


class ScoreFid(Step):
    """Measure the Fréchet inception distance of a generator's images from the real images of each split.

    As published: the real images of the split (of test_seen for swapped captions), whole, at 256 by 256 pixels; up to
    10,000 generated images, drawn by seed. Features are the 2048 of the original FID's Inception network, computed by
    torchmetrics; its weights are downloaded. With fewer images than features the covariance is singular: the distance
    is biased upwards and comparable only with one of equally many images. Swapped entries are also balanced.
    """

    images: Images
    splits: Splits
    prompts: Prompts
    manifest: Manifest
    results: Results
    composition: str = Field(description="name of the composition")
    generator: Generator
    serves: Served
    settings: Annotated[Fid, Key("score.fid")] = Fid()
    balance: Annotated[Balance, Key("score.balance")] = Balance()
    seed: Seed
    threads: Threads
    device: Device
    cache: Cache
    fid: Output = Field(description="the distances (JSON)")
