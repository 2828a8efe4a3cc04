"""Refuse a split in which the audit found violations, before anything is made of it.

This is not part of the audit's step, because Snakemake deletes the outputs of a step that fails: audit.json remains.
"""

from typing import Any

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, write_json
from workflow_scripts.split.audit import in_words
from workflow_scripts.split.steps import AcceptSplit


def advice(violation: dict[str, Any], is_published: bool) -> str:
    tolerate = "set split.violations to count to use this split nevertheless"
    if is_published:
        return tolerate
    rule = "swap_adjectives" if violation["guarantee"] == "swapped" else "make_splits"
    return f"the split does not match its captions: rerun with --forcerun {rule}, or {tolerate}"


def main(step: AcceptSplit) -> None:
    result = read_json(step.audit)
    violations, count = result["violations"], result["counts"]["violations"]
    if violations and result["tolerance"] == "refuse":
        raise UserError(
            f"{step.where}: {count} audit violations, listed in {step.audit}"
            f" (first: {in_words(violations[0])}); {advice(violations[0], step.is_published)}"
        )
    if violations:
        log.warning("warning: %s: continues despite %d audit violations", step.where, count)
    write_json({"violations": count}, step.accepted)


if __name__ == "__main__":
    cli.run(main)
