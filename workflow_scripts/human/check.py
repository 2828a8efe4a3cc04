"""Check the study's generators and files."""

from typing import Any

from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.check import is_scored


def misfits(config: Any, findings: Findings) -> None:
    """Find generators and images that people cannot be asked about."""
    if config.human is None:
        return
    if not is_scored(config):
        findings.error("human", "there are no images to ask about; remove this section")
    known = [generator.name for generator in config.generate.generators]
    for name in config.human.generators or ():
        if name not in known:
            findings.error("human.generators", f"{name} is not in generate.generators: {', '.join(known)}")


def check(config: Any, findings: Findings) -> None:
    misfits(config, findings)
    if config.human is None:
        return
    for path in (*config.human.answers, *config.human.scores.values()):
        findings.exists("human.answers" if path in config.human.answers else "human.scores", path)
