"""Train the stretched CLIP on long captions, with the loss of SPECS or only its contrastive
term.
"""

import pandas as pd
import torch

from compclip.clip.device import check_precision, find_device, is_gpu, settle
from compclip.clip.model import Judge, judge_hash, read_judge
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import say_cut
from compclip.core.cache import key
from compclip.core.code import code_hash
from compclip.core.digests import sha256
from compclip.core.log import log
from compclip.core.tables import CHUNKS
from compclip.io import read_table, write_text
from compclip.judge.parallel import Group, joined, own_device
from compclip.specs.config import SpecsTraining
from compclip.specs.data import LongExamples
from compclip.specs.stretch import write_judge
from compclip.specs.train_specs import SPECS_GPUS, train_specs
from workflow_scripts.job import Job, run_script

# The packages whose code determines the trained weights.
SPECS_CODE = ("compclip.specs", "compclip.clip", "compclip.judge", "compclip.core.seeds")


def train_with_loss(job: Job, settings: SpecsTraining, device: torch.device, group: Group) -> None:
    loss, seed, threads, start = (
        job.wildcards.loss,
        int(job.wildcards.seed),
        job.params.threads,
        job.input.judge,
    )
    built, name, crop = read_judge(start)
    judge = Judge(
        built.model, built.tokenizer(), Preprocess(built.preprocess_cfg, crop), device, threads
    )
    examples = LongExamples(read_table(job.input.captions, CHUNKS), job.input.images)
    log.info("training %s by %s on %d captions, on %s", name, loss, len(examples), device)
    # Everything that determines the trained weights.
    code = code_hash("compclip.specs.train_specs", "compclip.specs.data", within=SPECS_CODE)
    work = key(
        code,
        settings.model_dump_json(),
        loss,
        seed,
        threads,
        torch.__version__,
        device.type,
        group.count,
        judge_hash(start),
        sha256(job.input.captions),
    )
    checkpoint = job.params.cache / "specs" / work.hex() / "checkpoint.pt"
    rows = train_specs(judge, examples, settings, checkpoint, loss=loss, seed=seed, group=group)
    if not group.first:
        return
    truncated, without = (
        sum(row[column] for row in rows) for column in ("cut", "without_negative")
    )
    read = len(rows) * settings.accumulation * settings.batch * group.count
    say_cut(truncated, read)
    if without:
        log.warning("%d of %d captions read had no negative in their batch", without, read)
    about = {
        "started_from": judge_hash(start),
        "loss": loss,
        "settings": settings.model_dump(mode="json"),
        "processes": group.count,
        "examples": len(examples),
        "left_out": examples.skipped,
        "steps": len(rows),
        "captions_read": read,
        "cut": truncated,
        "without_negative": without,
        "seed": seed,
    }
    write_judge(built, f"{name}-{loss}", crop, about, job.output.judge)
    text = pd.DataFrame(rows).to_csv(index=False, float_format="%.8g", lineterminator="\n")
    write_text(text, job.output.judge / "log.csv")


def main(job: Job) -> None:
    params, settings = job.params, SpecsTraining.model_validate(job.params.training)
    settle(params.threads)
    device = own_device(
        find_device(params.device, "specs.base.device"), params.processes, params.device, SPECS_GPUS
    )
    if settings.precision == "auto":
        settings = settings.model_copy(
            update={"precision": "amp_fp16" if is_gpu(device) else "fp32"}
        )
    check_precision(settings.precision, device, "specs.training.precision")
    with joined(params.processes, device, SPECS_GPUS) as group:
        train_with_loss(job, settings, device, group)


if __name__ == "__main__":
    run_script(main)
