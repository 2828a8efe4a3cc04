"""Top-1 and top-5 accuracy of classification by CLIP's templates with the classes' names."""

import io
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image
from pydantic import Field

from compclip.clip.device import settled
from compclip.clip.model import load_judge
from compclip.clip.vision import open_clip
from compclip.core.artifacts.files import write_json
from compclip.core.errors import UserError, one_line, require
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.settings.cli import Command
from compclip.core.settings.section import Count, Seed, Threads
from compclip.judge.training import chance_among_first
from compclip.specs.evaluation import Device, mean_over_images, result_head, show_estimate

ZERO_SHOT_DEFINITION = (
    "The fraction of images whose class is among the k of greatest similarity; a class is the mean "
    "of its texts' unit vectors, of unit length. Ties are in random order: an image counts with "
    "its chance. Intervals resample images."
)


class ClassifiedImages(NamedTuple):
    """The images of a folder or of CIFAR, by class."""

    folders: list[str]  # names of folders, or of CIFAR's classes
    labels: np.ndarray  # (n,) each image's number in ``folders``
    images: list[Any]  # files, or contents in memory


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


def read_classified(data: Path) -> ClassifiedImages:
    # Imported here, because torchvision is slow to import.
    from torchvision.datasets import CIFAR10, CIFAR100, ImageFolder

    try:
        for kind in (CIFAR10, CIFAR100):
            if data.resolve().name == kind.base_folder:
                # torchvision takes the folder above and looks for this name in it.
                cifar = kind(data.resolve().parent, train=False)
                images = [_png(pixels) for pixels in cifar.data]
                return ClassifiedImages(cifar.classes, np.array(cifar.targets), images)
        # Classes without images stay candidates.
        folder = ImageFolder(data, allow_empty=True)
    except (OSError, RuntimeError) as error:
        remedy = "correct the path or download it again"
        raise UserError(f"--data {data}: {one_line(error)}; {remedy}") from error
    require(folder.samples, data, "no images in its folders", "name the folder of the classes")
    files = [Path(path) for path, _ in folder.samples]
    return ClassifiedImages(folder.classes, np.array(folder.targets), files)


def _png(pixels: np.ndarray) -> io.BytesIO:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream


def _class_names(file: Path | None, folders: list[str], imagenet_names: list[str]) -> list[str]:
    """Return the classes' names: those of the user's file, CLIP's for ImageNet, or the folders'."""
    if file:
        names = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
        require(len(names) == len(folders), file, f"{len(names)} names for {len(folders)} classes")
        return names
    # The folders of ImageNet have identifiers of WordNet, in the order of CLIP's names.
    if len(folders) == len(imagenet_names):
        return imagenet_names
    return [name.replace("_", " ") for name in folders]


def main(command: ZeroShot) -> None:
    library = open_clip()
    judge = load_judge(command.judge, command.threads, command.device)
    folders, labels, images = read_classified(command.data)
    names = _class_names(command.classes, folders, library.IMAGENET_CLASSNAMES)
    if command.templates == "imagenet":
        templates = library.OPENAI_IMAGENET_TEMPLATES
    else:
        templates = library.SIMPLE_IMAGENET_TEMPLATES
    with settled(command.threads):
        classifier = library.build_zero_shot_classifier(
            judge.model, judge.tokenizer, names, templates, device=judge.device
        )
    vectors = judge.encode_images([(image, None) for image in images], command.batch)
    # (n, classes), cosines, because both are of unit length
    similarities = vectors @ classifier.cpu().numpy()
    result = result_head(command.data, ZERO_SHOT_DEFINITION, command.seed)
    result |= {
        "judge": judge.name,
        "judge_hash": judge.hash,
        "templates": command.templates,
        "classes": len(names),
    }
    for k in (1, 5):
        # 0 or 1, except for ties
        chances = chance_among_first(similarities, labels, k)
        # Each image is resampled on its own.
        images_by_number = np.arange(len(chances))
        generator = rng(command.seed, "zero_shot", k)
        estimate = mean_over_images(chances, images_by_number, generator)
        result[f"top-{k}"] = estimate
        log.info("%s: top-%d %s", command.data, k, show_estimate(estimate))
    write_json(result, command.output)
