"""The Fréchet distance against the textbook's formula, with a small network in Inception's place."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy import linalg

from compclip.core.errors import UserError
from compclip.io import read_json
from compclip.score import score_fid
from compclip.score.score_fid import load_inception, main
from compclip.score.steps import ScoreFid
from compclip.stats import balance
from tests.project import Project


class Means(torch.nn.Module):
    """The mean of each color, and that of each in the left half: six features."""

    num_features = 6

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        assert pixels.shape[1:] == (3, 256, 256) and pixels.dtype == torch.uint8
        values = pixels.double() / 255
        return torch.cat([values[..., :128].mean((2, 3)), values.mean((2, 3))], dim=1)


@pytest.fixture
def step(first_run: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScoreFid:
    monkeypatch.setattr(score_fid, "FEATURES", Means.num_features)
    data = first_run.root / "results" / "sketch"
    return ScoreFid(
        images=data / "images.parquet", splits=data / "color/splits.parquet", prompts=data / "color/prompts.parquet",
        manifest=data / "color/generated/memorizer/manifest.parquet", results=data.parent, composition="color",
        generator="memorizer", serves=["test_seen", "test_swapped"], settings={"weights": "none"}, threads=1,
        device="cpu", cache=tmp_path / "cache", fid=tmp_path / "fid.json",
    )  # fmt: skip


def textbook(step: ScoreFid, real: pd.Series, made: pd.Series) -> float:
    """Means, covariances and a matrix root as in Heusel et al. 2017, equation 6."""

    def features(paths: pd.Series) -> np.ndarray:
        pixels = [np.asarray(Image.open(step.results / path).convert("RGB").resize((256, 256), 2)) for path in paths]
        return Means()(torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2)).numpy()

    a, b = features(real), features(made)
    sigma, psi = (np.cov(x, rowvar=False) for x in (a, b))
    root = linalg.sqrtm(sigma @ psi)
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(sigma + psi - 2 * root.real))


def test_distances_are_the_textbooks(step: ScoreFid, monkeypatch: pytest.MonkeyPatch) -> None:
    main(step, Means())
    found = read_json(step.fid)["splits"]
    images, splits, prompts, manifest = map(pd.read_parquet, (step.images, step.splits, step.prompts, step.manifest))
    real = images.merge(splits[splits["split"] == "test_seen"], on="image_id")["path"]
    keys = ["split", "image_id", "caption_id", "draw"]
    made = manifest.merge(prompts[[*keys, "pair"]], on=keys).sort_values(keys)
    for split in step.serves:
        of_split = made[made["split"] == split]
        assert found[split]["fid"] == pytest.approx(textbook(step, real, of_split["path"]), abs=2e-6)
        assert (found[split]["generated"], found[split]["real"]) == (len(of_split), len(real))
    kept = balance.subsample(of_split["pair"], balance.cut_dominant(of_split["pair"].tolist()), 0)
    assert found["test_swapped"]["balanced"] == pytest.approx(textbook(step, real, of_split["path"][kept]), abs=2e-6)
    monkeypatch.setattr(score_fid, "MOST", 5)
    draws = [step, step, step.model_copy(update={"seed": 1})]
    first, again, other = (main(each, Means()) or read_json(step.fid)["splits"]["test_seen"] for each in draws)
    assert first == again != other and first["about"].startswith("5 generated") and "too few for 6" in first["about"]


def test_features_that_are_no_numbers(step: ScoreFid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their distance would be 0, the best."""
    monkeypatch.setattr(Means, "forward", lambda self, pixels: torch.full((len(pixels), 6), torch.nan))
    with pytest.raises(UserError, match="features of an image are NaN or infinite; check the weights"):
        main(step, Means())


def test_bad_weights(step: ScoreFid, tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    (tmp_path / "trap.pth").write_bytes(pickle.dumps(print, protocol=2))
    (tmp_path / "cut-6726825d.pth").write_bytes(b"half")
    for name, message in (
        ("other.pth", "not the Inception network's weights"), ("trap.pth", "not the Inception network's weights"),
        ("cut-6726825d.pth", "sha256 does not start with 6726825d; delete the file"), ("none.pth", "no such file"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=rf"{name}: .*{message}"):
            load_inception(str(tmp_path / name), tmp_path)
