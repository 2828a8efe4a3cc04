"""Measure the Fréchet inception distance of a generator's images from the real images of each
split.
"""

from compclip.clip.device import find_device, settle
from compclip.core.artifacts.files import write_json
from compclip.score.config import Balance
from compclip.score.score_fid import FidSettings, load_inception, score_fid
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    device = find_device(params.device)
    settle(params.threads)
    settings = FidSettings(
        results=params.results,
        serves=params.serves,
        composition=job.wildcards.composition,
        balancing=Balance.model_validate(params.balance),
        seed=params.seed,
        device=device,
    )
    distances = score_fid(
        **read_tables(job, "images", "splits", "prompts", "manifest"),
        network=load_inception(params.weights, params.cache),
        settings=settings,
    )
    about = {"generator": job.wildcards.generator, "network": "Inception, 2048 features"}
    write_json({**about, "splits": distances}, job.output.fid)


if __name__ == "__main__":
    run_script(main)
