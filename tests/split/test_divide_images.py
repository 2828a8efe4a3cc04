"""The division of the images: sizes, what it reaches, the same bytes; and the splits that follow from it."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.errors import UserError
from compclip.core.tables import DIVISION
from compclip.divergence.measure import measure
from compclip.divergence.pair_samples import pair_samples
from compclip.io import check_table
from compclip.split import divide_images
from compclip.split.config import Divergence
from compclip.split.divide_images import side_sizes
from tests.split.split_worlds import world


@pytest.fixture(autouse=True, scope="module")
def few_exchanges() -> Iterator[None]:
    """Search less than a run does: the promises do not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divide_images, "divide_samples", partial(divide_images.divide_samples, moves=20_000))
        yield


def test_sizes_are_rounded_fractions() -> None:
    assert side_sizes(11788, 0.5, 0.2) == (5894, 2358)
    assert side_sizes(5, 0.5, 0.5) == (3, 2)  # half rounds up, and there are no more than all
    with pytest.raises(UserError, match="3 images are too few for the fractions 0.7 and 0.1"):
        side_sizes(3, 0.7, 0.1)


def divided(seed: int, images: int, **changed):
    data = world(seed, images=images, captions=2)
    target = Divergence(**{"train": 0.5, "test": 0.3} | changed)
    ids = data.captions["image_id"]
    return data, *divide_images.divide_images(ids, data.pairs, data.ranking, target, dataset="d", composition="color")


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
    _, _, few = divided(7, 10, atom=0.0)
    assert few["atom_divergence"] > 0 and "over the wanted 0: ask for smaller sides" in few["warnings"][0]
