"""A pipeline of the diffusers library, as a function of captions and seeds."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image

from workflow_scripts.clip.device import find_device, is_gpu, settle
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.core.cli import log
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.hub import check_blob, hub

if TYPE_CHECKING:
    from workflow_scripts.generate.generators.diffusers import Settings

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Drawn:
    """An image as PNG, whether the pipeline's safety checker blacked it out, and whether all of it is black."""

    png: bytes
    flagged: bool
    black: bool

    def to_bytes(self) -> bytes:
        return bytes([self.flagged | self.black << 1]) + self.png

    @classmethod
    def from_bytes(cls, raw: bytes) -> Drawn:
        return cls(raw[1:], bool(raw[0] & 1), bool(raw[0] & 2))


class Pipeline:
    """A loaded pipeline; ``identity`` is all that decides an image but its text and seed, ``about`` is for people."""

    def __init__(self, pipeline: Any, settings: Settings, version: str, dtype: str, threads: int, library: str) -> None:
        self.pipeline, self.batch = pipeline, settings.batch
        self.name = type(pipeline).__name__
        self.options = self._options(settings)
        device = pipeline.device.type
        # A folder's name only, because artifacts contain no absolute path.
        model = Path(settings.model).name if Path(settings.model).is_dir() else settings.model
        self.about = {
            "model": model, "version": version, "pipeline": self.name, **self.options, "dtype": dtype, "device": device,
            "library": library,
        }  # fmt: skip
        code = code_hash("workflow_scripts.generate.pipelines:Pipeline")
        self.identity = json.dumps(
            {**self.about, "batch": self.batch, "threads": threads, "torch": torch.__version__, "code": code}
        )
        self.short_identity = hashlib.blake2b(self.identity.encode(), digest_size=8).hexdigest()
        self.manner = f"{self.batch} at once, {dtype} on {device}"

    def _options(self, settings: Settings) -> dict[str, Any]:
        """Return the arguments of a call that the settings give; raises UserError if the pipeline lacks one."""
        known = inspect.signature(self.pipeline.__call__).parameters
        for argument in ("prompt", "generator"):
            if argument not in known:
                raise UserError(
                    f"model {settings.model}: a {self.name} takes no {argument}; choose a text-to-image pipeline"
                )
        width, height = settings.size if isinstance(settings.size, tuple) else (settings.size, settings.size)
        given = {
            "num_inference_steps": ("steps", settings.steps),
            "guidance_scale": ("guidance", settings.guidance),
            "width": ("size", width),
            "height": ("size", height),
        }
        for argument, (setting, value) in given.items():
            if value is not None and argument not in known:
                raise UserError(f"model {settings.model}: a {self.name} takes no {argument}; remove {setting}")
        return {argument: value for argument, (_, value) in given.items() if value is not None}

    def draw(self, texts: Sequence[str], seeds: Sequence[int]) -> list[Drawn]:
        """Draw at most ``batch`` images; smaller batches are filled up, so that an image does not depend on them."""
        more = self.batch - len(texts)
        # On the CPU, so that the noise is the same on every device.
        noise = [torch.Generator().manual_seed(seed) for seed in [*seeds, *[seeds[0]] * more]]
        try:
            output = self.pipeline(
                prompt=[*texts, *[texts[0]] * more], generator=noise, output_type="pil", **self.options
            )
        except torch.OutOfMemoryError as error:
            raise UserError(
                f"batch: {self.batch} images at once do not fit the GPU's memory; use a smaller batch"
            ) from error
        if not hasattr(output, "images"):
            raise UserError(f"a {self.name} gives no images; choose a text-to-image pipeline")
        checked = getattr(output, "nsfw_content_detected", None) or [False] * self.batch
        return [
            Drawn(_png(image), bool(flagged), image.convert("L").getextrema()[1] == 0)
            for image, flagged in zip(output.images[: len(texts)], checked, strict=False)
        ]

    def truncated(self, texts: Sequence[str]) -> int | None:
        """Count the texts that the pipeline's first tokenizer truncates; None if it has none."""
        tokenizer = getattr(self.pipeline, "tokenizer", None)
        if tokenizer is None or not texts:
            return None
        tokens = tokenizer(list(texts), truncation=False, padding=False).input_ids
        return sum(len(row) > tokenizer.model_max_length for row in tokens)


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.convert("RGB").save(file, "PNG")
    return file.getvalue()


def load(settings: Settings, threads: int) -> Pipeline:
    """Load the pipeline onto its device; raises UserError if the library, the model or the GPU is missing."""
    device = find_device(settings.device, "device")
    diffusers, transformers = _libraries()
    settle(threads)
    # Some pipelines have operations without a deterministic algorithm: these only warn.
    torch.use_deterministic_algorithms(True, warn_only=True)
    folder, version = fetch(settings)
    dtype = settings.dtype if settings.dtype != "auto" else "fp16" if is_gpu(device) else "fp32"
    try:
        pipeline = diffusers.DiffusionPipeline.from_pretrained(folder, dtype=DTYPES[dtype]).to(device)
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"model {settings.model}: does not fit the GPU's memory; dtype fp16 needs half as much as fp32"
        ) from error
    except Exception as error:  # the library raises many types for damaged files
        raise UserError(
            f"model {settings.model}: cannot be loaded ({_first_line(error)}); get it again or choose another"
        ) from error
    pipeline.set_progress_bar_config(disable=True)
    versions = f"diffusers {diffusers.__version__}, transformers {transformers.__version__}"
    result = Pipeline(pipeline, settings, version, dtype, threads, versions)
    log.info("%s: %s, %s", settings.model, result.name, version)
    return result


def _libraries() -> tuple[Any, Any]:
    """Import diffusers and transformers, which then log only errors; raises UserError if they are not installed."""
    try:
        import_torchvision()
        import diffusers
        import transformers
    except ImportError as error:
        raise UserError(
            f"generator kind diffusers: {error.name} is not installed; pip install diffusers transformers accelerate"
        ) from error
    for library in (diffusers, transformers):
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()
    return diffusers, transformers


def fetch(settings: Settings) -> tuple[Path, str]:
    """Return the pipeline's folder and version: the Hub's commit, or a digest of the folder's files."""
    folder = Path(settings.model)
    if folder.is_dir():
        if not (folder / "model_index.json").is_file():
            raise UserError(f"model {folder}: contains no model_index.json; give a folder that diffusers saved")
        if settings.revision is not None:
            raise UserError(f"revision: {settings.revision}, but model {folder} is a folder; remove revision")
        return folder, _digest(folder)
    pipeline = _libraries()[0].DiffusionPipeline
    with hub(f"model {settings.model}"):
        fetched = Path(pipeline.download(settings.model, revision=settings.revision))
    for file in fetched.rglob("*"):
        check_blob(file)
    return fetched, fetched.name


def _digest(folder: Path) -> str:
    """Return 16 hex digits over the names and contents of all files."""
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "blake2b").digest()
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + content)
    return total.hexdigest()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()[:200]}" if lines else type(error).__name__
