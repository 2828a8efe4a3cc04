"""Checkpoints of Long-CLIP and SPECS: a tiny one of their form, faults in it, and, where it is, the
real one.
"""

import os
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from compclip.clip.model import Judge, construct, load_judge
from compclip.clip.pixels import PREPROCESS, Preprocess
from compclip.clip.tokens import get_tokenizer
from compclip.specs import published_weights
from compclip.specs.published_weights import Released, check_output, read_released
from compclip.specs.specs_score import specs_score
from tests.specs.evaluated import refused

CFG = {
    "embed_dim": 32,
    "quick_gelu": True,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 248, "vocab_size": 49408, "width": 128, "heads": 2, "layers": 3},
}

# Of SPECS' README, with the cat of its repository.
CAT = (
    "A British Shorthair cat with plush, bluish-gray fur is lounging on a deep green velvet "
    "sofa. The cat is "
)
CAPTIONS = {
    CAT + "partially tucked under a multi-colored woven jumper.": 0.4293,
    CAT + "partially tucked under a multi-colored woven blanket.": 0.4457,
    CAT + "partially tucked under a multi-colored woven blanket with fringed edges.": 0.4583,
}


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    """Return a state dict as Long-CLIP saves it, partly in half precision."""
    torch.manual_seed(0)
    tensors = {name: tensor.clone() for name, tensor in construct(CFG).state_dict().items()}
    tensors["positional_embedding_res"] = torch.randn(248, 128)
    tensors["visual.conv1.weight"] = tensors["visual.conv1.weight"].half()
    return tensors


def saved(state: dict[str, torch.Tensor], path: Path) -> Path:
    torch.save(state, path)
    return path


def test_positions_as_long_clip_adds_them_or_of_one_table(
    state: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    """The first table is used for the first 20 positions, the second one for the others."""
    cfg, tensors = read_released(saved(state, tmp_path / "longclip.pt"))
    assert cfg == CFG and {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    save_file(state, tmp_path / "longclip.safetensors")
    again = read_released(tmp_path / "longclip.safetensors")
    assert again[0] == cfg and all(
        torch.equal(again[1][name], tensor) for name, tensor in tensors.items()
    )
    model = construct(cfg)
    model.load_state_dict(tensors)  # strict
    first, rest = torch.zeros(248, 1), torch.zeros(248, 1)
    first[:20], rest[20:] = 1, 1
    ids = torch.randint(1, 49406, (3, 248), generator=torch.Generator().manual_seed(0))
    ids[[0, 1, 2], [5, 100, 247]] = 49407
    with torch.inference_mode():
        x = state["token_embedding.weight"][ids]
        x = x + state["positional_embedding"] * first + state["positional_embedding_res"] * rest
        x = model.ln_final(
            model.transformer(x, attn_mask=torch.full((248, 248), -torch.inf).triu(1))
        )
        expected = x[torch.arange(3), ids.argmax(dim=1)] @ state["text_projection"]
        torch.testing.assert_close(model.encode_text(ids), expected)
    # OpenAI's files have one table of 77 positions and three numbers.
    del state["positional_embedding_res"]
    state |= {name: torch.tensor(1) for name in published_weights.NOT_WEIGHTS}
    state["positional_embedding"] = state["positional_embedding"][:77]
    cfg, tensors = read_released(saved(state, tmp_path / "clip.pt"))
    assert cfg["text_cfg"]["context_length"] == 77
    assert torch.equal(tensors["positional_embedding"], state["positional_embedding"])


def test_a_judges_folder_overwrites_nothing(state: dict[str, torch.Tensor], tmp_path: Path) -> None:
    checkpoint = saved(state, tmp_path / "spec.pt")
    published_weights.main(Released(checkpoint=checkpoint, output=tmp_path / "judge"))
    judge = load_judge(tmp_path / "judge", 1, "cpu")
    assert judge.name == "spec" and judge.tokenizer.context_length == 248
    assert judge.preprocess.cfg["mean"] == [0.48145466, 0.4578275, 0.40821073]
    assert judge.preprocess.size == (32, 32) and judge.preprocess.cfg["interpolation"] == "bicubic"
    assert type(judge.model.transformer.resblocks[0].mlp[1]).__name__ == "QuickGELU"
    assert torch.equal(
        judge.model.positional_embedding[20:], state["positional_embedding_res"][20:]
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    for name in ("empty", "new"):
        check_output(tmp_path / name)
    for name in (".", "notes.txt"):
        assert refused(lambda name=name: check_output(tmp_path / name)).endswith(
            "choose a new or an empty folder"
        )


FAULTS: list[tuple[dict[str, tuple[int, ...] | None], str]] = [
    ({"visual.ln_pre.weight": None}, "Missing.*visual.ln_pre.weight"),
    ({"mask_net.weight": (2,)}, "Unexpected.*mask_net.weight"),
    (
        {"transformer.resblocks.0.ln_1.weight": (64,)},
        "size mismatch for transformer.resblocks.0.ln_1.weight",
    ),
    ({"ln_final.weight": (96,)}, "size mismatch"),
    ({"ln_final.weight": (32,)}, "num_heads=0"),
    # A ResNet, and the names of transformers.
    ({"visual.conv1.weight": None, "visual.layer1.0.conv1.weight": (2, 2)}, "visual.conv1.weight"),
    (
        {"positional_embedding": None, "text_model.embeddings.position_embedding.weight": (2, 2)},
        "positional_embedding",
    ),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_faults_are_named(
    state: dict[str, torch.Tensor],
    tmp_path: Path,
    changes: dict[str, tuple[int, ...] | None],
    message: str,
) -> None:
    """None removes a tensor; a shape adds or replaces one."""
    kept = {name: tensor for name, tensor in state.items() if name not in changes}
    name = saved(
        kept | {name: torch.zeros(shape) for name, shape in changes.items() if shape},
        tmp_path / "w.pt",
    )
    assert re.search(
        rf"w\.pt: not a CLIP with a ViT .*{message}", refused(lambda: read_released(name))
    )


def test_the_cat_of_the_readme() -> None:
    """The published weights give the published scores, which rise with the correct details."""
    weights, cat = os.environ.get("SPECS_WEIGHTS"), os.environ.get("SPECS_CAT")
    if not weights or not cat:
        pytest.skip(
            "optional: the released weights are not here: set SPECS_WEIGHTS to spec.pt of "
            "huggingface.co/Xiaohud/SPECS"
            " and SPECS_CAT to images/cat.png of github.com/mbzuai-nlp/SPECS"
        )
    cfg, state = read_released(Path(weights))
    model = construct(cfg)
    model.load_state_dict(state)
    preprocess = Preprocess(PREPROCESS | {"size": cfg["vision_cfg"]["image_size"]}, None)
    judge = Judge(model, get_tokenizer(cfg, None), preprocess, torch.device("cpu"), 1)
    image, texts = (
        judge.encode_images([(Path(cat), None)], 1),
        judge.encode_texts(list(CAPTIONS), 3),
    )
    scores = specs_score(torch.from_numpy(image).expand(3, -1), torch.from_numpy(texts)).tolist()
    assert scores == sorted(scores)
    # The README's may be of half precision, on a GPU.
    assert scores == pytest.approx(list(CAPTIONS.values()), abs=2e-3)
