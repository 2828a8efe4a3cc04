"""A study of the small run, and its people. One image was not made, another not scored, one caption
not swapped.

Simulated people answer by planted probabilities that the analysis must recover.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.human.config import Sampling
from compclip.human.tasks import KINDS, read_tasks
from tests.project import COMPOSITION, DATASET, GENERATORS, Project
from tests.scripts import job
from workflow_scripts.human import sample_tasks

CONSENT = "You get $5 & <thanks>\nWrite to me@example.org"
# Four tasks of each split and generator, or of each split and two generators.
SETTINGS = {"perceptual": 28, "match": 32, "caption": 32}


@dataclass(frozen=True)
class Study:
    """A sampled study in ``folder``; ``tasks`` as from ``read_tasks``."""

    results: Path
    folder: Path
    tasks: pd.DataFrame
    summary: dict[str, Any]

    @property
    def scores(self) -> list[Path]:
        return [self.results / DATASET / COMPOSITION / "scores" / "0" / name for name in GENERATORS]


def outputs(folder: Path) -> dict[str, Path]:
    """Return the outputs of rules that make tasks for people."""
    files = {
        "tasks": "tasks.parquet",
        "summary": "tasks.json",
        "pictures": "pictures",
        "label_studio": "label_studio",
    }
    return {name: folder / file for name, file in files.items()}


def make_study(
    results: Path,
    folder: Path,
    seed: int = 0,
    generators: tuple[str, ...] = GENERATORS,
    **settings: Any,
) -> Study:
    """Run the script ``sample_tasks``."""
    place, ours = results / DATASET, results / DATASET / COMPOSITION
    reads = {
        **{name: place / f"{name}.parquet" for name in ("captions", "images", "pairs")},
        **{name: ours / f"{name}.parquet" for name in ("ranking", "swapped", "prompts")},
        "heldout": ours / "heldout.json",
        "manifests": [ours / "generated" / name / "manifest.parquet" for name in generators],
        "scores": [ours / "scores" / "0" / name for name in generators],
    }
    sample_tasks.main(
        job(
            reads,
            outputs(folder),
            wildcards={"composition": COMPOSITION},
            dataset=DATASET,
            results=results,
            seed=seed,
            generators=list(generators),
            sampling=Sampling.model_validate(SETTINGS | settings),
            consent=CONSENT,
        )
    )
    return Study(
        results, folder, read_tasks(folder / "tasks.parquet"), read_json(folder / "tasks.json")
    )


@pytest.fixture(scope="session")
def run(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder; read-only."""
    results = tmp_path_factory.mktemp("run") / "results"
    place, ours = results / DATASET, results / DATASET / COMPOSITION
    shutil.copytree(
        first_run.root / "results" / DATASET,
        place,
        ignore=shutil.ignore_patterns("compun", "specs", "judges", "human"),
    )
    manifest = read_table(ours / "generated" / "faithful" / "manifest.parquet", tables.MANIFEST)
    manifest.loc[3, ["path", "status"]] = [None, "missing"]
    write_table(manifest, ours / "generated" / "faithful" / "manifest.parquet", tables.MANIFEST)
    scores = read_table(ours / "scores" / "0" / "memorizer" / "test_seen.parquet", tables.SCORES)
    write_table(
        scores[1:], ours / "scores" / "0" / "memorizer" / "test_seen.parquet", tables.SCORES
    )
    swapped = read_table(ours / "swapped.parquet", tables.SWAPPED)
    asked = (
        read_table(ours / "prompts.parquet", tables.PROMPTS)
        .query("split == 'test_swapped'")
        .iloc[-1]
    )
    of_last = (swapped["image_id"] == asked["image_id"]) & (
        swapped["caption_id"] == asked["caption_id"]
    )
    write_table(swapped[~of_last], ours / "swapped.parquet", tables.SWAPPED)
    return results


@pytest.fixture(scope="session")
def study(run: Path) -> Study:
    """Tasks, pictures and projects; read-only."""
    return make_study(run, run / DATASET / COMPOSITION / "human")


@pytest.fixture(scope="session")
def large(run: Path) -> Study:
    """Enough tasks to recover what was planted."""
    return make_study(run, run / DATASET / COMPOSITION / "large", **dict.fromkeys(KINDS, 120))


COLUMNS = ["task_id", "annotator", "choice", "lead_time"]


def simulate(
    tasks: pd.DataFrame,
    chance: Callable[[Mapping[str, Any]], float],
    workers: int,
    seed: int = 0,
    careless: int = 0,
) -> pd.DataFrame:
    """Return a row for each answer: each of ``workers`` people answers each task, the last
    ``careless`` at random.

    ``chance`` is the probability of yes, of the prompt's caption, or of picture_1.
    """
    random = np.random.default_rng(seed)
    records = []
    for number in range(workers):
        for task in tasks.to_dict("records"):
            first, second = KINDS[task["kind"]].answers
            # The probability is of the right answer, if there is one.
            if task["right"] == second:
                first, second = second, first
            p = 1.0 if task["check"] == "gold" else chance(task)
            answer = (
                first if random.random() < (0.5 if number >= workers - careless else p) else second
            )
            seconds = round(float(random.gamma(4, 2.5)), 3)
            records.append((task["task_id"], f"person{number:02d}", answer, seconds))
    return pd.DataFrame(records, columns=COLUMNS)


def written(path: Path, *rows: tuple[Any, ...], columns: list[str] = COLUMNS) -> Path:
    """Write answers."""
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path
