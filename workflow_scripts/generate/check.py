"""Check that the generators can make images: folders, models, tables of the data set."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workflow_scripts.core import plugins
from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.check import SKETCH, is_scored, tables
from workflow_scripts.generate.config import KINDS, Generator
from workflow_scripts.generate.generator import reads

# Tables that only some sources make.
OF_SKETCHES = {"scenes", "facts"}


def check(config: Any, findings: Findings) -> None:
    if not is_scored(config):
        names = ", ".join(generator.name for generator in config.generate.generators)
        findings.plan.append(
            ("generators", f"none, because there are no images ({names} ignored)" if names else "none configured")
        )
        return
    misfits(config, findings)
    about = [_check(generator, config, findings) for generator in config.generate.generators]
    findings.plan.append(("generators", ", ".join(about)))


def misfits(config: Any, findings: Findings) -> None:
    """Find generators that read tables which another source makes, or images of which composition nobody knows."""
    for generator in config.generate.generators if is_scored(config) else ():
        key = f"generate.generators: {generator.name}"
        kind = plugins.load(KINDS, generator.kind)
        if absent := OF_SKETCHES & {*reads(kind)} - tables(config):
            findings.error(
                key,
                f"reads the {' and '.join(sorted(absent))} of sketches, which dataset source {config.dataset.source}"
                " does not have; use photographs, shuffled, folder or diffusers",
            )
        settings = [generator.settings(composition) for composition in config.compositions]
        if hasattr(kind, "check_shared") and len({repr(each) for each in settings}) < len(settings):
            with findings.errors_of(key):
                kind.check_shared(settings[0], config.dataset.name or config.dataset.source, config.compositions)


def _check(generator: Generator, config: Any, findings: Findings) -> str:
    key = f"generate.generators: {generator.name}"
    kind = plugins.load(KINDS, generator.kind)
    about = generator.name
    if getattr(kind, "SCENES", False) and config.dataset.source == "sketch":
        # About as many images as the data set has: the test splits have fewer, but several prompts for each.
        sketch = config.dataset.sketch
        findings.bytes += len(config.compositions) * round(sketch.images * SKETCH * (sketch.size / 96) ** 2)
    settings = {composition: generator.settings(composition) for composition in config.compositions}
    if hasattr(kind.Settings, "places"):
        places = dict.fromkeys(str(place) for each in settings.values() for place in each.places().values())
        # A Path has one slash of an address on object storage, which is not checked.
        places = {place: None for place in places if not place.startswith("s3:/")}
        counts = [text for place in places if (text := _folder(key, place, findings))]
        about += f" ({', '.join(counts)})" if counts else ""
    if getattr(kind, "MODEL", False):
        if findings.here and find_spec("diffusers") is None:
            findings.error(
                key, "the package diffusers is not installed; pip install the version of envs/diffusers.yaml"
            )
        for each in settings.values():
            if each.model.startswith((".", "/", "~")):
                findings.exists(f"{key}: model", each.model, "folder")
            findings.device(f"{key}: device", each.device)
    return about


def _folder(key: str, path: str, findings: Findings) -> str | None:
    """Check a folder of images or a manifest; return what there is."""
    if not findings.exists(key, path, "folder or manifest"):
        return None
    if "://" in path or not Path(path).is_dir():
        return path
    return str(findings.count_images(key, path))
