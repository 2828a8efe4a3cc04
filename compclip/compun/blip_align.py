"""BLIP and ALIGN of transformers as judges of their contrastive features, of unit length."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from compclip.clip.device import find_device, settle
from compclip.clip.embed import Embedder
from compclip.clip.model import Judge
from compclip.clip.pixels import Item, Preprocess
from compclip.clip.vision import open_clip
from compclip.compun.config import NamedModel
from compclip.core.cache import Cache, key
from compclip.core.code import code_hash
from compclip.core.errors import UserError, require
from compclip.core.fingerprint import fingerprint
from compclip.core.hub import hub_folder
from compclip.core.log import log

# Tokens that BLIP and ALIGN read of a text: as many as ALIGN was trained with, and twice BLIP's captions.
CONTEXT = 64
# The files of a model of transformers; pickled weights only if there are no others.
FILES, WEIGHTS, PICKLED = ("*.json", "*.txt"), "*.safetensors", "pytorch_model*.bin"


class Blip(nn.Module):
    """BLIP's contrastive features (``BlipForImageTextRetrieval`` without its matching head), as models of open_clip."""

    library_class = "BlipForImageTextRetrieval"

    def __init__(self, model: Any, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def encode_image(self, pixels: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.image_features(pixels)
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, ids: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.text_features({"input_ids": ids, "attention_mask": (ids != self.pad).long()})
        return F.normalize(features, dim=-1) if normalize else features

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.vision_proj(self.model.vision_model(pixels).last_hidden_state[:, 0])

    def text_features(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.model.text_proj(self.model.text_encoder(**inputs).last_hidden_state[:, 0])


class Align(Blip):
    """ALIGN's features."""

    library_class = "AlignModel"

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.get_image_features(pixel_values=pixels).pooler_output

    def text_features(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.model.get_text_features(**inputs).pooler_output


TOWERS: dict[str, type[Blip]] = {"blip": Blip, "align": Align}


class Processed(Preprocess):
    def __init__(self, processor: Any) -> None:
        self.processor, self.crop = processor, None

    def read(self, items: Sequence[Item]) -> np.ndarray:
        """Return (n, 3, height, width) float32; raise UserError for a file that is not an image."""
        images = [self._decode(*item) for item in items]
        ready = self.processor(images=images, return_tensors="np", input_data_format="channels_last")
        return np.ascontiguousarray(ready["pixel_values"], np.float32)

    def floats(self, images: np.ndarray, device: torch.device) -> torch.Tensor:
        return torch.from_numpy(images).to(device)


@contextmanager
def open_transformers(model: NamedModel, batch: int, threads: int, device: str, cache: Path) -> Iterator[Embedder]:
    judge = load_transformers(model, threads, device)
    code = code_hash("compclip.compun.blip_align:load_transformers")
    made = f"{batch} {threads} {judge.device} {torch.__version__} {_library().__version__} {code}"
    with Cache(cache / "embeddings" / f"{judge.hash}.sqlite") as embeddings:
        yield Embedder(judge, embeddings, batch, made)


def load_transformers(model: NamedModel, threads: int, device: str = "auto") -> Judge:
    """Return a BLIP or ALIGN of transformers as a judge; raise UserError if it cannot be loaded."""
    assert model.transformers is not None
    title = model.title
    library = _library()
    settle(threads)
    folder, files = fetch_transformers(model)
    try:
        config = library.AutoConfig.from_pretrained(folder, local_files_only=True)
        kind = TOWERS.get(config.model_type)
        known = f"supported types of transformers are {', '.join(TOWERS)}; try open_clip"
        if kind is None:
            raise UserError(f"{title}: model type {config.model_type}; {known}")
        network, report = getattr(library, kind.library_class).from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype=torch.float32
        )
        tokenizer = open_clip().tokenizer.HFTokenizer(str(folder), context_length=CONTEXT, local_files_only=True)
        processor = library.AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    except UserError:
        raise
    except Exception as error:  # the library raises exceptions of many types for damaged files
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
        raise UserError(f"{title}: cannot be loaded ({reason}); check that the download is complete") from error
    # The library initializes missing weights at random.
    missing = sorted({*report["missing_keys"]} & {name for name, _ in network.named_parameters()})
    fault = f"lacks {len(missing)} weights of {kind.library_class}, such as {missing[:1]}"
    require(not missing, title, fault, "give a model of that class")
    towers = kind(network, tokenizer.tokenizer.pad_token_id)
    judge = Judge(towers, tokenizer, Processed(processor), find_device(device, "--device"), threads)
    judge.name, judge.hash = title, key(*(path.name for path in files), fingerprint(*files)).hex()[:16]
    return judge


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UserError("the library transformers is not installed; pip install transformers") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def fetch_transformers(model: NamedModel) -> tuple[Path, list[Path]]:
    """Return the model's folder, and the files that decide an embedding; UserError if there are none."""
    assert model.transformers is not None
    folder = Path(model.transformers)
    if not folder.is_dir():
        log.info("%s: looking for it on the Hub", model.title)
        for weights in (WEIGHTS, PICKLED):
            folder = hub_folder(model.transformers, [*FILES, weights], model.revision)
            if any(folder.glob(weights)):
                break
    else:
        require(model.revision is None, model.title, "a folder has no revision", "remove revision")
    patterns = [pattern for pattern in (WEIGHTS, PICKLED) if any(folder.glob(pattern))]
    require(patterns, model.title, f"no weights ({WEIGHTS} or {PICKLED})", "check the folder")
    return folder, sorted(path for pattern in (*FILES, patterns[0]) for path in folder.glob(pattern))
