"""Images by a text-to-image pipeline of the diffusers library, from the Hub or from a folder.

An image's noise depends only on the seed, its image_id, caption_id and draw. Order and batch do not
matter if the library computes the rows of a batch independently; a swapped prompt starts from the
noise of its original. Images are cached, so a killed run resumes.
"""

import inspect
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from PIL import Image
from pydantic import Field

from compclip.core.cache import Cache, key
from compclip.core.code import code_hash
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import fingerprint as fingerprint_of
from compclip.core.foreign import refuse_code
from compclip.core.hub import hub
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.section import Count, Section
from compclip.core.seeds import derive_seed
from compclip.dataset.source import named
from compclip.generate.generator import Context, Generated, manifest
from compclip.io import read_json

Pixels = Annotated[int, Field(gt=0, le=100_000)]
ABOUT = "a text-to-image pipeline"
TABLES = ()
TRAINING_DATA = "unknown"
MODEL = True
INDEX = "model_index.json"  # of a pipeline: its class, and the class of each component
DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}  # as torch names them


class Settings(Section):
    """The pipeline and its options."""

    model: str = Field(
        min_length=1, description="name on the Hub, or a folder with model_index.json"
    )
    revision: str | None = Field(
        None, description="branch, tag or commit on the Hub; null for the newest"
    )
    steps: Count | None = Field(
        None, gt=0, description="denoising steps; null for the pipeline's default"
    )
    guidance: float | None = Field(
        None, ge=0, le=1e6, description="guidance scale; null for the pipeline's default"
    )
    size: Pixels | tuple[Pixels, Pixels] | None = Field(
        None, description="pixels: one side, or [width, height]; null for the pipeline's default"
    )
    batch: Count = Field(8, ge=1, description="images drawn at once")
    dtype: Literal["auto", "fp32", "fp16", "bf16"] = Field(
        "auto", description="auto: fp16 on a GPU, else fp32"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @property
    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the pipeline's call."""
        width, height = self.size if isinstance(self.size, tuple) else (self.size, self.size)
        options = {
            "num_inference_steps": self.steps,
            "guidance_scale": self.guidance,
            "width": width,
            "height": height,
        }
        return {name: value for name, value in options.items() if value is not None}


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.model, cache=cache) if Path(settings.model).is_dir() else ""


def load_pipeline(settings: Settings) -> tuple[Any, dict[str, Any]]:
    """Return the pipeline on its device, and its entries in the summary.

    Raises:
        UserError: the model or the GPU is missing, or the model comes with code.
    """
    # Imported here, because these libraries are slow to import and not needed to check the config.
    import torch

    from compclip.clip.device import find_device, is_gpu
    from compclip.clip.vision import import_torchvision

    import_torchvision()
    import diffusers
    import transformers

    for library in (diffusers, transformers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    device = find_device(settings.device, "device")
    where, folder = f"model {settings.model}", Path(settings.model)
    is_local = folder.is_dir()
    if not is_local:
        with hub(where):
            hub_model = diffusers.DiffusionPipeline
            folder = Path(
                hub_model.download(
                    settings.model, revision=settings.revision, trust_remote_code=False
                )
            )
    dtype = settings.dtype if settings.dtype != "auto" else "fp16" if is_gpu(device) else "fp32"
    try:
        kind = getattr(torch, DTYPES[dtype])
        refuse_code(component_files(folder))
        text_to_image = diffusers.AutoPipelineForText2Image
        pipeline = text_to_image.from_pretrained(folder, dtype=kind, trust_remote_code=False).to(
            device
        )
    except UserError:
        raise
    except Exception as error:  # the library raises many types of exceptions for damaged files
        reason = " ".join(str(error).split())[:200]
        remedy = "download it again or choose another"
        raise UserError(
            f"{where}: not loaded as a text-to-image pipeline ({reason}); {remedy}"
        ) from error
    pipeline.set_progress_bar_config(disable=True)
    name = type(pipeline).__name__
    unknown = settings.options.keys() - inspect.signature(pipeline.__call__).parameters.keys()
    require(not unknown, where, f"a {name} takes no {', '.join(unknown)}", "remove it")
    about = {
        # only a folder's name, because artifacts must not contain absolute paths
        "model": folder.name if is_local else settings.model,
        "version": fingerprint(settings) if is_local else folder.name,  # the Hub's commit
        "pipeline": name,
        **settings.options,
        "dtype": dtype,
        "device": device.type,
        "library": f"diffusers {diffusers.__version__}, transformers {transformers.__version__}",
    }
    log.info("%s", about)
    return pipeline, about


def component_files(folder: Path) -> list[Path]:
    """Return the files of a pipeline's folder by which a library could load code: its JSON, and all
    of its components.

    Other files, such as the script that trained it, may be the user's own.
    """
    components = read_json(folder / INDEX)
    return [
        *folder.glob("*.json"),
        *(file for name in components for file in Path(folder, name).glob("*")),
    ]


def draw(
    pipeline: Any, settings: Settings, texts: Sequence[str], seeds: Sequence[int]
) -> list[bytes]:
    """Draw at most ``batch`` PNGs; smaller batches are padded, so that an image does not depend on
    the batch.
    """
    import torch

    more = settings.batch - len(texts)
    # on the CPU, so that the noise is the same on every device
    noise = [torch.Generator().manual_seed(seed) for seed in [*seeds, *[seeds[0]] * more]]
    try:
        images = pipeline(
            prompt=[*texts, *[texts[0]] * more], generator=noise, **settings.options
        ).images
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"batch: {settings.batch} images do not fit the GPU's memory; use a smaller batch"
        ) from error
    files = [io.BytesIO() for _ in texts]
    for image, file in zip(images, files, strict=False):
        image.convert("RGB").save(file, "PNG")
    return [file.getvalue() for file in files]


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Draw an image for each prompt; raises UserError if the model or the GPU is missing."""
    import torch

    from compclip.clip.device import settled

    with settled(context.threads):
        # Some pipelines use operations without a deterministic algorithm: these only warn.
        torch.use_deterministic_algorithms(True, warn_only=True)
        pipeline, about = load_pipeline(settings)
        # everything that determines an image, except its text and seed
        identity = json.dumps(
            [about, settings.batch, context.threads, torch.__version__, code_hash(__name__)]
        )
        rows: dict[bytes, tuple[str, int]] = {}
        names, black = list[bytes](), list[str]()
        for row in prompts.itertuples():
            seed = derive_seed(
                context.seed, "diffusers", row.image_id, int(row.caption_id), int(row.draw)
            )
            names.append(key("image", identity, row.text, seed))
            rows[names[-1]] = (row.text, seed)
        with Cache(context.cache / "generated" / f"{key(identity).hex()}.sqlite") as cache:
            absent = [name for name in rows if not cache.get([name])]
            log.info("%s: drawing %d of %d images", about["pipeline"], len(absent), len(rows))
            starts = range(0, len(absent), settings.batch)
            for start in track(starts, len(starts), f"batches of {settings.batch} images"):
                batch = absent[start : start + settings.batch]
                texts, seeds = zip(*(rows[name] for name in batch), strict=True)
                cache.put(zip(batch, draw(pipeline, settings, texts, seeds), strict=True))
            for name, file_name in zip(names, prompts["file_name"], strict=True):
                png = cache.get([name])[name]
                (context.folder / file_name).parent.mkdir(parents=True, exist_ok=True)
                (context.folder / file_name).write_bytes(png)
                if Image.open(io.BytesIO(png)).convert("L").getextrema()[1] == 0:
                    black.append(file_name)
    if black:
        log.warning(
            "%d images are black: by the safety checker, or half precision is too coarse",
            len(black),
        )
    summary = {**about, "black": named(sorted(black))}
    return Generated(manifest(prompts, f"{context.place}/" + prompts["file_name"]), summary=summary)
