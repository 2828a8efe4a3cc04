"""The Fréchet distance against the textbook's formula, and the step with a small network in Inception's place."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import linalg

from tests.accelerator import accelerator
from workflow_scripts.core import tables
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, read_table, write_table
from workflow_scripts.score import score_fid
from workflow_scripts.score.config import Fid
from workflow_scripts.score.score_fid import Extractor, drawn_rows, frechet_distance, load_inception, main, read_pixels
from workflow_scripts.score.steps import ScoreFid
from workflow_scripts.stats import balance
from workflow_scripts.workflow.config import load_config


def textbook(real: np.ndarray, generated: np.ndarray) -> float:
    """Means, covariances and a matrix root as in Heusel et al. 2017, equation 6."""
    apart = real.mean(0) - generated.mean(0)
    sigma, psi = (np.atleast_2d(np.cov(x.astype(float), rowvar=False)) for x in (real, generated))
    root = linalg.sqrtm(sigma @ psi)
    return float(apart @ apart + np.trace(sigma + psi - 2 * root.real))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(20, 60), st.integers(20, 60))
def test_the_distance_is_the_textbooks(seed: int, features: int, real: int, generated: int) -> None:
    random = np.random.default_rng(seed)
    a = random.normal(size=(real, features)).astype(np.float32)
    b = (random.normal(size=(generated, features)) * 2 + random.normal(size=features)).astype(np.float32)
    assert frechet_distance(a, b) == pytest.approx(textbook(a, b), rel=1e-5, abs=1e-5)
    assert frechet_distance(b, a) == pytest.approx(frechet_distance(a, b), abs=2e-6)


def test_distances_by_hand() -> None:
    # One feature: (μ - ν)² + (σ - τ)²; here means 1 and 5, deviations 1 and 3.
    assert frechet_distance(np.array([[0.0], [1], [2]]), np.array([[2.0], [5], [8]])) == 20
    same = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    assert frechet_distance(same, same[::-1].copy()) == pytest.approx(0, abs=1e-5)
    # Fewer images than features: singular, but a number.
    assert frechet_distance(same[:5], same[5:12] + 1) > 0
    assert frechet_distance(same[:1], same) is None and frechet_distance(same, same[:0]) is None


def test_drawn_rows() -> None:
    assert drawn_rows(5, 10, 0, "test_seen").tolist() == [0, 1, 2, 3, 4]
    some = drawn_rows(1000, 10, 0, "test_seen")
    assert len(set(some)) == 10 and (np.diff(some) > 0).all()
    others = [drawn_rows(1000, 10, 0, "test_unseen"), drawn_rows(1000, 10, 1, "test_seen")]
    assert all(some.tolist() != other.tolist() for other in others)


class Means(torch.nn.Module):
    """The mean of each color, and of each half of the image: six features of bytes."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        assert pixels.shape == (score_fid.BATCH, 3, 256, 256) and pixels.dtype == torch.uint8
        values = pixels.float() / 255
        return torch.cat([values[..., :128].mean((2, 3)), values.mean((2, 3))], dim=1)


def extractor() -> Extractor:
    return Extractor(Means(), "means", "0123456789abcdef", torch.device("cpu"))


PAIRS = ["red_wing"] * 14 + ["tan_bill"] * 4 + ["blue_tail"] * 2


@pytest.fixture
def world(tmp_path: Path) -> ScoreFid:
    """20 images of each test split (one of test_seen without a file), and what a generator made of them."""
    place = tmp_path / "results" / "d"
    ids = {split: [f"{split}/{n:02d}" for n in range(20)] for split in ("test_seen", "test_unseen")}
    random = np.random.default_rng(0)

    def paint(path: Path, size: tuple[int, int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (*size, 3), dtype="uint8")).resize((40, 30)).save(path)

    every = [i for part in ids.values() for i in part]
    images = pd.DataFrame({"image_id": every, "path": [f"d/images/{i}.png" for i in every]})
    images.loc[3, "path"] = None
    for path in images["path"].dropna():
        paint(tmp_path / "results" / path, (3, 2))
    images["width"], images["height"] = (pd.array([n] * 40, dtype="Int64") for n in (40, 30))
    for column in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"):
        images[column] = 1.0
    write_table(images, place / "images.parquet", tables.IMAGES)
    splits = pd.DataFrame([(i, split) for split, part in ids.items() for i in part], columns=["image_id", "split"])
    write_table(splits, place / "splits.parquet", tables.SPLIT)
    rows = [
        (i, 0, d, split, "a bird", PAIRS[n] if split == "test_swapped" else None, f"{split}/{i}/0_{d}.png")
        for split in tables.TESTS
        for n, i in enumerate(ids["test_unseen" if split == "test_unseen" else "test_seen"])
        for d in (0, 1)
    ]
    prompts = pd.DataFrame(rows, columns=list(tables.PROMPTS.columns)).astype({"pair": "str"})
    write_table(prompts, place / "prompts.parquet", tables.PROMPTS)
    manifest = prompts[["image_id", "caption_id", "split", "draw"]].assign(
        path=[f"d/made/{name}" for name in prompts["file_name"]], status="ok"
    )
    for path in manifest["path"]:
        paint(tmp_path / "results" / path, (2, 2))
    manifest.loc[5, ["path", "status"]] = [None, "missing"]
    write_table(manifest, place / "manifest.parquet", tables.MANIFEST)
    files = {name: place / f"{name}.parquet" for name in ("images", "splits", "prompts", "manifest")}
    return ScoreFid(
        **files, results=tmp_path / "results", composition="color", generator="it", serves=list(tables.TESTS),
        settings={"weights": "none"}, threads=1, device="cpu", cache=tmp_path / "cache", fid=place / "fid" / "it.json",
    )  # fmt: skip


def score(world: ScoreFid, **other: Any) -> dict[str, Any]:
    main(world.model_copy(update=other), extractor())
    return read_json(world.fid)


def features(world: ScoreFid, paths: list[str]) -> np.ndarray:
    return extractor().encode_images([(world.results / path, None) for path in paths], score_fid.BATCH)


def test_features_that_are_no_numbers(world: ScoreFid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their distance would be 0, the best."""
    monkeypatch.setattr(Means, "forward", lambda self, pixels: torch.full((len(pixels), 6), torch.nan))
    with pytest.raises(
        UserError, match=r"test_seen/00\.png: its embedding by judge means .* is NaN or infinite \(18 more"
    ):
        main(world, extractor())


def test_the_step(world: ScoreFid, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "compclip"):
        result = score(world)
    images = read_table(world.images, tables.IMAGES).set_index("image_id")["path"]
    manifest = read_table(world.manifest, tables.MANIFEST)
    for split, found in result["splits"].items():
        origin = "test_unseen" if split == "test_unseen" else "test_seen"
        real = features(world, images[images.index.str.startswith(origin)].dropna().tolist())
        made = features(world, manifest[manifest["split"] == split]["path"].dropna().tolist())
        assert found["fid"] == pytest.approx(textbook(real, made), abs=1e-5)
        assert (found["real"], found["generated"]) == (len(real), len(made)) and found["features"] == 6
        assert not found["singular"]
    seen, swapped = result["splits"]["test_seen"], result["splits"]["test_swapped"]
    assert (seen["real"], seen["real_without_file"], seen["generated_without_image"]) == (19, 1, 1)
    assert seen["generated"] == 39 and "balanced" not in seen
    # 28, 8 and 4 entries of the three pairs: of the first int(1.25 * 8) stay.
    pairs = [pair for pair in PAIRS for _ in (0, 1)]
    kept = balance.subsample(pairs, balance.cut_dominant(pairs), 0)
    rows = manifest[manifest["split"] == "test_swapped"].sort_values(["image_id", "draw"])["path"][kept].tolist()
    assert swapped["balanced"]["generated"] == len(rows) == 22
    real = features(world, images[images.index.str.startswith("test_seen")].dropna().tolist())
    assert swapped["balanced"]["fid"] == pytest.approx(textbook(real, features(world, rows)), abs=1e-5)
    assert not caplog.records and str(world.results) not in world.fid.read_text()


def test_equal_bytes_with_a_warm_cache_and_a_cold_one(world: ScoreFid) -> None:
    score(world)
    cold = world.fid.read_bytes()
    score(world)
    assert world.fid.read_bytes() == cold
    some = score(world, settings=Fid(images=12))["splits"]
    assert all(found["generated"] == 12 and found["generated_available"] in (39, 40) for found in some.values())
    assert some["test_swapped"]["balanced"]["generated"] == 12
    assert some["test_seen"]["fid"] != score(world, settings=Fid(images=12), seed=1)["splits"]["test_seen"]["fid"]


def test_a_gpu_gives_the_same(world: ScoreFid, monkeypatch: pytest.MonkeyPatch) -> None:
    here = score(world)["splits"]
    with accelerator() as device:
        monkeypatch.setitem(globals(), "extractor", lambda: Extractor(Means(), "means", "of a GPU", device))
        there = score(world)["splits"]
    for split, found in here.items():
        assert there[split]["fid"] == pytest.approx(found["fid"], abs=1e-5)


def test_few_images_are_said_to_be_few(world: ScoreFid, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "compclip"):
        result = score(world, settings=Fid(images=6), serves=["test_seen"])
    assert result["splits"]["test_seen"]["singular"] and list(result["splits"]) == ["test_seen"]
    assert "19 real and 6 generated images, with 6 features: singular" in caplog.text
    manifest = read_table(world.manifest, tables.MANIFEST)
    ok = manifest.index == 0
    alone = manifest.assign(path=manifest["path"].where(ok), status=np.where(ok, "ok", "missing"))
    write_table(alone, world.manifest, tables.MANIFEST)
    result = score(world)["splits"]
    assert [found["fid"] for found in result.values()] == [None, None, None]
    assert [found["generated"] for found in result.values()] == [1, 0, 0]


def test_images_of_any_size_and_mode(tmp_path: Path) -> None:
    Image.new("L", (10, 300), 7).save(tmp_path / "gray.png")
    Image.new("RGB", (256, 256), (1, 2, 3)).save(tmp_path / "color.png")
    assert read_pixels(tmp_path / "gray.png").shape == (3, 256, 256) and (read_pixels(tmp_path / "gray.png") == 7).all()
    assert read_pixels(tmp_path / "color.png")[:, 5, 9].tolist() == [1, 2, 3]


def test_bad_input(world: ScoreFid, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none: no such file"):
        main(world)
    images = read_table(world.images, tables.IMAGES)
    (world.results / images["path"][0]).write_bytes(b"no image")
    with pytest.raises(UserError, match="00.png: not a readable image"):
        score(world)
    write_table(images.assign(path=None).astype({"path": "str"}), world.images, tables.IMAGES)
    with pytest.raises(UserError, match="no image of test_seen has a file"):
        score(world)
    with pytest.raises(UserError, match="score.fid.images"):
        load_config({"score": {"fid": {"images": 1}}})
    assert load_config({}).score.fid is None and load_config({"score": {"fid": {}}}).score.fid.images == 10_000
    assert not world.fid.exists()


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("sprung"),))


def test_bad_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    (tmp_path / "trap.pth").write_bytes(pickle.dumps(Trap(), protocol=2))
    (tmp_path / "cut-6726825d.pth").write_bytes(b"half")
    for name in ("other.pth", "trap.pth"):
        with pytest.raises(UserError, match=f"{name}: not the Inception network's weights") as error:
            load_inception(str(tmp_path / name), tmp_path, 1, "cpu")
        assert "\n" not in str(error.value)
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(UserError, match="expected a sha256 that starts with 6726825d, got .*; delete the file"):
        load_inception(str(tmp_path / "cut-6726825d.pth"), tmp_path, 1, "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="judge.device: cuda, but torch sees no GPU"):
            load_inception("none", tmp_path, 1, "cuda")
