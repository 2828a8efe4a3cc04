"""An image-text-matching head of transformers: BLIP or BLIP-2, from the Hub or from a folder.

The model reads an image and a text together and returns the probability that they match; the text
with the highest probability is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from compclip.core.artifacts.files import read_json
from compclip.core.errors import UserError, one_line, require
from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.identity.fingerprint import fingerprint as fingerprint_of
from compclip.core.log import log
from compclip.core.progress import track
from compclip.core.reading.model_folders import model_folder
from compclip.core.settings.section import Count, Section
from compclip.judge.chooser import Asked, Chooser, Context, JudgedImage, chances_of_scores

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

ABOUT = "an image-text-matching head, which chooses the text with the highest probability"
MODEL = True
# The modules that decide a score, besides those of the model.
DECISIVE = (__name__, "compclip.core.reading.pictures", "compclip.core.reading.colors")
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZERS = {"tokenizer.json", "vocab.txt"}  # either is enough
SHARDS = "model-*-of-*.safetensors"  # of larger weights
BLIP, BLIP_2 = "blip", "blip-2"  # model_type of a config
MATCHES = 1  # output of the head; output 0 is for pairs that do not match
SHOWN = 200  # characters of a library's message in an error


class Settings(Section):
    """The model."""

    model: str = Field(min_length=1, description="name on the Hub, or a folder with config.json")
    revision: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{40}$",
        description="commit on the Hub; null: the newest, which may change",
    )
    batch: Count = Field(
        32, ge=1, description="images, and texts, at once; changes floating-point rounding"
    )


class Loaded(NamedTuple):
    """A model, and what prepares its inputs."""

    model: Any
    vision: Any  # the image tower of the model
    arguments: dict[str, bool]  # of a call of the model
    tokenizer: Any
    processor: Any  # of images
    context: int  # tokens that the model reads


def fingerprint(settings: Settings, cache: Path | None = None) -> str:
    return fingerprint_of(settings.model, cache=cache) if Path(settings.model).is_dir() else ""


def preview(settings: Settings, counts: Asked | None) -> str:
    """Return a note if the Hub may change the judge, else ""."""
    if settings.revision or Path(settings.model).is_dir():
        return ""
    return f"{settings.model}: may change on the Hub; set revision to a commit"


def read_files(folder: Path) -> list[Path]:
    """Return the files of a model's folder that are read; UserError if one is missing.

    Weights in other formats are pickles, which may hold code.
    """
    weights = folder / WEIGHTS
    files = [weights] if weights.is_file() else sorted(folder.glob(SHARDS))
    require(files, folder, f"no {WEIGHTS}", "choose a model or a revision with safetensors")
    files += sorted([*folder.glob("*.json"), *folder.glob("*.txt")])
    names = {file.name for file in files}
    remedy = "get the model again"
    require(CONFIG in names, folder, f"no {CONFIG}", remedy)
    # transformers would make one without words.
    has_tokenizer = names & TOKENIZERS
    require(has_tokenizer, folder, f"none of {', '.join(sorted(TOKENIZERS))}", remedy)
    return files


def load(folder: Path) -> Loaded:
    """Return the model in a folder, in 32 bits, on the CPU.

    Raises:
        UserError: the folder lacks a file or a tensor, is of another kind of model, or is damaged.
    """
    # Imported here, because these libraries are slow to import and not needed to check the config.
    import torch

    from compclip.clip.vision import import_torchvision
    from compclip.clip.weights import load_tensors, read_weights

    import_torchvision()  # Without it, transformers lacks the classes.
    import transformers
    from transformers.modeling_outputs import BaseModelOutput

    class Encoded(torch.nn.Module):
        """Takes the place of an image tower, and gets the tower's output instead of pixels."""

        def forward(self, pixel_values: Tensor, **_: Any) -> BaseModelOutput:
            return BaseModelOutput(last_hidden_state=pixel_values)

    files = read_files(folder)
    config_file = folder / CONFIG
    content = read_json(config_file)
    model_type = str(content.get("model_type")) if isinstance(content, dict) else ""
    classes = {
        BLIP: transformers.BlipForImageTextRetrieval,
        BLIP_2: transformers.Blip2ForImageTextRetrieval,
    }
    remedy = f"choose a model of type {' or '.join(classes)} with a matching head"
    require(model_type in classes, config_file, f"model_type is {model_type!r}", remedy)
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        # The other backend, torchvision, rounds differently from what models were trained with.
        processor = transformers.AutoImageProcessor.from_pretrained(
            folder, backend="pil", trust_remote_code=False
        )
        with torch.random.fork_rng(()):  # for weights that are replaced below
            model = classes[model_type](config)
    except Exception as error:  # the library raises many types of exceptions for damaged files
        reason = one_line(error)[:SHOWN]
        raise UserError(f"{folder}: not a readable model ({reason}); get it again") from error
    tensors = {}
    for file in files:
        if file.suffix == ".safetensors":
            tensors.update(read_weights(str(file)))
    load_tensors(model, tensors, str(folder))
    model.float().eval()
    # Otherwise BLIP-2 expects marks of the image in the text, only to remove them.
    config.image_token_index = None
    text_config = config.text_config
    arguments = {}
    if model_type == BLIP_2:
        text_config = config.qformer_config
        arguments["use_image_text_matching_head"] = True
    context = min(text_config.max_position_embeddings, tokenizer.model_max_length)
    vision = model.vision_model
    # So that an image is encoded once, and not for each of its texts.
    model.vision_model = Encoded()
    return Loaded(model, vision, arguments, tokenizer, processor, context)


class MatchChooser:
    """The judge of a model; a score is the probability that image and text match."""

    def __init__(self, settings: Settings, context: Context) -> None:
        import transformers

        from compclip.clip.device import find_device

        patterns = ["*.json", "*.txt", WEIGHTS, SHARDS]
        folder = model_folder(settings.model, patterns, settings.revision)
        self.loaded = load(folder)
        self.device = find_device(context.device)
        self.loaded.model.to(self.device)
        self.loaded.vision.to(self.device)
        self.batch = settings.batch
        self.threads = context.threads
        # only a folder's name, because artifacts must not contain absolute paths
        self.name = folder.name if Path(settings.model).is_dir() else settings.model
        files = read_files(folder)
        names = [file.name for file in files]
        content = fingerprint_of(*files, cache=context.cache)
        code = code_hash(__name__, within=DECISIVE)
        self.hash = key(*names, content, transformers.__version__, code, settings.batch).hex()

    def choose(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        return [chances_of_scores(scores) for scores in self.scores(images, options)]

    def scores(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """Return the probability that each image matches each of its texts.

        It is NaN for a text with more tokens than the model reads; these are counted and named.
        """
        import numpy as np
        import torch

        from compclip.clip.device import settled

        if not images:  # transformers' tokenizers fail without texts
            return []
        long = self._long_texts(options)
        scores: list[np.ndarray] = []
        # BLIP makes a mask on torch's default device.
        with settled(self.threads), torch.inference_mode(), self.device:
            starts = range(0, len(images), self.batch)
            for start in track(starts, len(starts), f"batches of {self.batch} images"):
                batch = slice(start, start + self.batch)
                scores += self._match(images[batch], options[batch])
        for values, texts in zip(scores, options, strict=True):
            values[[text in long for text in texts]] = np.nan
        return scores

    def _long_texts(self, options: Sequence[Sequence[str]]) -> set[str]:
        """Return the texts of more tokens than the model reads, and warn of them."""
        distinct = list(dict.fromkeys(text for texts in options for text in texts))
        ids = self.loaded.tokenizer(distinct, verbose=False)["input_ids"]
        context = self.loaded.context
        long = [text for text, row in zip(distinct, ids, strict=True) if len(row) > context]
        if long:
            message = "%s: %d of %d texts exceed %d tokens, so their images have no answer: %r"
            log.warning(message, self.name, len(long), len(distinct), context, long[0][:SHOWN])
        return set(long)

    def _match(
        self, images: Sequence[JudgedImage], options: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """Return the scores of a batch; long texts are truncated."""
        import numpy as np
        import torch

        loaded = self.loaded
        pictures = [image.read() for image in images]
        pixels = loaded.processor(images=pictures, return_tensors="pt")["pixel_values"]
        encoded = loaded.vision(pixel_values=pixels.to(self.device))[0]  # (n, positions, d)
        counts = np.array([len(texts) for texts in options])
        rows = np.repeat(np.arange(len(images)), counts)  # the image of each text
        tokens = loaded.tokenizer(
            [text for texts in options for text in texts],
            padding=True,
            truncation=True,
            max_length=loaded.context,
            return_token_type_ids=False,
            return_tensors="pt",
        ).to(self.device)
        output = loaded.model(pixel_values=encoded[rows], **tokens, **loaded.arguments)
        # In 64 bits, because high probabilities would all be 1 in 32.
        probabilities = torch.softmax(output[0].double(), dim=1)[:, MATCHES]
        ends = np.cumsum(counts)
        return np.split(probabilities.cpu().numpy(), ends[:-1])


def open_chooser(settings: Settings, context: Context) -> Chooser:
    return MatchChooser(settings, context)
