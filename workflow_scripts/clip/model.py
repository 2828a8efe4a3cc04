"""A judge: an open_clip model (or two small towers of the project's own) behind one interface.

``build`` makes one from the config, ``save_judge`` and ``load_judge`` put it in a folder and take it out, and
``Judge`` encodes images and captions. A judge's folder holds ``weights.safetensors``, ``model.json`` (open_clip's
``model_cfg`` and ``preprocess_cfg``, and the crop) and ``vocabulary.json`` (null for open_clip's tokenizers).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from workflow_scripts.clip import text_tower
from workflow_scripts.clip.config import MODELS, ModelConfig, model_file
from workflow_scripts.clip.device import find_device, settle
from workflow_scripts.clip.networks import IMAGE_TOWERS, TEXT_TOWERS
from workflow_scripts.clip.pixels import Item, Preprocess
from workflow_scripts.clip.pretrained import find_pretrained, load_pretrained, start_tower
from workflow_scripts.clip.tokens import Tokenizer, get_tokenizer, make_vocabulary, tokenize
from workflow_scripts.clip.vision import import_torchvision
from workflow_scripts.clip.weights import read_weights, start
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import atomic, read_json, write_json
from workflow_scripts.core.progress import Progress

import_torchvision()

import open_clip  # noqa: E402
from open_clip.model import CLIP, CustomTextCLIP, _build_text_tower, _build_vision_tower  # noqa: E402
from open_clip.transform import PreprocessCfg, merge_preprocess_dict  # noqa: E402

WEIGHTS, MODEL, VOCABULARY, MANIFEST = "weights.safetensors", "model.json", "vocabulary.json", "manifest.json"


class TwoTowers(nn.Module):
    """Any two towers behind open_clip's ``encode_image``, ``encode_text`` and ``logit_scale``."""

    def __init__(self, embed_dim: int, vision_cfg: dict[str, Any], text_cfg: dict[str, Any]) -> None:
        super().__init__()
        self.visual = _tower(IMAGE_TOWERS, _build_vision_tower, embed_dim, vision_cfg)
        self.text = _tower(TEXT_TOWERS, _build_text_tower, embed_dim, text_cfg)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def encode_image(self, image: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.visual(image)
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, text: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.text(text)
        return F.normalize(features, dim=-1) if normalize else features


def _tower(
    own: dict[str, type[nn.Module]], other: Callable[..., nn.Module], embed_dim: int, cfg: dict[str, Any]
) -> nn.Module:
    name = cfg.get("tower")
    if name is None:
        return other(embed_dim, cfg)
    if name not in own:
        raise UserError(f"model config: unknown tower {name!r}; allowed: {', '.join(own)}, or open_clip's own keys")
    return own[name](embed_dim, **{key: value for key, value in cfg.items() if key != "tower"})


def find_model(name: str) -> dict[str, Any]:
    """The open_clip model config of a path, of a file in ``models/``, or of open_clip.

    A path may be that of a judge's ``model.json`` too. Raises UserError for a name that is none of these.
    """
    path = model_file(name)
    if path is not None:
        cfg = read_json(path)
        if isinstance(cfg, dict):
            cfg = cfg.get("model_cfg", cfg)
        if not isinstance(cfg, dict) or not {"embed_dim", "vision_cfg", "text_cfg"} <= set(cfg):
            raise UserError(f"{path}: not an open_clip model config: it needs embed_dim, vision_cfg and text_cfg")
        return cfg
    cfg = open_clip.get_model_config(name)
    if cfg is None:
        own = ", ".join(sorted(p.stem for p in MODELS.glob("*.json")))
        raise UserError(
            f"judge.model: unknown {name!r}; the project's own: {own}; a path to a model config (.json); or one of"
            f" open_clip's {len(open_clip.list_models())}, which `python -m workflow_scripts.clip.model` lists"
        )
    return cfg


def model_name(name: str) -> str:
    """What a judge of ``judge.model: name`` is called: as the judge whose ``model.json`` that is, or by the file."""
    if not name.endswith(".json"):
        return name
    return read_json(name).get("name", Path(name).stem)


def construct(model_cfg: dict[str, Any]) -> nn.Module:
    """The model of a config, its weights random (from torch's generator), in evaluation mode.

    Raises UserError for a config whose keys do not fit.
    """
    cfg = deepcopy(model_cfg)
    if "timm_model_name" in cfg["vision_cfg"]:
        cfg["vision_cfg"]["timm_model_pretrained"] = False
    if "hf_model_name" in cfg["text_cfg"]:
        cfg["text_cfg"]["hf_model_pretrained"] = False
    try:
        if "tower" in cfg["vision_cfg"] or "tower" in cfg["text_cfg"]:
            return TwoTowers(**cfg).eval()
        custom = cfg.pop("custom_text", False) or "hf_model_name" in cfg["text_cfg"]
        kind = open_clip.CoCa if "multimodal_cfg" in cfg else CustomTextCLIP if custom else CLIP
        return kind(**cfg).eval()
    except (TypeError, RuntimeError, AssertionError) as error:
        raise UserError(f"judge.model: its config makes no model: {' '.join(str(error).split())}") from error


@dataclass
class Built:
    """A model, what it must be fed, and what it was made from.

    model_cfg and preprocess_cfg are open_clip's; unused: tensors of a tower's weights that found no place.
    """

    model: nn.Module
    model_cfg: dict[str, Any]
    preprocess_cfg: dict[str, Any]
    vocabulary: list[str] | None
    unused: list[str]


def build(config: ModelConfig, captions: Sequence[str], seed: int) -> Built:
    """The model that a config names, before it is trained on ``captions``, which give a word tower its words."""
    model_cfg = find_model(config.model)
    preprocess_cfg = asdict(PreprocessCfg())
    weights, about = find_pretrained(config)
    preprocess_cfg = merge_preprocess_dict(preprocess_cfg, about)
    if "quick_gelu" in about:
        # The weights know which activation they were trained with better than the name of the model.
        model_cfg["quick_gelu"] = about["quick_gelu"]
    vocabulary = None
    if model_cfg["text_cfg"].get("tower") == "words":
        beside = weights.with_name(VOCABULARY) if weights else None
        vocabulary = read_json(beside) if beside and beside.is_file() else make_vocabulary(captions)
        model_cfg["text_cfg"]["vocab_size"] = len(vocabulary)
    torch.manual_seed(seed)
    model = construct(model_cfg)
    if weights and isinstance(model, TwoTowers):
        start(model, read_weights(str(weights)), str(weights))
    elif weights:
        load_pretrained(model, weights, config.model)
    unused: list[str] = []
    if config.tower:
        unused = start_tower(model, config)
        preprocess_cfg = {**preprocess_cfg, "mean": config.tower.mean, "std": config.tower.std}
    preprocess_cfg["size"] = model.visual.image_size
    return Built(model, model_cfg, json.loads(json.dumps(preprocess_cfg)), vocabulary, unused)


def assemble(
    model_cfg: dict[str, Any],
    state: Mapping[str, torch.Tensor],
    preprocess_cfg: dict[str, Any],
    vocabulary: list[str] | None,
    where: str,
) -> Built:
    """The model of a config with the tensors of ``state``; UserError names one that is missing, unused or misshapen."""
    model = construct(model_cfg)
    unused = start(model, state, where)
    if unused:
        raise UserError(f"{where}: the model has no place for {', '.join(unused[:3])}: the weights of another one")
    return Built(model, model_cfg, preprocess_cfg, vocabulary, [])


def save_judge(built: Built, name: str, crop: float | None, folder: Path) -> str:
    """Write the judge's files; returns its hash. Equal weights give equal bytes."""
    state = {key: value.detach().cpu().contiguous().clone() for key, value in built.model.state_dict().items()}
    with atomic(folder / WEIGHTS) as temporary:
        safetensors.torch.save_file(state, temporary)
    settings = {"name": name, "model_cfg": built.model_cfg, "preprocess_cfg": built.preprocess_cfg, "crop": crop}
    write_json(settings, folder / MODEL)
    write_json(built.vocabulary, folder / VOCABULARY)
    return judge_hash(folder)


def judge_hash(folder: str | Path) -> str:
    """16 hex digits over everything that decides an embedding."""
    digest = hashlib.blake2b(digest_size=8)
    for name in (WEIGHTS, MODEL, VOCABULARY):
        digest.update(hashlib.blake2b((Path(folder) / name).read_bytes()).digest())
    return digest.hexdigest()


class Judge:
    """Encodes images and captions to rows of unit length; their dot product is the similarity.

    An embedding does not depend on the order of the items or on their batch, only on ``batch``, its size, for
    the last batch is filled up. Captions that are cut to the same length (``text_tower.by_length``) go together.
    """

    def __init__(
        self, model: nn.Module, tokenizer: Tokenizer, preprocess: Preprocess, device: torch.device, threads: int
    ) -> None:
        self.model = model.to(device, memory_format=torch.channels_last).eval()
        self.tokenizer, self.preprocess, self.device, self.threads = tokenizer, preprocess, device, threads
        self.name = self.hash = ""

    def encode_images(self, items: Sequence[Item], batch: int) -> np.ndarray:
        """(n, d) float32 for n files with their bounding boxes; UserError names one that cannot be read."""
        parts = self.read_ahead(items, batch)
        return self._encode(parts, len(items), batch, "images", self._images)

    def encode_pixels(self, pixels: np.ndarray, batch: int) -> np.ndarray:
        """As ``encode_images``, of (n, height, width, 3) bytes already read by ``preprocess``."""
        parts = (pixels[start : start + batch] for start in range(0, len(pixels), batch))
        return self._encode(parts, len(pixels), batch, "images", self._images)

    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray:
        """(n, d) float32 for n captions, as they are: cleaning is done here."""
        alike = text_tower.by_length(self.model, tokenize(self.tokenizer, texts))
        parts = (part.numpy() for _, ids in alike for part in ids.split(batch) if len(part))
        vectors = self._encode(parts, len(texts), batch, "captions", self._texts)
        result = np.empty_like(vectors)
        result[np.concatenate([rows.numpy() for rows, _ in alike])] = vectors
        return result

    def _images(self, pixels: np.ndarray) -> torch.Tensor:
        return self.model.encode_image(self.preprocess.floats(pixels, self.device), normalize=True)

    def _texts(self, ids: np.ndarray) -> torch.Tensor:
        return F.normalize(text_tower.encode(self.model, torch.from_numpy(ids).to(self.device)), dim=-1)

    def _encode(
        self,
        parts: Iterator[np.ndarray],
        total: int,
        batch: int,
        unit: str,
        encode: Callable[[np.ndarray], torch.Tensor],
    ) -> np.ndarray:
        done: list[np.ndarray] = []
        with Progress(total, unit) as progress, torch.inference_mode():
            for part in parts:
                n = len(part)
                full = (
                    part if n == batch else np.concatenate([part, np.zeros((batch - n, *part.shape[1:]), part.dtype)])
                )
                done.append(encode(full)[:n].float().cpu().numpy())
                progress.add(n)
        return np.concatenate(done) if done else np.zeros((0, self.width), np.float32)

    @property
    def width(self) -> int:
        """d, the length of an embedding."""
        with torch.inference_mode():
            return self._texts(tokenize(self.tokenizer, [""]).numpy()).shape[1]

    def read_ahead(self, items: Sequence[Item], batch: int) -> Iterator[np.ndarray]:
        """Batches of bytes, (n, height, width, 3); the next one is read while this one is encoded."""
        with ThreadPoolExecutor(self.threads) as pool:
            ahead: list[Any] = []
            for start in range(0, len(items) + batch, batch):
                if start < len(items):
                    part = items[start : start + batch]
                    share = -(-len(part) // self.threads)
                    shares = [part[cut : cut + share] for cut in range(0, len(part), share)]
                    ahead.append([pool.submit(self.preprocess.read, some) for some in shares])
                if ahead and (len(ahead) == 2 or start >= len(items)):
                    yield np.concatenate([future.result() for future in ahead.pop(0)])


def fold_norms(model: nn.Module) -> None:
    """Put batch norms, which in evaluation are a factor and a summand, into the convolutions before them."""
    for module in list(model.modules()):
        if isinstance(module, nn.Sequential):
            for i, (layer, norm) in enumerate(itertools.pairwise(module)):
                if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                    module[i], module[i + 1] = fuse_conv_bn_eval(layer, norm), nn.Identity()


def read_judge(folder: str | Path) -> tuple[Built, str, float | None]:
    """A judge as it was saved, to be trained further: its model, name and crop.

    Raises UserError for a folder of no judge, and where its files do not belong together.
    """
    folder = Path(folder)
    if not (folder / MODEL).is_file():
        raise UserError(
            f"{folder}: not a judge's folder: make one with workflow_scripts.specs.stretch (of an open_clip model),"
            " workflow_scripts.specs.released (of a checkpoint of Long-CLIP or SPECS) or stage judge"
        )
    settings, vocabulary, weights = read_json(folder / MODEL), read_json(folder / VOCABULARY), str(folder / WEIGHTS)
    built = assemble(settings["model_cfg"], read_weights(weights), settings["preprocess_cfg"], vocabulary, weights)
    return built, settings["name"], settings["crop"]


def load_judge(folder: str | Path, threads: int, device: str = "auto") -> Judge:
    """The judge of a folder that ``train_judge`` wrote, to judge by: its batch norms are folded.

    Raises UserError as ``read_judge``.
    """
    folder = Path(folder)
    settle(threads)
    built, name, crop = read_judge(folder)
    fold_norms(built.model)
    tokenizer, preprocess = get_tokenizer(built.model_cfg, built.vocabulary), Preprocess(built.preprocess_cfg, crop)
    judge = Judge(built.model, tokenizer, preprocess, find_device(device), threads)
    judge.name, judge.hash = name, judge_hash(folder)
    manifest = folder / MANIFEST
    if manifest.is_file() and read_json(manifest).get("judge_hash") != judge.hash:
        raise UserError(
            f"{manifest}: its judge_hash is not that of the files beside it ({judge.hash}): some are of another"
            " judge; train it again, or take the whole folder"
        )
    return judge


if __name__ == "__main__":
    print("\n".join([*sorted(p.stem for p in MODELS.glob("*.json")), *open_clip.list_models()]))
