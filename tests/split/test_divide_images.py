"""The division of the images: sizes, what it reaches, the same bytes; and the splits that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.split.split_worlds import world
from tests.split.test_split_steps import digests, inputs, run
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import check_table, read_json, read_table
from workflow_scripts.core.tables import DIVISION, PAIRS, SPLIT
from workflow_scripts.divergence.measure import measure
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.split import (
    audit,
    divide_images,
    export,
    make_prompts,
    make_splits,
    sample_heldout,
    swap_adjectives,
)
from workflow_scripts.split.divide_images import side_sizes

PLACE = "--dataset=d", "--composition=color"


@pytest.fixture(autouse=True, scope="module")
def few_exchanges() -> Iterator[None]:
    """Less of a search than a user gets: what is promised does not hang on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide_images, "divide", partial(divide_images.divide, moves=20_000))
        yield


def test_sizes_are_rounded_shares() -> None:
    assert side_sizes(100, 0.7, 0.3) == (70, 30)
    assert side_sizes(5, 0.5, 0.5) == (3, 2)  # half rounds up, and there are no more than all
    assert side_sizes(11788, 0.5, 0.2) == (5894, 2358)
    with pytest.raises(UserError, match="3 images are too few for shares of 0.7 and 0.1"):
        side_sizes(3, 0.7, 0.1)
    with pytest.raises(UserError, match="shares of train and test, 0.7 and 0.4, are more than all images"):
        side_sizes(100, 0.7, 0.4)


@given(st.integers(2, 3000), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_sides_fit_the_images(images: int, train: float, test: float) -> None:
    try:
        sizes = side_sizes(images, train, test)
    except UserError:
        return
    assert min(sizes) >= 1 and sum(sizes) <= images
    assert abs(sizes[0] - train * images) <= 0.5 and abs(sizes[1] - test * images) <= 1.5


def divided(seed: int, images: int, **changed):
    data = world(seed, images=images, captions=2)
    wanted = {"atom": 0.02, "compound": "max", "train": 0.5, "test": 0.3, "restarts": 2, "seed": 0} | changed
    ids = data.captions["image_id"]
    return data, *divide_images.divide_images(ids, data.pairs, data.ranking, **wanted, dataset="d", composition="color")


@settings(max_examples=15, deadline=None)
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


def all_steps(folder: Path, *division: str) -> None:
    """The steps of the stage, with a division by divergence."""
    seeded = *PLACE, "--seed=3"
    sizes = "--train=0.4", "--test=0.4", "--restarts=2", "--compound=0.1"
    out = {"output": folder / "division.parquet", "summary": folder / "division.json"}
    run(divide_images, folder, out, *seeded, *sizes, *division, names="captions pairs ranking")
    given = f"--division={folder / 'division.parquet'}"
    occurrences = f"--occurrences={folder / 'pairs.parquet'}"
    run(sample_heldout, folder, {"output": folder / "heldout.json"}, *seeded, given, occurrences, names="ranking")
    out = {"output": folder / "splits.parquet", "csv": folder / "splits.csv", "summary": folder / "splits.json"}
    run(make_splits, folder, out, *seeded, given, names="captions pairs ranking heldout")
    out = {"output": folder / "swapped.parquet", "summary": folder / "swapped.json"}
    run(swap_adjectives, folder, out, *seeded, names="captions pairs heldout splits adjectives nouns")
    out = {"output": folder / "prompts.parquet", "jsonl": folder / "prompts.jsonl", "summary": folder / "prompts.json"}
    run(make_prompts, folder, out, *seeded, names="captions images pairs ranking heldout splits swapped")
    unused = f"--unused={folder / 'splits.json'}"
    run(
        audit,
        folder,
        {"output": folder / "audit.json"},
        *PLACE,
        unused,
        names="captions heldout splits swapped adjectives nouns",
    )
    run(export, folder, {"output": folder / "export"}, names="captions images heldout splits swapped")


def test_the_stage_runs_and_repeats(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        all_steps(inputs(tmp_path / name))
    one = tmp_path / "one"
    assert digests(one) == digests(tmp_path / "two")
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
    all_steps(inputs(tmp_path))
    division = read_table(tmp_path / "division.parquet", DIVISION)
    division.iloc[1:].to_parquet(tmp_path / "division.parquet", index=False)
    out = {"output": tmp_path / "splits.parquet", "csv": tmp_path / "splits.csv", "summary": tmp_path / "splits.json"}
    with pytest.raises(UserError, match="division.parquet: not of the images of .*captions.parquet: make it again"):
        given = f"--division={tmp_path / 'division.parquet'}"
        run(make_splits, tmp_path, out, *PLACE, given, names="captions pairs ranking heldout")
