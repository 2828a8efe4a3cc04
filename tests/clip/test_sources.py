"""Models of the Hub, of folders and of weights files: with their own weights and preprocessing, or
an error.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from compclip.clip.config import ModelConfig
from compclip.clip.model import TOKENIZER, build, construct, judge_hash, load_judge, save_judge
from compclip.clip.sources import find_source, model_name, set_activation
from compclip.clip.tokens import get_tokenizer
from compclip.clip.vision import open_clip
from compclip.core.errors import UserError
from compclip.core.reading import hub
from compclip.judge.config import JudgeConfig
from tests.clip.test_tokens import tokenizer_of
from tests.specs import evaluated
from workflow_scripts.workflow.check import Findings, check_model

from .conftest import OPENAI, SIGLIP, VIT, clip_folder

COMMIT = "0123456789" * 4


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the Hub's cache, with model ``somebody/tiny``, where there is no internet."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    model = tmp_path / "hub" / "models--somebody--tiny"
    clip_folder(model / "snapshots" / COMMIT)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)
    return model / "snapshots" / COMMIT


def refused(**settings: Any) -> str:
    """Return the error, one line, of building the judge of these settings."""
    return evaluated.refused(lambda: build(ModelConfig.model_validate(settings), [], 0))


@pytest.mark.parametrize(
    "preprocess",
    [SIGLIP, {**OPENAI, "interpolation": "bilinear"}, {**OPENAI, "resize_mode": "longest"}],
)
def test_a_folder_is_the_model_that_open_clip_makes_of_it(tmp_path: Path, preprocess: Any) -> None:
    noise = tmp_path / "noise.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 70, 3), dtype=np.uint8)).save(
        noise
    )
    folder = clip_folder(tmp_path / "mine", preprocess=preprocess)
    save_judge(
        build(ModelConfig(model=f"local-dir:{folder}"), [], 0), "mine", None, tmp_path / "judge"
    )
    judge = load_judge(tmp_path / "judge", 1, "cpu")
    theirs, _, transform = open_clip().create_model_and_transforms(f"local-dir:{folder}")
    with torch.inference_mode():
        image = (
            theirs.eval().encode_image(transform(Image.open(noise))[None], normalize=True).numpy()
        )
        text = theirs.encode_text(
            open_clip().get_tokenizer(f"local-dir:{folder}")(["a red bird"]), normalize=True
        )
    np.testing.assert_allclose(judge.encode_images([(noise, None)], 1), image, atol=2e-3)
    np.testing.assert_allclose(judge.encode_texts(["A red bird"], 1), text.numpy(), atol=1e-5)
    assert model_name(f"local-dir:{folder}") == "mine"
    assert str(tmp_path) not in (tmp_path / "judge" / "model.json").read_text()


def test_load_judge_takes_a_model_of_open_clip(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path / "mine")
    built = build(ModelConfig(model=f"local-dir:{folder}"), [], 0)
    expected = save_judge(built, "mine", None, tmp_path / "judge")
    judge = load_judge(f"local-dir:{folder}", 1, "cpu")
    assert (judge.name, judge.hash) == ("mine", expected)
    saved = load_judge(tmp_path / "judge", 1, "cpu")
    texts = ["a red bird"]
    assert np.array_equal(judge.encode_texts(texts, 1), saved.encode_texts(texts, 1))


def test_load_judge_names_unknown_weights() -> None:
    with pytest.raises(UserError, match="'nowhere' is neither a file nor a tag of ViT-B-32"):
        load_judge("ViT-B-32", pretrained="nowhere")


def test_load_judge_says_that_a_model_needs_pretrained() -> None:
    message = evaluated.refused(lambda: load_judge("ViT-B-32"))
    assert message.endswith("or give pretrained for a model of open_clip")


def test_a_judge_keeps_its_tokenizer(tmp_path: Path) -> None:
    """Its folder is complete without the model's, and its hash is also of the tokenizer."""
    cfg = {**VIT, "text_cfg": {**VIT["text_cfg"], "hf_tokenizer_name": "somebody/else"}}
    hashes = []
    for kind in ("bert", "siglip"):
        folder = clip_folder(tmp_path / kind, cfg)
        tokenizer = tokenizer_of(kind, VIT["text_cfg"]["context_length"], folder)[0]
        built = build(ModelConfig(model=f"local-dir:{folder}"), [], 0)
        built.tokenizer()(["a bird"])
        save_judge(built, "mine", None, tmp_path / f"judge_{kind}")
        shutil.rmtree(folder)
        judge = load_judge(tmp_path / f"judge_{kind}", 1, "cpu")
        assert torch.equal(judge.tokenizer(["a bird bird"]), tokenizer(["a bird bird"]))
        files = [
            *(tmp_path / f"judge_{kind}" / TOKENIZER).iterdir(),
            tmp_path / f"judge_{kind}" / "model.json",
        ]
        assert len(files) > 2 and not any(
            str(tmp_path).encode() in file.read_bytes() for file in files
        )
        hashes.append(judge_hash(tmp_path / f"judge_{kind}"))
    assert hashes[0] != hashes[1]


def test_models_are_checked_first_and_cached_ones_are_not_asked_for(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each error is one line and mentions what downloads the weights."""
    with monkeypatch.context() as patch:
        patch.setattr(hub, "hub_folder", None)
        source = find_source(ModelConfig(model="hf-hub:somebody/tiny"))
        built = build(ModelConfig(model="hf-hub:somebody/tiny"), [], 0)
    assert (
        source.weights == cache / "open_clip_model.safetensors"
        and source.preprocess_cfg["resize_mode"] == "squash"
    )
    torch.manual_seed(0)
    whole = construct(VIT)
    assert torch.equal(built.model.visual.conv1.weight, whole.visual.conv1.weight)

    def errors(**settings: Any) -> list[str]:
        findings = Findings()
        check_model("judge", JudgeConfig.model_validate(settings), findings)
        return findings.errors

    folder, started = clip_folder(tmp_path / "mine"), time.monotonic()
    assert JudgeConfig(model="hf-hub:a/b", epochs=0).pretrained is None
    assert errors(model="hf-hub:somebody/tiny") == errors(model=f"local-dir:{folder}") == []
    (cache / "open_clip_model.safetensors").unlink()
    (folder / "open_clip_model.safetensors").unlink()
    assert (
        "mine: no weights in this folder; expected open_clip_model."
        in errors(model=f"local-dir:{folder}")[0]
    )
    assert "absent/open_clip_config.json: No such file or directory; give" in refused(
        model="local-dir:absent"
    )
    for settings in (
        {"model": "hf-hub:somebody/tiny"},
        {"model": "hf-hub:no/body"},
        {"model": "RN50"},
    ):
        (said, *_) = errors(**settings)
        assert (
            said.startswith("judge.") and "not downloaded yet" in said and "docs/cluster.md" in said
        )
    assert refused(model="hf-hub:somebody/tiny").startswith("somebody/tiny: ")
    with pytest.raises(
        UserError, match="^somebody/else: not downloaded yet, and .*docs.cluster.md"
    ):
        get_tokenizer(
            {**VIT, "text_cfg": {**VIT["text_cfg"], "hf_tokenizer_name": "somebody/else"}}, None
        )
    assert time.monotonic() - started < 20, "without internet it fails at once"


def test_unknown_preprocessing_is_asked_for_and_a_weights_file_may_have_it(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path / "mine", preprocess={})
    weights = shutil.copy(folder / "open_clip_model.safetensors", tmp_path / "mine.safetensors")
    (tmp_path / "vit.json").write_text(json.dumps(VIT))
    keys = "judge.preprocess.mean, judge.preprocess.std, judge.preprocess.resize_mode: unknown for"
    alone = {"model": str(tmp_path / "vit.json"), "pretrained": str(weights)}
    assert refused(**alone).startswith(f"{keys} {weights}; set them")
    assert refused(model=f"local-dir:{folder}").startswith(f"{keys} local-dir:{folder}; set them")
    some = refused(**alone, preprocess={"mean": [0.5] * 3, "std": [0.5] * 3})
    assert some.startswith("judge.preprocess.resize_mode: unknown for")
    built = build(ModelConfig.model_validate({**alone, "preprocess": SIGLIP}), [], 0)
    assert {key: built.preprocess_cfg[key] for key in SIGLIP} == SIGLIP and built.preprocess_cfg[
        "size"
    ] == [32, 32]
    # Random weights know no preprocessing.
    assert (
        build(ModelConfig(model=alone["model"]), [], 0).preprocess_cfg["resize_mode"] == "shortest"
    )
    settings, weights = (
        folder / "open_clip_config.json",
        str(folder / "open_clip_model.safetensors"),
    )
    settings.write_text(json.dumps({"model_cfg": VIT, "preprocess_cfg": SIGLIP}))
    built = build(ModelConfig(model=str(settings), pretrained=weights), [], 0)
    assert {key: built.preprocess_cfg[key] for key in SIGLIP} == SIGLIP
    said = refused(model=str(settings), pretrained=weights, preprocess={"mean": [0.4] * 3})
    assert "judge.preprocess.mean: [0.4, 0.4, 0.4], but " in said and said.endswith(
        "[0.5, 0.5, 0.5]; remove this key"
    )
    for fault in ({"std": [0, 0, 0]}, {"resize_mode": "crop"}, {"mean": [0.5]}, {"mean": "x"}):
        settings.write_text(json.dumps({"model_cfg": VIT, "preprocess_cfg": {**SIGLIP, **fault}}))
        assert f"open_clip_config.json: preprocess_cfg.{next(iter(fault))}" in refused(
            model=f"local-dir:{folder}"
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"text_cfg": None},
            "not an open_clip model config; it needs embed_dim, vision_cfg and text_cfg",
        ),
        ({"vision_cfg": []}, "not an open_clip model config"),
        ({"name": "odd", "model_cfg": {"embed_dim": 3}}, "odd.json: not an open_clip model config"),
        ({"embed_dim": "x"}, "cannot build a model from its config"),
        (
            {"vision_cfg": {"timm_model_name": "../../x", "image_size": 32}},
            "cannot build a model from its config",
        ),
        ({"vision_cfg": {"tower": "../../x"}}, "unknown tower '../../x'"),
        ({"text_cfg": {"hf_model_name": "../../x"}}, "../../x"),
        ({"text_cfg": {"hf_model_name": "a b", "hf_tokenizer_name": "a b"}}, "a b"),
    ],
)
def test_odd_model_configs(cache: Path, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    cfg = {key: value for key, value in {**VIT, **change}.items() if key != "quick_gelu"}
    (tmp_path / "odd.json").write_text(json.dumps(cfg))
    assert said in refused(model=str(tmp_path / "odd.json"))


def test_a_weights_files_activation_is_asked_for(tmp_path: Path) -> None:
    """Weights tuned from OpenAI's need QuickGELU, which neither they nor the model's name may
    say.
    """
    bare = {key: value for key, value in VIT.items() if key != "quick_gelu"}
    folder = clip_folder(tmp_path / "mine", bare)
    weights = str(folder / "open_clip_model.safetensors")
    for name, cfg in {"bare": bare, "quick": {**bare, "quick_gelu": True}, "gelu": VIT}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(cfg))

    def built(name: str, **settings: Any) -> Any:
        values = {
            "pretrained": weights,
            "preprocess": SIGLIP,
            "model": str(tmp_path / f"{name}.json"),
            **settings,
        }
        return build(ModelConfig.model_validate(values), [], 0)

    bare_model = str(tmp_path / "bare.json")
    said = refused(model=bare_model, pretrained=weights, preprocess=SIGLIP)
    assert said.startswith(
        f"judge.quick_gelu: the activation of {weights} is unknown; set quick_gelu: true for"
    )
    assert "quick_gelu: true|false" in refused(model=bare_model, pretrained=weights)
    activations = {True: "QuickGELU", False: "GELU"}
    for value, activation in activations.items():
        model = built("bare", quick_gelu=value).model
        blocks = [model.transformer.resblocks[0], model.visual.transformer.resblocks[0]]
        assert {type(block.mlp[1]).__name__ for block in blocks} == {activation}
    assert (
        built("quick").model_cfg["quick_gelu"] is True
        and built("gelu").model_cfg["quick_gelu"] is False
    )
    # Settings of the weights themselves say it.
    for model, pretrained in (
        (str(folder / "open_clip_config.json"), weights),
        (f"local-dir:{folder}", None),
    ):
        assert (
            "quick_gelu"
            not in build(ModelConfig(model=model, pretrained=pretrained), [], 0).model_cfg
        )
        said = refused(model=model, pretrained=pretrained, quick_gelu=True)
        assert said.startswith("judge.quick_gelu: True, but") and said.endswith(
            "with False; remove this key"
        )
    save_judge(built("quick"), "quick", None, tmp_path / "judge")
    again = {"pretrained": str(tmp_path / "judge" / "weights.safetensors"), "preprocess": None}
    assert built("bare", **again).model_cfg["quick_gelu"] is True
    assert "but" in refused(model=bare_model, pretrained=again["pretrained"], quick_gelu=False)


def test_models_without_open_clips_activation_need_none(tmp_path: Path) -> None:
    """Random weights, towers of compclip, and models whose towers are both of other libraries."""
    assert build(ModelConfig(model="sketch"), ["a bird"] * 2, 0).model is not None
    towers = (
        {"vision_cfg": {"tower": "conv"}, "text_cfg": {}},
        {"vision_cfg": {}, "text_cfg": {"tower": "words"}},
    )
    others = {"vision_cfg": {"timm_model_name": "x"}, "text_cfg": {"hf_model_name": "y"}}
    config = ModelConfig(model="sketch", pretrained="w.pt")
    for cfg in (*towers, others):
        set_activation(config, cfg, {})
        assert "quick_gelu" not in cfg
    for cfg in ({**others, "text_cfg": {}}, {**others, "vision_cfg": {}}):
        with pytest.raises(UserError, match="quick_gelu"):
            set_activation(config, cfg, {})
