"""Stretch the positions of the trained CLIP, or of a pretrained one, so that it reads long
captions.
"""

from pathlib import Path

from compclip.clip.config import ModelConfig
from compclip.clip.model import Built, build, judge_hash, read_judge
from compclip.clip.sources import model_name
from compclip.core.errors import UserError, require
from compclip.specs.config import KEPT_POSITIONS, STRETCHED_LENGTH
from compclip.specs.stretch import context_length, stretch, write_judge
from workflow_scripts.job import Job, run_script


def build_pretrained(config: ModelConfig) -> Built:
    try:
        # The seed does not matter, since all weights are loaded.
        return build(config, [], 0)
    except UserError as error:
        # The library names keys of the judge's section.
        raise UserError(str(error).replace("judge.", "specs.base.")) from error


def main(job: Job) -> None:
    folder = job.input.judge
    manifest: dict[str, str | int | None]
    if folder:
        source, name, crop = read_judge(folder)
        is_new = context_length(source.model_cfg) != STRETCHED_LENGTH
        fault = f"already reads {STRETCHED_LENGTH} tokens"
        require(is_new, folder, fault, "use another specs.base.model")
        manifest = {"stretched_from": judge_hash(folder)}
    else:
        config = ModelConfig.model_validate(job.params.model)
        source = build_pretrained(config)
        name = model_name(config.model)
        crop = None
        # The name of a file without its folder, which differs between machines.
        manifest = {"pretrained": config.pretrained and Path(config.pretrained).name}
    length = context_length(source.model_cfg)
    # a stretched judge's name has its length
    name = f"{name.removesuffix(f'-{length}')}-{STRETCHED_LENGTH}"
    manifest |= {"positions_before": length, "positions_kept": KEPT_POSITIONS}
    write_judge(stretch(source), name, crop, manifest, job.output.judge)


if __name__ == "__main__":
    run_script(main)
