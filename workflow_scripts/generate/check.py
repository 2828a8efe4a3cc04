"""Check that the generators can make images: folders, models, tables of the data set."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workflow_scripts.core import plugins
from workflow_scripts.core.checks import Findings, count_images
from workflow_scripts.dataset.check import SKETCH
from workflow_scripts.dataset.choice import SOURCES
from workflow_scripts.generate.config import KINDS, Generator
from workflow_scripts.generate.generator import reads

# Tables that only some sources make.
OF_SKETCHES = {"scenes", "facts"}


def check(config: Any, findings: Findings) -> None:
    if getattr(getattr(config.dataset, config.dataset.source), "images", ...) is None:
        names = ", ".join(generator.name for generator in config.generate.generators)
        findings.plan.append(("generators", f"none, because there are no images ({names} ignored)"))
        return
    about = [_check(generator, config, findings) for generator in config.generate.generators]
    findings.plan.append(("generators", ", ".join(about)))


def _check(generator: Generator, config: Any, findings: Findings) -> str:
    """Check one generator; return its description."""
    key = f"generate.generators: {generator.name}"
    kind = plugins.load(KINDS, generator.kind)
    settings = kind.Settings.model_validate(generator.options)
    absent = OF_SKETCHES & {*reads(kind)} - {*getattr(plugins.load(SOURCES, config.dataset.source), "TABLES", ())}
    if absent:
        findings.error(
            key,
            f"reads the {' and '.join(sorted(absent))} of sketches, which dataset source {config.dataset.source} does"
            " not have; use photographs, shuffled, folder or diffusers",
        )
    about = generator.name
    if getattr(kind, "SCENES", False) and config.dataset.source == "sketch":
        # About as many images as the data set has: the test splits have fewer, but several prompts for each.
        sketch = config.dataset.sketch
        findings.bytes += len(config.compositions) * round(sketch.images * SKETCH * (sketch.size / 96) ** 2)
    if hasattr(settings, "places"):
        counts = [text for place in settings.places().values() if (text := _folder(key, place, config, findings))]
        about += f" ({', '.join(counts)})" if counts else ""
    if getattr(kind, "MODEL", False):
        if findings.here and find_spec("diffusers") is None:
            findings.error(
                key, "the package diffusers is not installed; pip install the version of envs/diffusers.yaml"
            )
        if settings.model.startswith((".", "/", "~")) or Path(settings.model).exists():
            findings.exists(f"{key}: model", settings.model, "folder")
        findings.device(f"{key}: device", settings.device)
    return about


def _folder(key: str, place: Path, config: Any, findings: Findings) -> str | None:
    """Check a folder of images or a manifest, for each composition if its path names them; return what there is."""
    counts = []
    for path in dict.fromkeys(str(place).replace("{composition}", name) for name in config.compositions):
        if not findings.exists(key, path, "folder or manifest"):
            continue
        if "://" in path or not Path(path).is_dir():
            counts.append(path)
            continue
        counted = count_images(Path(path))
        counts.append(str(counted))
        findings.bytes += counted.bytes
        if not counted.images:
            findings.error(
                key, f"{path}: contains no jpg, jpeg, png or webp; draw the prompts first, or correct the path"
            )
    return ", ".join(counts) or None
