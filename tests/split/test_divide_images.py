"""The division of the images: sizes, what it reaches, the same bytes; and the splits that follow from it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.digests import digests
from tests.split.split_worlds import world
from tests.split.stage import inputs, run, run_all
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import check_table, read_json, read_table
from workflow_scripts.core.tables import DIVISION, PAIRS, SPLIT
from workflow_scripts.divergence.measure import measure
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.split import divide_images
from workflow_scripts.split.config import Divergence
from workflow_scripts.split.divide_images import side_sizes


@pytest.fixture(autouse=True, scope="module")
def few_exchanges() -> Iterator[None]:
    """Search less than a run does: the promises do not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide_images, "divide", partial(divide_images.divide, moves=20_000))
        yield


def test_sizes_are_rounded_fractions() -> None:
    assert side_sizes(100, 0.7, 0.3) == (70, 30)
    assert side_sizes(5, 0.5, 0.5) == (3, 2)  # half rounds up, and there are no more than all
    assert side_sizes(11788, 0.5, 0.2) == (5894, 2358)
    with pytest.raises(UserError, match="3 images are too few for the fractions 0.7 and 0.1"):
        side_sizes(3, 0.7, 0.1)


@given(st.integers(2, 3000), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_sides_fit_the_images(images: int, train: float, test: float) -> None:
    assume(train + test <= 1)
    try:
        sizes = side_sizes(images, train, test)
    except UserError:
        return
    assert min(sizes) >= 1 and sum(sizes) <= images
    assert abs(sizes[0] - train * images) <= 0.5 and abs(sizes[1] - test * images) <= 1.5


def divided(seed: int, images: int, **changed):
    data = world(seed, images=images, captions=2)
    target = Divergence(**{"train": 0.5, "test": 0.3} | changed)
    ids = data.captions["image_id"]
    return data, *divide_images.divide_images(ids, data.pairs, data.ranking, target, 0, "d", "color")


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.integers(10, 40))
def test_every_image_has_one_side_and_the_summary_is_true(seed: int, images: int) -> None:
    data, division, summary = divided(seed, images)
    check_table(division, DIVISION, "division")
    assert division["image_id"].tolist() == sorted(data.captions["image_id"].unique())
    sizes = division["side"].value_counts()
    expected = side_sizes(images, 0.5, 0.3)
    assert (sizes["train"], sizes["test"]) == expected
    assert summary["sizes"] == {name: int(sizes.get(name, 0)) for name in ("train", "test", "unused")}
    samples = pair_samples(data.pairs, data.ranking, division["image_id"].tolist())
    rows = [np.flatnonzero(division["side"] == name) for name in ("train", "test")]
    assert (summary["atom_divergence"], summary["compound_divergence"]) == tuple(
        round(d, 6) for d in measure(samples, *rows)
    )
    path = summary["path"]
    assert path["images"] == sorted(path["images"]) and path["images"][-1] == sum(expected)
    assert len(path["atom"]) == len(path["compound"]) == len(path["images"])


def test_more_divergence_is_reached_than_by_chance_and_less_where_less_is_wanted() -> None:
    data, division, most = divided(7, 80)
    assert most["atom_divergence"] <= 0.02
    rng = np.random.default_rng(0)
    samples = pair_samples(data.pairs, data.ranking, division["image_id"].tolist())
    orders = [rng.permutation(80) for _ in range(20)]
    assert most["compound_divergence"] > max(measure(samples, o[:40], o[40:64])[1] for o in orders)
    wanted = most["compound_divergence"] / 2
    _, _, some = divided(7, 80, compound=wanted)
    assert some["compound_divergence"] == pytest.approx(wanted, abs=0.01) and not some["warnings"]


def test_an_atom_divergence_that_cannot_be_reached_is_said() -> None:
    _, _, summary = divided(7, 10, atom=0.0)
    assert summary["atom_divergence"] > 0 and "over the wanted 0: ask for smaller sides" in summary["warnings"][0]


def divided_stage(folder: Path) -> Path:
    return run_all(inputs(folder), train=0.4, test=0.4, compound=0.1)


def test_the_stage_runs_and_repeats(tmp_path: Path) -> None:
    one, two = (divided_stage(tmp_path / name) for name in ("one", "two"))
    assert dict(digests(one)) == dict(digests(two))
    heldout, splits = read_json(one / "heldout.json"), read_table(one / "splits.parquet", SPLIT)
    assert heldout["source"] == "divergence" and heldout["pairs"]
    counts = read_json(one / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0
    assert counts["images_unused"] == 80 - len(splits) > 0
    # By the tables alone: what is held out is in test_unseen, and nowhere else.
    pairs = read_table(one / "pairs.parquet", PAIRS)
    where = pairs["image_id"].map(splits.set_index("image_id")["split"])[pair_names(pairs).isin(heldout["pairs"])]
    assert set(where.dropna()) == {"test_unseen"}
    assert read_json(one / "splits.json")["captions"]["train"] == 3 * 32


def test_a_division_of_other_images(tmp_path: Path) -> None:
    division = divided_stage(tmp_path) / "division.parquet"
    read_table(division, DIVISION).iloc[1:].to_parquet(division, index=False)
    with pytest.raises(UserError, match=r"division.parquet: has other images than .*captions.parquet; rerun"):
        run("make_splits", tmp_path, division=division)
