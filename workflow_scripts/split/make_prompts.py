"""List the prompts for all generators, and estimate the intervals of scores."""

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import pandas as pd

from compclip.core.artifacts.files import atomic, json_lines, read_json, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.log import log
from compclip.core.tables import CAPTION_KEY, CAPTIONS, PROMPTS, RANKING, SWAPPED, TESTS, is_further
from compclip.split.composition import Seeding
from compclip.split.evaluation import evaluation_images
from compclip.split.make_prompts import (
    Prompting,
    PromptPairs,
    choose_prompts,
    count_prompts,
    prompt_table,
    texts_of,
)
from compclip.split.pools import choose_candidates, least_distractors
from compclip.split.widths import estimate_widths, points
from workflow_scripts.inputs import image_blocks, read_blocks, read_tables
from workflow_scripts.job import Job, run_script


def choose(job: Job, heldout: list[str], judged: pd.DataFrame, seeding: Seeding) -> pd.DataFrame:
    """Return the captions that become prompts, without their texts."""
    params = job.params
    ranking = read_table(job.input.ranking, RANKING)
    # Captions are chosen by their keys; texts are read by block when prompts are written.
    keys = (
        read_table(job.input.captions, CAPTIONS, CAPTION_KEY, block) for block in image_blocks(job)
    )
    return choose_prompts(
        keys,
        **read_blocks(job, "pairs", "swapped"),
        wanted=PromptPairs.from_ranking(ranking, heldout),
        judged=judged,
        prompting=Prompting(params.prompts == "all", params.draws, params.per_image),
        seeding=seeding,
    )


def write_blocks(
    job: Job, chosen: pd.DataFrame, seeding: Seeding, lines: TextIO
) -> Iterator[pd.DataFrame]:
    """Yield the prompts by split and block of images, and write them to ``lines``, too."""
    for split in TESTS:
        split_rows = chosen[chosen["split"] == split]
        for images in image_blocks(job):
            rows = split_rows
            if images is not None:
                rows = split_rows[split_rows["image_id"].between(*images)]
            texts = texts_of(split, **read_tables(job, "captions", "swapped", images=images))
            prompts = prompt_table(rows, texts, seeding)
            lines.writelines(json_lines(prompts))
            yield prompts


def log_prompts(job: Job, counts: Mapping[str, Any], widths: Mapping[str, Any]) -> None:
    for split, count in counts.items():
        log.info(
            "%s: %s: %d prompts, %d images, expected 95 %% interval %s",
            job.location,
            split,
            count["prompts"],
            count["images"],
            points(widths["splits"][split]["half_width"]),
        )
        further_draws = count.get("further_draws")
        if further_draws:
            log.info(
                "%s: %s: %d further draws of prompts as rare as the held-out ones",
                job.location,
                split,
                further_draws,
            )
        if not count["prompts"]:
            log.warning("warning: %s: no prompt in %s", job.location, split)


def main(job: Job) -> None:
    params = job.params
    heldout = read_json(job.input.heldout)
    splits, images = read_tables(job, "splits", "images").values()
    # With ``train_on: half``, images that the judge learned from are not judged.
    judged = evaluation_images(splits, images, params.train_on, params.judge_half)
    seeding = Seeding(params.seed, params.dataset, job.wildcards.composition)
    chosen = choose(job, heldout["pairs"], judged, seeding)

    # Refuse too few distractors now, before images are generated for the prompts.
    judged_ids = judged["image_id"].tolist()
    captions = read_table(job.input.captions, CAPTIONS, ["image_id", "class_id"], judged_ids)
    swapped = read_table(job.input.swapped, SWAPPED, ["image_id"], judged_ids)
    distractors = least_distractors(captions, judged, swapped, chosen)
    if images["path"].notna().any():  # otherwise nothing is scored
        choose_candidates(params.candidates, distractors, job.location)

    # Only some prompts have further draws, so counts and expected intervals are of first draws.
    is_further_draw = is_further(chosen)
    first_draws = chosen[~is_further_draw]
    counts = count_prompts(first_draws, judged, splits)
    counts[TESTS[0]]["further_draws"] = int(is_further_draw.sum())
    widths = estimate_widths(first_draws, heldout)

    # The JSON lines and the table are written at once, so texts are read once.
    with (
        atomic(job.output.jsonl) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as lines,
    ):
        write_table(write_blocks(job, chosen, seeding, lines), job.output.prompts, PROMPTS)
    write_json({"distractors_at_least": distractors, "splits": counts}, job.output.summary)
    write_json(widths, job.output.widths)
    log_prompts(job, counts, widths)
    # sample_heldout has logged these warnings if it chose the draw by its widths.
    if "captions_needed" not in heldout.get("chosen", {}):
        for warning in widths["warnings"]:
            log.warning("warning: %s: %s", job.location, warning)


if __name__ == "__main__":
    run_script(main)
