"""Ask every model, by every prompt, which of its three images shows a compound."""

from compclip.compun.asked_models import Runtime
from compclip.compun.classify import classify
from compclip.compun.config import NamedModel
from compclip.compun.prompts import read_texts
from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.tables import CHOICES, COMPOUND_IMAGES, COMPOUNDS
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    read = job.input
    params = job.params
    models = [NamedModel.model_validate(model) for model in params.models]
    # Without texts, the prompts that need them are not asked.
    captions = read_texts(read.captions) if read.captions else {}
    descriptions = read_texts(read.descriptions) if read.descriptions else {}
    choices, summary = classify(
        read_table(read.compounds, COMPOUNDS),
        read_table(read.images, COMPOUND_IMAGES),
        read.folder,
        models,
        Runtime(params.device, params.threads, params.cache),
        captions=captions,
        descriptions=descriptions,
    )
    with atomic_folder(job.output.choices) as folder:
        write_table(choices, folder / "choices.parquet", CHOICES)
        write_json(summary, folder / "choices.json")


if __name__ == "__main__":
    run_script(main)
