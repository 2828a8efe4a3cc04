"""The script that ``score`` is compared with gives the step's scores, and exact scores need little but the product."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from benchmarks import plain_score
from benchmarks.speed.score import differences, exact_pass
from tests.score.world import build, make_step
from workflow_scripts.clip import model
from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.core.io import read_frame, write_frame
from workflow_scripts.core.seeds import rng
from workflow_scripts.score import score_images
from workflow_scripts.score.steps import ScoreImages


def test_both_ways_give_the_same_scores(tmp_path: Path) -> None:
    results = build(tmp_path)
    dataset, folder = results / "d", results / "d" / "color"
    for file in dataset.rglob("*.png"):
        pixels = rng(0, file.read_text()).integers(0, 256, (60, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    boxes = ["bbox_x", "bbox_y", "bbox_w", "bbox_h"]
    write_frame(
        read_frame(dataset / "images.parquet").assign(**dict.fromkeys(boxes, np.nan)), dataset / "images.parquet"
    )
    captions = pd.read_parquet(dataset / "captions.parquet")["text"].tolist()
    built = model.build(ModelConfig(model="sketch", pretrained=None), captions, 0)
    (folder / "judges").mkdir()
    model.save_judge(built, "sketch", None, folder / "judges" / "0")
    for generator in ("good", "partial"):
        more = {"scores": tmp_path / generator, "cache": tmp_path / "cache", "train_on": "half"}
        more["scoring"] = {"candidates": 5, "distractors": "swapped"}
        step = make_step(ScoreImages, results, generator, judge=folder / "judges" / "0", **more)
        score_images.main(step)
    plain_score.main(dataset, "color", "0", tmp_path / "plain.json", ["good", "partial"], candidates=5)
    plain = json.loads((tmp_path / "plain.json").read_text())
    assert len(plain) == 2 and 0 < plain["good"]["test_swapped"]["exact"] < 1
    assert differences(tmp_path, plain) < 1e-4


def test_exact_scores_are_measured_against_the_product() -> None:
    assert exact_pass(images=300, texts=500)["ratio"] > 0
