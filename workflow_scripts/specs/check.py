"""Check the long captions and the CLIP that is stretched."""

from __future__ import annotations

from typing import Any

from workflow_scripts.clip.check import check_model
from workflow_scripts.core import plugins
from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.choice import SOURCES


def check(config: Any, findings: Findings) -> None:
    specs = config.specs
    if specs is None:
        return
    if specs.data is None and "scenes" not in getattr(plugins.load(SOURCES, config.dataset.source), "TABLES", ()):
        findings.error(
            "specs.data",
            f"null describes sketches, but dataset.source is {config.dataset.source}; name long captions",
        )
    for name in ("examples", "increments", "images", "increment_images") if specs.data else ():
        if path := getattr(specs.data, name):
            findings.exists(f"specs.data.{name}", path, "folder" if "images" in name else "file or folder")
    about = check_model("specs.base", specs.base, findings)
    findings.plan.append(("long captions", f"{about}; {len(specs.seeds)} seeds"))
    findings.device("specs.base.device", specs.base.device)
