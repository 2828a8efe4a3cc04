"""Models of open_clip as judges; what cannot be loaded says why."""

import json
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from compclip.clip.embed import Embedder
from compclip.compun.config import NamedModel
from compclip.compun.models import keep_open_clip, open_model
from compclip.core.errors import UserError
from tests.specs.evaluated import real_judge


def opened(model: NamedModel, folder: Path) -> AbstractContextManager[Embedder]:
    return open_model(model, 4, 1, "cpu", folder / "cache")


def test_open_clip_is_the_judge_of_no_epochs(tmp_path: Path) -> None:
    """The same hash as the judge that it comes from, so the same cached embeddings; kept, and made once."""
    from compclip.clip.model import judge_hash

    judge = real_judge(tmp_path / "judge")
    named = NamedModel(open_clip=str(judge / "tiny.json"), pretrained=str(judge / "weights.safetensors"))
    kept = keep_open_clip(named, tmp_path / "cache")
    settings = json.loads((kept / "model.json").read_text())
    assert settings["name"] == "tiny" and str(tmp_path) not in json.dumps(settings)
    # The judge was saved without a crop, which stage judge's config has; nothing else may differ.
    assert settings == json.loads((judge / "model.json").read_text()) | {"crop": 0.75}
    assert (judge / "weights.safetensors").read_bytes() == (kept / "weights.safetensors").read_bytes()
    with opened(named, tmp_path) as ours, opened(NamedModel(judge=str(kept)), tmp_path) as theirs:
        assert ours.judge.hash == theirs.judge.hash == judge_hash(kept) and ours.cache.path == theirs.cache.path
        assert np.array_equal(ours.texts(["red wing"]), theirs.texts(["red wing"]))
    # Other weights under the same name are another model.
    other = real_judge(tmp_path / "other", seed=1)
    again = NamedModel(open_clip=str(judge / "tiny.json"), pretrained=str(other / "weights.safetensors"))
    assert keep_open_clip(again, tmp_path / "cache") != kept == keep_open_clip(named, tmp_path / "cache")
    # So are other weights in the same file.
    (judge / "weights.safetensors").write_bytes((other / "weights.safetensors").read_bytes())
    renewed = keep_open_clip(named, tmp_path / "cache")
    assert renewed != kept and judge_hash(renewed) != judge_hash(kept)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"judge": "none"}, "none: not a judge's folder"),
        ({"open_clip": "ViT-B-32", "pretrained": "none"}, "'none' is neither a file nor a tag of ViT-B-32"),
        ({"open_clip": "ViT-X", "pretrained": "openai"}, "unknown"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, values: dict[str, str], fault: str) -> None:
    model = NamedModel.model_validate(values)
    with pytest.raises(UserError) as caught, opened(model, tmp_path):
        pass
    message = str(caught.value)
    assert message.startswith(f"compun.models: {model.title}: ") and fault in message and "\n" not in message


def test_models_are_named() -> None:
    models = [
        NamedModel(open_clip="ViT-L-14", pretrained="openai", name="CLIP"), NamedModel(judge="results/d/color/judge"),
        NamedModel(open_clip="ViT-B-32", pretrained="laion2b_s34b_b79k"),
    ]  # fmt: skip
    assert [model.title for model in models] == ["CLIP", "results/d/color/judge", "ViT-B-32 laion2b_s34b_b79k"]
