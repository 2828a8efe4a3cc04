"""Images by a tiny pipeline with random weights: an image depends only on its prompt and seed."""

import functools
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from compclip.clip.vision import import_torchvision
from compclip.core.errors import UserError
from compclip.core.identity.fingerprint import fingerprint
from compclip.generate.generators import diffusers as kind
from tests.accelerator import accelerator
from tests.generate.conftest import HOME, Place, make_prompts
from workflow_scripts.workflow.config import load_config

import_torchvision()
library = pytest.importorskip("diffusers")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Stable Diffusion of 16 by 16 pixels that reads 16 letters."""
    root = tmp_path_factory.mktemp("pipeline")
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (root / "vocab.json").write_text(
        json.dumps({word: number for number, word in enumerate(words)})
    )
    (root / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = transformers.CLIPTokenizer(
        str(root / "vocab.json"), str(root / "merges.txt"), model_max_length=16
    )
    torch.manual_seed(0)
    unet = library.UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        sample_size=8,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        norm_num_groups=4,
        attention_head_dim=4,
    )
    vae = library.AutoencoderKL(
        block_out_channels=[8, 16],
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
        norm_num_groups=4,
    )
    reader = transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            vocab_size=len(words),
            hidden_size=16,
            intermediate_size=16,
            num_attention_heads=2,
            num_hidden_layers=1,
            max_position_embeddings=16,
            bos_token_id=len(words) - 2,
            eos_token_id=len(words) - 1,
            pad_token_id=len(words) - 1,
        )
    )
    library.StableDiffusionPipeline(
        vae=vae,
        text_encoder=reader,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=library.DDIMScheduler(steps_offset=1, clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(root / "model")
    return root / "model"


def draw(
    place: Place, model: Path | str, prompts: pd.DataFrame | None = None, **settings: Any
) -> dict[str, bytes]:
    """The images by file name."""
    manifest, _ = place.generate(
        "diffusers",
        prompts,
        **{"model": str(model), "steps": 2, "batch": 4, "device": "cpu", **settings},
    )
    assert (manifest["status"] == "ok").all()
    root = place.target / "images"
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.png")}


def forget(place: Place) -> None:
    shutil.rmtree(place.root / "cache")


PROMPTS = make_prompts(
    {"test_seen": ["s/1", "s/2"], "test_unseen": ["u/1"], "test_swapped": ["s/1"]}, draws=2
)
PROMPTS["text"] = (
    [f"a {t} bird" for t in ("red", "tan") for _ in range(4)]
    + ["a gray bird"] * 4
    + ["a pink bird"] * 4
)


def test_an_image_depends_only_on_its_prompt_and_seed(place: Place, model: Path) -> None:
    whole = draw(place, model, PROMPTS)
    assert set(whole) == set(PROMPTS["file_name"]) and len(set(whole.values())) == len(whole)
    assert Image.open(place.target / "images" / PROMPTS["file_name"][0]).size == (16, 16)
    # Other batches: backwards, without the cache; five alone.
    forget(place)
    assert draw(place, model, PROMPTS[::-1].reset_index(drop=True)) == whole
    forget(place)
    some = PROMPTS.iloc[[11, 2, 7, 14, 5]].reset_index(drop=True)
    assert draw(place, model, some) == {name: whole[name] for name in some["file_name"]}
    # A swapped prompt starts from its original's noise.
    same = draw(place, model, PROMPTS.assign(text="a red bird"))
    images = {name.removeprefix(f"{HOME}/"): image for name, image in same.items()}
    assert images["test_swapped/s/1/0_0.png"] == images["test_seen/s/1/0_0.png"]
    assert (
        images["test_seen/s/1/0_0.png"]
        != images["test_seen/s/1/0_1.png"]
        != images["test_seen/s/1/1_1.png"]
    )


def test_a_gpu_draws_the_same_and_half_precision_nearly(place: Place, model: Path) -> None:
    """A GPU by default draws in 16 bits."""
    here, half = (draw(place, model, PROMPTS, dtype=dtype) for dtype in ("fp32", "bf16"))
    with accelerator():
        there, coarse = (
            draw(place, model, PROMPTS, device="auto", **more) for more in ({"dtype": "fp32"}, {})
        )
    assert set(there) == set(coarse) == set(half) == set(here) and coarse != there and half != here
    for name in here:
        exact, gpu, low = (
            np.asarray(Image.open(io.BytesIO(of[name])), int) for of in (here, there, half)
        )
        assert np.ptp(exact) > 0 and abs(exact - gpu).max() <= 1 and abs(exact - low).mean() < 8, (
            name
        )


def test_a_killed_run_resumes(place: Place, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(place, model, PROMPTS)
    forget(place)
    drawn: list[int] = []
    once = kind.draw

    def counted(
        pipeline: Any, settings: kind.Settings, texts: list[str], seeds: list[int]
    ) -> list[bytes]:
        if drawn == [4, 4]:
            drawn.append(0)
            raise KeyboardInterrupt
        drawn.append(len(texts))
        return once(pipeline, settings, texts, seeds)

    monkeypatch.setattr(kind, "draw", counted)
    with pytest.raises(KeyboardInterrupt):
        draw(place, model, PROMPTS)
    # No incomplete artifact is left, and the second run gives the same bytes.
    assert draw(place, model, PROMPTS) == whole and drawn == [4, 4, 0, 4, 4]
    # Other settings are other images.
    assert draw(place, model, PROMPTS, steps=3) != whole and sum(drawn) == 32


def test_the_summary_counts_black_images(
    place: Place, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = library.StableDiffusionPipeline.__call__

    @functools.wraps(calls)
    def checked(
        self: Any, prompt: list[str], *, generator: list[torch.Generator], **options: Any
    ) -> Any:
        """Black out as the safety checker does."""
        output = calls(self, prompt=prompt, generator=generator, **options)
        images = zip(output.images, prompt, strict=True)
        output.images = [
            Image.new("RGB", image.size) if "pink" in text else image for image, text in images
        ]
        return output

    monkeypatch.setattr(library.StableDiffusionPipeline, "__call__", checked)
    settings = {
        "model": str(model),
        "steps": 1,
        "batch": 3,
        "guidance": 3,
        "size": [24, 16],
        "device": "cpu",
    }
    _, summary = place.generate("diffusers", PROMPTS, **settings)
    about = {
        "model": "model",
        "pipeline": "StableDiffusionPipeline",
        "num_inference_steps": 1,
        "guidance_scale": 3.0,
        "width": 24,
        "height": 16,
        "dtype": "fp32",
        "device": "cpu",
        "version": fingerprint(model),
        "black": {
            "count": 4,
            "names": [f"{HOME}/test_swapped/s/1/{c}_{d}.png" for c in (0, 1) for d in (0, 1)],
        },
    }
    assert summary | about == summary and str(place.root) not in json.dumps(summary)
    assert Image.open(place.target / "images" / PROMPTS["file_name"][0]).size == (24, 16)
    # Cached images are counted too.
    assert place.generate("diffusers", PROMPTS, **settings)[1] == summary


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "cuda"}, "device: cuda, but torch sees no GPU"),
        (
            {"model": "nobody/nothing"},
            "model nobody/nothing: not downloaded yet, .*docs.cluster.md",
        ),
        ({"size": 17}, "divisible by 8"),
    ],
)
def test_refused_settings(
    place: Place,
    model: Path,
    settings: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if settings.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises((UserError, ValueError), match=message) as error:
        draw(place, **{"model": model, "prompts": PROMPTS[:1], **settings})
    assert "\n" not in str(error.value)
    assert (
        not (place.target / "manifest.parquet").exists() and not (place.target / "images").exists()
    )


def test_folders_without_a_pipeline_and_the_config_are_checked(
    place: Place, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    broken = shutil.copytree(model, tmp_path / "broken")
    weights = broken / "unet" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    index = shutil.copytree(model, tmp_path / "other") / "model_index.json"
    index.write_text(
        index.read_text().replace("StableDiffusionPipeline", "DDPMPipeline")
    )  # draws without a prompt
    for name in ("empty", "broken", "other"):
        with pytest.raises(
            UserError, match=f"model {tmp_path / name}: not loaded as a text-to-image pipeline"
        ) as e:
            draw(place, tmp_path / name)
        assert "\n" not in str(e.value)
    values = {
        "generate": {
            "generators": [{"name": "sd", "kind": "diffusers", "model": "a/b", "size": [512, 768]}]
        }
    }
    assert load_config(values).generate.generators[0].kind == "diffusers"
    values["generate"]["generators"][0]["guidance"] = -1
    with pytest.raises(UserError, match="generator 'sd': guidance"):
        load_config(values)


def add_component(folder: Path, library: str) -> None:
    """Let the text encoder be a class of ``library``."""
    index = folder / "model_index.json"
    content = json.loads(index.read_text())
    index.write_text(json.dumps({**content, "text_encoder": [library, "Mine"]}))


def code_in_component(folder: Path, code: str) -> None:
    (folder / "text_encoder" / "mine.py").write_text(code)
    add_component(folder, "mine")


def code_of_pipeline(folder: Path, code: str) -> None:
    index = folder / "model_index.json"
    (folder / "mine.py").write_text(code)
    index.write_text(json.dumps({**json.loads(index.read_text()), "_class_name": ["mine", "Mine"]}))


def map_in_component(folder: Path, code: str) -> None:
    config = folder / "text_encoder" / "config.json"
    (folder / "text_encoder" / "mine.txt").write_text(code)
    content = json.loads(config.read_text()) | {
        "auto_map": {"AutoModel": "mine.Mine", "AutoConfig": "mine.Mine"}
    }
    config.write_text(json.dumps(content))
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(
        json.dumps({**index, "text_encoder": ["transformers", "AutoModel"]})
    )


def map_outside(folder: Path, code: str) -> None:
    """The same in a folder that is not a child of the pipeline's."""
    map_in_component(folder, code)
    shutil.move(folder / "text_encoder", folder.parent / "elsewhere")
    index = json.loads((folder / "model_index.json").read_text())
    index["../elsewhere"] = index.pop("text_encoder")
    (folder / "model_index.json").write_text(json.dumps(index))


def linked_component(folder: Path, code: str) -> None:
    map_in_component(folder, code)
    shutil.move(folder / "text_encoder", folder.parent / "linked")
    (folder / "text_encoder").symlink_to(folder.parent / "linked")


def imported_module(folder: Path, code: str) -> None:
    (folder.parent / "mine.py").write_text(code)
    add_component(folder, "mine")


def compiled_component(folder: Path, code: str) -> None:
    (folder / "unet" / "mine.so").write_text(code)


ATTACKS = [
    code_in_component,
    code_of_pipeline,
    map_in_component,
    map_outside,
    linked_component,
    imported_module,
    compiled_component,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_strangers_pipeline_runs_no_code(
    place: Place,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    attack: Callable[[Path, str], None],
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked whether code may run"))
    monkeypatch.syspath_prepend(str(tmp_path))
    marker, folder = tmp_path / "marker", Path(shutil.copytree(model, tmp_path / "model"))
    attack(folder, f"from pathlib import Path\nPath({str(marker)!r}).touch()\nclass Mine: pass\n")
    with pytest.raises(UserError) as error:
        draw(place, folder)
    assert "\n" not in str(error.value) and not marker.exists()


def test_a_users_script_beside_his_pipeline_is_no_fault(
    place: Place, model: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    (folder / "scripts").mkdir()
    for script in ("train.py", "scripts/prepare.py"):
        (folder / script).touch()
    assert draw(place, folder, PROMPTS[:1])
