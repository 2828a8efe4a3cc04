"""The gallery, on invented judgements: which pairs and prompts are shown, and what is said of each
image.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.core.tables import TESTS
from compclip.plot.examples import GeneratedImages
from compclip.report.gallery import DRAWN, GalleryPair, choose_gallery

PAIRS = ["green_roof", "old_boat", "round_door", "wet_dog"]
ANCHORS = dict.fromkeys(TESTS, ("camera", "usual"))
# The anchors are not the first in the config's order.
GENERATORS = ("painter", "usual", "camera", "printer")


def prompts_of(pairs: list[str], images: int) -> pd.DataFrame:
    """Return a prompt for each image: unseen and swapped ones in turn, and a seen one of the first
    pair.
    """
    rows = []
    for pair in pairs:
        adjective, _, noun = pair.partition("_")
        for image in range(images):
            split = TESTS[1 + image % 2]
            rows.append((f"{pair}{image}", split, f"a {adjective} {noun}", pair))
    rows.append(("seen0", "test_seen", "a seen thing", pairs[0]))
    table = pd.DataFrame(rows, columns=["image_id", "split", "text", "pair"])
    return table.assign(caption_id=0, draw=0)


def tables_of(prompts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables from which prompts are marked."""
    names = prompts["pair"].str.split("_", expand=True)
    pairs = prompts[["image_id", "caption_id"]].assign(adjective=names[0], noun=names[1])
    length = names[0].str.len()
    starts = {"adjective_start": 2, "adjective_end": 2 + length, "noun_start": 3 + length}
    pairs = pairs.assign(**starts, noun_end=prompts["text"].str.len())
    swapped = prompts[prompts["split"] == "test_swapped"]
    ends = 2 + length[swapped.index]
    changes = [[{"new_start": 2, "new_end": end}] for end in ends]
    return {"prompts": prompts, "pairs": pairs, "swapped": swapped.assign(changes=changes)}


def images_of(name: str, prompts: pd.DataFrame, right: Any = 3) -> GeneratedImages:
    """Return images of all prompts; ``right``: how many judges choose the adjective, by image."""
    keys = prompts[["image_id", "caption_id", "draw", "split"]]
    counts = keys["image_id"].map(right) if isinstance(right, Mapping) else right
    manifest = keys.assign(path=f"{name}/" + keys["image_id"] + ".png", status="ok")
    scores = keys.assign(right=counts, adjectives=4)
    return GeneratedImages(name, manifest, scores.fillna({"right": 0}), {})


def gallery(
    generated: list[GeneratedImages], prompts: pd.DataFrame, seed: int = 0, **more: Any
) -> list[GalleryPair]:
    options = {"anchors": ANCHORS, "recognized": (), "judges": 3, "n": 9}
    stream = np.random.default_rng(seed)
    return choose_gallery(generated, tables_of(prompts), stream=stream, **{**options, **more})


@pytest.fixture
def prompts() -> pd.DataFrame:
    return prompts_of(PAIRS, 8)


@pytest.fixture
def generated(prompts: pd.DataFrame) -> list[GeneratedImages]:
    return [images_of(name, prompts) for name in GENERATORS]


def notes_of(pairs: list[GalleryPair]) -> set[str]:
    return {image.note for pair in pairs for prompt in pair.prompts for image in prompt.images}


def test_recognized_pairs_come_first(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    for seed in range(5):
        pairs = gallery(generated, prompts, seed, recognized={"wet_dog", "old_boat"})
        assert {pair.name for pair in pairs[:2]} == {"wet dog", "old boat"}
        assert [pair.is_recognized for pair in pairs] == [True, True, False, False]


def test_without_estimates_no_pair_is_called_unrecognized(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    assert {pair.is_recognized for pair in gallery(generated, prompts)} == {None}


def test_the_seed_decides_pairs_and_prompts(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    first = gallery(generated, prompts, n=1)
    assert first == gallery(generated, prompts, n=1) == gallery(generated, prompts)[:1]
    assert len({str(gallery(generated, prompts, seed, n=1)) for seed in range(9)}) > 4


def test_the_first_prompts_are_of_both_held_out_splits(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    for pair in gallery(generated, prompts):
        labels = {prompt.label for prompt in pair.prompts[:DRAWN]}
        assert labels == {"unseen, drawn by seed", "swapped, drawn by seed"}


def test_the_last_prompt_is_where_most_judges_disagree(prompts: pd.DataFrame) -> None:
    """On one prompt two generators' images divide the judges, on another one generator's."""
    for seed in range(9):
        drawn = gallery([images_of("painter", prompts)], prompts, seed, n=1)[0]
        shown = {prompt.images[0].path for prompt in drawn.prompts[:DRAWN]}
        others = [
            name
            for name in prompts["image_id"]
            if name.startswith(drawn.name.replace(" ", "_")) and f"painter/{name}.png" not in shown
        ]
        most, less = others[0], others[1]
        generated = [
            images_of("painter", prompts, {most: 1, less: 2}),
            images_of("printer", prompts, {most: 2}),
        ]
        last = gallery(generated, prompts, seed, n=1)[0].prompts[-1]
        assert last.images[0].path == f"painter/{most}.png"
        assert last.label.endswith("judges disagree most")


def test_where_all_judges_agree_the_seed_draws_all_prompts(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    for pair in gallery(generated, prompts):
        assert len(pair.prompts) == 3
        assert all(prompt.label.endswith("drawn by seed") for prompt in pair.prompts)


def test_anchors_stand_before_other_generators(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    for prompt in gallery(generated, prompts, n=1)[0].prompts:
        roles = [(image.generator, image.role) for image in prompt.images]
        assert roles[:2] == [("camera", "reference"), ("usual", "usual pair")]
        assert roles[2:] == [("painter", ""), ("printer", "")]


def test_a_run_without_anchors_has_a_gallery(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    pairs = gallery(generated, prompts, anchors=dict.fromkeys(TESTS, (None, None)))
    images = pairs[0].prompts[0].images
    assert [image.generator for image in images] == list(GENERATORS)
    assert {image.role for image in images} == {""}


def test_each_image_says_how_many_judges_choose_its_adjective(prompts: pd.DataFrame) -> None:
    for right, is_right in ((0, False), (1, False), (2, True), (3, True)):
        images = gallery([images_of("painter", prompts, right)], prompts)[0].prompts[0].images
        assert [(image.note, image.right) for image in images] == [
            (f"{right} of 3 judges", is_right)
        ]


def test_one_judge_is_named_in_the_singular(prompts: pd.DataFrame) -> None:
    pairs = gallery([images_of("painter", prompts, 1)], prompts, judges=1)
    assert notes_of(pairs) == {"1 of 1 judge"}


def test_half_of_two_judges_are_not_most(prompts: pd.DataFrame) -> None:
    pairs = gallery([images_of("painter", prompts, 1)], prompts, judges=2)
    assert pairs[0].prompts[0].images[0].right is False


@pytest.mark.parametrize("status", ["missing", "broken"])
def test_an_image_that_cannot_be_shown_is_named(prompts: pd.DataFrame, status: str) -> None:
    painter = images_of("painter", prompts)
    manifest = painter.manifest.assign(path=None, status=status)
    pairs = gallery([painter._replace(manifest=manifest)], prompts)
    assert notes_of(pairs) == {status}
    assert {image.path for image in pairs[0].prompts[0].images} == {None}


def test_missing_images_are_no_disagreement(prompts: pd.DataFrame) -> None:
    painter = images_of("painter", prompts, 1)
    manifest = painter.manifest.assign(path=None, status="missing")
    pairs = gallery([painter._replace(manifest=manifest)], prompts)
    assert all("disagree" not in prompt.label for pair in pairs for prompt in pair.prompts)


def test_without_another_adjective_there_is_no_choice(prompts: pd.DataFrame) -> None:
    painter = images_of("painter", prompts, 1)
    pairs = gallery([painter._replace(scores=painter.scores.assign(adjectives=1))], prompts)
    assert notes_of(pairs) == {"not judged"}


def test_images_without_scores_are_shown(prompts: pd.DataFrame) -> None:
    painter = images_of("painter", prompts)
    pairs = gallery([painter._replace(scores=painter.scores.head(0))], prompts)
    assert notes_of(pairs) == {"not judged"}


def test_prompts_that_no_generator_serves_are_not_shown(prompts: pd.DataFrame) -> None:
    unseen = prompts[prompts["split"] == "test_unseen"]
    for pair in gallery([images_of("camera", unseen)], prompts):
        assert [prompt.label.partition(",")[0] for prompt in pair.prompts] == ["unseen"] * 3
        assert all(len(prompt.images) == 1 for prompt in pair.prompts)


def test_generators_of_other_splits_are_in_their_own_rows(prompts: pd.DataFrame) -> None:
    swapped = prompts[prompts["split"] == "test_swapped"]
    generated = [images_of("painter", prompts), images_of("printer", swapped)]
    for prompt in gallery(generated, prompts)[0].prompts:
        names = [image.generator for image in prompt.images]
        assert names == (["painter", "printer"] if "swapped" in prompt.label else ["painter"])


def test_only_seen_prompts_give_an_empty_gallery(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    assert gallery(generated, prompts[prompts["split"] == "test_seen"]) == []


def test_no_more_pairs_are_shown_than_asked_for(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    assert [len(gallery(generated, prompts, n=n)) for n in (0, 1, 3, 99)] == [0, 1, 3, 4]


def test_a_pair_of_one_prompt_has_one_row() -> None:
    prompts = prompts_of(PAIRS, 1)
    pairs = gallery([images_of("painter", prompts)], prompts)
    assert [len(pair.prompts) for pair in pairs] == [1] * len(PAIRS)


def test_the_pair_is_marked_in_each_prompt(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    for pair in gallery(generated, prompts):
        for prompt in pair.prompts:
            split = prompt.label.partition(",")[0]
            (marked,) = [words for words, kind in prompt.segments if kind == split]
            # Of a swapped prompt, the adjective that was put in.
            assert marked == (pair.name if split == "unseen" else pair.name.split()[0])


def test_the_first_of_several_draws_is_shown(prompts: pd.DataFrame) -> None:
    again = pd.concat([prompts.assign(draw=1), prompts], ignore_index=True)
    painter = images_of("painter", again)
    paths = painter.manifest["image_id"] + "_" + painter.manifest["draw"].astype(str)
    pairs = gallery([painter._replace(manifest=painter.manifest.assign(path=paths))], again)
    assert all(
        image.path is not None and image.path.endswith("_0")
        for pair in pairs
        for prompt in pair.prompts
        for image in prompt.images
    )


def test_the_order_of_rows_changes_nothing(
    generated: list[GeneratedImages], prompts: pd.DataFrame
) -> None:
    """Manifests of other tools may be in any order."""
    turned = [
        images._replace(manifest=images.manifest[::-1], scores=images.scores[::-1])
        for images in generated
    ]
    assert gallery(turned, prompts) == gallery(generated, prompts)
