"""What generators are asked to draw, which images are judged, and which images train the judge."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compclip.core.artifacts.files import json_lines, read_json
from compclip.core.artifacts.heldout import matched_pairs, pair_names
from compclip.core.artifacts.parquet import check_table, read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import CAPTION_KEY, IMAGES, PROMPTS, TESTS, is_further
from compclip.split.composition import Seeding
from compclip.split.evaluation import evaluation_images, judge_training_images
from compclip.split.make_prompts import MATCHED_DRAWS, count_prompts, make_prompts
from compclip.split.make_splits import drawn_splits, pairs_of_images
from compclip.split.swap_adjectives import swap_adjectives
from tests.split import stage
from tests.split.worlds import LEXICONS, World, images_table, world


def made(seed: int, /, **changes):
    """``(data, heldout, splits, swapped, judged, prompts)`` of a made-up data set."""
    data = world(seed, images=60, captions=3)
    heldout = pair_names(data.ranking).tolist()[6:8]
    of_images = pairs_of_images(data.pairs, data.ranking, heldout)
    splits, _ = drawn_splits(
        data.captions["image_id"], of_images, heldout, 12, Seeding(seed, "d", "c")
    )
    swapped, _ = swap_adjectives(data.captions, data.pairs, splits, heldout, *LEXICONS, seed=seed)
    judged = evaluation_images(splits, data.images, changes.pop("train_on", "train"), seed)
    arguments = (
        dict(every_caption=False, draws=1, per_image=None, seed=seed, dataset="d", composition="c")
        | changes
    )
    prompts = make_prompts(
        data.captions, data.pairs, data.ranking, heldout, judged, swapped, **arguments
    )
    return data, heldout, splits, swapped, judged, prompts


def holding(data: World, pairs: list[str]) -> set[tuple[str, int]]:
    sure = data.pairs[data.pairs["relation"] != "disputed"]
    sure = sure[pair_names(sure).isin(pairs)]
    return set(zip(sure["image_id"], sure["caption_id"], strict=True))


def keys(prompts: pd.DataFrame, split: str) -> set[tuple[str, int]]:
    part = prompts[prompts["split"] == split]
    return set(zip(part["image_id"], part["caption_id"], strict=True))


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from(["train", "half"]))
def test_what_the_prompts_promise(seed: int, draws: int, train_on: str) -> None:
    try:
        data, heldout, splits, swapped, judged, prompts = made(seed, draws=draws, train_on=train_on)
    except UserError:
        return
    check_table(prompts, PROMPTS, "prompts")
    may = set(judged["image_id"])
    assert set(prompts["image_id"]) <= may
    split = splits.set_index("image_id")["split"]
    expected = {k for k in holding(data, heldout) if k[0] in may}
    assert keys(prompts, "test_unseen") == expected
    ranked = pair_names(data.ranking).tolist()
    of_seen = may & set(split.index[split == "test_seen"])
    assert keys(prompts, "test_seen") == {key for key in holding(data, ranked) if key[0] in of_seen}
    entries = swapped[swapped["image_id"].isin(may)]
    assert keys(prompts, "test_swapped") == set(
        zip(entries["image_id"], entries["caption_id"], strict=True)
    )
    numbers = ("_" + prompts["draw"].astype(str)).where(prompts["draw"] > 0, "")
    names = prompts["caption_id"].astype(str) + numbers + ".png"
    assert (
        prompts["file_name"] == "d/c/" + prompts["split"] + "/" + prompts["image_id"] + "/" + names
    ).all()
    # Matched prompts have further draws, as many as make them as many as the held-out ones.
    matched = prompts["pair"].isin(matched_pairs(data.ranking, heldout)) & (
        prompts["split"] == "test_seen"
    )
    first = prompts["draw"] == 0
    times = math.ceil(
        (first & (prompts["split"] != "test_seen")).sum() / max(1, (first & matched).sum())
    )
    number = prompts.groupby(["split", *CAPTION_KEY])["draw"].transform("nunique")
    assert (number[~matched] == draws).all()
    assert (number[matched] == draws * min(MATCHED_DRAWS, max(1, times))).all()
    is_whole = first.sum() == (first & matched).sum()
    assert is_whole or (is_further(prompts) == (prompts["draw"] >= draws)).all()
    assert prompts.loc[prompts["split"] == "test_unseen", "pair"].isin(heldout).all()
    seen = prompts[prompts["split"] == "test_seen"]
    assert seen["pair"].isin(ranked).all()
    # Before and after the swap, the same noun is tested.
    changed = {(e.image_id, e.caption_id): e for e in entries.itertuples()}
    for row in (row for row in seen.itertuples() if (row.image_id, row.caption_id) in changed):
        entry = changed[row.image_id, row.caption_id]
        old = {
            f"{c['original_adj']}_{c['noun']}"
            for c in entry.changes
            if f"{c['new_adj']}_{c['noun']}" == entry.pair
        }
        assert row.pair in old or not old & set(ranked)
    texts = prompts[prompts["split"] == "test_swapped"].merge(entries, on=CAPTION_KEY)
    assert (texts["text_x"] == texts["swapped_text"]).all() and (
        texts["pair_x"] == texts["pair_y"]
    ).all()
    assert [json.loads(line) for line in json_lines(prompts)] == prompts.astype(object).to_dict(
        "records"
    )
    counts = count_prompts(prompts[~is_further(prompts)], judged, splits)
    assert list(counts) == list(TESTS)
    for name, count in counts.items():
        size = (split == name.replace("swapped", "seen")).sum()
        assert count["images"] + count["images_without_prompt"] + count["images_not_judged"] == size
        assert count["images_in_split"] == size


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.integers(1, 2))
def test_per_image_keeps_seen_and_swapped_paired(seed: int, most: int) -> None:
    try:
        data, heldout, *_, prompts = made(seed, per_image=most)
    except UserError:
        return
    assert keys(prompts, "test_swapped") <= keys(prompts, "test_seen")
    prompts = prompts[prompts["draw"] == 0]
    *_, complete = made(seed)
    # Beside those, as many of the other seen captions with a pair as frequent as a held-out one.
    paired = keys(prompts, "test_swapped")
    matched = matched_pairs(data.ranking, heldout)
    beside = (prompts["split"] == "test_seen") & prompts["pair"].isin(matched)
    beside &= ~pd.MultiIndex.from_frame(prompts[CAPTION_KEY]).isin(list(paired))
    assert (prompts[~beside].groupby(["split", "image_id"]).size() <= most).all()
    assert (prompts[beside].groupby("image_id").size() <= most).all()
    images = complete.groupby("split")["image_id"].nunique()
    assert prompts.groupby("split")["image_id"].nunique().equals(images)


def test_every_caption_of_the_test_images_and_what_the_seed_decides() -> None:
    data, heldout, splits, _, _, prompts = made(5, every_caption=True)
    for name in ("test_seen", "test_unseen"):
        images = set(splits.loc[splits["split"] == name, "image_id"])
        assert keys(prompts, name) == {(i, n) for i in images for n in range(3)}
    unseen = prompts[prompts["split"] == "test_unseen"]
    with_pair = unseen[unseen["pair"].notna()]
    assert set(zip(with_pair["image_id"], with_pair["caption_id"], strict=True)) == holding(
        data, heldout
    )
    for key in ("per_image", "draws"):
        one, two = (made(5, **{key: 1}, seed=seed)[-1].drop(columns="pair") for seed in (1, 2))
        assert one.equals(two) == (key == "draws")


def test_further_draws_are_those_that_only_some_prompts_of_a_split_have() -> None:
    rows = [
        ("test_seen", 0, 0),
        ("test_seen", 0, 1),
        ("test_seen", 1, 0),
        ("test_unseen", 0, 0),
        ("test_unseen", 0, 1),
    ]
    table = pd.DataFrame(rows, columns=["split", "caption_id", "draw"]).assign(image_id="a")
    assert is_further(table).tolist() == [False, True, False, False, False]
    assert is_further(table[table["split"] == "test_seen"].drop(columns="split")).tolist() == [
        False,
        True,
        False,
    ]
    assert not len(is_further(table[:0]))


def test_more_candidates_than_the_pool_has_are_refused(tmp_path: Path) -> None:
    folder = stage.run_all(stage.inputs(tmp_path))
    images = read_table(folder / "images.parquet", IMAGES)
    write_table(images.assign(path=images["image_id"]), folder / "images.parquet", IMAGES)
    stage.run("make_prompts", folder)
    least = read_json(folder / "prompts.json")["distractors_at_least"]
    split = min(least, key=least.get)
    stage.run("make_prompts", folder, candidates=least[split] + 1)
    message = f"{split} of d/color has only {least[split]}; set it to at most {least[split] + 1}"
    with pytest.raises(UserError, match=message):
        stage.run("make_prompts", folder, candidates=least[split] + 2)


def splits_of(sizes: tuple[int, int, int]) -> pd.DataFrame:
    split = [
        name
        for name, n in zip(("train", "test_seen", "test_unseen"), sizes, strict=True)
        for _ in range(n)
    ]
    return pd.DataFrame({"image_id": [f"i{i:03d}" for i in range(len(split))], "split": split})


SIZES = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))


@given(SIZES, st.integers(0, 10**6), st.booleans())
def test_half_judges_nothing_that_the_judge_learns_from(
    sizes: tuple[int, int, int], seed: int, files: bool
) -> None:
    splits = splits_of(sizes)
    images = images_table(splits["image_id"].tolist(), ["x"] * len(splits) if files else None)
    judged, learns = (
        evaluation_images(splits, images, "half", seed),
        judge_training_images([splits], images, "half", seed),
    )
    assert not set(judged["image_id"]) & set(learns)
    assert set(judged["image_id"]) | set(learns) == set(splits["image_id"])
    assert set(splits.loc[splits["split"] == "train", "image_id"]) <= set(learns)
    for split, size in zip(("test_seen", "test_unseen"), sizes[1:], strict=True):
        assert (judged["split"] == split).sum() == size - size // 2
    shuffled = evaluation_images(
        splits.sample(frac=1, random_state=1), images.sample(frac=1, random_state=2), "half", seed
    )
    pd.testing.assert_frame_equal(judged, shuffled)
    others = [evaluation_images(splits, images, "half", seed + more) for more in range(1, 6)]
    assert min(sizes[1:]) < 9 or not all(map(judged.equals, others))


def test_images_without_a_file_and_a_judge_of_two_compositions() -> None:
    splits = splits_of((10, 10, 10))
    for train_on, judged, learns in (("train", 20, 10), ("half", 10, 20), ("all", 20, 30)):
        images = images_table(splits["image_id"].tolist())
        assert len(evaluation_images(splits, images, train_on, 0)) == judged
        assert len(judge_training_images([splits], images, train_on, 0)) == learns
        images.loc[::2, "path"] = "x"
        shown = evaluation_images(splits, images, train_on, 0)
        assert {*shown["image_id"], *judge_training_images([splits], images, train_on, 0)} == {
            *images["image_id"][::2]
        }
    for train_on in ("train", "half", "all"):
        one = splits_of((100, 100, 100))
        other = one.assign(split=one["split"].sample(frac=1, random_state=0).to_numpy())
        images = images_table(one["image_id"].tolist())
        learned = set(judge_training_images([one, other], images, train_on, 0))
        assert learned == {*judge_training_images([one], images, train_on, 0)} & {
            *judge_training_images([other], images, train_on, 0)
        }
        if train_on == "half":
            # A test image of both is judged by both or neither: halves drawn apart would leave a
            # quarter of these.
            both = {*one.loc[one["split"] != "train", "image_id"]} & {
                *other.loc[other["split"] != "train", "image_id"]
            }
            assert len(both) > 100 and len(both & learned) > 0.4 * len(both)
