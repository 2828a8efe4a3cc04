"""A stretched model: its positions by hand and by a loop, frozen positions, and the judge's
folder.
"""

import copy
import functools
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from compclip.clip import tokens
from compclip.clip.config import ModelConfig
from compclip.clip.model import Built, build, construct, load_judge
from compclip.core.artifacts.files import read_json
from compclip.specs.stretch import stretch, stretch_positions, write_judge
from tests.clip.conftest import SIGLIP, VIT, clip_folder
from tests.scripts import job
from tests.specs.evaluated import refused
from workflow_scripts.specs import stretch as script

TINY = {**VIT, "text_cfg": {**VIT["text_cfg"], "context_length": 77}}


def built(cfg: dict[str, Any]) -> Built:
    torch.manual_seed(0)
    return Built(construct(cfg), copy.deepcopy(cfg), SIGLIP, None, [])


def as_published(old: torch.Tensor, length: int, keep: int) -> torch.Tensor:
    """Stretch position by position."""
    factor = (length - keep) // (len(old) - keep)
    rows = [old[i] for i in range(keep)]
    for i in range(keep, len(old)):
        step = old[i + 1] - old[i] if i + 1 < len(old) else old[i] - old[i - 1]
        for j in range(factor):
            rows.append(old[i] + step * j / factor)
    return torch.stack(rows)


@given(
    keep=st.integers(0, 25),
    others=st.integers(2, 60),
    factor=st.integers(1, 5),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_against_a_loop(keep: int, others: int, factor: int, seed: int, dtype: torch.dtype) -> None:
    old = torch.randn(keep + others, 3, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    new = stretch_positions(old, keep + factor * others, keep)
    torch.testing.assert_close(new, as_published(old, keep + factor * others, keep))
    assert torch.equal(new[:keep], old[:keep]) and torch.equal(new[keep::factor], old[keep:])
    assert new.dtype == dtype


@pytest.mark.parametrize(
    ("n", "length", "keep"), [(77, 250, 20), (77, 60, 20), (20, 248, 20), (1, 4, 0), (77, 248, -1)]
)
def test_what_cannot_be_stretched(n: int, length: int, keep: int) -> None:
    message = refused(lambda: stretch_positions(torch.zeros(n, 2), length, keep))
    assert (
        f"{n} positions: with the first {keep} kept they cannot be stretched to {length}" in message
    )


def test_models_that_cannot_be_stretched() -> None:
    source = built(TINY)
    source.model_cfg["text_cfg"]["context_length"] = 248
    assert "77 positions, but the model's config says 248" in refused(lambda: stretch(source))
    source.model.positional_embedding = None
    assert "no positional_embedding to stretch or freeze" in refused(lambda: stretch(source))


@pytest.mark.parametrize("custom", [False, True])
def test_a_stretched_model_reads_longer(custom: bool) -> None:
    source, before = built({**TINY, "custom_text": custom}), built({**TINY, "custom_text": custom})
    longer = stretch(source)
    assert longer.model_cfg["text_cfg"] == {**TINY["text_cfg"], "context_length": 248}
    state = source.model.state_dict()
    assert source.model_cfg == before.model_cfg
    assert all(torch.equal(value, state[key]) for key, value in before.model.state_dict().items())
    key = "text.positional_embedding" if custom else "positional_embedding"
    torch.testing.assert_close(longer.model.state_dict()[key], as_published(state[key], 248, 20))
    captions = ["a red bird", "a blue bird with a long bill and black wings"]
    short, long = (tokens.tokenize(of.tokenizer(), captions) for of in (source, longer))
    assert short.shape == (2, 77) and long.shape == (2, 248)
    # The first 20 tokens are unchanged.
    with torch.inference_mode():
        torch.testing.assert_close(longer.model.encode_text(long), source.model.encode_text(short))


def run(output: Path, judge: Path | None = None, **model: Any) -> Path:
    """Stretch a judge, or a model by its settings; return the folder of the result."""
    script.main(job({"judge": judge} if judge else {}, {"judge": output}, model=model))
    return output


def plain(folder: Path, **model: Any) -> Path:
    """Write a judge that is not stretched."""
    write_judge(build(ModelConfig(**model), [], 0), "tiny", None, {}, folder)
    return folder


def test_a_judges_folder(tmp_path: Path) -> None:
    """An open_clip model with pretrained weights, stretched directly and through a judge's
    folder.
    """
    (tmp_path / "tiny.json").write_text(json.dumps(TINY))
    model = built(TINY).model
    save_file(
        {key: value.contiguous() for key, value in model.state_dict().items()},
        tmp_path / "w.safetensors",
    )
    settings = {"model": str(tmp_path / "tiny.json"), "pretrained": str(tmp_path / "w.safetensors")}
    settings |= {"preprocess": SIGLIP}
    short = load_judge(plain(tmp_path / "plain", **settings), 1, "cpu")
    assert torch.equal(short.model.positional_embedding, model.positional_embedding)
    run(tmp_path / "longer", tmp_path / "plain")
    run(tmp_path / "once", **settings)
    judge = load_judge(tmp_path / "longer", 1, "cpu")
    assert torch.equal(
        judge.model.positional_embedding, stretch_positions(model.positional_embedding)
    )
    assert judge.hash == load_judge(tmp_path / "once", 1, "cpu").hash
    assert judge.name == "tiny-248" and judge.tokenizer.context_length == 248
    manifest = read_json(tmp_path / "longer" / "manifest.json")
    assert manifest["stretched_from"] == short.hash and manifest["judge_hash"] == judge.hash
    assert str(tmp_path) not in json.dumps(manifest)
    # Tokens after the 77th matter.
    middling = "a bird with " + ", ".join(["a red wing"] * 30)
    one, other = judge.encode_texts([middling, middling + " and a green tail"], 4)
    assert abs(one - other).max() > 1e-3


def test_bad_models_and_what_the_result_is_named_after(tmp_path: Path) -> None:
    """The judge, not its files, and the length, which must be another one."""
    unknown = functools.partial(run, tmp_path / "k", model="ViT-Z", pretrained="openai")
    assert refused(unknown).startswith("specs.base.model: unknown 'ViT-Z'")
    assert refused(lambda: run(tmp_path / "k", tmp_path)).startswith(
        f"{tmp_path}: not a judge's folder"
    )
    short = plain(tmp_path / "plain", model=f"local-dir:{clip_folder(tmp_path / 'tiny', TINY)}")
    files = {"model": str(short / "model.json"), "pretrained": str(short / "weights.safetensors")}
    assert read_json(run(tmp_path / "long", **files) / "model.json")["name"] == "tiny-248"
    assert "long: already reads 248 tokens" in refused(
        lambda: run(tmp_path / "longer", tmp_path / "long")
    )
