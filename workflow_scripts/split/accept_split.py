"""Refuse a split in which the audit found violations, before later steps use it.

This is a separate step, because Snakemake deletes the outputs of failed steps, and audit.json must
remain.
"""

from compclip.core.errors import require
from compclip.core.log import log
from compclip.io import read_json, write_json
from compclip.split.audit import in_words
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    audit = read_json(job.input.audit)
    violations, count = audit["violations"], int(audit["counts"]["violations"])
    if violations:
        rule = "swap_adjectives" if violations[0]["guarantee"] == "swapped" else "make_splits"
        # The faults of a published split cannot be fixed here.
        rerun = "" if job.params.is_published else f"rerun with --forcerun {rule}, or "
        fault = (
            f"{count} audit violations, listed in {job.input.audit} (first: "
            f"{in_words(violations[0])})"
        )
        remedy = f"{rerun}set split.violations to count to use this split nevertheless"
        require(audit["tolerance"] == "count", job.where, fault, remedy)
        log.warning("warning: %s: continues despite %d audit violations", job.where, count)
    write_json({"violations": count}, job.output.accepted)


if __name__ == "__main__":
    run_script(main)
