"""Models behind one interface: against the libraries' own outputs; what cannot be loaded says why."""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from compclip.clip.embed import Embedder
from compclip.compun.config import NamedModel
from compclip.compun.models import keep_open_clip, load_transformers, open_model
from compclip.core.errors import UserError
from tests.accelerator import assert_same_embeddings
from tests.compun.asked import tiny_align, tiny_blip
from tests.specs.evaluated import real_judge, refused
from workflow_scripts.workflow.config import load_config

TEXTS = ["a photo of a red wing", "A photo of a blue bill.", "the", "red " * 80]


def opened(model: NamedModel, folder: Path) -> AbstractContextManager[Embedder]:
    return open_model(model, 4, 1, "cpu", folder / "cache")


def pictures(folder: Path) -> list[Path]:
    """Write four pictures that are neither square nor of the towers' size."""
    paths = [folder / f"{number}.png" for number in range(4)]
    for path, pixels in zip(paths, np.random.default_rng(0).integers(256, size=(4, 50, 70, 3)), strict=True):
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return paths


def reason(model: NamedModel, folder: Path) -> str:
    with pytest.raises(UserError) as caught, opened(model, folder):
        pass
    assert str(caught.value).startswith(f"compun.models: {model.title}: ") and "\n" not in str(caught.value)
    return str(caught.value)


def prepared(folder: Path, paths: list[Path]) -> dict[str, Any]:
    """Return what the library's own processor and tokenizer make of images and TEXTS."""
    from transformers import AutoImageProcessor, AutoTokenizer

    images = [Image.open(path).convert("RGB") for path in paths]
    pixels = AutoImageProcessor.from_pretrained(folder, backend="pil")(images=images, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(
        [text.lower() for text in TEXTS], padding=True, truncation=True, max_length=64, return_tensors="pt"
    )
    return {"pixel_values": pixels["pixel_values"], **{n: tokens[n] for n in ("input_ids", "attention_mask")}}


@pytest.mark.parametrize("make", [tiny_blip, tiny_align])
def test_similarities_are_the_librarys_whatever_the_batch_or_device(tmp_path: Path, make: Any) -> None:
    import transformers

    folder, paths = make(tmp_path / "model"), pictures(tmp_path)
    inputs = prepared(folder, paths)
    with torch.inference_mode():
        if make is tiny_blip:
            theirs = transformers.BlipForImageTextRetrieval.from_pretrained(folder).eval()
            expected = theirs(**inputs, use_itm_head=False).itm_score
        else:
            model = transformers.AlignModel.from_pretrained(folder).eval()
            expected = model(**inputs).logits_per_image * model.temperature
    named, items = NamedModel(transformers=str(folder)), [(path, None) for path in paths]
    with opened(named, tmp_path) as embedder:
        ours = embedder.images(items) @ embedder.texts(TEXTS).T
    assert ours == pytest.approx(expected.numpy(), abs=1e-5)
    # The models tell images and texts apart: an agreement of constants would say nothing.
    assert np.ptp(ours, axis=0).min() > 1e-3 and np.ptp(ours, axis=1).min() > 1e-4
    judge = load_transformers(named, 1, "cpu")
    assert np.array_equal(judge.encode_images(items, 4)[2:3], judge.encode_images(items[2:3], 4))
    assert np.array_equal(judge.encode_texts(TEXTS, 4)[1:2], judge.encode_texts(TEXTS[1:2], 4))
    assert np.linalg.norm(judge.encode_texts(TEXTS, 4), axis=1) == pytest.approx(1, abs=1e-6)
    assert_same_embeddings(lambda device: load_transformers(named, 1, device), items, TEXTS)


def test_texts_that_are_cut_are_known(tmp_path: Path) -> None:
    from compclip.clip.tokens import cut_texts

    judge = load_transformers(NamedModel(transformers=str(tiny_blip(tmp_path / "model"))), 1, "cpu")
    fits = " ".join(["red"] * 62)
    assert cut_texts(judge.tokenizer, [*TEXTS, fits, fits + " red"]) == {TEXTS[3], fits + " red"}


def test_hash_is_of_the_content(tmp_path: Path) -> None:
    """Equal files in another folder are the same model; other weights, or another processor, another."""

    def hash_of(folder: Path) -> str:
        return load_transformers(NamedModel(transformers=str(folder)), 1, "cpu").hash

    first, again, other = (tiny_blip(tmp_path / name, seed) for name, seed in [("a", 0), ("b", 0), ("c", 1)])
    (again / "README.md").write_text("not read")
    assert hash_of(first) == hash_of(again) != hash_of(other)
    settings = json.loads((again / "preprocessor_config.json").read_text())
    (again / "preprocessor_config.json").write_text(json.dumps({**settings, "resample": 2}))
    assert hash_of(first) != hash_of(again)


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
    # A damaged copy is made again.
    whole = (kept / "weights.safetensors").read_bytes()
    (kept / "weights.safetensors").write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    assert keep_open_clip(named, tmp_path / "cache") == kept and (kept / "weights.safetensors").read_bytes() == whole
    # Other weights under the same name are another model.
    other = real_judge(tmp_path / "other", seed=1)
    again = NamedModel(open_clip=str(judge / "tiny.json"), pretrained=str(other / "weights.safetensors"))
    assert keep_open_clip(again, tmp_path / "cache") != kept == keep_open_clip(named, tmp_path / "cache")
    # So are other weights in the same file.
    (judge / "weights.safetensors").write_bytes((other / "weights.safetensors").read_bytes())
    renewed = keep_open_clip(named, tmp_path / "cache")
    assert renewed != kept and judge_hash(renewed) != judge_hash(kept)


def test_what_cannot_be_loaded_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blip = tiny_blip(tmp_path / "blip")
    state = load_file(blip / "model.safetensors")
    save_file({n: t for n, t in state.items() if not n.startswith("vision_proj")}, blip / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    model = NamedModel(transformers=str(blip))
    assert "lacks 2 weights of BlipForImageTextRetrieval, such as ['vision_proj" in reason(model, tmp_path)
    (blip / "model.safetensors").write_bytes((blip / "model.safetensors").read_bytes()[:-100])
    assert "blip: cannot be loaded" in reason(model, tmp_path)
    (blip / "model.safetensors").unlink()
    assert "blip: no weights (" in reason(model, tmp_path)
    other = tiny_align(tmp_path / "other")
    (other / "config.json").write_text(json.dumps({"model_type": "vit"}))
    faults = {
        "model type vit; supported types of transformers are blip, align": {"transformers": str(other)},
        "a folder has no revision": {"transformers": str(other), "revision": "main"},
        "none: not a judge's folder": {"judge": str(tmp_path / "none")},
        "'none' is neither a file nor a tag of ViT-B-32": {"open_clip": "ViT-B-32", "pretrained": "none"},
        "unknown": {"open_clip": "ViT-X", "pretrained": "openai"},
    }
    for fault, values in faults.items():
        assert fault in reason(NamedModel(**values), tmp_path)

    def offline(*_: Any, **__: Any) -> None:
        raise OSError("cannot reach https://huggingface.co/api/x")

    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    message = reason(NamedModel(transformers="Salesforce/blip-itm-base-coco"), tmp_path)
    assert "Salesforce/blip-itm-base-coco: not downloaded yet, and the Hub could not give it (OS" in message


def test_pickled_weights_where_there_are_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    folder = tiny_blip(tmp_path / "hub")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    asked: list[list[str]] = []

    def download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        assert name == "Salesforce/blip" and revision == "abc"
        asked.append(allow_patterns)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    judge = load_transformers(NamedModel(transformers="Salesforce/blip", revision="abc"), 1, "cpu")
    assert judge.encode_texts(["red"], 1).shape == (1, 8) and judge.name == "Salesforce/blip"
    assert [patterns[-1] for patterns in asked] == ["*.safetensors", "pytorch_model*.bin"]


def test_no_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert "pip install transformers" in reason(NamedModel(transformers="Salesforce/blip"), tmp_path)


def test_models_are_named() -> None:
    models = [
        NamedModel(open_clip="ViT-L-14", pretrained="openai", name="CLIP"), NamedModel(judge="results/d/color/judge"),
        NamedModel(open_clip="ViT-B-32", pretrained="laion2b_s34b_b79k"),
    ]  # fmt: skip
    assert [model.title for model in models] == ["CLIP", "results/d/color/judge", "ViT-B-32 laion2b_s34b_b79k"]


JUDGE = {"judge": "a"}


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"compounds": {"images": "x"}}, "compun: compounds without models to ask; add models"),
        ({"compounds": {}, "models": [JUDGE]}, "compun.compounds.images: Field required"),
        ({"models": [{"judge": "a", "name": "taught"}]}, "compun.models: two models are called 'taught'"),
        ({"models": [JUDGE, {"judge": "b", "name": "a"}]}, "compun.models: two models are called 'a'"),
        ({"models": [{"name": "x"}]}, "give one of judge, open_clip and transformers"),
        ({"models": [{"judge": "a", "pretrain": "b"}]}, "pretrain"),
        ({"models": [{"open_clip": "ViT-B-32"}]}, "random weights"),
        ({"models": [{"judge": "a", "pretrained": "b"}]}, "pretrained requires open_clip"),
        ({"models": [{"judge": "a", "revision": "b"}]}, "revision requires transformers"),
        ({"drawn": {"tested": 1}}, "compun.drawn.tested: Input should be greater than or equal to 6, got 1"),
        ({"human": {"kinds": ["looks"]}}, "compun.human.kinds.0: Input should be 'compound' or 'confusing'"),
    ],
)
def test_a_faulty_section_is_one_line(section: dict[str, Any], fault: str) -> None:
    assert fault in refused(lambda: load_config({"compun": section}))
