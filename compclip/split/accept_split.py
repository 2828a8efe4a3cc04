"""Refuse a split in which the audit found violations, before anything is made of it.

This is not part of the audit's step, because Snakemake deletes the outputs of a step that fails: audit.json remains.
"""

from compclip.core import cli
from compclip.core.errors import require
from compclip.core.log import log
from compclip.io import read_json, write_json
from compclip.split.audit import in_words
from compclip.split.steps import AcceptSplit


def main(step: AcceptSplit) -> None:
    result = read_json(step.audit)
    violations, count = result["violations"], result["counts"]["violations"]
    if violations:
        rule = "swap_adjectives" if violations[0]["guarantee"] == "swapped" else "make_splits"
        rerun = "" if step.is_published else f"rerun with --forcerun {rule}, or "
        fault = f"{count} audit violations, listed in {step.audit} (first: {in_words(violations[0])})"
        remedy = f"{rerun}set split.violations to count to use this split nevertheless"
        require(result["tolerance"] == "count", step.where, fault, remedy)
        log.warning("warning: %s: continues despite %d audit violations", step.where, count)
    write_json({"violations": count}, step.accepted)


if __name__ == "__main__":
    cli.run(main)
