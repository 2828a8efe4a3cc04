"""Train a stretched judge by the loss of SPECS or, for comparison, by its contrastive term alone.

On several GPUs: torchrun --nproc-per-node=N -m -- compclip.specs.train_specs ... (docs/cluster.md)
"""

import os
from functools import partial

import pandas as pd
import torch

from compclip.clip.device import check_precision, find_device, is_gpu, settle
from compclip.clip.model import Judge, judge_hash, read_judge
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import say_cut
from compclip.core import cache, cli
from compclip.core.code import code_hash
from compclip.core.log import log
from compclip.io import atomic
from compclip.judge.parallel import Group, joined, own_device, synchronise_norms
from compclip.judge.training import training_mode
from compclip.specs.config import Training
from compclip.specs.data import Examples
from compclip.specs.steps import TrainSpecs
from compclip.specs.stretch import check_output, write_judge
from compclip.specs.training import train

PROCESSES = "--nproc-per-node"  # option of torchrun, which errors name
TRAINING = (  # the code that decides the trained weights
    "compclip.specs.training:train",
    "compclip.specs.data:Examples",
    "compclip.clip.model:Judge",
    "compclip.clip.model:read_judge",
    "compclip.clip.pixels:Preprocess",
    "compclip.clip.tokens:get_tokenizer",
)


def train_judge(step: TrainSpecs, settings: Training, device: torch.device, group: Group) -> None:
    built, name, crop = read_judge(step.judge)
    tokenizer, preprocess = built.tokenizer(), Preprocess(built.preprocess_cfg, crop)
    judge = Judge(built.model, tokenizer, preprocess, device, step.threads)
    training_mode(judge.model)
    synchronise_norms(judge.model, group, device, PROCESSES)

    examples = Examples(step.captions, step.images)
    log.info("training %s by %s on %d captions, on %s", name, step.loss, len(examples), device)
    # Everything that decides the trained weights.
    work = cache.key(
        code_hash(*TRAINING), settings.model_dump_json(), step.loss, step.seed, step.threads, torch.__version__,
        device.type, group.count, judge_hash(step.judge), examples.identity,
    )  # fmt: skip
    rows = train(
        judge, partial(examples.stream, step.seed), len(examples), settings, step.loss,
        step.seed, step.cache / "specs" / work.hex() / "checkpoint.pt", group,
    )  # fmt: skip
    if not group.first:
        return
    truncated, without = (sum(row[column] for row in rows) for column in ("cut", "without_negative"))
    read = len(rows) * settings.accumulation * settings.batch * group.count
    say_cut(truncated, read)
    if without:
        log.warning("%d of %d captions read had no negative in their batch", without, read)
    about = {
        "started_from": judge_hash(step.judge), "loss": step.loss, "settings": settings.model_dump(mode="json"),
        "processes": group.count, "examples": len(examples), "left_out": examples.skipped, "steps": len(rows),
        "captions_read": read, "cut": truncated, "without_negative": without, "seed": step.seed,
    }  # fmt: skip
    write_judge(built, f"{name}-{step.loss}", crop, about, step.output)
    with atomic(step.output / "log.csv") as temporary:
        pd.DataFrame(rows).to_csv(temporary, index=False, float_format="%.8g", lineterminator="\n")


def main(step: TrainSpecs) -> None:
    check_output(step.output, step.judge)
    settle(step.threads)
    gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1))  # set by torchrun
    device = own_device(find_device(step.device, "--device"), gpus, step.device, PROCESSES)
    settings = step.training
    if settings.precision == "auto":
        settings = settings.model_copy(update={"precision": "amp_fp16" if is_gpu(device) else "fp32"})
    check_precision(settings.precision, device, "specs.training.precision")
    with joined(gpus, device, PROCESSES) as group:
        train_judge(step, settings, device, group)


if __name__ == "__main__":
    cli.run(main)
