"""Certify each member of a judge on right and wrong texts of the run's real images."""

import pandas as pd

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.parquet import write_table
from compclip.core.artifacts.rounding import json_values
from compclip.core.log import log
from compclip.core.tables import CERTIFICATE_ITEMS
from compclip.judge.certify import ITEMS, certify, describe
from compclip.judge.make_certificate import make_certificate, sample_items
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script
from workflow_scripts.judge.members import open_members


def main(job: Job) -> None:
    params = job.params
    tables = read_tables(job, "prompts", "captions", "pairs", "variants", "images")
    tables["prompts"] = tables["prompts"].query("draw == 0").reset_index(drop=True)
    table = make_certificate(
        **tables, adjectives=load_lexicon(job.input.adjectives), seed=params.seed
    )
    table = sample_items(table, ITEMS, params.seed)
    certificates = {}
    items = []
    for member, chooser in open_members(job):
        certificate = certify(chooser, table, params.seed, params.results)
        for name, result in certificate.kinds.items():
            log.info("%s, %s: right %s of %d", member, name, result.accuracy, result.n)
        certificates[member] = describe(certificate)
        items.append(certificate.items.assign(member=member))
    all_items = pd.concat(items, ignore_index=True)[[*CERTIFICATE_ITEMS.columns]]
    write_table(all_items, job.output.choices, CERTIFICATE_ITEMS)
    write_json(json_values(certificates), job.output.certificate)


if __name__ == "__main__":
    run_script(main)
