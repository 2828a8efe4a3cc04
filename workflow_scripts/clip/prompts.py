"""What a model is asked about a class or a compound: templates, example captions, descriptions.

A class is asked for by one or more ensembles, and an ensemble is one or more texts: the texts of an ensemble are the
same prompt by several templates, and become one vector (``specs/zero_shot.class_vectors``); the similarities of the
ensembles are averaged.

Source: Kumar et al., "Do Vision-Language Models Understand Compound Nouns?" (NAACL 2024), sections 4 and 5; the
ensembles of templates are CLIP's (Radford et al., "Learning Transferable Visual Models From Natural Language
Supervision", ICML 2021), the descriptions those of Menon and Vondrick, "Visual Classification via Description from
Large Language Models" (ICLR 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json

TEMPLATE = "a photo of a {}"
ENSEMBLE = "_ensemble"
# Descriptions that begin so are clauses already: ``which often lies in grass``.
CLAUSES = ("is", "are", "has", "have", "can", "may", "often", "typically", "usually")

Ensembles = list[list[str]]


def make_prompts(names: Sequence[str], templates: Sequence[str]) -> list[list[str]]:
    """The texts of each class: every template with ``{}`` filled by its name."""
    return [[fill(template, name) for template in templates] for name in names]


def fill(template: str, name: str) -> str:
    return template.replace("{}", name)


def with_example(photo: str, name: str, caption: str) -> str:
    """``photo``, a filled template, with an example caption (section 4)."""
    return f"{photo.rstrip('. ')}. An example of {name} in an image is {caption}"


def with_description(photo: str, description: str) -> str:
    """``photo``, a filled template, with a feature that can be seen: a thing that ``name`` has, or a clause."""
    clause = description.split(maxsplit=1)[0].lower() in CLAUSES
    return f"{photo.rstrip('. ')}, which {'' if clause else 'has '}{description}"


def by_captions(name: str, captions: Sequence[str], templates: Sequence[str]) -> Ensembles:
    """An ensemble a caption."""
    return [[with_example(fill(t, name), name, caption) for t in templates] for caption in captions]


def by_descriptions(name: str, descriptions: Sequence[str], templates: Sequence[str]) -> Ensembles:
    """An ensemble a description."""
    return [[with_description(fill(t, name), text) for t in templates] for text in descriptions]


# By prompt and compound, its ensembles; by prompt, the compounds that lack what it needs.
Prompts = dict[str, dict[str, Ensembles]]
Lacking = dict[str, list[str]]


def read_templates(name: str) -> list[str]:
    """CLIP's own for ImageNet, 80 (``imagenet``) or 7 (``simple``), ``TEMPLATE`` alone (``photo``), or a text file's
    lines, each with one ``{}``."""
    if name == "photo":
        return [TEMPLATE]
    if name in ("imagenet", "simple"):
        known = open_clip_metadata()
        chosen = known.OPENAI_IMAGENET_TEMPLATES if name == "imagenet" else known.SIMPLE_IMAGENET_TEMPLATES
        return [template("{}") for template in chosen]
    path = Path(name)
    if not path.is_file():
        raise UserError(f"--templates {name}: neither imagenet nor simple nor a file; photo is {TEMPLATE!r} alone")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    bad = [line for line in lines if line.count("{}") != 1]
    if bad or not lines:
        raise UserError(f"{path}: {bad[0] if bad else 'empty'}: give a template a line, with one {{}} for the name")
    return lines


def read_texts(path: Path, what: str) -> dict[str, list[str]]:
    """The texts of each class from JSON: an object from a class (``what`` messages call it) to its list of texts."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be an object from a {what} to its texts")
    for key, texts in content.items():
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            raise UserError(f"{path}: {what} {key!r}: needs a list of texts, none of them empty")
    return content


def open_clip_metadata() -> Any:
    """open_clip's lists of CLIP's templates and of ImageNet's names."""
    # Here, not above: they are slow to import.
    from workflow_scripts.clip.vision import import_torchvision

    import_torchvision()
    from open_clip import zero_shot_metadata

    return zero_shot_metadata
