"""Check the study's generators and files."""

from typing import Any

from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.check import is_scored


def misfits(config: Any, findings: Findings) -> None:
    """Find generators and images that people cannot be asked about."""
    if config.human and not is_scored(config):
        findings.error("human", "there are no images to ask about; remove this section")
    known = [generator.name for generator in config.generate.generators]
    for name in config.human.generators or () if config.human else ():
        if name not in known:
            findings.error("human.generators", f"{name} is not in generate.generators: {', '.join(known)}")


def check(config: Any, findings: Findings) -> None:
    misfits(config, findings)
    for key in ("answers", "scores") if config.human else ():
        files = getattr(config.human, key)
        for path in files.values() if key == "scores" else files:
            findings.exists(f"human.{key}", path)
