"""A small data set with prompts: three images with a file in each test split, one without."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import read_table, write_table
from compclip.generate.generator import load_kind
from tests.scripts import job
from tests.split.worlds import images_table
from workflow_scripts.generate import generate_images

HOME = "mine/color"


def picture(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (20, 30, 3), dtype="uint8")
    Image.fromarray(pixels).save(path)
    return path


@dataclass
class Place:
    root: Path
    prompts: pd.DataFrame

    @property
    def target(self) -> Path:
        return self.root / "results" / "mine" / "color" / "generated" / "it"

    def generate(
        self,
        kind: str,
        prompts: pd.DataFrame | None = None,
        seed: int = 0,
        contents: str = "",
        **settings: Any,
    ) -> tuple[pd.DataFrame, dict[str, Any]]:
        """The script; gives its manifest and its summary."""
        results = self.root / "results"
        file = results / "mine" / "color" / "prompts.parquet"
        write_table(self.prompts if prompts is None else prompts, file, tables.PROMPTS)
        read = load_kind(kind).TABLES
        made = {"manifest": "manifest.parquet", "folder": "images", "summary": "summary.json"}
        of_rule = job(
            {"prompts": file, "tables": [results / "mine" / f"{name}.parquet" for name in read]},
            {key: self.target / name for key, name in made.items()},
            wildcards={"composition": "color", "generator": "it"},
            generator={"name": "it", "kind": kind, "options": settings},
            contents=contents,
            seed=seed,
            cache=self.root / "cache",
            results=results,
        )
        of_rule.params.threads = 1
        generate_images.main(of_rule)
        return read_table(self.target / "manifest.parquet", tables.MANIFEST), read_json(
            self.target / "summary.json"
        )


def make_prompts(ids: dict[str, list[str]], captions: int = 2, draws: int = 1) -> pd.DataFrame:
    rows = [
        (
            i,
            c,
            d,
            split,
            "a red bird",
            None,
            f"{HOME}/{split}/{i}/{c}{f'_{d}' if draws > 1 else ''}.png",
        )
        for split, images in ids.items()
        for i in images
        for c in range(captions)
        for d in range(draws)
    ]
    table = pd.DataFrame(rows, columns=list(tables.PROMPTS.columns))
    return table.astype({"pair": "str"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    ids = {"test_seen": ["s/1", "s/2", "s/3", "s/none"], "test_unseen": ["u/1", "u/2", "u/3"]}
    folder = tmp_path / "results" / "mine" / "images"
    every = [i for part in ids.values() for i in part]
    there = [i for i in every if i != "s/none"]
    for number, image_id in enumerate(there):
        picture(folder / f"{image_id}.png", number)
    images = images_table(every, [f"mine/images/{i}.png" if i in there else None for i in every])
    write_table(images, tmp_path / "results" / "mine" / "images.parquet", tables.IMAGES)
    return Place(tmp_path, make_prompts({**ids, "test_swapped": ["s/1", "s/2"]}))
