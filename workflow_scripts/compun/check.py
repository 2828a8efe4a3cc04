"""Check the compounds, their texts and the models that are asked."""

import os
from typing import Any

from workflow_scripts.clip.check import check_model
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
    if compun.compounds:
        # Of several places of the images, one must exist, if none is an address or the benchmark's own.
        places = [compun.compounds.images] if isinstance(compun.compounds.images, str) else compun.compounds.images
        if not any(place == "compun" or "://" in place or os.path.exists(place) for place in places):
            findings.exists("compun.compounds.images", places[0], "folder or archive")
    for model in compun.models:
        key = f"compun.models: {model.title}"
        if model.judge:
            findings.exists(key, model.judge, "folder")
        elif model.open_clip:
            check_model(key, model.judge_config(), findings)
    models = ["two small CLIPs"] * (compun.compounds is None) + [model.title for model in compun.models]
    compounds = "your own or the benchmark's" if compun.compounds else "drawn"
    findings.plan.append(("compound nouns", f"{compounds}; models: {', '.join(models)}"))
    findings.device("compun.device", compun.device)
