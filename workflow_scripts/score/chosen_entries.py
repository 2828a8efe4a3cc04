"""Read what judges are asked: the images of all generators as entries, and texts beside each
prompt.
"""

from pathlib import Path

import pandas as pd

from compclip.clip.embed import item_finder
from compclip.core.artifacts.parquet import read_table
from compclip.core.tables import MANIFEST
from compclip.score.choose_texts import OF_ADJECTIVE, OF_PROMPT, Asker, Others
from compclip.score.entries import judged_entries
from compclip.score.prompt_following import prompt_distractors
from compclip.split.evaluation import evaluation_images
from compclip.split.pools import Pools, class_names
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job


def read_entries(job: Job) -> tuple[pd.DataFrame, Others, Asker]:
    """Return entries, the texts beside their prompts, and who makes the questions.

    A prompt whose image is missing or broken has no path.
    """
    params = job.params
    tables = read_tables(job, "captions", "images", "splits", "swapped", "prompts", "variants")
    prompts = tables["prompts"]
    parts = []
    manifests = zip(params.splits_by_generator.items(), job.input.manifests, strict=True)
    for (name, splits), file in manifests:
        manifest = read_table(file, MANIFEST)
        for split in splits:
            for entries in judged_entries(prompts, manifest, split):
                # An empty table would change the types of columns.
                if len(entries):
                    parts.append(entries.assign(generator=name, split=split))
    entries = pd.concat(parts, ignore_index=True)
    judged = evaluation_images(
        tables["splits"], tables["images"], params.train_on, params.judge_half
    )
    pools = Pools(tables["captions"], judged, tables["swapped"])
    classes = class_names(tables["captions"])
    distractors = prompt_distractors(prompts, pools, classes, params.seed)
    options = {OF_ADJECTIVE: tables["variants"], OF_PROMPT: distractors}
    find_item = item_finder(tables["images"], Path(params.results))
    return entries, options, Asker(find_item, params.seed)
