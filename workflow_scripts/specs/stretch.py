"""Stretch the positions of the trained CLIP, or of a pretrained one, so that it reads long
captions.
"""

from pathlib import Path

from compclip.clip.config import ModelConfig
from compclip.clip.model import build, judge_hash, read_judge
from compclip.clip.sources import model_name
from compclip.core.errors import UserError, require
from compclip.specs.config import KEPT_POSITIONS, STRETCHED_LENGTH
from compclip.specs.stretch import context_length, stretch, write_judge
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    if folder := job.input.judge:
        source, name, crop = read_judge(folder)
        about: dict[str, str | int | None] = {"stretched_from": judge_hash(folder)}
        is_new = context_length(source.model_cfg) != STRETCHED_LENGTH
        require(
            is_new,
            folder,
            f"already reads {STRETCHED_LENGTH} tokens",
            "use another specs.base.model",
        )
    else:
        config, crop = ModelConfig.model_validate(job.params.model), None
        try:
            # The seed does not matter, since all weights are loaded.
            source, name = build(config, [], 0), model_name(config.model)
        except UserError as error:
            raise UserError(str(error).replace("judge.", "specs.base.")) from error
        about = {"pretrained": config.pretrained and Path(config.pretrained).name}
    before = context_length(source.model_cfg)
    # a stretched judge's name has its length
    name = f"{name.removesuffix(f'-{before}')}-{STRETCHED_LENGTH}"
    about |= {"positions_before": before, "positions_kept": KEPT_POSITIONS}
    write_judge(stretch(source), name, crop, about, job.output.judge)


if __name__ == "__main__":
    run_script(main)
