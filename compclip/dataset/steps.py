"""The steps of stage dataset: their inputs, outputs and settings."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from compclip.core.step import Cache, Key, Output, Step, WorldSeed
from compclip.dataset.choice import Choice


class LoadDataset(Step):
    """Read or draw the images and captions of one source.

    What is skipped is counted and named in the summary: empty captions (the others keep their caption_id), images
    without captions, images that are missing or broken (their path is null).
    """

    choice: Annotated[Choice, Key("dataset")] = Choice()
    settings: dict[str, Any] = Field({}, description="the source's own settings, as JSON")
    contents: str | None = Field(None, description="fingerprint of the user's files when the run started")
    seed: WorldSeed
    cache: Cache
    processes: int = Field(1, ge=1, description="processes that draw images")
    results: Path = Field(Path("results"), description="folder that the paths in images.parquet are relative to")
    captions: Output = Field(description="captions.parquet")
    images: Output = Field(description="images.parquet")
    folder: Output = Field(description="folder of the image files")
    summary: Output = Field(description="dataset.json: counts, and what was skipped")
    tables: list[Output] = Field([], description="further tables of the source, by their file names (scenes.parquet)")
