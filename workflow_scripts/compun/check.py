"""Check the compounds, their texts and the models that are asked."""

from typing import Any

from workflow_scripts.clip.check import check_model
from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    compun = config.compun
    if compun is None:
        return
    if compun.compounds:
        findings.exists("compun.compounds.file", compun.compounds.file)
        findings.exists("compun.compounds.images", compun.compounds.images, "folder")
    for kind in ("captions", "descriptions"):
        if texts := getattr(compun, kind):
            findings.exists(f"compun.{kind}", texts)
    for path in compun.human.answers if compun.human else ():
        findings.exists("compun.human.answers", path)
    for model in compun.models:
        if model.judge:
            findings.exists(f"compun.models: {model.title}", model.judge, "folder")
        elif model.open_clip:
            check_model(f"compun.models: {model.title}", model.judge_config(), findings)
    models = ["two small CLIPs"] * (compun.compounds is None) + [model.title for model in compun.models]
    findings.plan.append(("compound nouns", f"{'your own' if compun.compounds else 'drawn'}; {', '.join(models)}"))
    findings.device("compun.device", compun.device)
