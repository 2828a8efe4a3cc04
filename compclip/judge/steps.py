"""The steps of stage judge: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from compclip.core.step import Cache, HalvesSeed, Input, Key, Output, SplitSeed, Step, Threads
from compclip.judge.config import JudgeConfig, Training
from compclip.split.config import TrainOn
from compclip.split.steps import Adjectives, Captions, CompositionStep, Images, Pairs, Ranking, Splits


class MakeNegatives(CompositionStep):
    """Make hard negatives: copies of the captions that judges learn from, with one adjective replaced."""

    captions: Captions
    images: Images
    pairs: Pairs
    ranking: Ranking
    splits: Splits
    adjectives: Adjectives
    nouns: Input | None = Field(None, description="noun lexicon (YAML); without it only the nouns in pairs are known")
    train_on: Annotated[TrainOn, Key("judge.train_on")]
    count: Annotated[int, Key("judge.hard_negatives"), JudgeConfig.model_fields["hard_negatives"]]
    halves: HalvesSeed
    seed: SplitSeed
    negatives: Output = Field(description="negatives.parquet")


class TrainJudge(Step):
    """Train the judge: fine-tune an open_clip model on a data set's images and captions, with CLIP's loss.

    Writes weights.safetensors, model.json, vocabulary.json, log.csv, loss.png and manifest.json. A killed training
    resumes from the cache to the same weights, and a finished one is not repeated while the code and settings that
    decide its weights stay.

    Several GPUs (judge.gpus) need torchrun: torchrun --standalone --nproc-per-node=N -m --
    compclip.judge.train_judge ... (docs/cluster.md).
    """

    captions: Input = Field(description="captions.parquet")
    images: Input = Field(description="images.parquet")
    splits: Input = Field(description="splits.parquet")
    pretraining: Input | None = Field(None, description="further images and captions to learn from: path, text")
    negatives: Input | None = Field(None, description="negatives.parquet, whose captions no image may retrieve")
    results: Path = Field(description="folder that image paths are relative to")
    # Not an instance: the command line would complete partial settings from it, and hide which keys are given.
    settings: Annotated[Training, Key("judge")] = Field(default_factory=lambda: Training.model_validate({}))
    halves: HalvesSeed
    seed: Annotated[int, Key("seed"), Field(0, ge=0, description="seed of the training")]
    threads: Threads
    cache: Cache
    judge: Output = Field(description="folder of the judge")
