"""Open the models to ask, all with the interface of judges: judges, models of open_clip, BLIP and ALIGN.

A model of open_clip is cached once as the folder of the judge that stage ``judge`` makes of it with ``epochs: 0``: it
has the same hash and shares its embeddings. BLIP and ALIGN of transformers are asked by their contrastive features.
"""

import json
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from compclip.clip.device import find_device, settle
from compclip.clip.embed import Embedder, open_embedder
from compclip.clip.model import Judge, build, save_judge
from compclip.clip.pixels import Item, Preprocess
from compclip.clip.sources import find_source, model_name
from compclip.clip.vision import open_clip
from compclip.compun.config import NamedModel
from compclip.core.cache import Cache, key
from compclip.core.code import code_hash
from compclip.core.digests import is_recorded, record
from compclip.core.errors import UserError, one_line, require
from compclip.core.fingerprint import fingerprint
from compclip.core.hub import hub_folder
from compclip.core.log import log
from compclip.io import atomic_folder

# Tokens that BLIP and ALIGN read of a text: as many as ALIGN was trained with, and twice BLIP's captions.
CONTEXT_TOKENS = 64
# The files of a model of transformers; pickled weights only if there are no others.
MODEL_FILES, SAFE_WEIGHTS, PICKLED_WEIGHTS = ("*.json", "*.txt"), "*.safetensors", "pytorch_model*.bin"


@contextmanager
def open_model(model: NamedModel, batch: int, threads: int, device: str, cache: Path) -> Iterator[Embedder]:
    """Open the model's embedder, with its cache; UserError if it is not available, damaged, or of another kind."""
    with ExitStack() as stack:
        try:
            if model.transformers:
                opened = open_transformers(model, batch, threads, device, cache)
            else:
                folder = Path(model.judge) if model.judge else keep_open_clip(model, cache)
                opened = open_embedder(folder, batch, threads, device, cache)
            embedder = stack.enter_context(opened)
        except (UserError, OSError) as error:
            raise UserError(f"compun.models: {model.title}: {one_line(error)}") from error
        yield embedder


def keep_open_clip(model: NamedModel, cache: Path) -> Path:
    """Return the folder in ``cache`` of a judge that equals this model of open_clip; make it if necessary."""
    config = model.judge_config()
    source, name = find_source(config), model_name(config.model)
    code = code_hash("compclip.clip.model:build", "compclip.clip.model:save_judge")
    files = fingerprint(*source.files)
    parts = [name, source.model_cfg, source.preprocess_cfg, files, open_clip().__version__, code]
    folder = cache / "models" / key(json.dumps(parts)).hex()
    if not is_recorded(folder, "made again"):
        log.info("%s: copied to %s, which takes as much space as the weights", model.title, folder)
        # The seed does not matter, since all weights are loaded.
        built = build(config, [], 0)
        with atomic_folder(folder) as temporary:
            save_judge(built, name, config.crop, temporary)
        record(folder, "classify")
    return folder


@contextmanager
def open_transformers(model: NamedModel, batch: int, threads: int, device: str, cache: Path) -> Iterator[Embedder]:
    judge = load_transformers(model, threads, device)
    code = code_hash("compclip.compun.models:load_transformers")
    made = f"{batch} {threads} {judge.device} {torch.__version__} {import_transformers().__version__} {code}"
    with Cache(cache / "embeddings" / f"{judge.hash}.sqlite") as embeddings:
        yield Embedder(judge, embeddings, batch, made)


def load_transformers(model: NamedModel, threads: int, device: str = "auto") -> Judge:
    """Return a BLIP or ALIGN of transformers as a judge; raise UserError if it cannot be loaded."""
    title, library = model.title, import_transformers()
    settle(threads)
    folder, files = fetch_transformers(model)
    try:
        model_type = library.AutoConfig.from_pretrained(folder, local_files_only=True).model_type
        remedy = f"supported types of transformers are {', '.join(TOWER_FEATURES)}; try open_clip"
        require(model_type in TOWER_FEATURES, title, f"model type {model_type}", remedy)
        features = TOWER_FEATURES[model_type]
        network, report = getattr(library, features.library_class).from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype=torch.float32
        )
        tokenizer = open_clip().tokenizer.HFTokenizer(str(folder), context_length=CONTEXT_TOKENS, local_files_only=True)
        processor = library.AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    except UserError:
        raise
    except Exception as error:  # the library raises exceptions of many types for damaged files
        reason = textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
        raise UserError(f"{title}: cannot be loaded ({reason}); check that the download is complete") from error
    # The library initializes missing weights at random.
    missing = sorted({*report["missing_keys"]} & {name for name, _ in network.named_parameters()})
    fault = f"lacks {len(missing)} weights of {features.library_class}, such as {missing[:1]}"
    require(not missing, title, fault, "give a model of that class")
    towers = features(network, tokenizer.tokenizer.pad_token_id)
    judge = Judge(towers, tokenizer, ProcessorPreprocess(processor), find_device(device, "--device"), threads)
    judge.name, judge.hash = title, key(*(path.name for path in files), fingerprint(*files)).hex()[:16]
    return judge


class BlipFeatures(nn.Module):
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


class AlignFeatures(BlipFeatures):
    library_class = "AlignModel"

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.get_image_features(pixel_values=pixels).pooler_output

    def text_features(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.model.get_text_features(**inputs).pooler_output


TOWER_FEATURES: dict[str, type[BlipFeatures]] = {"blip": BlipFeatures, "align": AlignFeatures}  # by type of model


class ProcessorPreprocess(Preprocess):
    """Reads images by the processor of a model of transformers."""

    def __init__(self, processor: Any) -> None:
        self.processor, self.crop = processor, None

    def read(self, items: Sequence[Item]) -> np.ndarray:
        """Return (n, 3, height, width) float32; raise UserError for a file that is not an image."""
        images = [self._decode(*item) for item in items]
        ready = self.processor(images=images, return_tensors="np", input_data_format="channels_last")
        return np.ascontiguousarray(ready["pixel_values"], np.float32)

    def floats(self, images: np.ndarray, device: torch.device) -> torch.Tensor:
        return torch.from_numpy(images).to(device)


def import_transformers() -> Any:
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
    is_local = folder.is_dir()
    if is_local:
        require(model.revision is None, model.title, "a folder has no revision", "remove revision")
    else:
        log.info("%s: looking for it on the Hub", model.title)
    for weights in (SAFE_WEIGHTS, PICKLED_WEIGHTS):
        if not is_local:
            folder = hub_folder(model.transformers, [*MODEL_FILES, weights], model.revision)
        if any(folder.glob(weights)):
            return folder, sorted(path for pattern in (*MODEL_FILES, weights) for path in folder.glob(pattern))
    raise UserError(f"{model.title}: no weights ({SAFE_WEIGHTS} or {PICKLED_WEIGHTS}); check the folder")
