"""Certify each member of a judge on right and wrong texts of the run's real images."""

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.rounding import json_values
from compclip.core.log import log
from compclip.judge.certify import certify, describe
from compclip.judge.make_certificate import make_certificate, sample_items
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script
from workflow_scripts.judge.members import open_members

# Items of each kind: enough for intervals of about 3 points, few enough to pay for.
ITEMS = 300


def main(job: Job) -> None:
    params = job.params
    tables = read_tables(job, "prompts", "captions", "pairs", "variants", "images")
    tables["prompts"] = tables["prompts"].query("draw == 0").reset_index(drop=True)
    table = make_certificate(
        **tables, adjectives=load_lexicon(job.input.adjectives), seed=params.seed
    )
    table = sample_items(table, ITEMS, params.seed)
    certificates = {}
    for member, chooser in open_members(job):
        certificate = certify(chooser, table, params.seed, params.results)
        for name, result in certificate.kinds.items():
            log.info("%s, %s: right %s of %d", member, name, result.accuracy, result.n)
        certificates[member] = describe(certificate)
    write_json(json_values(certificates), job.output.certificate)


if __name__ == "__main__":
    run_script(main)
