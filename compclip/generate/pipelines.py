"""A text-to-image pipeline of the diffusers library, as a function of captions and seeds."""

import inspect
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from compclip.clip.device import find_device, is_gpu, settle
from compclip.clip.vision import import_torchvision
from compclip.core.code import code_hash
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import fingerprint
from compclip.core.hub import check_blob, hub
from compclip.core.log import log
from compclip.generate.generators.diffusers import Settings

import_torchvision()
import diffusers  # noqa: E402
import transformers  # noqa: E402

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
for library in (diffusers, transformers):
    library.utils.logging.set_verbosity_error()
    library.utils.logging.disable_progress_bar()


class Pipeline:
    """A loaded pipeline; ``identity`` is all that decides an image but its text and seed, ``about`` is for people."""

    def __init__(self, settings: Settings, threads: int) -> None:
        """Load the pipeline onto its device; raises UserError if the model or the GPU is missing."""
        device = find_device(settings.device, "device")
        settle(threads)
        # Some pipelines have operations without a deterministic algorithm: these only warn.
        torch.use_deterministic_algorithms(True, warn_only=True)
        folder, version = fetch_pipeline(settings)
        dtype = settings.dtype if settings.dtype != "auto" else "fp16" if is_gpu(device) else "fp32"
        try:
            loaded = diffusers.AutoPipelineForText2Image.from_pretrained(folder, dtype=DTYPES[dtype])
            self.pipeline = loaded.to(device)
        except Exception as error:  # the library raises many types for damaged files
            fault = f"not loaded as a text-to-image pipeline ({' '.join(str(error).split())[:200]})"
            raise UserError(f"model {settings.model}: {fault}; download it again or choose another") from error
        self.pipeline.set_progress_bar_config(disable=True)
        self.batch, self.name, self.options = settings.batch, type(self.pipeline).__name__, settings.options
        unknown = self.options.keys() - inspect.signature(self.pipeline.__call__).parameters.keys()
        require(not unknown, f"model {settings.model}", f"a {self.name} takes no {', '.join(unknown)}", "remove it")
        self.about = {
            # A folder's name only, because artifacts contain no absolute path.
            "model": folder.name if Path(settings.model).is_dir() else settings.model,
            "version": version, "pipeline": self.name, **self.options, "dtype": dtype, "device": device.type,
            "library": f"diffusers {diffusers.__version__}, transformers {transformers.__version__}",
        }  # fmt: skip
        identity = {"batch": self.batch, "threads": threads, "torch": torch.__version__, "code": code_hash(__name__)}
        self.identity = json.dumps({**self.about, **identity})
        log.info("%s", self.about)

    def draw(self, texts: Sequence[str], seeds: Sequence[int]) -> list[bytes]:
        """Draw at most ``batch`` PNGs; smaller batches are filled up, so that an image does not depend on them."""
        more = self.batch - len(texts)
        # On the CPU, so that the noise is the same on every device.
        noise = [torch.Generator().manual_seed(seed) for seed in [*seeds, *[seeds[0]] * more]]
        try:
            images = self.pipeline(prompt=[*texts, *[texts[0]] * more], generator=noise, **self.options).images
        except torch.OutOfMemoryError as error:
            raise UserError(f"batch: {self.batch} images do not fit the GPU's memory; use a smaller batch") from error
        files = [io.BytesIO() for _ in texts]
        for image, file in zip(images, files, strict=False):
            image.convert("RGB").save(file, "PNG")
        return [file.getvalue() for file in files]

    def truncated(self, texts: Sequence[str]) -> int:
        """Count the texts that the pipeline's first tokenizer, if it has one, truncates."""
        tokenizer: Any = getattr(self.pipeline, "tokenizer", None)
        tokens = tokenizer(list(texts), truncation=False, padding=False).input_ids if tokenizer else []
        return sum(len(row) > tokenizer.model_max_length for row in tokens)


def fetch_pipeline(settings: Settings) -> tuple[Path, str]:
    """Return the pipeline's folder and version: the Hub's commit, or a fingerprint of the folder."""
    folder = Path(settings.model)
    if folder.is_dir():
        return folder, fingerprint(folder)
    with hub(f"model {settings.model}"):
        fetched = Path(diffusers.DiffusionPipeline.download(settings.model, revision=settings.revision))
    for file in fetched.rglob("*"):
        check_blob(file)
    return fetched, fetched.name
