"""Certify each member of a judge on right and wrong texts of the run's real images."""

from contextlib import ExitStack
from pathlib import Path

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.rounding import json_values
from compclip.core.log import log
from compclip.core.settings import plugins
from compclip.judge.certify import certify, describe
from compclip.judge.chooser import Context, load_kind
from compclip.judge.make_certificate import make_certificate, sample_items
from compclip.text.lexicon import load_lexicon
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script

# Items of each kind: enough for intervals of about 3 points, few enough to pay for.
ITEMS = 300


def main(job: Job) -> None:
    params = job.params
    kind = load_kind(params.kind)
    settings = plugins.settings(kind, params.settings, f"judge {job.wildcards.judge}")
    tables = read_tables(job, "prompts", "captions", "pairs", "variants", "images")
    tables["prompts"] = tables["prompts"].query("draw == 0").reset_index(drop=True)
    table = make_certificate(
        **tables, adjectives=load_lexicon(job.input.adjectives), seed=params.seed
    )
    table = sample_items(table, ITEMS, params.seed)
    certificates = {}
    # A judge without trained members is its only member.
    for model in job.input.members or [None]:
        member = Path(model).name if model else job.wildcards.judge
        with ExitStack() as closing:
            context = Context(
                model=model,
                cache=params.cache,
                threads=params.threads,
                seed=params.seed,
                device=params.device,
                batch=params.batch,
                closing=closing,
            )
            chooser = kind.open_chooser(settings, context)
            certificate = certify(chooser, table, params.seed, params.results)
        for name, result in certificate.kinds.items():
            log.info("%s, %s: right %s of %d", member, name, result.accuracy, result.n)
        certificates[member] = describe(certificate)
    write_json(json_values(certificates), job.output.certificate)


if __name__ == "__main__":
    run_script(main)
