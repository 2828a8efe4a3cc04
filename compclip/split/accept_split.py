"""Refuse a split in which the audit found violations, before anything is made of it.

This is not part of the audit, because Snakemake deletes the outputs of a step that fails: audit.json remains.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compclip.core.errors import require
from compclip.core.log import log
from compclip.split.audit import in_words


def accept_split(
    audit: Mapping[str, Any], file: str | Path = "audit.json", *, where: str = "split", is_published: bool = False
) -> int:
    """Return the number of violations; raises UserError if there are any, unless the audit's tolerance is count.

    Args:
        audit: what ``audit`` returns.
        file, where: where its violations are listed, and what was audited, for the message.
        is_published: the split is published, so its faults cannot be fixed here.
    """
    violations, count = audit["violations"], int(audit["counts"]["violations"])
    if violations:
        rule = "swap_adjectives" if violations[0]["guarantee"] == "swapped" else "make_splits"
        rerun = "" if is_published else f"rerun with --forcerun {rule}, or "
        fault = f"{count} audit violations, listed in {file} (first: {in_words(violations[0])})"
        remedy = f"{rerun}set split.violations to count to use this split nevertheless"
        require(audit["tolerance"] == "count", where, fault, remedy)
        log.warning("warning: %s: continues despite %d audit violations", where, count)
    return count
