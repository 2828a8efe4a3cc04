"""A made-up scored run, and a study of it."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from workflow_scripts.core import tables
from workflow_scripts.core.io import read_json, write_json, write_table
from workflow_scripts.human import sample_tasks
from workflow_scripts.human.config import Sampling
from workflow_scripts.human.steps import SampleTasks
from workflow_scripts.human.tasks import read_tasks

DATASET, COMPOSITION = "tiny", "color"
GENERATORS = ("honest", "lazy", "twin")
COLORS = ("red", "blue", "green", "white")
IMAGES = 60
HOSTILE = "<script>document.title='run'</script></script><b>bold</b> & a bird with a red wing"
CONSENT = "You get $5 & <thanks>\nWrite to me@example.org"
SETTINGS = {"perceptual": 36, "match": 36, "caption": 36}


def _picture(path: Path, random: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(random.integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(path)


def _caption(number: int, color: str) -> str:
    return f"bird {number} has a {color} wing"


def _pair(image: str, caption: int, text: str) -> dict[str, Any]:
    start = text.rindex(" wing") - len(text[: text.rindex(" wing")].split()[-1])
    noun = text.rindex("wing")
    return {
        "image_id": image, "caption_id": caption, "adjective": text[start : noun - 1], "noun": "wing",
        "adjective_start": start, "adjective_end": noun - 1, "noun_start": noun, "noun_end": noun + 4,
        "relation": "adjacent",
    }  # fmt: skip


def make_run(results: Path) -> Path:
    """Write every artifact that the stage reads; ``green wing`` is held out; ``twin`` copies a third of ``lazy``."""
    random = np.random.default_rng(5)
    place, ours = results / DATASET, results / DATASET / COMPOSITION
    captions, images, pairs, swapped, prompts = [], [], [], [], []
    for number in range(IMAGES):
        image, seen = f"{number:03d}", number < IMAGES // 2
        _picture(place / "images" / f"{image}.png", random)
        images.append({"image_id": image, "path": f"{DATASET}/images/{image}.png", "width": 32, "height": 24})
        for caption in range(2):
            color = COLORS[(number + caption) % 2] if seen else "green"
            text = HOSTILE if (number, caption) == (1, 0) else _caption(number, color)
            captions.append({"image_id": image, "caption_id": caption, "class_id": f"{number % 7}", "text": text})
            pairs.append(_pair(image, caption, text))
            asked = {"image_id": image, "caption_id": caption, "draw": 0}
            split = "test_seen" if seen else "test_unseen"
            prompts.append({**asked, "split": split, "text": text, "pair": None if seen else "green_wing"})
            if seen and number % 10:
                start, end = pairs[-1]["adjective_start"], pairs[-1]["adjective_end"]
                new = text[:start] + "green" + text[end:]
                change = {"noun": "wing", "original_adj": text[start:end], "new_adj": "green", "start": start,
                          "end": end, "new_start": start, "new_end": start + 5}  # fmt: skip
                swapped.append({"image_id": image, "caption_id": caption, "text": text, "swapped_text": new,
                                "changes": [change], "pair": "green_wing"})  # fmt: skip
                prompts.append({**asked, "split": "test_swapped", "text": new, "pair": "green_wing"})
    table = pd.DataFrame(prompts)
    table["file_name"] = [f"{r.split}/{r.image_id}/{r.caption_id}.png" for r in table.itertuples()]
    write_table(table, ours / "prompts.parquet", tables.PROMPTS)
    write_table(pd.DataFrame(captions), place / "captions.parquet", tables.CAPTIONS)
    frame = pd.DataFrame(images).astype({"width": "Int64", "height": "Int64"})
    frame[["bbox_x", "bbox_y", "bbox_w", "bbox_h"]] = np.nan
    write_table(frame, place / "images.parquet", tables.IMAGES)
    write_table(pd.DataFrame(pairs), place / "pairs.parquet", tables.PAIRS)
    write_table(pd.DataFrame(swapped), ours / "swapped.parquet", tables.SWAPPED)
    ranking = pd.DataFrame(
        [{"adjective": c, "noun": "wing", "count": 9, "images": 9, "rank": i + 1, "percentile": 20.0 * (i + 1)}
         for i, c in enumerate(COLORS)]
    )  # fmt: skip
    write_table(ranking, ours / "ranking.parquet", tables.RANKING)
    write_json({"pairs": ["green_wing"]}, ours / "heldout.json")
    for generator in GENERATORS:
        _generate(results, table, generator, random)
    return results


def _generate(results: Path, prompts: pd.DataFrame, generator: str, random: np.random.Generator) -> None:
    ours = results / DATASET / COMPOSITION
    made = prompts[["image_id", "caption_id", "split", "draw"]].copy()
    place = f"{DATASET}/{COMPOSITION}/generated/{generator}/images"
    made["path"] = [f"{place}/{name}" for name in prompts["file_name"]]
    made["status"] = "ok"
    for number, path in enumerate(made["path"]):
        _picture(results / path, random)
        if generator == "twin" and number % 3 == 0:
            shutil.copy(results / path.replace("/twin/", "/lazy/"), results / path)
    # One image was not made, and one was not scored.
    made.loc[3, ["path", "status"]] = [None, "missing"]
    write_table(made, ours / "generated" / generator / "manifest.parquet", tables.MANIFEST)
    skill = {"honest": 0.8, "lazy": 0.4, "twin": 0.3}[generator]
    for split, rows in prompts[made["status"] == "ok"].groupby("split"):
        rows = rows.iloc[1:] if split == "test_seen" else rows
        scores = rows[["image_id", "caption_id", "draw", "pair"]].copy()
        top = np.round(np.clip(random.normal(skill, 0.25, len(rows)), 0, 1), 6)
        scores["similarity"], scores["p_beaten"], scores["p_tied"] = np.round(top / 2, 6), 0.0, 0.0
        scores["expected_top1"], scores["hit"], scores["weight"] = top, top > 0.5, 1.0
        scores["adjectives"], scores["adjective_first"] = 0, np.nan
        write_table(scores, ours / "scores" / generator / f"{split}.parquet", tables.SCORES)


@dataclass(frozen=True)
class Study:
    """A sampled study in ``folder``; ``tasks`` as from ``read_tasks``."""

    results: Path
    folder: Path
    tasks: pd.DataFrame
    summary: dict[str, Any]

    @property
    def scores(self) -> list[Path]:
        return [self.results / DATASET / COMPOSITION / "scores" / name for name in GENERATORS]

    @property
    def kinds(self) -> dict[str, str]:
        return dict(zip(self.tasks["task_id"], self.tasks["kind"], strict=True))


def make_study(
    results: Path, folder: Path, seed: int = 0, generators: tuple[str, ...] = GENERATORS, **settings: Any
) -> Study:
    """Run the step ``sample_tasks``."""
    place, ours = results / DATASET, results / DATASET / COMPOSITION
    step = SampleTasks(
        dataset=DATASET, composition=COMPOSITION, results=results, generators=list(generators),
        **{name: place / f"{name}.parquet" for name in ("captions", "images", "pairs")},
        **{name: ours / f"{name}.parquet" for name in ("ranking", "swapped", "prompts")},
        heldout=ours / "heldout.json",
        manifests=[ours / "generated" / name / "manifest.parquet" for name in generators],
        scores=[ours / "scores" / name for name in generators],
        sampling=Sampling.model_validate(SETTINGS | settings), seed=seed, consent=CONSENT,
        tasks=folder / "tasks.parquet", pictures=folder / "pictures", label_studio=folder / "label_studio",
        summary=folder / "tasks.json",
    )  # fmt: skip
    sample_tasks.main(step)
    return Study(results, folder, read_tasks(step.tasks), read_json(step.summary))


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a scored run; read-only."""
    return make_run(tmp_path_factory.mktemp("run") / "results")


@pytest.fixture(scope="session")
def study(run: Path) -> Study:
    """Tasks, pictures and projects; read-only."""
    return make_study(run, run / DATASET / COMPOSITION / "human")
