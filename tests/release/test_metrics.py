"""Metrics for training loops give the table's scores, in any batches and merged."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from compclip.core.errors import UserError
from compclip.metrics import AdjectiveAccuracy, ReleaseMetric, RPrecision
from compclip.release.open_release import Release
from compclip.stats.estimates import INTERVAL_COLUMNS
from tests.project import COMPOSITION


def make(kind: type[ReleaseMetric], release: Release, split: str) -> ReleaseMetric:
    return kind(release.folder, COMPOSITION, split, cache=release.folder.parent / "cache")


@pytest.mark.parametrize("split", ["test_seen", "test_unseen", "test_swapped"])
@pytest.mark.parametrize(
    "kind, measure", [(RPrecision, "r_precision"), (AdjectiveAccuracy, "adjective_accuracy")]
)
def test_all_images_give_the_value_of_the_table(
    kind: type[ReleaseMetric],
    measure: str,
    split: str,
    release: Release,
    images: Path,
    table: pd.DataFrame,
) -> None:
    metric, other = make(kind, release, split), make(kind, release, split)
    ids = metric.prompts["file_name"].tolist()
    pixels = [
        torch.from_numpy(np.array(Image.open(images / name).convert("RGB"))).permute(2, 0, 1)
        for name in ids
    ]
    half = len(ids) // 2
    metric.update(torch.stack(pixels[:half]), ids[:half])
    other.update([images / name for name in ids[half:]], ids[half:])
    metric.merge_state(other)
    rows = table[
        (table["split"] == split)
        & (table["measure"] == measure)
        & (table["distractors"] == "original")
    ]
    prompts = "swapped" if split == "test_swapped" else "pairs"
    expected = rows[rows["prompts"] == prompts].iloc[0]
    assert float(metric.compute()) == pytest.approx(expected["value"], abs=1e-5)
    estimate = metric.estimate()
    for end in INTERVAL_COLUMNS:
        assert getattr(estimate, end) == pytest.approx(expected[end], abs=1e-5, nan_ok=True)


def test_some_images_are_scored_alone(release: Release, images: Path) -> None:
    metric = make(RPrecision, release, "test_unseen")
    with pytest.raises(
        UserError, match="RPrecision: compute before update; update with images first"
    ):
        metric.compute()
    ids = metric.prompts["file_name"].tolist()[:6]
    parts = [metric([images / name for name in part], part) for part in (ids[:3], ids[3:])]
    assert float(metric.compute()) == pytest.approx(float(torch.stack(parts).mean()), abs=2e-6)
    metric.reset()
    assert not metric.state


def test_mistakes_are_named(release: Release, images: Path) -> None:
    metric = make(RPrecision, release, "test_unseen")
    name = metric.prompts["file_name"].iloc[0]
    for pictures, ids, message in (
        ([images / name], [], "1 images with 0 ids"),
        ([images / name], ["a.png"], r"\['a.png'\] is not a file_name of color, test_unseen"),
        ([torch.zeros(3, 8, 8)], [name], r"expected bytes \(3, height, width\), got float32"),
    ):
        with pytest.raises(UserError, match=message):
            metric.update(pictures, ids)
    with pytest.raises(UserError, match="no composition 'size'; choose one of color"):
        RPrecision(release.folder, "size", "test_unseen")


def test_a_module_with_a_metric_neither_saves_nor_changes_its_judges(release: Release) -> None:
    model = torch.nn.ModuleDict({"score": make(RPrecision, release, "test_unseen")})
    model.train().half()
    assert not model.state_dict()
    for judge in model["score"].judges.values():
        assert not judge.model.training
        assert {weight.dtype for weight in judge.model.parameters()} == {torch.float32}


def test_judges_move_with_their_metric(release: Release) -> None:
    metric = make(RPrecision, release, "test_unseen").to("meta")
    for judge in metric.judges.values():
        assert judge.device.type == "meta"
        assert {weight.device.type for weight in judge.model.parameters()} == {"meta"}
