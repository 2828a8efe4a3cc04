"""The steps of stage generate: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from compclip.core.step import Cache, Input, Output, Seed, Step, Threads
from compclip.split.steps import Captions, Images, Splits

Prompts = Annotated[Input, Field(description="prompts.parquet")]


class GenerateImages(Step):
    """Run one generator over the prompts: an image for each. Missing and unreadable images are counted and named."""

    generator: str = Field(description="the generator's name")
    kind: str = Field(description="a file in compclip/generate/generators")
    settings: dict[str, Any] = Field(default_factory=dict, description="the kind's own settings, as JSON")
    prompts: Prompts
    tables: list[Input] = Field(default_factory=list, description="tables that the kind reads, by their file names")
    composition: str = Field("", description="the composition, for kinds that draw sketches")
    contents: str | None = Field(None, description="fingerprint of the user's files when the run started")
    seed: Seed
    threads: Threads
    cache: Cache
    results: Path = Field(Path("results"), description="folder that the paths in the manifest are relative to")
    manifest: Output = Field(description="manifest.parquet")
    folder: Output = Field(description="folder of the images")
    summary: Output = Field(description="summary.json: counts, and what is missing")
    scenes: Output | None = Field(None, description="scenes.parquet, of a kind that knows what it drew")


class ExportLayout(Step):
    """Write the splits in the data layout of AttnGAN, to train its successors on train and to draw the prompts."""

    captions: Captions
    images: Images
    splits: Splits
    prompts: Prompts
    dataset: str = Field(description="name of the data set, and of the exported folder if no image has a bounding box")
    results: Path = Field(Path("results"), description="folder that the paths in images.parquet are relative to")
    folder: Output = Field(description="folder to write")
