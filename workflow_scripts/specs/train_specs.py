"""Train the stretched CLIP on long captions, with the loss of SPECS or only its contrastive
term.
"""

from pathlib import Path

import pandas as pd
import torch

from compclip.clip.device import check_precision, find_device, is_gpu, settle
from compclip.clip.model import Judge, judge_hash, read_judge
from compclip.clip.pixels import Preprocess
from compclip.clip.tokens import report_truncated
from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.identity.cache import key
from compclip.core.identity.code import code_hash
from compclip.core.identity.digests import sha256
from compclip.core.log import log
from compclip.core.tables import CHUNKS
from compclip.judge.parallel import Group, joined, own_device
from compclip.specs.config import SpecsTraining
from compclip.specs.data import LongExamples
from compclip.specs.stretch import write_judge
from compclip.specs.train_specs import SPECS_GPUS, train_specs
from workflow_scripts.job import Job, run_script

# The packages whose code determines the trained weights.
SPECS_CODE = ("compclip.specs", "compclip.clip", "compclip.judge", "compclip.core.seeds")


def checkpoint_of(job: Job, settings: SpecsTraining, device: torch.device, group: Group) -> Path:
    """Return the checkpoint from which this training, and no other, resumes."""
    # Everything that determines the trained weights.
    work = key(
        # Not the whole library, so that changes elsewhere do not repeat a training.
        code_hash("compclip.specs.train_specs", "compclip.specs.data", within=SPECS_CODE),
        settings.model_dump_json(),
        job.wildcards.loss,
        int(job.wildcards.seed),
        job.params.threads,
        torch.__version__,
        device.type,
        group.count,
        judge_hash(job.input.judge),
        sha256(job.input.captions),
    )
    return job.params.cache / "specs" / work.hex() / "checkpoint.pt"


def train_with_loss(job: Job, settings: SpecsTraining, device: torch.device, group: Group) -> None:
    loss = job.wildcards.loss
    seed = int(job.wildcards.seed)
    # Each training starts from the same stretched CLIP.
    built, name, crop = read_judge(job.input.judge)
    preprocess = Preprocess(built.preprocess_cfg, crop)
    judge = Judge(built.model, built.tokenizer(), preprocess, device, job.params.threads)
    examples = LongExamples(read_table(job.input.captions, CHUNKS), job.input.images)
    log.info("training %s by %s on %d captions, on %s", name, loss, len(examples), device)
    checkpoint = checkpoint_of(job, settings, device, group)
    rows = train_specs(judge, examples, settings, checkpoint, loss=loss, seed=seed, group=group)
    # All processes end with the same weights, so one writes them.
    if not group.first:
        return
    captions_read = len(rows) * settings.accumulation * settings.batch * group.count
    truncated = sum(row["truncated"] for row in rows)
    report_truncated(truncated, captions_read)
    without_negative = sum(row["without_negative"] for row in rows)
    if without_negative:
        log.warning(
            "%d of %d captions read had no negative in their batch", without_negative, captions_read
        )
    manifest = {
        "started_from": judge_hash(job.input.judge),
        "loss": loss,
        "settings": settings.model_dump(mode="json"),
        "processes": group.count,
        "examples": len(examples),
        "excluded": examples.excluded,
        "steps": len(rows),
        "captions_read": captions_read,
        "truncated": truncated,
        "without_negative": without_negative,
        "seed": seed,
    }
    write_judge(built, f"{name}-{loss}", crop, manifest, job.output.judge)
    text = pd.DataFrame(rows).to_csv(index=False, float_format="%.8g", lineterminator="\n")
    write_text(text, job.output.judge / "log.csv")


def main(job: Job) -> None:
    params = job.params
    settings = SpecsTraining.model_validate(params.training)
    # Before any use of torch, so that the same seed gives the same weights.
    settle(params.threads)
    device = find_device(params.device, "specs.base.device")
    # Each process of a group trains on a GPU of its own.
    device = own_device(device, params.processes, params.device, SPECS_GPUS)
    if settings.precision == "auto":
        # Half precision is fast on GPUs only.
        precision = "amp_fp16" if is_gpu(device) else "fp32"
        settings = settings.model_copy(update={"precision": precision})
    check_precision(settings.precision, device, "specs.training.precision")
    with joined(params.processes, device, SPECS_GPUS) as group:
        train_with_loss(job, settings, device, group)


if __name__ == "__main__":
    run_script(main)
