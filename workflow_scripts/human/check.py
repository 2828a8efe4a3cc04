"""Check the study's generators and files."""

from __future__ import annotations

from typing import Any

from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    if config.human is None:
        return
    if getattr(getattr(config.dataset, config.dataset.source), "images", ...) is None:
        findings.error("human", "the data set has no images to ask about; remove this section")
    known = [generator.name for generator in config.generate.generators]
    for name in config.human.generators or ():
        if name not in known:
            findings.error("human.generators", f"{name} is not in generate.generators: {', '.join(known)}")
    for path in (*config.human.answers, *config.human.scores.values()):
        findings.exists("human.answers" if path in config.human.answers else "human.scores", path)
