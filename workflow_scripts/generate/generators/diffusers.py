"""Images by a text-to-image pipeline of the diffusers library, from the Hub or from a folder.

An image's noise depends only on the seed, its image_id, caption_id and draw. Order and batch do not matter, as far as
the library computes the rows of a batch independently, and a swapped prompt starts from the noise of its original.
Images are cached, so that a killed run resumes.
"""

from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field, PositiveInt

from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log
from workflow_scripts.core.disk import check_space
from workflow_scripts.core.fingerprint import fingerprint as fingerprint_of
from workflow_scripts.core.progress import Progress
from workflow_scripts.core.section import Section
from workflow_scripts.core.seeds import derive_seed
from workflow_scripts.dataset.source import named
from workflow_scripts.generate.generator import Context, Generated, manifest

ABOUT = "a text-to-image pipeline"
TABLES = ()
MODEL = True
LOOKED_UP = 64  # images read from the cache at once


class Settings(Section):
    """Which pipeline, and how it draws."""

    model: str = Field(min_length=1, description="name on the Hub, or a folder with model_index.json")
    revision: str | None = Field(None, description="branch, tag or commit on the Hub; null for the newest")
    steps: PositiveInt | None = Field(None, description="denoising steps; null for the pipeline's default")
    guidance: float | None = Field(None, ge=0, description="guidance scale; null for the pipeline's default")
    size: PositiveInt | tuple[PositiveInt, PositiveInt] | None = Field(
        None, description="pixels: one side, or [width, height]; null for the pipeline's default"
    )
    batch: int = Field(8, ge=1, description="images drawn at once")
    dtype: Literal["auto", "fp32", "fp16", "bf16"] = Field("auto", description="auto: fp16 on a GPU, else fp32")
    device: Literal["auto", "cpu", "cuda"] = "auto"


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.model, cache=cache) if Path(settings.model).is_dir() else ""


def prefetch(settings: Settings) -> Path:
    from workflow_scripts.generate import pipelines

    return pipelines.fetch(settings)[0]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Draw an image for each prompt; raises UserError if the library, the model or the GPU is missing."""
    # Here, because torch and the library are slow to import, and the config is checked without them.
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
        for start in range(0, len(keys), LOOKED_UP):
            cached = cache.get(keys[start : start + LOOKED_UP])
            for row, name in enumerate(keys[start : start + LOOKED_UP], start):
                if name in cached:
                    keep(row, pipelines.Drawn.from_bytes(cached[name]))
                    progress.add()
                else:
                    absent.setdefault(name, []).append(row)
        made = sum(map(len, absent.values()))
        log.info("%s: drawing %d of %d images, %s", pipeline.name, made, len(keys), pipeline.manner)
        firsts = [rows[0] for rows in absent.values()]
        for start in range(0, len(firsts), settings.batch):
            rows = firsts[start : start + settings.batch]
            images = pipeline.draw([texts[row] for row in rows], [seeds[row] for row in rows])
            cache.put((keys[row], image.to_bytes()) for row, image in zip(rows, images, strict=True))
            if start == 0:
                size = sum(len(image.png) for image in images) // len(images) * made
                # Once in the folder and once in the cache.
                check_space(2 * size, context.folder, f"{made} images")
            for first, image in zip(rows, images, strict=True):
                for row in absent[keys[first]]:
                    keep(row, image)
                    progress.add()
    truncated = pipeline.truncated(texts)
    if truncated:
        log.warning("%d prompts were truncated by the pipeline's tokenizer", truncated)
    if flagged:
        log.warning("%d images were blacked out by the pipeline's safety checker", len(flagged))
    if len(black) > len(flagged):
        log.warning("%d images are all black; half precision may be too coarse (dtype)", len(black) - len(flagged))
    return Generated(
        manifest(prompts, [f"{context.place}/{name}" for name in names]),
        summary={
            **pipeline.about,
            "prompts_truncated": truncated,
            "flagged_by_checker": named(sorted(flagged)),
            "black": named(sorted(black)),
        },
    )
