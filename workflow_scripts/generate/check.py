"""Check that the generators can make images: folders, models, tables of the data set."""

from importlib.util import find_spec
from typing import Any

from workflow_scripts.core import plugins
from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.check import SKETCH, is_scored, tables
from workflow_scripts.generate.config import KINDS, Generator
from workflow_scripts.generate.generator import reads

# Tables that only some sources make.
OF_SKETCHES = {"scenes", "facts"}


def check(config: Any, findings: Findings) -> None:
    names = ", ".join(generator.name for generator in config.generate.generators)
    if is_scored(config):
        misfits(config, findings)
        plan = ", ".join(_check(generator, config, findings) for generator in config.generate.generators)
    else:
        plan = f"none, because there are no images ({names} ignored)" if names else "none configured"
    findings.plan.append(("generators", plan))


def misfits(config: Any, findings: Findings) -> None:
    """Find generators that read tables which another source makes."""
    for generator in config.generate.generators if is_scored(config) else ():
        if absent := OF_SKETCHES & {*reads(plugins.load(KINDS, generator.kind))} - tables(config):
            findings.error(
                f"generate.generators: {generator.name}",
                f"reads the {' and '.join(sorted(absent))} of sketches, which dataset source {config.dataset.source}"
                " does not have; use photographs, shuffled, folder or diffusers",
            )


def _check(generator: Generator, config: Any, findings: Findings) -> str:
    """Return what the plan says of a generator."""
    key, kind = f"generate.generators: {generator.name}", plugins.load(KINDS, generator.kind)
    if getattr(kind, "SCENES", False) and config.dataset.source == "sketch":
        # About as many images as the data set has: the test splits have fewer, but several prompts for each.
        sketch = config.dataset.sketch
        findings.bytes += len(config.compositions) * round(sketch.images * SKETCH * (sketch.size / 96) ** 2)
    settings = [generator.settings(composition) for composition in config.compositions]
    paths = dict.fromkeys(each.path for each in settings if hasattr(each, "path"))
    counts = [str(findings.count_images(key, path)) for path in paths if findings.exists(key, path, "folder")]
    if getattr(kind, "MODEL", False):
        for model in {each.model for each in settings if each.model.startswith((".", "/", "~"))}:
            findings.exists(f"{key}: model", model, "folder")
        findings.device(f"{key}: device", settings[0].device)
        if findings.here and find_spec("diffusers") is None:
            findings.error(
                key, "the package diffusers is not installed; pip install the version of envs/diffusers.yaml"
            )
    return f"{generator.name} ({', '.join(counts)})" if counts else generator.name
