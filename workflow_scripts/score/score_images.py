"""Score the images of all generators by each judge, and measure the bias of each judge.

One job runs all judges of a composition, because each start costs as much as scoring a small run.
With several cores it forks: processes share the encoding, then each scores by one judge. A killed
job finds its embeddings in the cache.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from compclip.core.processes import map_in_processes
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
from workflow_scripts.job import Job, cpu_seconds, run_script
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
    texts: list[str]  # captions and variants
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
    captions = inputs.captions
    sets_by_generator = read_generators(job, inputs)
    share_derived(chain.from_iterable(sets_by_generator.values()))
    return ScoringTask(
        inputs,
        captions=captions,
        texts=captions + inputs.variants["text"].tolist(),
        sets_by_generator=sets_by_generator,
        bias_entries=read_bias_entries(job, inputs),
        # Embeddings are cached by them; a file without one here is digested when it is embedded.
        digests=file_digests(image_folders),
        # Paths are relative to the results folder; photographs are cut to the box of their bird.
        find_item=item_finder(inputs.images, Path(job.params.results)),
    )


@dataclass(frozen=True)
class Member:
    """A judge of the run."""

    files: JudgeFiles
    embedder: Embedder
    truncated: set[str]  # the captions that it truncates


def open_members(job: Job, task: ScoringTask, embedders: Sequence[Embedder]) -> Iterator[Member]:
    """Yield the judges with their files."""
    tokenizer = None
    truncated = set[str]()
    for files, embedder in zip(judge_files(job), embedders, strict=True):
        # Judges that were trained on the same captions have equal tokenizers.
        if tokenizer is None or embedder.judge.tokenizer != tokenizer:
            tokenizer = embedder.judge.tokenizer
            truncated = find_truncated(embedder.judge, task.captions)
        yield Member(files, embedder, truncated)


def score_by_judge(job: Job, task: ScoringTask, member: Member) -> dict[str, Any]:
    """Score all generators by one judge, and write the scores and its bias, which is returned."""
    log.info("judge %s", member.files.name)
    embedder = member.embedder
    inputs = task.inputs
    embed_texts = embed_once(embedder, task.texts)

    def embed_images(paths: Sequence[str]) -> np.ndarray:
        return embedder.images(list(map(task.find_item, paths)), task.digests)

    # Most generators have the same sets, whose texts are numbered once.
    number = cache(partial(number_by_embedding, embed_texts=embed_texts))
    prompts = inputs.tables["prompts"]
    adjustment = choose_adjustment(
        prompts,
        inputs.images,
        inputs.variants,
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
    judge_settings = judge | {"judge_epochs": member.files.epochs, "adjustment": multiple}
    folders = member.files.scores
    for (name, sets), folder in zip(task.sets_by_generator.items(), folders, strict=True):
        scores = score_images(sets, inputs.rules, embed_texts, embed_images, adjustment, number)
        captions = set[str]().union(*(entry_set.texts for entry_set in sets))
        counts = {"captions": len(captions), "truncated_captions": len(member.truncated & captions)}
        write_scores(job, inputs, name, JudgedSets(scores, judge_settings | counts), folder)
    composition = {"dataset": job.params.dataset, "composition": job.wildcards.composition}
    bias = composition | judge
    bias |= measure_bias(embed_texts, embed_images, adjustment, task.bias_entries)
    write_json(bias, member.files.bias)
    return bias


def embed_for_all(task: ScoringTask, members: Sequence[Member]) -> None:
    """Fill the judges' caches with all images and captions, so that files are read once, and what
    follows can be divided among processes.
    """
    tables = [entry_set.entries for sets in task.sets_by_generator.values() for entry_set in sets]
    for by_split in task.bias_entries.by_images.values():
        tables += [asked.rows for asked in by_split.values()]
    paths = dict.fromkeys(chain.from_iterable(table["path"] for table in tables))
    items = list(map(task.find_item, paths))
    for member in members:
        member.embedder.images(items, task.digests)
        member.embedder.texts(task.texts)


def score_member(job: Job, task: ScoringTask, members: Sequence[Member], number: int) -> Any:
    """Do what ``score_by_judge`` does by the judge of this number, maybe in a forked process."""
    member = members[number]
    if multiprocessing.parent_process():
        # The others' processes write to their caches themselves.
        embedder = replace(member.embedder, with_same_pixels=[], with_same_tokens=[], processes=1)
        embedder.cache.reconnect()
        member = replace(member, embedder=embedder)
    return score_by_judge(job, task, member)


def processes_of(job: Job, embedders: Sequence[Embedder]) -> int:
    """Return in how many processes the job encodes and scores."""
    # A process that has used a GPU, or several threads of torch, cannot be forked.
    on_cpu = all(str(embedder.judge.device) == "cpu" for embedder in embedders)
    can_fork = sys.platform == "linux" and on_cpu and job.params.threads == 1
    return job.threads if can_fork else 1


def main(job: Job) -> None:
    params = job.params
    task = read_task(job)
    opened = open_embedders(
        job.input.judges, params.batch, params.threads, params.device, params.cache
    )
    with opened as embedders:
        processes = processes_of(job, embedders)
        for embedder in embedders:
            embedder.processes = processes
        members = list(open_members(job, task, embedders))
        started = cpu_seconds()
        embed_for_all(task, members)
        # benchmarks/schedule.py reads this.
        times = started, cpu_seconds(), len(members)
        log.info("embedded from CPU second %.1f to %.1f for %d judges", *times)
        score = partial(score_member, job, task, members)
        numbers = range(len(members))
        biases = list(map_in_processes(score, numbers, min(processes, len(members))))
    names = [member.files.name for member in members]
    bias_check = BiasCheck(dict(zip(names, biases, strict=True)), params.max_bias)
    for note in filter(None, (bias_check.note, bias_check.unrecognized_note)):
        log.info("%s: %s", job.location, note)


if __name__ == "__main__":
    run_script(main)
