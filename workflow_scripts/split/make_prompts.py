"""List the prompts for all generators, and estimate the intervals of scores."""

from compclip.core.log import log
from compclip.core.tables import CAPTIONS, PROMPTS, RANKING, SWAPPED
from compclip.io import json_lines, read_json, read_table, write_json, write_table, write_text
from compclip.split.judged import judged_images
from compclip.split.make_prompts import count_prompts, make_prompts
from compclip.split.pools import bounded, least_distractors
from compclip.split.widths import estimate_widths, points
from workflow_scripts.inputs import read_blocks, read_tables
from workflow_scripts.job import Job, run_script


def main(job: Job) -> None:
    params, heldout = job.params, read_json(job.input.heldout)
    splits, images = read_tables(job, "splits", "images").values()
    judged = judged_images(splits, images, params.train_on, params.halves)
    prompts = make_prompts(
        **read_blocks(job, "captions", "pairs", "swapped"), ranking=read_table(job.input.ranking, RANKING),
        heldout=heldout["pairs"], judged=judged, every_caption=params.prompts == "all", draws=params.draws,
        per_image=params.per_image, seed=params.seed, dataset=params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    of_judged = [*judged["image_id"]]
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"], of_judged)
    swapped = read_table(job.input.swapped, SWAPPED, ["image_id"], of_judged)
    distractors = least_distractors(captions, judged, swapped, prompts)
    if images["path"].notna().any():  # otherwise nothing is scored
        bounded(params.candidates, distractors, job.where)
    counts, widths = count_prompts(prompts, judged, splits), estimate_widths(prompts, heldout)
    write_table(prompts, job.output.prompts, PROMPTS)
    write_text(json_lines(prompts), job.output.jsonl)
    write_json({"distractors_at_least": distractors, "splits": counts}, job.output.summary)
    write_json(widths, job.output.widths)
    for split, count in counts.items():
        numbers = count["prompts"], count["images"], points(widths["splits"][split]["half_width"])
        log.info("%s: %s: %d prompts, %d images, expected 95 %% interval %s", job.where, split, *numbers)
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", job.where, split)
    is_said = "captions_needed" in heldout.get("chosen", {})  # by sample_heldout
    for warning in [] if is_said else widths["warnings"]:
        log.warning("warning: %s: %s", job.where, warning)


if __name__ == "__main__":
    run_script(main)
