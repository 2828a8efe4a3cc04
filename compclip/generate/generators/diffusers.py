"""Images by a text-to-image pipeline of the diffusers library, from the Hub or from a folder.

An image's noise depends only on the seed, its image_id, caption_id and draw. Order and batch do not matter, as far as
the library computes the rows of a batch independently, and a swapped prompt starts from the noise of its original.
Images are cached, so that a killed run resumes.
"""

import io
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from PIL import Image
from pydantic import Field, PositiveInt

from compclip.core.cache import Cache, key
from compclip.core.disk import check_space
from compclip.core.fingerprint import fingerprint as fingerprint_of
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.section import Section
from compclip.core.seeds import derive_seed
from compclip.dataset.source import named
from compclip.generate.generator import Context, Generated, manifest

ABOUT = "a text-to-image pipeline"
TABLES = ()
MODEL = True


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

    @property
    def options(self) -> dict[str, Any]:
        """Return the arguments of a call of the pipeline."""
        width, height = self.size if isinstance(self.size, tuple) else (self.size, self.size)
        options = {"num_inference_steps": self.steps, "guidance_scale": self.guidance, "width": width, "height": height}
        return {name: value for name, value in options.items() if value is not None}


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.model, cache=cache) if Path(settings.model).is_dir() else ""


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Draw an image for each prompt; raises UserError if the model or the GPU is missing."""
    # Here, because torch and the library are slow to import, and the config is checked without them.
    from compclip.generate.pipelines import Pipeline

    pipeline = Pipeline(settings, context.threads)
    # Prompts with equal texts and seeds share an image.
    rows: dict[bytes, list[Any]] = {}
    for row in prompts.itertuples():
        seed = derive_seed(context.seed, "diffusers", row.image_id, int(row.caption_id), int(row.draw))
        rows.setdefault(key("image", pipeline.identity, row.text, seed), []).append((row.text, seed, row.file_name))
    black = []
    with Cache(context.cache / "generated" / f"{key(pipeline.identity).hex()}.sqlite") as cache:
        absent = [name for name in rows if not cache.get([name])]
        log.info("%s: drawing %d of %d images", pipeline.name, len(absent), len(rows))
        starts = range(0, len(absent), settings.batch)
        for start in track(starts, len(starts), f"batches of {settings.batch} images"):
            names = absent[start : start + settings.batch]
            texts, seeds, _ = zip(*(rows[name][0] for name in names), strict=True)
            images = pipeline.draw(texts, seeds)
            cache.put(zip(names, images, strict=True))
            if start == 0:  # once in the folder and once in the cache
                check_space(2 * len(images[0]) * len(absent), context.folder, f"{len(absent)} images")
        for name, equal in rows.items():
            png = cache.get([name])[name]
            is_black = Image.open(io.BytesIO(png)).convert("L").getextrema()[1] == 0
            for _, _, file_name in equal:
                (context.folder / file_name).parent.mkdir(parents=True, exist_ok=True)
                (context.folder / file_name).write_bytes(png)
                black += [file_name] * is_black
    if truncated := pipeline.truncated(prompts["text"].tolist()):
        log.warning("%d prompts were truncated by the pipeline's tokenizer", truncated)
    if black:
        log.warning("%d images are black: by the safety checker, or half precision is too coarse", len(black))
    summary = {**pipeline.about, "prompts_truncated": truncated, "black": named(sorted(black))}
    return Generated(manifest(prompts, f"{context.place}/" + prompts["file_name"]), summary=summary)
