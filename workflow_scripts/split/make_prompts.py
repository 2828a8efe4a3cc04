"""List the prompts for all generators, and estimate the intervals of scores."""

from collections.abc import Iterator
from typing import TextIO

import pandas as pd

from compclip.core.log import log
from compclip.core.tables import CAPTION_KEY, CAPTIONS, PROMPTS, RANKING, SWAPPED, TESTS, is_further
from compclip.io import atomic, json_lines, read_json, read_table, write_json, write_table
from compclip.split.composition import Stream
from compclip.split.judged import judged_images
from compclip.split.make_prompts import (
    Prompting,
    PromptPairs,
    choose_prompts,
    count_prompts,
    prompt_table,
    texts_of,
)
from compclip.split.pools import bounded, least_distractors
from compclip.split.widths import estimate_widths, points
from workflow_scripts.inputs import image_blocks, read_blocks, read_tables
from workflow_scripts.job import Job, run_script


def parts(job: Job, chosen: pd.DataFrame, stream: Stream, lines: TextIO) -> Iterator[pd.DataFrame]:
    """Yield the prompts by split and block of images, and write them to ``lines``, too."""
    for split in TESTS:
        of_split = chosen[chosen["split"] == split]
        for images in image_blocks(job):
            rows = of_split if images is None else of_split[of_split["image_id"].between(*images)]
            texts = texts_of(split, **read_tables(job, "captions", "swapped", images=images))
            part = prompt_table(rows, texts, stream)
            lines.writelines(json_lines(part))
            yield part


def main(job: Job) -> None:
    params, heldout = job.params, read_json(job.input.heldout)
    stream = Stream(params.seed, params.dataset, job.wildcards.composition)
    ranking = read_table(job.input.ranking, RANKING)
    splits, images = read_tables(job, "splits", "images").values()
    judged = judged_images(splits, images, params.train_on, params.halves)
    keys = (
        read_table(job.input.captions, CAPTIONS, CAPTION_KEY, block) for block in image_blocks(job)
    )
    chosen = choose_prompts(
        keys,
        **read_blocks(job, "pairs", "swapped"),
        wanted=PromptPairs.from_ranking(ranking, heldout["pairs"]),
        judged=judged,
        prompting=Prompting(params.prompts == "all", params.draws, params.per_image),
        stream=stream,
    )
    of_judged = [*judged["image_id"]]
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"], of_judged)
    swapped = read_table(job.input.swapped, SWAPPED, ["image_id"], of_judged)
    distractors = least_distractors(captions, judged, swapped, chosen)
    if images["path"].notna().any():  # otherwise nothing is scored
        bounded(params.candidates, distractors, job.where)
    further = is_further(chosen)
    asked = chosen[~further]
    counts, widths = count_prompts(asked, judged, splits), estimate_widths(asked, heldout)
    counts[TESTS[0]]["further_draws"] = int(further.sum())
    with (
        atomic(job.output.jsonl) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as lines,
    ):
        write_table(parts(job, chosen, stream, lines), job.output.prompts, PROMPTS)
    write_json({"distractors_at_least": distractors, "splits": counts}, job.output.summary)
    write_json(widths, job.output.widths)
    for split, count in counts.items():
        numbers = count["prompts"], count["images"], points(widths["splits"][split]["half_width"])
        log.info(
            "%s: %s: %d prompts, %d images, expected 95 %% interval %s", job.where, split, *numbers
        )
        if more := count.get("further_draws"):
            log.info(
                "%s: %s: %d further draws of prompts as rare as the held-out ones",
                job.where,
                split,
                more,
            )
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", job.where, split)
    is_said = "captions_needed" in heldout.get("chosen", {})  # by sample_heldout
    for warning in [] if is_said else widths["warnings"]:
        log.warning("warning: %s: %s", job.where, warning)


if __name__ == "__main__":
    run_script(main)
