"""Functions of the scripts that score generators: read the tables, and write each generator's
scores.
"""

import pickle
import time
from collections.abc import Callable, Sequence
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
        tables, judged = self.tables, self.tables["judged"]["image_id"]
        texts = {
            *tables["prompts"].loc[tables["prompts"]["split"].isin(self.served), "text"].tolist()
        }
        for name, column in (("captions", "text"), ("swapped", "swapped_text")):
            if name == "captions" or name in self.rules.scoring.distractors:
                texts.update(
                    tables[name].loc[tables[name]["image_id"].isin(judged), column].tolist()
                )
        return sorted(texts)


def read_inputs(job: Job) -> Inputs:
    """Read the tables, and set the number of candidates; UserError if there are too few."""
    params, read = (
        job.params,
        read_tables(job, "captions", "images", "splits", "swapped", "prompts", "variants"),
    )
    judged = judged_images(read["splits"], read["images"], params.train_on, params.halves)
    tables = {"judged": judged, **{name: read[name] for name in ("captions", "swapped", "prompts")}}
    scoring = Scoring.model_validate(params.scoring)
    candidates = bounded(scoring.candidates, least_distractors(**tables), job.where)
    scoring, classes = (
        scoring.model_copy(update={"candidates": candidates}),
        class_names(read["captions"]),
    )
    rules = Rules(
        scoring, classes, params.seed, job.wildcards.composition, params.prompts, read["swapped"]
    )
    # the adjustment of similarities is chosen on seen prompts
    served = {"test_seen"}.union(*params.serves.values())
    return Inputs(tables, read["images"], read["variants"], served, rules)


def score_generators(
    job: Job,
    inputs: Inputs,
    folders: Sequence[Path],
    score: Callable[[str, list[EntrySet]], JudgedSets],
) -> None:
    """Call ``score`` with each generator's name and sets, and write the scores into its folder."""
    params, rules = job.params, inputs.rules
    classes = rules.classes[rules.classes.index.isin(inputs.tables["judged"]["image_id"])]
    alone = int(classes.str.startswith("image ").sum())
    about = {"train_on": params.train_on, "seed": rules.seed}
    about |= {
        key: getattr(rules.scoring, key) for key in ("candidates", "ties", "chunks", "chunking")
    }
    about |= {
        "class_rule": "other image" if alone == len(classes) else "other class",
        "images_without_class": alone,
    }
    generators = zip(params.serves.items(), job.input.manifests, folders, strict=True)
    for number, ((name, splits), manifest, to) in enumerate(generators, 1):
        started, made = time.monotonic(), read_table(manifest, MANIFEST)
        scored, judge = score(
            name, entry_sets(splits, rules.scoring.distractors, manifest=made, **inputs.tables)
        )
        summaries = [summary for scores in scored.values() for summary in scores.summaries]
        head = {
            "dataset": params.dataset,
            "composition": job.wildcards.composition,
            "generator": name,
        }
        with atomic_folder(to) as folder:
            for set_name, scores in scored.items():
                write_table(scores.table, folder / f"{set_name}.parquet", SCORES)
                (folder / f"{set_name}.predictions.pkl").write_bytes(
                    pickle.dumps(scores.predictions, protocol=2)
                )
            write_json({**head, **about, **judge, "scores": summaries}, folder / "summary.json")
        for summary in summaries:
            log_summary(
                summary, f"{name} (oracle)" if judge["judge"] == ORACLE else name, rules.candidates
            )
        log.info(
            "generator %d of %d, %s: %.0f s",
            number,
            len(params.serves),
            name,
            time.monotonic() - started,
        )


def log_summary(summary: dict[str, Any], name: str, candidates: int) -> None:
    where = f"{name}, {summary['set']} ({summary['prompts']})"
    log.info("%s: %s of %d entries, exact", where, summary["exact"], summary["judged"])
    for kind in ("missing", "unreadable"):
        if summary[kind]:
            log.warning(
                "warning: %s: %d images %s, first: %s",
                where,
                len(summary[kind]),
                kind,
                summary[kind][0],
            )
    if few := summary["pool"]["entries_with_fewer_than_candidates"]:
        log.warning(
            "warning: %s: %d entries have fewer than %d eligible captions; the fewest are %d",
            where,
            few,
            candidates - 1,
            summary["pool"]["eligible_least"],
        )
    if summary.get("balance") and not summary["balance"]["cut"] and summary["judged"]:
        log.warning("warning: %s: not balanced (%s)", where, summary["balance"]["rule"])
