"""A stretched judge in the config's ``judge``: used as it is, or trained further."""

from pathlib import Path

import torch

from compclip.clip.config import ModelConfig
from compclip.clip.model import build, read_judge
from compclip.clip.sources import find_model
from compclip.io import read_json
from compclip.judge.config import JudgeConfig
from compclip.specs.stretch import stretch, write_judge
from tests.clip.conftest import clip_folder

from .conftest import VIT, Train

SHORT = {**VIT, "text_cfg": {**VIT["text_cfg"], "context_length": 77}}


def stretched(folder: Path) -> Path:
    built = build(ModelConfig(model=f"local-dir:{clip_folder(folder / 'short', SHORT)}"), [], 0)
    write_judge(stretch(built, 248), "short-248", None, {}, folder / "stretched")
    return folder / "stretched"


def settings(folder: Path) -> dict[str, str]:
    """Return what a user writes in the config."""
    return {"model": str(folder / "model.json"), "pretrained": str(folder / "weights.safetensors")}


def test_without_epochs_it_is_used_as_it_is(train: Train, tmp_path: Path) -> None:
    source = stretched(tmp_path)
    assert find_model(str(source / "model.json"))[0]["text_cfg"]["context_length"] == 248
    folder = train("judge", epochs=0, crop=None, **settings(source))
    for name in ("weights.safetensors", "model.json", "vocabulary.json"):
        assert (folder / name).read_bytes() == (source / name).read_bytes(), name
    manifest = read_json(folder / "manifest.json")
    assert manifest["model"] == "short-248" and manifest["truncated_captions"] == 0
    assert JudgeConfig(**settings(source)).files() == [*settings(source).values(), str(source / "vocabulary.json")]


def test_it_is_trained_further(train: Train, tmp_path: Path) -> None:
    source = stretched(tmp_path)
    built, name, _ = read_judge(train("judge", epochs=1, trainable=["text_projection"], **settings(source)))
    start = read_judge(source)[0].model.state_dict()
    changed = {key for key, tensor in built.model.state_dict().items() if not torch.equal(tensor, start[key])}
    assert changed == {"text_projection"} and name == "short-248"
    assert built.model_cfg == read_json(source / "model.json")["model_cfg"]
