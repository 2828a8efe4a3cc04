"""The models that are asked, each behind the judge's interface: judges, open_clip's, and BLIP and ALIGN of
transformers.

An open_clip model is put into the cache once, as the folder of the judge that stage ``judge`` makes of it with
``epochs: 0``: it has the same hash, and so shares its embeddings. What transformers has is made a ``Judge`` too: its
contrastive features, of unit length.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import TypeAdapter, ValidationError
from torch import nn

from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.embed import Embedder, open_embedder
from workflow_scripts.clip.model import MODEL, VOCABULARY, Judge, build, find_model, model_name, save_judge
from workflow_scripts.clip.pixels import Item, Preprocess
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.compun.named_model import NamedModel
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.cli import log, one_line
from workflow_scripts.core.code import code_hash
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.fingerprint import fingerprint
from workflow_scripts.core.io import atomic_folder
from workflow_scripts.judge.config import JudgeConfig

import_torchvision()

import open_clip  # noqa: E402
from open_clip.tokenizer import HFTokenizer  # noqa: E402

# Tokens of a text that BLIP and ALIGN read: as many as ALIGN was trained with, and twice BLIP's captions.
CONTEXT = 64
# What is fetched of a model of transformers; the weights as a pickle only where there are no others.
FILES, WEIGHTS, PICKLED = ("*.json", "*.txt"), "*.safetensors", "pytorch_model*.bin"
ALBEF = (
    "no maintained library offers it: transformers never took it in (its issue 17224 is open since 2022), and its"
    " authors' LAVIS (1.0.2, of 2023) runs with transformers below 4.27 alone"
)
# The folders of a path that is not an address's.
FOLDERS = re.compile(r"(?<![\w:/.~-])(?:/[^/\s'\",:()]+)+/")
# Keys of stage judge in its messages, and what is written here in their place.
JUDGE_KEYS = {"judge.model": "open_clip", "judge.pretrained": "pretrained"}


class CannotLoad(Exception):
    """The message is the reason, on one line and without folders of this machine: it goes into artifacts."""


def read_models(text: str) -> list[NamedModel]:
    """The models of a JSON list. Raises UserError for one that is misnamed, and for two of one title."""
    try:
        models = TypeAdapter(list[NamedModel]).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"--models: {place + ': ' if place else ''}{first['msg']}") from error
    if not models:
        raise UserError("--models: names none")
    titles = [model.title for model in models]
    twice = [title for title in titles if titles.count(title) > 1]
    if twice:
        raise UserError(f"--models: two are called {twice[0]!r}: give each a name of its own")
    return models


@contextmanager
def open_model(model: NamedModel, options: argparse.Namespace) -> Iterator[Embedder]:
    """The model's embedder, its cache open. options: cache, batch, threads and device, as ``embed.add_arguments`` has
    them. Raises CannotLoad."""
    with ExitStack() as stack:
        try:
            opened = _open_transformers(model, options) if model.transformers else _open_judge(model, options)
            embedder = stack.enter_context(opened)
        except (UserError, OSError) as error:
            raise CannotLoad(own_keys(without_folders(one_line(error), model.places()))) from error
        yield embedder


def _open_judge(model: NamedModel, options: argparse.Namespace) -> AbstractContextManager[Embedder]:
    folder = Path(model.judge) if model.judge else keep_open_clip(model, options.cache)
    return open_embedder(argparse.Namespace(**{**vars(options), "judge": folder}))


def keep_open_clip(model: NamedModel, cache: Path) -> Path:
    """The folder in ``cache`` of a judge that is this open_clip model as it is; made where it is not there."""
    assert model.open_clip is not None
    config = JudgeConfig(model=model.open_clip, pretrained=model.pretrained, epochs=0)
    weights = Path(model.pretrained or "")
    # What stands beside a judge's weights decides too.
    own = [weights, weights.with_name(MODEL), weights.with_name(VOCABULARY)] if weights.is_file() else []
    about = [model_name(model.open_clip), find_model(model.open_clip), fingerprint(*own) if own else model.pretrained]
    made = [open_clip.__version__, code_hash("workflow_scripts.clip.model")]
    folder = cache / "models" / key(json.dumps([*about, *made])).hex()
    if not folder.is_dir():
        log.info("%s: kept in %s, which takes as much room as its weights", model.title, folder)
        # The seed does not matter: all weights are loaded.
        built = build(config, [], 0)
        with atomic_folder(folder) as temporary:
            save_judge(built, model_name(config.model), config.crop, temporary)
    return folder


def without_folders(text: str, places: Sequence[Path] = ()) -> str:
    """``text`` with the paths of ``places``, and any that is absolute, cut to their last parts."""
    for place in sorted({str(place) for place in places}, key=len, reverse=True):
        text = text.replace(place, Path(place).name)
    return FOLDERS.sub("", text)


def own_keys(text: str) -> str:
    """``text`` of stage judge, with the keys that a user writes here."""
    return re.sub(r"(?<![\w.])judge\.(model|pretrained)\b", lambda found: JUDGE_KEYS[found[0]], text)


# BLIP and ALIGN


class Blip(nn.Module):
    """BLIP's contrastive features (``BlipForImageTextRetrieval`` without its matching head), as open_clip's models."""

    library_class = "BlipForImageTextRetrieval"

    def __init__(self, model: Any, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def encode_image(self, pixels: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.model.vision_proj(self.model.vision_model(pixels).last_hidden_state[:, 0])
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, ids: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        hidden = self.model.text_encoder(input_ids=ids, attention_mask=(ids != self.pad).long()).last_hidden_state
        features = self.model.text_proj(hidden[:, 0])
        return F.normalize(features, dim=-1) if normalize else features


class Align(nn.Module):
    """ALIGN's features, as open_clip's models."""

    library_class = "AlignModel"

    def __init__(self, model: Any, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def encode_image(self, pixels: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.model.get_image_features(pixel_values=pixels).pooler_output
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, ids: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        mask = (ids != self.pad).long()
        features = self.model.get_text_features(input_ids=ids, attention_mask=mask).pooler_output
        return F.normalize(features, dim=-1) if normalize else features


TOWERS: dict[str, type[Blip] | type[Align]] = {"blip": Blip, "align": Align}


class Processed(Preprocess):
    """Images prepared by transformers' own processor."""

    def __init__(self, processor: Any) -> None:
        self.processor, self.crop = processor, None

    def read(self, items: Sequence[Item]) -> np.ndarray:
        """(n, 3, height, width) float32; UserError names a file that is no image."""
        images = [self._decode(*item, np.empty((0, 0, 3), np.uint8)) for item in items]
        ready = self.processor(images=images, return_tensors="np", input_data_format="channels_last")
        return np.ascontiguousarray(ready["pixel_values"], np.float32)

    def floats(self, images: np.ndarray, device: torch.device) -> torch.Tensor:
        return torch.from_numpy(images).to(device)


@contextmanager
def _open_transformers(model: NamedModel, options: argparse.Namespace) -> Iterator[Embedder]:
    judge = load_transformers(model, options.threads, options.device)
    code = code_hash("workflow_scripts.compun.models")
    made = f"{options.batch} {options.threads} {judge.device} {torch.__version__} {_library().__version__} {code}"
    with Cache(options.cache / "embeddings" / f"{judge.hash}.sqlite") as cache:
        yield Embedder(judge, cache, options.batch, made)


def load_transformers(model: NamedModel, threads: int, device: str = "auto") -> Judge:
    """A BLIP or ALIGN of the library transformers, to judge by. Raises UserError where it cannot be loaded."""
    assert model.transformers is not None
    title = model.title
    if "albef" in model.transformers.lower() and not Path(model.transformers).is_dir():
        raise UserError(ALBEF)
    library = _library()
    settle(threads)
    folder, files = fetch_transformers(model)
    try:
        config = library.AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library raises nearly anything where a file is damaged or of another kind
        raise UserError(f"{title}: its config cannot be read ({_short(error)})") from error
    kind = TOWERS.get(config.model_type)
    if kind is None:
        known = ", ".join(TOWERS)
        raise UserError(
            f"{title}: a {config.model_type}; of transformers, {known} can be asked; try open_clip's models"
        )
    try:
        network, report = getattr(library, kind.library_class).from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype=torch.float32
        )
        tokenizer = HFTokenizer(str(folder), context_length=CONTEXT, local_files_only=True)
        processor = library.AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    except Exception as error:
        raise UserError(f"{title}: cannot be loaded ({_short(error)}): is the download whole?") from error
    # The library fills what is missing with random numbers.
    missing = sorted({*report["missing_keys"]} & {name for name, _ in network.named_parameters()})
    if missing:
        raise UserError(
            f"{title}: lacks {len(missing)} of the weights of {kind.library_class}, {missing[0]} for one: give a model"
            " of that class"
        )
    towers = kind(network, tokenizer.tokenizer.pad_token_id)
    judge = Judge(towers, tokenizer, Processed(processor), find_device(device, "--device"), threads)
    judge.name, judge.hash = title, _digest(files)
    return judge


def _library() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UserError("the library transformers is not installed: pip install transformers") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def fetch_transformers(model: NamedModel) -> tuple[Path, list[Path]]:
    """The model's folder, and the files in it that decide an embedding; UserError where it is not to be had."""
    folder = Path(model.transformers or "")
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        log.info("%s: looked for on the hub", model.title)
        try:
            for weights in (WEIGHTS, PICKLED):
                folder = Path(
                    snapshot_download(model.transformers, revision=model.revision, allow_patterns=[*FILES, weights])
                )
                if any(folder.glob(weights)):
                    break
        except Exception as error:  # as many kinds as the hub has ways to fail
            raise UserError(
                f"{model.transformers}: no such folder, and not to be had from the hub ({_short(error)})"
            ) from error
    elif model.revision is not None:
        raise UserError(f"{model.title}: a folder, which has no revision {model.revision!r}: leave it out")
    weights = next((pattern for pattern in (WEIGHTS, PICKLED) if any(folder.glob(pattern))), None)
    if weights is None:
        raise UserError(f"{model.title}: no weights there ({WEIGHTS} or {PICKLED})")
    return folder, sorted(path for pattern in (*FILES, weights) for path in folder.glob(pattern))


def _digest(files: Sequence[Path]) -> str:
    """16 hex digits over the files' names and contents."""
    return key(*(path.name for path in files), fingerprint(*files)).hex()[:16]


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    line = textwrap.shorten(lines[0], 200, placeholder=" …") if lines else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
