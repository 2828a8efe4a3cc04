"""Top-1 and top-5 accuracy of classification by CLIP's templates with the classes' names."""

import io
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from compclip.clip.device import settled
from compclip.clip.model import load_judge
from compclip.clip.vision import open_clip
from compclip.core.cli import Command
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.section import Count, Seed, Threads
from compclip.core.seeds import rng
from compclip.io import write_json
from compclip.judge.training import chance_among_first
from compclip.specs.evaluation import Device, mean_over_images, result_head, show_estimate

ZERO_SHOT_DEFINITION = """The share of images whose class is among the k of greatest similarity; a class is the mean of
its texts' unit vectors, of unit length. Ties are in random order: an image counts with its chance. Intervals resample
images."""  # noqa: E501


class ZeroShot(Command):
    """Classify images by CLIP's templates with the classes' names: top-1 and top-5 accuracy."""

    judge: Path = Field(description="folder of the judge")
    data: Path = Field(
        description="a folder of classes (ImageNet's val), cifar-10-batches-py or cifar-100-python"
    )
    classes: Path | None = Field(
        None, description="a name per line and folder; default: CLIP's, or the folders'"
    )
    templates: Literal["imagenet", "simple"] = Field(
        "imagenet", description="80 or 7 of CLIP's templates"
    )
    seed: Seed
    batch: Count = Field(
        256, ge=1, description="images encoded at once; changes floating-point rounding"
    )
    threads: Threads
    device: Device
    output: Path = Field(description="the result (JSON)")


def read_classified(data: Path) -> tuple[list[str], np.ndarray, list[Any]]:
    """Return the names of folders or classes, the class of each image, (n,), and its file or
    content.
    """
    from torchvision.datasets import CIFAR10, CIFAR100, ImageFolder

    try:
        for kind in (CIFAR10, CIFAR100):
            if data.resolve().name == kind.base_folder:
                cifar = kind(data.resolve().parent, train=False)
                return cifar.classes, np.array(cifar.targets), [*map(_png, cifar.data)]
        folder = ImageFolder(data, allow_empty=True)
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"--data {data}: {one_line(error)}; correct the path or download it again"
        ) from error
    require(folder.samples, data, "no images in its folders", "name the folder of the classes")
    return folder.classes, np.array(folder.targets), [Path(path) for path, _ in folder.samples]


def _png(pixels: np.ndarray) -> io.BytesIO:
    Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
    return stream


def main(command: ZeroShot) -> None:
    library, judge = open_clip(), load_judge(command.judge, command.threads, command.device)
    folders, labels, images = read_classified(command.data)
    imagenet, default = library.IMAGENET_CLASSNAMES, [name.replace("_", " ") for name in folders]
    given = command.classes and command.classes.read_text(encoding="utf-8").rstrip("\n").split("\n")
    names = given or (imagenet if len(folders) == len(imagenet) else default)
    require(
        len(names) == len(folders),
        command.classes,
        f"{len(names)} names for {len(folders)} classes",
    )
    templates = {
        "imagenet": library.OPENAI_IMAGENET_TEMPLATES,
        "simple": library.SIMPLE_IMAGENET_TEMPLATES,
    }
    arguments = judge.model, judge.tokenizer, names, templates[command.templates]
    with settled(command.threads):
        classes = library.build_zero_shot_classifier(*arguments, device=judge.device)
    vectors = judge.encode_images([(image, None) for image in images], command.batch)
    similarities = vectors @ classes.cpu().numpy()
    about = {
        "judge": judge.name,
        "judge_hash": judge.hash,
        "templates": command.templates,
        "classes": len(names),
    }
    result = result_head(command.data, ZERO_SHOT_DEFINITION, command.seed) | about
    for k in (1, 5):
        values, generator = (
            chance_among_first(similarities, labels, k),
            rng(command.seed, "zero_shot", k),
        )
        result[f"top-{k}"] = mean_over_images(values, np.arange(len(values)), generator)
        log.info("%s: top-%d %s", command.data, k, show_estimate(result[f"top-{k}"]))
    write_json(result, command.output)
