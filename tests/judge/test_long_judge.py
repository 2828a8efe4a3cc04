"""A stretched judge in the config's ``judge``: used as it is, or trained further."""

import json
from pathlib import Path

import pytest
import torch

from compclip.clip.config import ModelConfig
from compclip.clip.model import build, read_judge
from compclip.clip.sources import find_model
from compclip.core.errors import UserError
from compclip.io import read_json
from compclip.judge.config import JudgeConfig
from compclip.specs.stretch import stretch, write_judge
from tests.clip.conftest import clip_folder

from .conftest import VIT, Train

SHORT = {**VIT, "text_cfg": {**VIT["text_cfg"], "context_length": 77}}


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


def test_without_epochs_it_is_used_as_it_is(train: Train, tmp_path: Path) -> None:
    source = stretched(tmp_path, 248)
    assert find_model(str(source / "model.json"))[0]["text_cfg"]["context_length"] == 248
    folder = train("judge", epochs=0, crop=None, **settings(source))
    for name in ("weights.safetensors", "model.json", "vocabulary.json"):
        assert (folder / name).read_bytes() == (source / name).read_bytes(), name
    manifest = read_json(folder / "manifest.json")
    assert manifest["model"] == "short-248" and manifest["truncated_captions"] == 0


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
