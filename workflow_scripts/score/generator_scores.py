"""Functions of the scripts that score generators: read the tables, and write each generator's
scores.
"""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from compclip.core.artifacts.files import atomic_folder, write_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.core.log import log
from compclip.core.tables import MANIFEST, ORACLE, SCORES
from compclip.score.config import Scoring
from compclip.score.entries import EntrySet, entry_sets
from compclip.score.score_table import Rules, SetScores
from compclip.split.evaluation import evaluation_images
from compclip.split.pools import Pools, choose_candidates, class_names, least_distractors
from workflow_scripts.inputs import read_tables
from workflow_scripts.job import Job


@dataclass(frozen=True)
class Inputs:
    """The common inputs of all generators' scores."""

    tables: dict[
        str, pd.DataFrame
    ]  # captions, judged (the images of the judge's half), prompts, swapped
    images: pd.DataFrame
    variants: pd.DataFrame
    served: set[str]  # the splits that a generator serves, and seen
    classes: pd.Series  # the class of each image, by image_id
    rules: Rules
    settings: dict[str, Any]  # which the summaries of all generators state

    @property
    def captions(self) -> list[str]:
        """The distinct captions of all sets, also of prompts without an image, sorted."""
        prompts = self.tables["prompts"]
        texts = {*prompts.loc[prompts["split"].isin(self.served), "text"]}
        columns = {"captions": "text"}
        if "swapped" in self.rules.scoring.distractors:
            columns["swapped"] = "swapped_text"
        for name, column in columns.items():
            table = self.tables[name]
            is_judged = table["image_id"].isin(self.tables["judged"]["image_id"])
            texts.update(table.loc[is_judged, column])
        return sorted(texts)


@dataclass(frozen=True)
class JudgedSets:
    """A generator's scores by a judge."""

    scores: dict[str, SetScores]  # by set
    judge: dict[str, Any]  # what the summary says of the judge


def read_inputs(job: Job) -> Inputs:
    """Read the tables, and set the number of candidates; UserError if there are too few."""
    params = job.params
    read = read_tables(job, "captions", "images", "splits", "swapped", "prompts", "variants")
    judged = evaluation_images(read["splits"], read["images"], params.train_on, params.judge_half)
    tables = {"judged": judged, **{name: read[name] for name in ("captions", "swapped", "prompts")}}
    scoring = Scoring.model_validate(params.scoring)
    candidates = choose_candidates(scoring.candidates, least_distractors(**tables), job.location)
    rules = Rules(
        scoring=scoring.model_copy(update={"candidates": candidates}),
        seed=params.seed,
        composition=job.wildcards.composition,
        prompts=params.prompts,
        swapped=read["swapped"],
    )
    classes = class_names(read["captions"])
    return Inputs(
        tables=tables,
        images=read["images"],
        variants=read["variants"],
        # The adjustment of similarities is chosen on seen prompts.
        served={"test_seen"}.union(*params.splits_by_generator.values()),
        classes=classes,
        rules=rules,
        settings=settings_of(rules, classes, judged, params.train_on),
    )


def settings_of(
    rules: Rules, classes: pd.Series, judged: pd.DataFrame, train_on: str
) -> dict[str, Any]:
    """Return what all summaries say of the settings and of the judged images."""
    settings: dict[str, Any] = {"train_on": train_on, "seed": rules.seed}
    for key in ("candidates", "ties", "chunks", "chunking"):
        settings[key] = getattr(rules.scoring, key)
    classes = classes[classes.index.isin(judged["image_id"])]
    # ``class_names``: an image without a class is its own.
    without_class = int(classes.str.startswith("image ").sum())
    settings["class_rule"] = "other image" if without_class == len(classes) else "other class"
    settings["images_without_class"] = without_class
    return settings


def read_generators(job: Job, inputs: Inputs) -> dict[str, list[EntrySet]]:
    """Return the sets of each generator, by its name."""
    prompts = inputs.tables["prompts"]
    pools = Pools(*(inputs.tables[name] for name in ("captions", "judged", "swapped")))
    manifests = zip(job.params.splits_by_generator.items(), job.input.manifests, strict=True)
    sets = {}
    for (name, splits), file in manifests:
        sets[name] = entry_sets(
            splits,
            inputs.rules.scoring.distractors,
            prompts=prompts,
            manifest=read_table(file, MANIFEST),
            pools=pools,
            classes=inputs.classes,
            variants=inputs.variants,
        )
    return sets


def write_scores(job: Job, inputs: Inputs, name: str, judged: JudgedSets, output: Path) -> None:
    """Write a generator's scores by a judge into the folder ``output``, and log them."""
    summaries = [summary for scores in judged.scores.values() for summary in scores.summaries]
    summary = {
        "dataset": job.params.dataset,
        "composition": job.wildcards.composition,
        "generator": name,
        **inputs.settings,
        **judged.judge,
        "scores": summaries,
    }
    log.info("generator %s by judge %s", name, judged.judge["judge"])
    with atomic_folder(output) as folder:
        for set_name, scores in judged.scores.items():
            write_table(scores.table, folder / f"{set_name}.parquet", SCORES)
            # Protocol 2, as the published predictions are.
            predictions = pickle.dumps(scores.predictions, protocol=2)
            (folder / f"{set_name}.predictions.pkl").write_bytes(predictions)
        write_json(summary, folder / "summary.json")
    title = f"{name} (oracle)" if judged.judge["judge"] == ORACLE else name
    for set_summary in summaries:
        log_summary(set_summary, title, inputs.rules.candidates)


def log_summary(summary: dict[str, Any], name: str, candidates: int) -> None:
    where = f"{name}, {summary['set']} ({summary['prompts']})"
    log.info("%s: %s of %d entries, exact", where, summary["exact"], summary["judged"])
    for kind in ("missing", "broken"):
        images = summary[kind]
        if images:
            counts = (where, len(images), kind, images[0])
            log.warning("warning: %s: %d images %s, first: %s", *counts)
    pool = summary["pool"]
    too_few = pool["entries_with_fewer_than_candidates"]
    if too_few:
        log.warning(
            "warning: %s: %d entries have fewer than %d eligible captions; the fewest are %d",
            where,
            too_few,
            candidates - 1,
            pool["eligible_least"],
        )
    balance = summary.get("balance")
    if balance and not balance["cut"] and summary["judged"]:
        log.warning("warning: %s: not balanced (%s)", where, balance["rule"])
