"""A judge: an open_clip model, or two small towers of this project, behind one interface.

``build`` makes one from the config, ``save_judge`` and ``load_judge`` write and read its folder,
and ``Judge`` encodes images and captions. A judge's folder holds ``weights.safetensors``,
``model.json`` (open_clip's ``model_cfg`` and ``preprocess_cfg``, and the crop), ``vocabulary.json``
(null for open_clip's tokenizers) and, for a tokenizer of transformers, its files in ``tokenizer/``.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from compclip.clip import text_tower
from compclip.clip.config import (
    JUDGE_MODEL,
    VOCABULARY,
    JudgeFile,
    ModelConfig,
    check_model_cfg,
    has_weights,
)
from compclip.clip.device import find_device, settled
from compclip.clip.networks import IMAGE_TOWERS, TEXT_TOWERS
from compclip.clip.pixels import Item, Preprocess
from compclip.clip.sources import find_source, model_name
from compclip.clip.tokens import Tokenizer, get_tokenizer, make_vocabulary, tokenize
from compclip.clip.vision import open_clip
from compclip.clip.weights import load_pretrained, load_tensors, read_weights, start_tower
from compclip.core.artifacts.files import atomic, atomic_folder, read_json, write_json
from compclip.core.errors import UserError, one_line, require
from compclip.core.progress import Progress
from compclip.core.reading.hub import hub
from compclip.core.reading.model_folders import model_folder, refuse_code
from compclip.core.settings.plugins import validated

JUDGE_WEIGHTS = "weights.safetensors"
JUDGE_MANIFEST = "manifest.json"
TOKENIZER = "tokenizer"
TOKENIZER_SUFFIXES = (".json", ".txt", ".model")  # .model: of sentencepiece

# Preprocessing of a tower that starts from other weights.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class TwoTowers(nn.Module):
    """Any two towers behind open_clip's ``encode_image``, ``encode_text`` and ``logit_scale``."""

    def __init__(
        self, embed_dim: int, vision_cfg: dict[str, Any], text_cfg: dict[str, Any]
    ) -> None:
        super().__init__()
        self.visual = _tower(IMAGE_TOWERS, "_build_vision_tower", embed_dim, vision_cfg)
        self.text = _tower(TEXT_TOWERS, "_build_text_tower", embed_dim, text_cfg)
        # the inverse temperature at which CLIP's training starts
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def encode_image(self, image: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.visual(image)
        return F.normalize(features, dim=-1) if normalize else features

    def encode_text(self, text: torch.Tensor, normalize: bool = False) -> torch.Tensor:
        features = self.text(text)
        return F.normalize(features, dim=-1) if normalize else features


def _tower(
    towers: Mapping[str, type[nn.Module]], builder: str, embed_dim: int, cfg: dict[str, Any]
) -> nn.Module:
    """Build the tower of ``towers`` that the config names, else open_clip's by its function
    ``builder``.
    """
    name = cfg.get("tower")
    if name is None:
        return getattr(open_clip().model, builder)(embed_dim, cfg)
    if name not in towers:
        raise UserError(
            f"model config: unknown tower {name!r}; use {', '.join(towers)}, or open_clip's keys"
        )
    arguments = {key: value for key, value in cfg.items() if key != "tower"}
    return towers[name](embed_dim, **arguments)


def construct(model_cfg: dict[str, Any]) -> Any:
    """Return the model of a config in evaluation mode, with random weights from torch's generator.

    Raises:
        UserError: no model can be built from the config, or it has a key that is not allowed, or
            its text tower's folder comes with code.
    """
    check_model_cfg(model_cfg)
    cfg = deepcopy(model_cfg)
    vision_cfg = cfg["vision_cfg"]
    text_cfg = cfg["text_cfg"]
    # The towers' own weights would be downloaded, only to be replaced.
    if "timm_model_name" in vision_cfg:
        vision_cfg["timm_model_pretrained"] = False
    if "hf_model_name" in text_cfg:
        text_cfg["hf_model_pretrained"] = False
    # transformers loads the settings of its towers from the Hub, as does timm for some names.
    # open_clip lets transformers ask on a terminal whether to run their code, so their files are
    # checked.
    text_name = text_cfg.get("hf_model_name")
    if text_name:
        text_cfg["hf_model_name"] = str(model_folder(str(text_name), ["config.json"]))
    image_name = str(vision_cfg.get("timm_model_name"))
    with hub(image_name) if ":" in image_name else nullcontext():
        try:
            return _model_class(cfg)(**cfg).eval()
        except (OSError, UserError):
            raise
        except Exception as error:  # an invalid config can raise almost any exception
            raise UserError(
                f"judge.model: cannot build a model from its config: {one_line(error)[:300]}"
            ) from error


def _model_class(cfg: dict[str, Any]) -> Any:
    """Return the class of a config's model, and remove the config's key that only selects it."""
    if "tower" in cfg["vision_cfg"] or "tower" in cfg["text_cfg"]:
        return TwoTowers
    library = open_clip()
    # open_clip.create_model chooses in the same way.
    is_custom = cfg.pop("custom_text", False) or "hf_model_name" in cfg["text_cfg"]
    if "multimodal_cfg" in cfg:
        return library.CoCa
    return library.CustomTextCLIP if is_custom else library.CLIP


@dataclass
class Built:
    """A model with its open_clip configs."""

    model: Any
    model_cfg: dict[str, Any]
    preprocess_cfg: dict[str, Any]
    vocabulary: list[str] | None
    # Tensors of a tower's weights that the model does not use.
    unused: list[str] = field(default_factory=list)
    # Folder of a transformers tokenizer; None: by its name on the Hub.
    tokenizer_files: Path | None = None

    def tokenizer(self) -> Tokenizer:
        return get_tokenizer(self.model_cfg, self.vocabulary, self.tokenizer_files)


def build(config: ModelConfig, captions: Sequence[str], seed: int) -> Built:
    """Build the model of a config for training; a word tower takes its vocabulary from
    ``captions``.
    """
    source = find_source(config)
    model_cfg = source.model_cfg
    weights = source.weights
    preprocess_cfg = source.preprocess_cfg
    vocabulary = None
    if model_cfg["text_cfg"].get("tower") == "words":
        # A judge that trains further keeps the words that its embeddings are of.
        file = weights.with_name(VOCABULARY) if weights else None
        vocabulary = read_json(file) if file and file.is_file() else make_vocabulary(captions)
        model_cfg["text_cfg"]["vocab_size"] = len(vocabulary)
    # Random weights are drawn on the CPU, and so need no GPU's random state.
    with torch.random.fork_rng(()):
        torch.default_generator.manual_seed(seed)
        model = construct(model_cfg)
    if weights and isinstance(model, TwoTowers):
        load_tensors(model, read_weights(str(weights)), str(weights))
    elif weights:
        load_pretrained(model, weights, config.model)
    unused: list[str] = []
    if config.tower:
        unused = start_tower(model, config.model, config.tower)
        preprocess_cfg |= {"mean": IMAGENET_MEAN, "std": IMAGENET_STD}
    preprocess_cfg["size"] = model.visual.image_size
    # As it is read again from the judge's file: tuples become lists.
    preprocess_cfg = json.loads(json.dumps(preprocess_cfg))
    return Built(model, model_cfg, preprocess_cfg, vocabulary, unused, source.tokenizer)


def assemble(model_cfg: dict[str, Any], state: Mapping[str, torch.Tensor], source: str) -> Any:
    """Return the model of a config with given weights; UserError names one that is missing, unused
    or does not fit.
    """
    model = construct(model_cfg)
    unused = load_tensors(model, state, source)
    names = ", ".join(unused[:3])
    fault = f"has {names}, which the model lacks"
    require(not unused, source, fault, "use the weights of this model")
    return model


def save_judge(built: Built, name: str, crop: float | None, folder: Path) -> str:
    """Write the judge's files and return its hash. Equal weights give equal bytes."""
    state = {}
    for key, tensor in built.model.state_dict().items():
        # safetensors refuses tensors that share memory or are not contiguous.
        state[key] = tensor.detach().cpu().contiguous().clone()
    with atomic(folder / JUDGE_WEIGHTS) as temporary:
        safetensors.torch.save_file(state, temporary)
    settings = {
        "name": name,
        "model_cfg": built.model_cfg,
        "preprocess_cfg": built.preprocess_cfg,
        "crop": crop,
    }
    write_json(settings, folder / JUDGE_MODEL)
    write_json(built.vocabulary, folder / VOCABULARY)
    if built.model_cfg["text_cfg"].get("hf_tokenizer_name"):
        # A new tokenizer, because calling one changes its files.
        with atomic_folder(folder / TOKENIZER) as temporary:
            tokenizer: Any = built.tokenizer()
            tokenizer.tokenizer.chat_template = None  # a program, which no judge needs
            tokenizer.save_pretrained(temporary)
    return judge_hash(folder)


def judge_hash(folder: str | Path) -> str:
    """Return 16 hex digits of everything that determines an embedding."""
    folder = Path(folder)
    files = [folder / name for name in (JUDGE_WEIGHTS, JUDGE_MODEL, VOCABULARY)]
    files += sorted((folder / TOKENIZER).glob("*"))
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        # A digest of each file, so that no byte can move from one to the next unnoticed.
        digest.update(hashlib.blake2b(file.read_bytes()).digest())
    return digest.hexdigest()


class Judge:
    """Encodes images and captions to rows of unit length; their dot product is the similarity.

    An embedding depends on the batch size, because the last batch is padded, but not on the other
    items or their order. Captions of similar length (``text_tower.by_length``) are encoded
    together.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        preprocess: Preprocess,
        device: torch.device,
        threads: int,
    ) -> None:
        # channels last, which is faster for convolutions
        self.model = model.to(device, memory_format=torch.channels_last).eval()
        self.tokenizer = tokenizer
        self.preprocess = preprocess
        self.device = device
        self.threads = threads
        self.name = ""
        self.hash = ""

    def encode_images(self, items: Sequence[Item], batch: int, *judges: "Judge") -> np.ndarray:
        """Return (n, d) float32 for n files with their bounding boxes; UserError names one that
        cannot be read.

        With k further ``judges``, which must read the same pixels, (n, (1 + k) * d): files are read
        once for all judges.
        """

        def encode(pixels: np.ndarray) -> torch.Tensor:
            return torch.cat([judge._images(pixels) for judge in (self, *judges)], dim=1)

        batches = self.preprocess.read_ahead(items, batch, self.threads)
        progress = Progress(len(items), "images")
        with settled(self.threads):
            return encode_batches(batches, batch, progress, encode)

    def encode_texts(self, texts: Sequence[str], batch: int, *judges: "Judge") -> np.ndarray:
        """Return (n, d) float32 for n captions, after cleaning them.

        With k further ``judges``, which must be of the same model and have an equal tokenizer, (n,
        (1 + k) * d).
        """

        def encode(ids: np.ndarray) -> torch.Tensor:
            return torch.cat([judge._texts(ids) for judge in (self, *judges)], dim=1)

        groups = text_tower.by_length(self.model, tokenize(self.tokenizer, texts))
        batches = []
        for _, ids in groups:
            # Even an empty group is split into one, empty, batch.
            batches += [part.numpy() for part in ids.split(batch) if len(part)]
        progress = Progress(len(texts), "captions")
        with settled(self.threads):
            vectors = encode_batches(batches, batch, progress, encode)
        # Back from the order of the groups to that of the captions.
        rows = np.concatenate([rows.numpy() for rows, _ in groups])
        result = np.empty_like(vectors)
        result[rows] = vectors
        return result

    def _images(self, pixels: np.ndarray) -> torch.Tensor:
        return self.model.encode_image(self.preprocess.floats(pixels, self.device), normalize=True)

    def _texts(self, ids: np.ndarray) -> torch.Tensor:
        features = text_tower.encode(self.model, torch.from_numpy(ids).to(self.device))
        return F.normalize(features, dim=-1)


def encode_batches(
    batches: Iterable[np.ndarray],
    batch: int,
    progress: Progress,
    encode: Callable[[np.ndarray], torch.Tensor],
) -> np.ndarray:
    """Return the rows of all batches, on the CPU; the last batch is padded with zeros to ``batch``
    items.
    """
    encoded = []
    with progress, torch.inference_mode():
        for items in batches:
            n = len(items)
            padded = items
            # The size of a batch changes rounding, so the last one gets the size of the others.
            if n < batch:
                padding = np.zeros((batch - n, *items.shape[1:]), items.dtype)
                padded = np.concatenate([items, padding])
            vectors = encode(padded)[:n]
            encoded.append(vectors.float().cpu().numpy())
            progress.add(n)
    return np.concatenate(encoded)


def fold_norms(model: nn.Module) -> None:
    """Fold batch norms, which in evaluation are linear, into the convolutions before them."""
    for module in list(model.modules()):
        if not isinstance(module, nn.Sequential):
            continue
        for i, (layer, norm) in enumerate(itertools.pairwise(module)):
            if isinstance(layer, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                module[i] = fuse_conv_bn_eval(layer, norm)
                module[i + 1] = nn.Identity()  # keeps the names of the layers that follow


def read_vocabulary(file: Path, text_cfg: Mapping[str, Any]) -> list[str] | None:
    """Return the words of a judge's own text tower, None for another; UserError if they do not fit
    the tower.
    """
    words = read_json(file)
    if text_cfg.get("tower") != "words":
        fault = "expected null, since open_clip's tokenizers have their own"
        require(words is None, file, fault, "correct it")
        return None
    are_texts = isinstance(words, list) and all(isinstance(word, str) for word in words)
    # Another number of words, or one twice, would shift the embeddings of the words after it.
    fits = are_texts and len(words) == len(set(words)) == text_cfg.get("vocab_size")
    fault = "expected as many distinct words as its model's vocab_size"
    require(fits, file, fault, "get the judge again")
    return words


class SavedJudge(NamedTuple):
    """The content of a judge's folder."""

    built: Built
    name: str
    crop: float | None  # half the side of the crop; None for no crop


def read_judge(folder: str | Path) -> SavedJudge:
    """Return the model, name and crop of a saved judge; UserError if the folder is not a judge's or
    holds code.
    """
    folder = Path(folder)
    file = folder / JUDGE_MODEL
    remedy = "make one with stage judge, or give pretrained for a model of open_clip"
    require(file.is_file(), folder, "not a judge's folder", remedy)
    # A judge may be a stranger's, and transformers would run code in a tokenizer's folder.
    tokenizer = folder / TOKENIZER if (folder / TOKENIZER).is_dir() else None
    if tokenizer:
        refuse_code(tokenizer.iterdir(), TOKENIZER_SUFFIXES)
    settings = read_json(file)
    require(isinstance(settings, dict), file, "expected a mapping", "get the judge again")
    validated(JudgeFile, settings, str(file))
    model_cfg = settings["model_cfg"]
    preprocess_cfg = settings["preprocess_cfg"]
    vocabulary = read_vocabulary(folder / VOCABULARY, model_cfg["text_cfg"])
    weights = str(folder / JUDGE_WEIGHTS)
    model = assemble(model_cfg, read_weights(weights), weights)
    size = _height_and_width(preprocess_cfg["size"])
    expected = _height_and_width(model.visual.image_size)
    fault = f"preprocess_cfg.size: {size}, but its model reads {expected}"
    require(size == expected, file, fault, "correct it")
    built = Built(model, model_cfg, preprocess_cfg, vocabulary, tokenizer_files=tokenizer)
    return SavedJudge(built, settings["name"], settings["crop"])


def _height_and_width(size: Any) -> list[int]:
    """Return the two sides of a picture, given as one number if they are equal."""
    return np.broadcast_to(size, 2).tolist()


def load_judge(
    model: str | Path, threads: int = 2, device: str = "auto", *, pretrained: str | None = None
) -> Judge:
    """Load a judge for encoding, with folded batch norms.

    Args:
        model: a folder as ``save_judge`` writes it: that of stage judge or specs, or of
            ``compclip.specs.published_weights``. Or a model of open_clip, used unchanged, as
            ``judge.model`` of a config names it: ``ViT-B-32`` with ``pretrained``,
            ``hf-hub:owner/name`` or ``local-dir:path``.
        threads: changes floating-point rounding.
        device: cpu, cuda or auto: a GPU if there is one, and if the model gains from it.
        pretrained: open_clip's tag of the model's weights, or their file.

    Raises:
        UserError: the folder is not a judge's or comes with code, or its weights do not fit its
            model; the model or its weights are unknown or cannot be downloaded.
    """
    if pretrained is None and not has_weights(str(model)):
        return _load_saved(Path(model), threads, device)
    config = validated(ModelConfig, {"model": str(model), "pretrained": pretrained}, "load_judge")
    # Saved as a run's judge is, so that its hash and its embeddings are those of the run.
    with TemporaryDirectory() as folder:
        # The seed does not matter, since all weights are loaded.
        save_judge(build(config, [], 0), model_name(config.model), None, Path(folder))
        return _load_saved(Path(folder), threads, device)


def _load_saved(folder: Path, threads: int, device: str) -> Judge:
    with settled(threads):
        built, name, crop = read_judge(folder)
        fold_norms(built.model)
        preprocess = Preprocess(built.preprocess_cfg, crop)
        torch_device = find_device(device, model_cfg=built.model_cfg)
        judge = Judge(built.model, built.tokenizer(), preprocess, torch_device, threads)
    judge.name = name
    judge.hash = judge_hash(folder)
    return judge
