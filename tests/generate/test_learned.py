"""The example of a learned model: a resumed training ends as one that was not killed, and its
pipeline draws.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.generate.conftest import Place

pytest.importorskip("diffusers")
pytest.importorskip("transformers")
from examples.diffusion import train  # noqa: E402


def run(monkeypatch: pytest.MonkeyPatch, root: Path, output: Path, text: str) -> bytes:
    """Train four steps; return the weights of the network."""
    arguments = [
        "--captions",
        root / "train.jsonl",
        "--images",
        root,
        "--output",
        output,
        "--text",
        text,
    ]
    sizes = ["--steps", 4, "--every", 2, "--batch", 4, "--size", 16, "--channels", 32, 32]
    monkeypatch.setattr("sys.argv", ["train", *map(str, [*arguments, *sizes])])
    train.main()
    return (output / "unet" / "diffusion_pytorch_model.safetensors").read_bytes()


@pytest.mark.parametrize("text", ["words", "pooled"])
def test_a_resumed_training_ends_equal_and_its_pipeline_draws(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    colors = {"red": (255, 0, 0), "blue": (0, 0, 255)}
    rows = []
    for name, color in colors.items():
        Image.new("RGB", (24, 20), color).save(tmp_path / f"{name}.png")
        rows += [
            {"file_name": f"{name}.png", "text": f"a {name} {noun}"} for noun in ("bird", "tail")
        ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = run(monkeypatch, tmp_path, tmp_path / "whole", text)

    steps = []
    loss_of = train.loss_of
    with monkeypatch.context() as patch:

        def dies_at_the_fourth(*arguments):
            steps.append(1)
            if len(steps) == 4:
                raise KeyboardInterrupt
            return loss_of(*arguments)

        patch.setattr(train, "loss_of", dies_at_the_fourth)
        with pytest.raises(KeyboardInterrupt):
            run(monkeypatch, tmp_path, tmp_path / "resumed", text)
    assert run(monkeypatch, tmp_path, tmp_path / "resumed", text) == whole
    samples = np.asarray(Image.open(tmp_path / "resumed" / "000004.png"))
    assert samples.shape == (64, 128, 3) and samples.std() > 0  # two images, four times as large

    settings = {
        "model": str(tmp_path / "whole"),
        "steps": 2,
        "guidance": 3,
        "batch": 4,
        "device": "cpu",
    }
    manifest, summary = place.generate("diffusers", None, **settings)
    assert summary["pipeline"] == "IFPipeline"
    drawn = [Image.open(path) for path in sorted((place.target / "images").rglob("*.png"))]
    assert len(drawn) == len(manifest) and {image.size for image in drawn} == {(16, 16)}
