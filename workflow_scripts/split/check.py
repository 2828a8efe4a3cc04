"""Check that published splits exist."""

from typing import Any

from workflow_scripts.core.checks import Findings


def check(config: Any, findings: Findings) -> None:
    published = config.split.published
    for composition in config.compositions if published else ():
        for kind in ("split", "data"):
            if (path := published.file(kind, composition)) is not None:
                findings.exists(f"split.published.{kind}", path)
