"""The steps of stage specs: their inputs, outputs and settings."""

from typing import Annotated, Literal

from pydantic import Field

from compclip.clip.config import Preprocessing
from compclip.core.step import Cache, Input, Key, Output, Seed, Step, Threads
from compclip.pairs.config import Parsing
from compclip.plot.steps import MakeSectionPage
from compclip.specs.config import KEEP, LENGTH, Resamples, TestImages, Training

Device = Annotated[
    Literal["auto", "cpu", "cuda"], Key("specs.base.device"), Field("auto", description="auto: a GPU if there is one")
]
ImageFolder = Annotated[Input | None, Field(None, description="folder of the images; default: the folder of the data")]


class DescribeImages(Step):
    """Describe the sketches at length, and divide them into training and test images.

    Training images get one description each, test images growing ones with wrong details. All images also get short
    captions, from which a CLIP learns before it is stretched.
    """

    scenes: Input = Field(description="scenes.parquet of the sketches")
    images: Input = Field(description="images.parquet")
    test: Annotated[TestImages, Key("specs.test")]
    seed: Seed
    examples: Output = Field(description="examples.parquet: image, text")
    steps: Output = Field(description="steps.parquet: image, caption_id, step, text, negative")
    captions: Output = Field(description="captions.parquet: the short captions")
    splits: Output = Field(description="splits.parquet: train and test_seen")


class Stretch(Step):
    """Stretch a CLIP's text tower from 77 positions to 248, as Long-CLIP does.

    The result is a judge's folder. Source: Zhang et al., "Long-CLIP" (ECCV 2024), section 3.2.
    """

    judge: str = Field(
        description="a judge's folder, an open_clip model, hf-hub:owner/name, local-dir:path, or a model config (.json)"
    )
    pretrained: str | None = Field(
        None, description="open_clip tag or weights file, if --judge does not have its own weights"
    )
    preprocess: Preprocessing | None = Field(
        None, description="how images are prepared, for a weights file that does not say it"
    )
    length: int = Field(LENGTH, description="positions after stretching")
    keep: int = Field(KEEP, description="number of first positions that stay as they are")
    output: Output = Field(description="folder of the stretched judge")


class CutCaptions(Step):
    """Read long captions for training: which examples are usable, and where the chunks of each caption end."""

    examples: Input = Field(description="ShareGPT4V's JSON, or a table with columns image and text")
    images: ImageFolder
    parsing: Annotated[Parsing, Key("pairs")] = Parsing()
    processes: int = Field(2, ge=1, description="processes that parse at once; the result is the same")
    cache: Cache
    captions: Output = Field(description="captions.parquet: image, text, digest, ends, fault")


class TrainSpecs(Step):
    """Train a stretched judge by the loss of SPECS or, for comparison, by its contrastive term alone.

    The result is a judge's folder, with log.csv (a row per step). A killed training resumes from a checkpoint in the
    cache and ends with the same weights. On several GPUs each process takes its part of every batch.
    """

    judge: Input = Field(description="folder of the stretched judge")
    captions: Input = Field(description="captions.parquet of specs.cut_captions")
    images: Input = Field(description="folder of the images")
    loss: Literal["specs", "contrastive"] = "specs"
    training: Annotated[Training, Key("specs.training")] = Training()
    seed: Seed
    threads: Threads
    device: Device
    cache: Cache
    output: Output = Field(description="folder of the trained judge")


class Evaluation(Step):
    """The base of evaluations of a judge."""

    judge: Input = Field(description="folder of the judge")
    bootstrap: Annotated[Resamples, Key("specs.bootstrap")]
    seed: Seed
    batch: int = Field(256, ge=1, description="items encoded at once; changes floating-point rounding")
    threads: Threads
    device: Device
    cache: Cache
    output: Output = Field(description="the result (JSON)")


class Intrinsic(Evaluation):
    """Measure how often the similarity rises with a correct detail and falls with a wrong one (SPECS).

    The data are captions of growing detail: a table with columns image, caption_id, step, text and, optionally,
    negative (the text with its newest part replaced by a wrong one); or sDCI as published, a folder saved by Hugging
    Face's datasets. With --against, other judges are compared, paired over the same images.
    """

    data: Input = Field(description="a table of steps, or sDCI's folder")
    images: ImageFolder
    against: list[Input] = Field([], description="folders of judges to compare with")
    similarities: Output | None = Field(None, description="Parquet: each step's similarity by each judge")


class DrawSpecs(MakeSectionPage):
    """Draw each judge's measures for each seed, their differences, and one caption that grows; write specs.html."""

    intrinsic: list[Input] = Field(min_length=1, description="intrinsic.json of each seed")
    similarities: Input = Field(description="similarities.parquet of the first seed")
    table: Output = Field(description="CSV: a row per measurement")
    measures: Output = Field(description="SVG: measures")
    gains: Output = Field(description="SVG: differences")
    growing: Output = Field(description="SVG: a caption that grows")
