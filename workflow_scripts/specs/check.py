"""Check the long captions and the CLIP that is stretched."""

from typing import Any

from workflow_scripts.clip.check import check_model
from workflow_scripts.core.checks import Findings
from workflow_scripts.dataset.check import tables


def misfits(config: Any, findings: Findings) -> None:
    """Refuse to describe images without scenes."""
    if config.specs and config.specs.data is None and "scenes" not in tables(config):
        source = config.dataset.source
        findings.error("specs.data", f"null describes sketches, but dataset.source is {source}; name long captions")


def check(config: Any, findings: Findings) -> None:
    misfits(config, findings)
    if specs := config.specs:
        for name, path in (specs.data.model_dump() if specs.data else {}).items():
            if path:
                findings.exists(f"specs.data.{name}", path, "folder" if "images" in name else "file or folder")
        about = check_model("specs.base", specs.base, findings)
        findings.plan.append(("long captions", f"{about}; seeds {', '.join(map(str, specs.seeds))}"))
        findings.device("specs.base.device", specs.base.device)
