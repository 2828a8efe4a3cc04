"""A stretched judge in the config's ``judge``: used as it is or trained further, and scored on whole captions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from compclip.clip.config import ModelConfig
from compclip.clip.model import build, read_judge
from compclip.clip.sources import find_model
from compclip.core.errors import UserError
from compclip.io import read_json
from compclip.judge.config import JudgeConfig
from compclip.specs.stretch import stretch, write_judge
from tests.clip.conftest import clip_folder
from tests.score import world
from workflow_scripts.score import score_images

from .conftest import VIT, Train

SHORT = {**VIT, "text_cfg": {**VIT["text_cfg"], "context_length": 77}}


def long_caption(colors: np.ndarray, parts: list[int]) -> str:
    """Return a caption whose second part lies after the 77th token."""
    said = [f"a {world.COLORS[colors[part]]} {world.PARTS[part]}" for part in parts]
    return f"{said[0]} {'and so it goes on ' * 20}with {' and '.join(said[1:])}"


def stretched(folder: Path, length: int) -> Path:
    (folder / "short.json").write_text(json.dumps(SHORT))
    output = folder / f"judge{length}"
    short = clip_folder(folder / f"from{length}" / "short", SHORT)
    built = build(ModelConfig(model=f"local-dir:{short}"), [], 0)
    write_judge(stretch(built, length), f"short-{length}", None, {}, output)
    return output


def settings(folder: Path) -> dict[str, str]:
    """Return what a user writes in the config."""
    return {"model": str(folder / "model.json"), "pretrained": str(folder / "weights.safetensors")}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the tiny data set of stage score, with long captions and real images."""
    monkeypatch.setattr(world, "caption", long_caption)
    results = world.build(tmp_path)
    draw = np.random.default_rng(0)
    for path in sorted(results.rglob("*.png")):
        Image.fromarray(draw.integers(0, 256, (40, 40, 3), np.uint8)).save(path)
    return results


def test_no_epochs_and_long_captions_are_read_whole(
    train: Train, results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = stretched(tmp_path, 248)
    assert find_model(str(source / "model.json"))[0]["text_cfg"]["context_length"] == 248
    folder = train("judge", epochs=0, crop=None, **settings(source))
    for name in ("weights.safetensors", "model.json", "vocabulary.json"):
        assert (folder / name).read_bytes() == (source / name).read_bytes(), name
    manifest = read_json(folder / "manifest.json")
    assert manifest["model"] == "short-248" and manifest["truncated_captions"] == 0

    tables, summaries = [], []
    for name, used in (("long", folder), ("short", train("other", epochs=0, **settings(stretched(tmp_path, 77))))):
        score_images.main(world.make_job(results, "good", judge=used, scores=tmp_path / name, threads=1, batch=8))
        tables.append(pd.read_parquet(tmp_path / name / "test_unseen.parquet"))
        summaries.append(read_json(tmp_path / name / "summary.json"))
    assert summaries[0]["judge"] == "short-248" and summaries[0]["judge_hash"] == manifest["judge_hash"]
    n = summaries[1]["captions"]
    assert [s["truncated_captions"] for s in summaries] == [0, n] and n > 9
    assert caplog.text.count(f"{n} of {n} captions are longer than the model reads") == 1
    # Truncated captions tie.
    assert tables[1]["p_tied"].sum() > tables[0]["p_tied"].sum()


def test_it_is_trained_further(train: Train, tmp_path: Path) -> None:
    source = stretched(tmp_path, 248)
    built, name, _ = read_judge(train("judge", epochs=1, trainable=["text_projection"], **settings(source)))
    start = read_judge(source)[0].model.state_dict()
    changed = {key for key, tensor in built.model.state_dict().items() if not torch.equal(tensor, start[key])}
    assert changed == {"text_projection"} and name == "short-248"
    assert built.model_cfg == read_json(source / "model.json")["model_cfg"]


def test_without_its_model_config(tmp_path: Path) -> None:
    source = stretched(tmp_path, 248)
    config = JudgeConfig(model=str(tmp_path / "short.json"), pretrained=str(source / "weights.safetensors"))
    with pytest.raises(UserError, match=r"reads 248 positions .* has 77; .*\(for a judge's weights, the model\.json"):
        build(config, [], 0)
    assert JudgeConfig(**settings(source)).files() == [*settings(source).values(), str(source / "vocabulary.json")]
