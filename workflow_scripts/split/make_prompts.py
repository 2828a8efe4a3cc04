"""List the images that every generator is asked to make, and estimate the intervals of their scores."""

from compclip.core.log import log
from compclip.core.tables import CAPTIONS, IMAGES, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED
from compclip.io import json_lines, read_json, read_table, write_json, write_table, write_text
from compclip.split.judged import judged_images
from compclip.split.make_prompts import count_prompts, make_prompts
from compclip.split.pools import bounded, least_distractors
from compclip.split.widths import estimate_widths, points
from workflow_scripts.job import Job, run


def main(job: Job) -> None:
    params, heldout = job.params, read_json(job.input.heldout)
    splits, images = read_table(job.input.splits, SPLIT), read_table(job.input.images, IMAGES, ["image_id", "path"])
    captions, swapped = read_table(job.input.captions, CAPTIONS), read_table(job.input.swapped, SWAPPED)
    judged = judged_images(splits, images, params.train_on, params.halves)
    prompts = make_prompts(
        captions, read_table(job.input.pairs, PAIRS), read_table(job.input.ranking, RANKING), heldout["pairs"],
        judged, swapped, every_caption=params.prompts == "all", draws=params.draws,
        per_image=params.per_image, seed=params.seed, dataset=params.dataset, composition=job.wildcards.composition,
    )  # fmt: skip
    distractors = least_distractors(captions, judged, swapped, prompts)
    if images["path"].notna().any():  # otherwise nothing is scored
        bounded(params.candidates, distractors, job.where)
    counts, widths = count_prompts(prompts, judged, splits), estimate_widths(prompts, heldout)
    settings = {"prompts": params.prompts, "draws": params.draws, "train_on": params.train_on}
    write_table(prompts, job.output.prompts, PROMPTS)
    write_text(json_lines(prompts), job.output.jsonl)
    write_json({**settings, "distractors_at_least": distractors, "splits": counts}, job.output.summary)
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
    run(main)
