"""Refuse a split in which the audit found violations; accepted.json is written only for an accepted one."""

from compclip.io import read_json, write_json
from compclip.split.accept_split import accept_split
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    audit, is_published = read_json(job.input.audit), job.params.is_published
    violations = accept_split(audit, job.input.audit, where=job.where, is_published=is_published)
    write_json({"violations": violations}, job.output.accepted)


if __name__ == "__main__":
    run(main)
