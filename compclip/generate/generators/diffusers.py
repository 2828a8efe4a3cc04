"""Images by a text-to-image pipeline of the diffusers library, from the Hub or from a folder.

An image's noise depends only on the seed, its image_id, caption_id and draw. Order and batch do not
matter if the library computes the rows of a batch independently; a swapped prompt starts from the
noise of its original. Images are cached, so a killed run resumes.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError, require
from compclip.core.identity.cache import Cache, key
from compclip.core.identity.code import code_hash
from compclip.core.identity.fingerprint import fingerprint as fingerprint_of
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.hub import hub
from compclip.core.reading.model_folders import refuse_code
from compclip.core.seeds import derive_seed
from compclip.core.settings.section import Count, Section
from compclip.dataset.source import named
from compclip.generate.generator import Context, Generated, manifest

if TYPE_CHECKING:
    import pandas as pd

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
        None, description="branch, tag or commit on the Hub; null: the newest"
    )
    steps: Count | None = Field(
        None, gt=0, description="denoising steps; null: the pipeline's default"
    )
    guidance: float | None = Field(None, ge=0, le=1e6, description="null: the pipeline's default")
    size: Pixels | tuple[Pixels, Pixels] | None = Field(
        None, description="pixels: side, or [width, height]; null: the pipeline's default"
    )
    batch: Count = Field(8, ge=1, description="images drawn at once")
    dtype: Literal["auto", "fp32", "fp16", "bf16"] = Field(
        "auto", description="auto: fp16 on a GPU, else fp32"
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @property
    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the pipeline's call."""
        size = self.size if isinstance(self.size, tuple) else (self.size, self.size)
        options = {
            "num_inference_steps": self.steps,
            "guidance_scale": self.guidance,
            "width": size[0],
            "height": size[1],
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
    label = f"model {settings.model}"
    is_local = Path(settings.model).is_dir()
    folder = Path(settings.model) if is_local else _hub_folder(settings)
    dtype: str = settings.dtype
    if dtype == "auto":
        dtype = "fp16" if is_gpu(device) else "fp32"
    try:
        torch_dtype = getattr(torch, DTYPES[dtype])
        refuse_code(component_files(folder))
        text_to_image = diffusers.AutoPipelineForText2Image
        pipeline = text_to_image.from_pretrained(folder, dtype=torch_dtype, trust_remote_code=False)
        pipeline = pipeline.to(device)
    except UserError:
        raise
    except Exception as error:  # the library raises many types of exceptions for damaged files
        reason = " ".join(str(error).split())[:200]
        fault = f"not loaded as a text-to-image pipeline ({reason})"
        raise UserError(f"{label}: {fault}; download it again or choose another") from error
    pipeline.set_progress_bar_config(disable=True)
    name = type(pipeline).__name__
    accepted = inspect.signature(pipeline.__call__).parameters
    # Pipelines differ in the arguments that they take.
    unknown = settings.options.keys() - accepted.keys()
    require(not unknown, label, f"a {name} takes no {', '.join(unknown)}", "remove it")
    description = {
        # only a folder's name, because artifacts must not contain absolute paths
        "model": folder.name if is_local else settings.model,
        "version": fingerprint(settings) if is_local else folder.name,  # the Hub's commit
        "pipeline": name,
        **settings.options,
        "dtype": dtype,
        "device": device.type,
        "library": f"diffusers {diffusers.__version__}, transformers {transformers.__version__}",
    }
    log.info("%s", description)
    return pipeline, description


def _hub_folder(settings: Settings) -> Path:
    """Return the folder of the Hub's model, after downloading it if it is not there."""
    import diffusers

    with hub(f"model {settings.model}"):
        hub_model = diffusers.DiffusionPipeline
        folder = hub_model.download(
            settings.model, revision=settings.revision, trust_remote_code=False
        )
    return Path(folder)


def component_files(folder: Path) -> list[Path]:
    """Return the files of a pipeline's folder by which a library could load code: its JSON, and all
    of its components.

    Other files, such as the script that trained it, may be the user's own.
    """
    files = list(folder.glob("*.json"))
    for component in read_json(folder / INDEX):
        files += Path(folder, component).glob("*")
    return files


def draw(
    pipeline: Any, settings: Settings, texts: Sequence[str], seeds: Sequence[int]
) -> list[bytes]:
    """Draw at most ``batch`` PNGs; smaller batches are padded, so that an image does not depend on
    the batch.
    """
    import torch

    padding = settings.batch - len(texts)
    padded_texts = [*texts, *[texts[0]] * padding]
    padded_seeds = [*seeds, *[seeds[0]] * padding]
    # on the CPU, so that the noise is the same on every device
    noise = [torch.Generator().manual_seed(seed) for seed in padded_seeds]
    try:
        images = pipeline(prompt=padded_texts, generator=noise, **settings.options).images
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"batch: {settings.batch} images do not fit the GPU's memory; use a smaller batch"
        ) from error
    files = []
    for image in images[: len(texts)]:
        file = io.BytesIO()
        image.convert("RGB").save(file, "PNG")
        files.append(file.getvalue())
    return files


@dataclass(frozen=True)
class Request:
    """An image to draw: the key of the cache, the text and the seed."""

    key: bytes
    text: str
    seed: int


def generate(settings: Settings, prompts: pd.DataFrame, context: Context) -> Generated:
    """Draw an image for each prompt; raises UserError if the model or the GPU is missing."""
    import torch

    from compclip.clip.device import settled

    with settled(context.threads):
        # Some pipelines use operations without a deterministic algorithm: these only warn.
        torch.use_deterministic_algorithms(True, warn_only=True)
        pipeline, description = load_pipeline(settings)
        # everything that determines an image, except its text and seed
        versions = (torch.__version__, code_hash(__name__))
        identity = json.dumps([description, settings.batch, context.threads, *versions])
        requests = list[Request]()
        for row in prompts.itertuples():
            # Not the split: a swapped prompt starts from the noise of its original.
            keys = (row.image_id, int(row.caption_id), int(row.draw))
            seed = derive_seed(context.seed, "diffusers", *keys)
            name = key("image", identity, row.text, seed)
            requests.append(Request(name, row.text, seed))
        database = context.cache / "generated" / f"{key(identity).hex()}.sqlite"
        with Cache(database) as cache:
            # Each image once, although several prompts may have the same text and seed.
            absent = [r for r in dict.fromkeys(requests) if not cache.get([r.key])]
            images = len(set(requests))
            log.info("%s: drawing %d of %d images", description["pipeline"], len(absent), images)
            starts = range(0, len(absent), settings.batch)
            for start in track(starts, len(starts), f"batches of {settings.batch} images"):
                batch = absent[start : start + settings.batch]
                texts = [request.text for request in batch]
                seeds = [request.seed for request in batch]
                files = draw(pipeline, settings, texts, seeds)
                keys_of_batch = [request.key for request in batch]
                # Batch by batch, so that a killed run resumes.
                cache.put(zip(keys_of_batch, files, strict=True))
            black = _write_images(requests, prompts["file_name"], context.folder, cache)
    if black:
        log.warning(
            "%d images are black: by the safety checker, or half precision is too coarse",
            len(black),
        )
    summary = {**description, "black": named(sorted(black))}
    paths = f"{context.place}/" + prompts["file_name"]
    return Generated(manifest(prompts, paths), summary=summary)


def _write_images(
    requests: Sequence[Request], names: Iterable[str], folder: Path, cache: Cache
) -> list[str]:
    """Write the cached images to ``folder``; return the names of the black ones."""
    from PIL import Image

    black = []
    for request, name in zip(requests, names, strict=True):
        # One at a time, because all images may not fit into memory.
        png = cache.get([request.key])[request.key]
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png)
        picture = Image.open(io.BytesIO(png))
        _, lightest = picture.convert("L").getextrema()
        if lightest == 0:
            black.append(name)
    return black
