"""Images by a text-to-image pipeline of the diffusers library, from the hub or from a folder.

An image's noise depends on the seed, its image_id, caption_id and draw alone: order and batch do not matter, as far as
the library lets a batch's rows be, and a swapped prompt starts from the noise of its original. What was made is kept
in the cache, so that a run that was killed goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, PositiveInt

from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.section import Section
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.core.tables import TESTS
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.generator import Context, Generated, manifest

SPLITS = TESTS
TABLES = ()
MODEL = True
# Rows of the cache that are looked up at once: so many images are held.
HELD = 64


class Settings(Section):
    """Which pipeline, and how it draws."""

    model: str = Field(min_length=1, description="name on the hub, or a folder with model_index.json")
    revision: str | None = Field(None, description="of the hub: a branch, tag or commit; null for its newest")
    steps: PositiveInt | None = Field(None, description="of denoising; null for the pipeline's own")
    guidance: float | None = Field(
        None, ge=0, description="scale of the prompt's guidance; null for the pipeline's own"
    )
    size: PositiveInt | tuple[PositiveInt, PositiveInt] | None = Field(
        None, description="pixels: a side, or [width, height]; null for the pipeline's own"
    )
    batch: int = Field(8, ge=1, description="images drawn at once: one fixed shape")
    dtype: Literal["auto", "fp32", "fp16", "bf16"] = Field("auto", description="auto: fp16 on a GPU, else fp32")
    device: Literal["auto", "cpu", "cuda"] = "auto"


def fingerprint(settings: Settings) -> str:
    """Changes when the names or sizes of the files of a pipeline's folder do; what the hub has is told by revision."""
    return fingerprint_of(settings.model) if Path(settings.model).is_dir() else ""


def prefetch(settings: Settings) -> Path:
    """The folder of the pipeline, fetched from the hub if it must be."""
    from workflow_scripts.generate import pipelines

    return pipelines.fetch(settings)[0]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """An image for each prompt. Raises UserError where the library, the model or the GPU is not there."""
    # Here, not above: torch and the library are slow to import, and the config is checked without them.
    from workflow_scripts.generate import pipelines

    pipeline = pipelines.load(settings, context.threads)
    ids = zip(prompts["image_id"], prompts["caption_id"], prompts["draw"], strict=True)
    seeds = [
        derive_seed(context.seed, "diffusers", image_id, int(caption), int(draw)) for image_id, caption, draw in ids
    ]
    texts, names = prompts["text"].tolist(), prompts["file_name"].tolist()
    keys = [key("image", pipeline.identity, text, seed) for text, seed in zip(texts, seeds, strict=True)]
    flagged, black = [], []

    def keep(row: int, drawn: pipelines.Drawn) -> None:
        file = context.folder / names[row]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(drawn.png)
        if drawn.flagged:
            flagged.append(names[row])
        if drawn.black:
            black.append(names[row])

    with (
        Cache(context.cache / "generated" / f"{pipeline.short_identity}.sqlite") as cache,
        Progress(len(prompts), "images") as progress,
    ):
        absent: dict[bytes, list[int]] = {}
        for start in range(0, len(keys), HELD):
            found = cache.get(keys[start : start + HELD])
            for row, name in enumerate(keys[start : start + HELD], start):
                if name in found:
                    keep(row, pipelines.Drawn.from_bytes(found[name]))
                    progress.add()
                else:
                    absent.setdefault(name, []).append(row)
        made = sum(map(len, absent.values()))
        log.info("%s: %d of %d images are to be drawn, %s", pipeline.name, made, len(keys), pipeline.manner)
        for number, rows in enumerate(_batches([rows[0] for rows in absent.values()], settings.batch)):
            images = pipeline.draw([texts[row] for row in rows], [seeds[row] for row in rows])
            cache.put((keys[row], image.to_bytes()) for row, image in zip(rows, images, strict=True))
            if number == 0:
                size = sum(len(image.png) for image in images) // len(images) * made
                # Once in the folder, once in the cache.
                check_space(2 * size, context.folder, f"{made} images")
            for first, image in zip(rows, images, strict=True):
                for row in absent[keys[first]]:
                    keep(row, image)
                    progress.add()
    truncated = pipeline.truncated(texts)
    if truncated:
        log.warning("%d prompts are longer than the pipeline's tokenizer reads: their ends were not drawn", truncated)
    if flagged:
        log.warning("%d images were blacked out by the pipeline's safety checker", len(flagged))
    if len(black) > len(flagged):
        log.warning("%d images are black all over: half precision may be too little (dtype)", len(black) - len(flagged))
    return Generated(
        manifest(prompts, [f"{context.place}/{name}" for name in names]),
        summary={
            **pipeline.about,
            "prompts_truncated": truncated,
            "flagged_by_checker": named(sorted(flagged)),
            "black": named(sorted(black)),
        },
    )


def _batches(rows: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
