"""The Fréchet distance against the textbook's formula, with a small network in Inception's
place.
"""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy import linalg

from compclip.core.errors import UserError
from compclip.score import score_fid as library
from compclip.score.score_fid import FidSettings, load_inception, score_fid
from compclip.stats import balance
from tests.project import Project


class Means(torch.nn.Module):
    """The mean of each color, and that of each in the left half: six features."""

    num_features = 6

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        assert pixels.shape[1:] == (3, 256, 256) and pixels.dtype == torch.uint8
        values = pixels.double() / 255
        return torch.cat([values[..., :128].mean((2, 3)), values.mean((2, 3))], dim=1)


def textbook(results: Path, real: pd.Series, made: pd.Series) -> float:
    """Means, covariances and a matrix root as in Heusel et al. 2017, equation 6."""

    def features(paths: pd.Series) -> np.ndarray:
        pixels = [
            np.asarray(Image.open(results / path).convert("RGB").resize((256, 256), 2))
            for path in paths
        ]
        return Means()(torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2)).numpy()

    a, b = features(real), features(made)
    sigma, psi = (np.cov(x, rowvar=False) for x in (a, b))
    root = linalg.sqrtm(sigma @ psi)
    return float(((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(sigma + psi - 2 * root.real))


def test_distances_are_the_textbooks(first_run: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FEATURES", Means.num_features)
    data = first_run.root / "results" / "sketch"
    files = {name: f"color/{name}" for name in ("splits", "prompts")}
    files |= {"images": "images", "manifest": "color/generated/memorizer/manifest"}
    tables: dict[str, Any] = {
        name: pd.read_parquet(data / f"{file}.parquet") for name, file in files.items()
    }
    results = data.parent
    settings = FidSettings(results, serves=["test_seen", "test_swapped"])
    tables |= {"network": Means(), "settings": settings}
    found = score_fid(**tables)
    images, splits, prompts, manifest = (
        tables[name] for name in ("images", "splits", "prompts", "manifest")
    )
    real = images.merge(splits[splits["split"] == "test_seen"], on="image_id")["path"]
    keys = ["split", "image_id", "caption_id", "draw"]
    made = manifest.merge(prompts[[*keys, "pair"]], on=keys).sort_values(keys)
    for split in settings.serves:
        of_split = made[(made["split"] == split) & (made["draw"] == 0)]
        assert found[split]["fid"] == pytest.approx(
            textbook(results, real, of_split["path"]), abs=2e-6
        )
        assert (found[split]["generated"], found[split]["real"]) == (len(of_split), len(real))
    kept = balance.subsample(of_split["pair"], balance.cap_dominant(of_split["pair"].tolist()), 0)
    assert found["test_swapped"]["balanced"] == pytest.approx(
        textbook(results, real, of_split["path"][kept]), abs=2e-6
    )
    monkeypatch.setattr(library, "MOST", 5)
    first = score_fid(**tables)["test_seen"]
    again = score_fid(**tables)["test_seen"]
    other = score_fid(**tables | {"settings": replace(settings, seed=1)})["test_seen"]
    assert (
        first == again != other
        and first["about"].startswith("5 generated")
        and "too few for 6" in first["about"]
    )
    # The distance of features that are not numbers would be 0, the best.
    monkeypatch.setattr(
        Means, "forward", lambda self, pixels: torch.full((len(pixels), 6), torch.nan)
    )
    with pytest.raises(
        UserError, match="features of an image are NaN or infinite; check the weights"
    ):
        score_fid(**tables)


def test_bad_weights(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    (tmp_path / "trap.pth").write_bytes(pickle.dumps(print, protocol=2))
    (tmp_path / "cut.pth").write_bytes(b"half")
    messages = dict.fromkeys(("other", "trap", "cut"), "not the Inception network's weights") | {
        "none": "no such file"
    }
    for name, message in messages.items():
        with pytest.raises(UserError, match=rf"{name}\.pth: .*{message}"):
            load_inception(str(tmp_path / f"{name}.pth"), tmp_path)
