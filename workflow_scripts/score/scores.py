"""Functions of the scripts that score generators: read the tables, and write each generator's
scores.
"""

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.log import log
from compclip.core.tables import MANIFEST, ORACLE, SCORES
from compclip.io import atomic_folder, read_table, write_json, write_table
from compclip.score.config import Scoring
from compclip.score.entries import EntrySet, entry_sets
from compclip.score.scores import Rules, SetScores
from compclip.split.judged import judged_images
from compclip.split.pools import bounded, class_names, least_distractors
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job

# Scores by set, and the summary's entries about the judge.
JudgedSets = tuple[dict[str, SetScores], dict[str, Any]]


@dataclass(frozen=True)
class Inputs:
    """The common inputs of all generators' scores."""

    tables: dict[str, pd.DataFrame]  # arguments of ``entry_sets``, except a generator's manifest
    images: pd.DataFrame
    variants: pd.DataFrame
    served: set[str]  # the splits that a generator serves, and seen
    rules: Rules

    @property
    def captions(self) -> list[str]:
        """The distinct captions of all sets, also of prompts without an image, sorted."""
        prompts = self.tables["prompts"]
        texts = set(prompts.loc[prompts["split"].isin(self.served), "text"])
        texts |= self._judged_texts("captions", "text")
        # Swapped captions are candidates only if the config asks for them.
        if "swapped" in self.rules.scoring.distractors:
            texts |= self._judged_texts("swapped", "swapped_text")
        return sorted(texts)

    def _judged_texts(self, name: str, column: str) -> set[str]:
        table = self.tables[name]
        is_judged = table["image_id"].isin(self.tables["judged"]["image_id"])
        return set(table.loc[is_judged, column])


def read_inputs(job: Job) -> Inputs:
    """Read the tables, and set the number of candidates; UserError if there are too few."""
    params = job.params
    read = read_tables(job, "captions", "images", "splits", "swapped", "prompts", "variants")
    tables = {
        "judged": judged_images(read["splits"], read["images"], params.train_on, params.halves),
        "captions": read["captions"],
        "swapped": read["swapped"],
        "prompts": read["prompts"],
    }
    scoring = Scoring.model_validate(params.scoring)
    # All entries of all generators have equally many candidates, so that their scores compare.
    candidates = bounded(scoring.candidates, least_distractors(**tables), job.where)
    rules = Rules(
        scoring.model_copy(update={"candidates": candidates}),
        class_names(read["captions"]),
        params.seed,
        job.wildcards.composition,
        params.prompts,
        read["swapped"],
    )
    # the adjustment of similarities is chosen on seen prompts
    served = {"test_seen"}.union(*params.serves.values())
    return Inputs(tables, read["images"], read["variants"], served, rules)


def describe_rules(job: Job, inputs: Inputs) -> dict[str, Any]:
    """Return the entries of a summary that all generators share."""
    rules = inputs.rules
    is_judged = rules.classes.index.isin(inputs.tables["judged"]["image_id"])
    classes = rules.classes[is_judged]
    # ``class_names`` makes an image without a class a class of its own, with this name.
    without_class = int(classes.str.startswith("image ").sum())
    return {
        "train_on": job.params.train_on,
        "seed": rules.seed,
        "candidates": rules.scoring.candidates,
        "ties": rules.scoring.ties,
        "chunks": rules.scoring.chunks,
        "chunking": rules.scoring.chunking,
        "class_rule": "other image" if without_class == len(classes) else "other class",
        "images_without_class": without_class,
    }


def write_scores(folder: Path, scored: Mapping[str, SetScores], summary: Mapping[str, Any]) -> None:
    """Write the scores and predictions of a generator's sets, and their summary."""
    with atomic_folder(folder) as temporary:
        for name, scores in scored.items():
            write_table(scores.table, temporary / f"{name}.parquet", SCORES)
            # Python 2 reads protocol 2.
            predictions = pickle.dumps(scores.predictions, protocol=2)
            (temporary / f"{name}.predictions.pkl").write_bytes(predictions)
        write_json(summary, temporary / "summary.json")


def score_generators(
    job: Job,
    inputs: Inputs,
    folders: Sequence[Path],
    score: Callable[[str, list[EntrySet]], JudgedSets],
) -> None:
    """Call ``score`` with each generator's name and sets, and write the scores into its folder."""
    params = job.params
    rules = inputs.rules
    rules_summary = describe_rules(job, inputs)
    generators = zip(params.serves.items(), job.input.manifests, folders, strict=True)
    for number, ((name, splits), manifest_file, folder) in enumerate(generators, 1):
        started = time.monotonic()
        manifest = read_table(manifest_file, MANIFEST)
        sets = entry_sets(splits, rules.scoring.distractors, manifest=manifest, **inputs.tables)
        scored, judge = score(name, sets)
        set_summaries = [summary for scores in scored.values() for summary in scores.summaries]
        summary = {
            "dataset": params.dataset,
            "composition": job.wildcards.composition,
            "generator": name,
            **rules_summary,
            **judge,
            "scores": set_summaries,
        }
        write_scores(folder, scored, summary)
        # The oracle scores the same generators as the judges, in the same log.
        logged_name = f"{name} (oracle)" if judge["judge"] == ORACLE else name
        for set_summary in set_summaries:
            log_summary(set_summary, logged_name, rules.candidates)
        seconds = time.monotonic() - started
        log.info("generator %d of %d, %s: %.0f s", number, len(params.serves), name, seconds)


def log_summary(summary: Mapping[str, Any], name: str, candidates: int) -> None:
    entries = f"{name}, {summary['set']} ({summary['prompts']})"
    log.info("%s: %s of %d entries, exact", entries, summary["exact"], summary["judged"])
    for kind in ("missing", "unreadable"):
        files = summary[kind]
        if files:
            log.warning("warning: %s: %d images %s, first: %s", entries, len(files), kind, files[0])
    # Captions of an entry's own class are not eligible, and a class may have most captions.
    pool = summary["pool"]
    few = pool["entries_with_fewer_than_candidates"]
    if few:
        log.warning(
            "warning: %s: %d entries have fewer than %d eligible captions; the fewest are %d",
            entries,
            few,
            candidates - 1,
            pool["eligible_least"],
        )
    balance = summary.get("balance")
    # Without judged entries, there is nothing to balance.
    if balance and not balance["cut"] and summary["judged"]:
        log.warning("warning: %s: not balanced (%s)", entries, balance["rule"])
