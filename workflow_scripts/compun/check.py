"""Check the compounds, their texts and the models that are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    compun = config.compun
    if compun is None:
        return
    if compun.compounds and compun.compounds.file:
        findings.exists("compun.compounds.file", compun.compounds.file)
    for kind in ("captions", "descriptions"):
        texts = getattr(compun, kind)
        if texts and texts.file:
            findings.exists(f"compun.{kind}.file", texts.file)
    for path in compun.human.answers if compun.human else ():
        findings.exists("compun.human.answers", path)
    for model in compun.models:
        if model.judge and not Path(model.judge).is_dir():
            findings.exists(f"compun.models: {model.title}", model.judge, "folder")
    models = ["two small CLIPs"] * (compun.compounds is None) + [model.title for model in compun.models]
    compounds = "your own or the benchmark's" if compun.compounds else "drawn"
    findings.plan.append(("compound nouns", f"{compounds}; models: {', '.join(models)}"))
    findings.device("compun.device", compun.device)
