"""The prompts for a class or a compound: templates, example captions, descriptions.

A class has one or more ensembles of texts. The texts of an ensemble are one prompt in several templates, and become one
vector (``class_vectors``); the similarities of the ensembles are averaged.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 4 and 5; the
ensembles of templates are CLIP's (Radford et al., "Learning Transferable Visual Models From Natural Language
Supervision", ICML 2021), the descriptions those of Menon and Vondrick, "Visual Classification via Description from
Large Language Models" (ICLR 2023).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workflow_scripts.core.documents import decode
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json

TEMPLATE = "a photo of a {}"
ENSEMBLE = "_ensemble"
# Descriptions that begin with these words are clauses: ``which often lies in grass``.
CLAUSES = ("is", "are", "has", "have", "can", "may", "often", "typically", "usually")

Ensembles = list[list[str]]
T = TypeVar("T")


def class_vectors(
    encode: Callable[[list[T]], np.ndarray], prompts: Sequence[Sequence[T]], unit: bool = True
) -> np.ndarray:
    """Return the mean of each class's vectors, (classes, d) float32, scaled to unit length if ``unit``.

    Without, its product with an image is the mean of the similarities of the class's texts.

    Args:
        encode: returns unit vectors (n, d) of texts, or of whatever else ``prompts`` holds for each class.
    """
    sizes = np.array([len(texts) for texts in prompts])
    vectors = encode([text for texts in prompts for text in texts]).astype(np.float64)
    means = np.add.reduceat(vectors, np.cumsum(sizes) - sizes) / sizes[:, None]
    if unit:
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return means.astype(np.float32)


def make_prompts(names: Sequence[str], templates: Sequence[str]) -> list[list[str]]:
    """Return the texts of each class: every template with ``{}`` replaced by its name."""
    return [[template.replace("{}", name) for template in templates] for name in names]


def by_captions(name: str, captions: Sequence[str], templates: Sequence[str]) -> Ensembles:
    """Return filled templates, each followed by an example caption (section 4)."""
    photos = [photo.rstrip(". ") for photo in make_prompts([name], templates)[0]]
    return [[f"{photo}. An example of {name} in an image is {caption}" for photo in photos] for caption in captions]


def by_descriptions(name: str, descriptions: Sequence[str], templates: Sequence[str]) -> Ensembles:
    """Return filled templates, each followed by a visible feature: something that the class has, or a clause."""
    photos = [photo.rstrip(". ") for photo in make_prompts([name], templates)[0]]
    clauses = [t if t.split(maxsplit=1)[0].lower() in CLAUSES else f"has {t}" for t in descriptions]
    return [[f"{photo}, which {clause}" for photo in photos] for clause in clauses]


# The ensembles of each prompt and compound, and the compounds that lack what a prompt needs.
Prompts = dict[str, dict[str, Ensembles]]
Lacking = dict[str, list[str]]


def read_templates(name: str) -> list[str]:
    """Return CLIP's templates for ImageNet (80: ``imagenet``, 7: ``simple``), ``TEMPLATE`` (``photo``) or a file's."""
    if name == "photo":
        return [TEMPLATE]
    if name in ("imagenet", "simple"):
        known = open_clip_metadata()
        chosen = known.OPENAI_IMAGENET_TEMPLATES if name == "imagenet" else known.SIMPLE_IMAGENET_TEMPLATES
        return [template("{}") for template in chosen]
    path = Path(name)
    if not path.is_file():
        raise UserError(f"--templates {name}: no such file; use imagenet, simple, photo or a text file")
    lines = [line.strip() for line in decode(path).splitlines() if line.strip()]
    bad = [line for line in lines if line.count("{}") != 1]
    if bad or not lines:
        raise UserError(
            f"{path}: {repr(bad[0][:60]) if bad else 'empty'}: write one template a line, with one {{}} for the name"
        )
    return lines


def read_texts(path: Path, what: str) -> dict[str, list[str]]:
    """Read the texts of each class from a JSON object; messages call a class ``what``."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must map each {what} to its texts")
    for key, texts in content.items():
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            raise UserError(f"{path}: {what} {key!r}: expected a list of texts, none of them empty")
    return content


def open_clip_metadata() -> Any:
    """Return open_clip's lists of CLIP's templates and of ImageNet's names."""
    from workflow_scripts.clip.vision import open_clip  # torch is slow to import

    return open_clip().zero_shot_metadata
