"""Matching heads with random weights, in tiny configs of the real classes."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from compclip.clip.vision import import_torchvision
from compclip.core.errors import UserError
from compclip.core.settings import plugins
from compclip.judge.chooser import Asked, Context, JudgedImage, Scorer, check_chances, load_kind
from compclip.judge.kinds import match as kind
from tests.process_state import changes, process_state

import_torchvision()
transformers = pytest.importorskip("transformers")

WORDS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] a red blue green bird sits on the tree with long wings".split()
)
CONTEXT = 12  # tokens; two of them are marks
OPTIONS = [
    ["a red bird", "a blue bird"],
    ["a bird", "the long blue bird sits on a tree", "a green tree with long wings"],
    ["the tree", "red red red", "a blue blue bird"],
]
VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}
READER = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": 0,
}


def blip() -> Any:
    reader = READER | {"bos_token_id": 2, "sep_token_id": 3}
    config = transformers.BlipConfig(
        vision_config=VISION, text_config=reader, image_text_hidden_size=8, projection_dim=8
    )
    return transformers.BlipForImageTextRetrieval(config)


def blip_2() -> Any:
    config = transformers.Blip2Config(
        vision_config=VISION,
        qformer_config=READER
        | {
            "cross_attention_frequency": 1,
            "encoder_hidden_size": 16,
            "use_qformer_text_input": True,
        },
        num_query_tokens=3,
        image_text_hidden_size=8,
        image_token_index=len(WORDS),  # as in the published model
    )
    return transformers.Blip2ForImageTextRetrieval(config)


def save(model: Any, folder: Path) -> Path:
    """Save a model with random weights, its tokenizer and its image processor; the weights are
    large, so that probabilities differ.
    """
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5 if "itm_head" in name else 0.3)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(folder)
    size = {"height": 16, "width": 16}
    transformers.BlipImageProcessor(size=size).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=[blip, blip_2], ids=["blip", "blip-2"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with torch.random.fork_rng(()):
        return save(request.param(), tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[JudgedImage]:
    folder = tmp_path_factory.mktemp("images")
    draw = np.random.default_rng(0)
    for number in range(3):
        pixels = draw.integers(0, 256, size=(20 + number, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return [JudgedImage(folder / f"{number}.png") for number in range(3)]


def opened(model: Path | str, cache: Path, **settings: Any) -> kind.MatchChooser:
    values = kind.Settings.model_validate({"model": str(model), **settings})
    chooser = kind.open_chooser(values, Context(cache=cache))
    assert isinstance(chooser, kind.MatchChooser) and isinstance(chooser, Scorer)
    return chooser


def test_scores_are_those_of_the_whole_model(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    """As transformers documents them: each pair alone, with the model's own image tower."""
    scores = opened(model, tmp_path).scores(images, OPTIONS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    processor = transformers.AutoImageProcessor.from_pretrained(model, backend="pil")
    config = json.loads((model / "config.json").read_text())
    is_blip = config["model_type"] == "blip"
    name = "BlipForImageTextRetrieval" if is_blip else "Blip2ForImageTextRetrieval"
    whole = getattr(transformers, name).from_pretrained(model)
    for image, texts, values in zip(images, OPTIONS, scores, strict=True):
        assert values.shape == (len(texts),)
        pixels = processor(images=image.read(), return_tensors="pt")["pixel_values"]
        for text, value in zip(texts, values, strict=True):
            # The image's marks before a text, which Blip2Processor adds.
            row = tokenizer(text)["input_ids"]
            ids = torch.tensor([row if is_blip else [4] * 3 + row])
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            with torch.inference_mode():
                if is_blip:
                    logits = whole(pixel_values=pixels, **inputs).itm_score
                else:
                    inputs["use_image_text_matching_head"] = True
                    logits = whole(pixel_values=pixels, **inputs).logits_per_image
            assert abs(logits.softmax(dim=1)[0, 1].item() - value) < 1e-5
    # The weights are random, but not trivial.
    assert np.ptp(np.concatenate(scores)) > 0.01


def test_the_text_with_the_highest_score_is_chosen(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    chooser = opened(model, tmp_path)
    chances = check_chances(chooser, chooser.choose(images, OPTIONS), OPTIONS)
    for values, row in zip(chooser.scores(images, OPTIONS), chances, strict=True):
        assert row.argmax() == values.argmax() and row.max() == 1
    assert chooser.choose([], []) == []


def test_another_opening_gives_the_same_bytes(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    judges = [opened(model, tmp_path) for _ in range(2)]
    scores = [np.concatenate(judge.scores(images, OPTIONS)).tobytes() for judge in judges]
    assert scores[0] == scores[1] and judges[0].hash == judges[1].hash


@pytest.mark.parametrize("batch", [1, 2, 3, 50])
def test_batches_and_other_texts_do_not_matter(
    model: Path, images: list[JudgedImage], tmp_path: Path, batch: int
) -> None:
    whole = opened(model, tmp_path).scores(images, OPTIONS)
    chooser = opened(model, tmp_path, batch=batch)
    backwards = chooser.scores(images[::-1], [texts[::-1] for texts in OPTIONS[::-1]])
    for values, reversed_values in zip(whole, backwards[::-1], strict=True):
        np.testing.assert_allclose(reversed_values[::-1], values, rtol=0, atol=1e-5)


def test_texts_of_equal_tokens_tie(model: Path, images: list[JudgedImage], tmp_path: Path) -> None:
    texts = ["a red bird", "A RED  bird", "a blue tree"]
    chooser = opened(model, tmp_path)
    [scores] = chooser.scores(images[:1], [texts])
    [chances] = chooser.choose(images[:1], [texts])
    assert scores[0] == scores[1] != scores[2]
    assert chances.tolist() in ([0.5, 0.5, 0], [0, 0, 1])


def test_an_image_with_a_text_beyond_the_context_has_no_answer(
    model: Path, images: list[JudgedImage], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    longest, too_long = "red " * (CONTEXT - 2), "red " * (CONTEXT - 1)
    options = [["a bird", longest], ["a bird", too_long], [too_long, "a tree"]]
    chooser = opened(model, tmp_path)
    with caplog.at_level("WARNING", "compclip"):
        chances = chooser.choose(images, options)
    assert [row.sum() for row in chances] == [1, 0, 0]
    [message] = caplog.messages
    counts = "1 of 4 texts exceed 12 tokens, so their images have no answer"
    assert message == f"tiny: {counts}: {too_long!r}"
    # The other text has a score.
    scores = chooser.scores(images, options)
    assert np.isnan(scores[1]).tolist() == [False, True]


def test_a_score_that_is_not_a_number_is_no_answer(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    folder = shutil.copytree(model, tmp_path / "nan")
    tensors = load_file(folder / "model.safetensors")
    tensors["itm_head.bias"] = torch.full((2,), torch.nan)
    save_file(tensors, folder / "model.safetensors")
    assert not np.any(opened(folder, tmp_path).choose(images, OPTIONS)[0])


def test_the_hash_covers_weights_and_settings(model: Path, tmp_path: Path) -> None:
    plain = opened(model, tmp_path).hash

    def changed_weights(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        tensors["itm_head.bias"] += 1e-3
        save_file(tensors, folder / "model.safetensors")

    def changed_pixels(folder: Path) -> None:
        file = folder / "preprocessor_config.json"
        if not file.is_file():
            file = folder / "processor_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"image_mean": [0, 0, 0]}))

    def other_file(folder: Path) -> None:
        (folder / "README.md").write_text("About the model")

    for number, change in enumerate((changed_weights, changed_pixels, other_file)):
        folder = shutil.copytree(model, tmp_path / str(number) / "tiny")
        change(folder)
        chooser = opened(folder, tmp_path)
        assert chooser.name == "tiny"
        assert (chooser.hash == plain) == (change is other_file)


def test_the_process_is_left_as_it_was(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    before = process_state()
    opened(model, tmp_path).choose(images, OPTIONS)
    assert changes(before, process_state()) == {}


def test_large_weights_may_be_sharded(
    model: Path, images: list[JudgedImage], tmp_path: Path
) -> None:
    folder = shutil.copytree(model, tmp_path / "tiny")
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    for number, first in enumerate((0, len(names) // 2), start=1):
        shard = names[first : first + len(names) - len(names) // 2]
        file = folder / f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in shard}, file)
    sharded = opened(folder, tmp_path).scores(images, OPTIONS)
    whole = opened(model, tmp_path).scores(images, OPTIONS)
    assert np.array_equal(np.concatenate(sharded), np.concatenate(whole))


def without_head(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(
        {n: t for n, t in tensors.items() if "itm_head" not in n}, folder / "model.safetensors"
    )


def only_pickled(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    torch.save(tensors, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def cut_off(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:100])


def of_another_kind(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "clip"}')


def not_an_object(folder: Path) -> None:
    (folder / "config.json").write_text("[1]")


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def other_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["image_text_hidden_size"] = 4
    (folder / "config.json").write_text(json.dumps(config))


def without_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        (folder / name).unlink(missing_ok=True)


def with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": 1}')


def with_code(folder: Path) -> None:
    (folder / "modeling.py").write_text("raise SystemExit")


def that_names_code(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "elsewhere--modeling.Config"}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without_head, r"lacks 2 tensors .*itm_head\.(weight|bias)"),
        (only_pickled, r"no model\.safetensors; choose a model or a revision with safetensors"),
        (cut_off, "not a readable weights file"),
        (of_another_kind, r"model_type is 'clip'; choose a model of type blip or blip-2"),
        (not_an_object, "model_type is ''; choose a model of type blip or blip-2"),
        (without_config, r"no config\.json"),
        (other_size, "is .*, but the tower's is"),
        (without_tokenizer, r"none of tokenizer\.json, vocab\.txt; get the model again"),
        (with_damaged_tokenizer, "not a readable model"),
        (with_code, r"modeling\.py: may hold code"),
        (that_names_code, "auto_map names code"),
    ],
)
def test_a_faulty_folder_is_an_error_in_one_line(
    model: Path, tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(model, tmp_path / "tiny")
    change(folder)
    with pytest.raises(UserError, match=message) as error:
        opened(folder, tmp_path)
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


def test_a_model_that_is_not_on_the_hub_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="^nobody/nothing: not downloaded yet") as error:
        opened("nobody/nothing", tmp_path, revision="0" * 40)
    assert "\n" not in str(error.value)


def test_a_revision_is_downloaded(
    model: Path, images: list[JudgedImage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(name: str, *, revision: str, allow_patterns: list[str]) -> str:
        assert (name, revision) == ("owner/tiny", "0" * 40)
        assert not any(re.search("bin|py$", pattern) for pattern in allow_patterns)
        return str(model)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    chooser = opened("owner/tiny", tmp_path, revision="0" * 40)
    assert chooser.name == "owner/tiny" and chooser.hash == opened(model, tmp_path).hash


def test_a_judge_without_a_commit_is_noted_before_a_run(model: Path) -> None:
    notes = []
    for values in ({"model": "a/b"}, {"model": "a/b", "revision": "0" * 40}, {"model": str(model)}):
        notes.append(kind.preview(kind.Settings.model_validate(values), Asked(10, 0, 0)))
    assert notes == ["a/b: may change on the Hub; set revision to a commit", "", ""]


@pytest.mark.parametrize(
    "values", [{"revision": "main"}, {"batch": 0}, {"model": ""}, {"dtype": 1}]
)
def test_wrong_settings_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"settings: {next(iter(values))}: "):
        plugins.settings(load_kind("match"), {"model": "a/b", **values})
