"""Which images are judged, and which the judge is trained on."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.split.judged import judge_images, judged_images
from tests.split.split_worlds import images_table


def splits_of(sizes: tuple[int, int, int]) -> pd.DataFrame:
    split = [name for name, n in zip(("train", "test_seen", "test_unseen"), sizes, strict=True) for _ in range(n)]
    return pd.DataFrame({"image_id": [f"i{i:03d}" for i in range(len(split))], "split": split})


SIZES = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))


@given(SIZES, st.integers(0, 10**6), st.booleans())
def test_half_judges_nothing_that_the_judge_learns_from(sizes: tuple[int, int, int], seed: int, files: bool) -> None:
    splits = splits_of(sizes)
    images = images_table(splits["image_id"].tolist(), ["x"] * len(splits) if files else None)
    judged, learns = judged_images(splits, images, "half", seed), judge_images(splits, images, "half", seed)
    assert not set(judged["image_id"]) & set(learns)
    assert set(judged["image_id"]) | set(learns) == set(splits["image_id"])
    assert set(splits.loc[splits["split"] == "train", "image_id"]) <= set(learns)
    for split, size in zip(("test_seen", "test_unseen"), sizes[1:], strict=True):
        assert (judged["split"] == split).sum() == size - size // 2
    shuffled = judged_images(splits.sample(frac=1, random_state=1), images.sample(frac=1, random_state=2), "half", seed)
    pd.testing.assert_frame_equal(judged, shuffled)


@pytest.mark.parametrize(("train_on", "judged", "learns"), [("train", 20, 10), ("half", 10, 20), ("all", 20, 30)])
def test_images_without_a_file_are_left_out_where_others_have_one(train_on: str, judged: int, learns: int) -> None:
    splits = splits_of((10, 10, 10))
    images = images_table(splits["image_id"].tolist())
    assert len(judged_images(splits, images, train_on, 0)) == judged
    assert len(judge_images(splits, images, train_on, 0)) == learns
    images["path"] = ["x" if i % 2 else None for i in range(30)]
    there = set(images.loc[images["path"].notna(), "image_id"])
    shown = judged_images(splits, images, train_on, 0)
    assert set(shown["image_id"]) | set(judge_images(splits, images, train_on, 0)) == there
    assert set(shown["split"]) == {"test_seen", "test_unseen"}


def test_the_seed_decides() -> None:
    splits = splits_of((0, 20, 20))
    images = images_table(splits["image_id"].tolist())
    assert len({tuple(judged_images(splits, images, "half", seed)["image_id"]) for seed in range(5)}) == 5
