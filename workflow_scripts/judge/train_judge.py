"""Train the judge on the images that it may see, or use a pretrained one unchanged."""

from pathlib import Path

import pandas as pd

from compclip.clip.device import find_device, settle
from compclip.clip.model import JUDGE_MANIFEST, save_judge
from compclip.clip.sources import find_model, model_name
from compclip.core.artifacts.files import atomic, write_json
from compclip.core.artifacts.parquet import read_frame, read_table
from compclip.core.tables import CAPTIONS, IMAGES, SPLIT
from compclip.judge.config import Training
from compclip.judge.parallel import joined, own_device
from compclip.judge.train_judge import (
    GPUS_SETTING,
    describe_training,
    find_training_data,
    train_judge,
)
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params = job.params
    read = job.input
    settings = Training.model_validate(params.settings)
    # Before any use of torch, so that the same seed gives the same weights.
    settle(params.threads)
    # Several GPUs are asked for explicitly, whatever the model gains.
    model_cfg = find_model(settings.model, settings.revision).model_cfg
    device = find_device(settings.device, model_cfg=model_cfg if settings.gpus == 1 else None)
    # Each process of a group trains on a GPU of its own.
    device = own_device(device, settings.gpus, settings.device, GPUS_SETTING)
    with joined(settings.gpus, device, GPUS_SETTING) as group:
        training_data = find_training_data(
            read_table(read.captions, CAPTIONS),
            read_table(read.images, IMAGES),
            [read_table(file, SPLIT) for file in read.splits],
            settings,
            Path(params.results),
            judge_half=params.judge_half,
            pretraining=read_frame(read.pretraining) if read.pretraining else None,
        )
        trained = train_judge(
            training_data,
            settings,
            seed=params.seed,
            threads=params.threads,
            cache=params.cache,
            device=device,
            group=group,
        )
        # All processes end with the same weights, so one writes them.
        if not group.first:
            return
        summary = describe_training(trained, training_data, settings)
        folder = job.output.judge
        judge_hash = save_judge(trained.built, model_name(settings.model), settings.crop, folder)
        log_table = pd.DataFrame(trained.rows)
        # Figures of the training are drawn from this table.
        with atomic(folder / "log.csv") as temporary:
            log_table.to_csv(temporary, index=False, float_format="%.6f", lineterminator="\n")
        manifest = {"judge_hash": judge_hash, **summary, "seed": params.seed}
        write_json(manifest, folder / JUDGE_MANIFEST)


if __name__ == "__main__":
    run_script(main)
