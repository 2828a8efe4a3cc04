"""Score the images of all generators by each judge, and measure the bias of each judge.

One process runs all judges of a composition, because each start costs as much as scoring a small
run. A killed job finds its embeddings in the cache.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from compclip.clip.embed import BoxedFile, Embedder, item_finder, open_embedders
from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.heldout import read_heldout
from compclip.core.artifacts.parquet import read_table
from compclip.core.identity.digests import file_digests
from compclip.core.log import log
from compclip.core.tables import MANIFEST
from compclip.score.adjust import choose_adjustment
from compclip.score.bias import BiasCheck
from compclip.score.entries import EntrySet, share_derived
from compclip.score.measure_bias import (
    BiasEntries,
    bias_entries,
    entries_by_images,
    measure_bias,
)
from compclip.score.score_images import (
    embed_once,
    find_truncated,
    number_by_embedding,
    score_images,
)
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job, run_script
from workflow_scripts.score.generator_scores import (
    Inputs,
    JudgedSets,
    read_generators,
    read_inputs,
    write_scores,
)


@dataclass(frozen=True)
class JudgeFiles:
    """The files of a judge: its model, and what is written about it."""

    name: str
    model: Path
    scores: Sequence[Path]  # a folder for each generator
    bias: Path

    @property
    def epochs(self) -> int | None:
        """The epochs of its training; None for a judge that was not trained here."""
        manifest = self.model / "manifest.json"
        return read_json(manifest).get("epochs") if manifest.is_file() else None


def judge_files(job: Job) -> Iterator[JudgeFiles]:
    """Yield the files of each judge."""
    names = job.params.judges
    scores = job.output.scores
    # The rule lists the folders of all generators by one judge after another.
    per_judge = len(scores) // len(names)
    for number, name in enumerate(names):
        folders = scores[number * per_judge : (number + 1) * per_judge]
        yield JudgeFiles(name, job.input.judges[number], folders, job.output.bias[number])


def read_bias_entries(job: Job, inputs: Inputs) -> BiasEntries:
    """Read the entries that the judges' bias is measured on."""
    # The rule lists the manifests in the order of the generators.
    manifests = dict(zip(job.params.splits_by_generator, job.input.manifests, strict=True))
    # Its images show what is asked, swapped captions too, so what judges miss there is their bias.
    faithful = job.params.faithful_generator
    drawn_as_asked = read_table(manifests[faithful], MANIFEST) if faithful else None
    return bias_entries(
        entries_by_images(inputs.tables["prompts"], inputs.images, drawn_as_asked),
        inputs.tables["captions"],
        **read_tables(job, "pairs", "ranking"),
        heldout=read_heldout(job.input.heldout),
        variants=inputs.variants,
    )


@dataclass(frozen=True)
class ScoringTask:
    """What all judges score."""

    inputs: Inputs
    captions: list[str]  # ``inputs.captions``, which are sorted once
    # In memory until all judges have scored them, because numbering their captions, finding the
    # variants of their prompts and drawing their distractors is slow.
    sets_by_generator: Mapping[str, list[EntrySet]]
    bias_entries: BiasEntries
    digests: Mapping[str, str]  # by path, of the data set's images and of generated ones
    find_item: Callable[[str], BoxedFile]


def read_task(job: Job) -> ScoringTask:
    """Read the tables of all generators and the digests of their images."""
    inputs = read_inputs(job)
    # There is no folder of the data set's images in the run if they are the user's.
    image_folders = filter(None, [job.input.files, *job.input.generated])
    sets_by_generator = read_generators(job, inputs)
    share_derived(chain.from_iterable(sets_by_generator.values()))
    return ScoringTask(
        inputs,
        captions=inputs.captions,
        sets_by_generator=sets_by_generator,
        bias_entries=read_bias_entries(job, inputs),
        # Embeddings are cached by them; a file without one here is digested when it is embedded.
        digests=file_digests(image_folders),
        # Paths are relative to the results folder; photographs are cut to the box of their bird.
        find_item=item_finder(inputs.images, Path(job.params.results)),
    )


def score_by_judge(
    job: Job, task: ScoringTask, embedder: Embedder, files: JudgeFiles, truncated: set[str]
) -> dict[str, Any]:
    """Score all generators by one judge, and write the scores; return the judge's bias.

    truncated: the captions that the judge truncates.
    """
    inputs = task.inputs
    variants = inputs.variants
    embed_texts = embed_once(embedder, task.captions + variants["text"].tolist())

    def embed_images(paths: Sequence[str]) -> np.ndarray:
        return embedder.images(list(map(task.find_item, paths)), task.digests)

    # Most generators have the same sets, whose texts are numbered once.
    number = cache(partial(number_by_embedding, embed_texts=embed_texts))
    prompts = inputs.tables["prompts"]
    adjustment = choose_adjustment(
        prompts,
        inputs.images,
        variants,
        embed_texts=embed_texts,
        embed_images=embed_images,
        seed=job.params.seed,
    )
    multiple = None if adjustment is None else adjustment.multiple
    if multiple is not None:
        log.info(
            "adjusted adjective accuracy: similarity minus %s times that with calibration images",
            multiple,
        )
    judge = {"judge": embedder.judge.name, "judge_hash": embedder.judge.hash}
    judge_settings = judge | {"judge_epochs": files.epochs, "adjustment": multiple}
    for (name, sets), folder in zip(task.sets_by_generator.items(), files.scores, strict=True):
        scores = score_images(sets, inputs.rules, embed_texts, embed_images, adjustment, number)
        captions = set[str]().union(*(entry_set.texts for entry_set in sets))
        counts = {"captions": len(captions), "truncated_captions": len(truncated & captions)}
        write_scores(job, inputs, name, JudgedSets(scores, judge_settings | counts), folder)
    composition = {"dataset": job.params.dataset, "composition": job.wildcards.composition}
    bias = measure_bias(embed_texts, embed_images, adjustment, task.bias_entries)
    return composition | judge | bias


def main(job: Job) -> None:
    params = job.params
    task = read_task(job)
    opened = open_embedders(
        job.input.judges, params.batch, params.threads, params.device, params.cache
    )
    bias_by_judge: dict[str, dict[str, Any]] = {}
    tokenizer = None
    truncated = set[str]()
    with opened as embedders:
        for files, embedder in zip(judge_files(job), embedders, strict=True):
            log.info("judge %s", files.name)
            # Judges that were trained on the same captions have equal tokenizers.
            if tokenizer is None or embedder.judge.tokenizer != tokenizer:
                tokenizer = embedder.judge.tokenizer
                truncated = find_truncated(embedder.judge, task.captions)
            bias = score_by_judge(job, task, embedder, files, truncated)
            write_json(bias, files.bias)
            bias_by_judge[files.name] = bias
    bias_check = BiasCheck(bias_by_judge, params.max_bias)
    for note in filter(None, (bias_check.note, bias_check.unrecognized_note)):
        log.info("%s: %s", job.location, note)


if __name__ == "__main__":
    run_script(main)
