"""Train the judge on the images that it may see, or use a pretrained one unchanged."""

from pathlib import Path

import pandas as pd

from compclip.clip.device import find_device, settle
from compclip.clip.model import JUDGE_MANIFEST, save_judge
from compclip.clip.sources import model_name
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT
from compclip.io import atomic, read_frame, read_table, write_json
from compclip.judge.config import Training
from compclip.judge.parallel import joined, own_device
from compclip.judge.train_judge import GPUS_SETTING, describe_training, find_material, train_judge
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    given, read, folder = job.params, job.input, job.output.judge
    settings = Training.model_validate(given.settings)
    settle(given.threads)
    device = own_device(find_device(settings.device), settings.gpus, settings.device, GPUS_SETTING)
    with joined(settings.gpus, device, GPUS_SETTING) as group:
        material = find_material(
            read_table(read.captions, CAPTIONS),
            read_table(read.images, IMAGES),
            [read_table(file, SPLIT) for file in read.splits],
            settings,
            Path(given.results),
            halves=given.halves,
            pretraining=read_frame(read.pretraining) if read.pretraining else None,
        )
        options = {"seed": given.seed, "threads": given.threads, "cache": given.cache}
        built, rows = train_judge(material, settings, **options, device=device, group=group)
        if group.first:
            summary = describe_training(built, material, settings, rows)
            judge_hash = save_judge(built, model_name(settings.model), settings.crop, folder)
            with atomic(folder / "log.csv") as temporary:
                pd.DataFrame(rows).to_csv(
                    temporary, index=False, float_format="%.6f", lineterminator="\n"
                )
            write_json(
                {"judge_hash": judge_hash, **summary, "seed": given.seed}, folder / JUDGE_MANIFEST
            )


if __name__ == "__main__":
    run_script(main)
