"""Adjective accuracy by hand; adjusted similarities and their multiple, with a judge of a known
prior.
"""

import numpy as np
import pandas as pd

from compclip.score.adjust import best_multiple, calibration_images, choose_adjustment
from compclip.score.choices import (
    Adjustment,
    adjective_accuracy,
    adjective_choices,
    gathered,
    options_of,
)
from tests.score.world import COLORS

D = 32
VECTORS = {color: np.random.default_rng(row).standard_normal(D) for row, color in enumerate(COLORS)}
# What all images have in common, and how much of it is in the text of a frequent color.
COMMON = np.random.default_rng(9).standard_normal(D)
PRIOR = {"black": 0.5, "blue": 0.2}


def unit(vector: np.ndarray) -> np.ndarray:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def texts(captions: list[str]) -> np.ndarray:
    """Embed captions such as ``a red wing`` by their colors."""
    colors = [caption.split()[1] for caption in captions]
    return np.array(
        [unit(VECTORS[color] + PRIOR.get(color, 0) * COMMON) for color in colors]
    ).reshape(-1, D)


def pictures(paths: list[str]) -> np.ndarray:
    """Embed paths such as ``red 3``: the color, some noise, and mostly what images have in
    common.
    """
    noise = [np.random.default_rng(int(path.split()[1])).standard_normal(D) for path in paths]
    shown = [VECTORS[path.split()[0]] for path in paths]
    return np.array(
        [unit(5 * COMMON + a + 0.3 * b) for a, b in zip(shown, noise, strict=True)]
    ).reshape(-1, D)


def world() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return prompts, images and variants: black is frequent; a red wing is held out."""
    counts = {"black": 60, "blue": 20, "green": 12, "red": 20}
    colors = [color for color, n in counts.items() for _ in range(n)]
    images = pd.DataFrame({"image_id": [f"{n:03}" for n in range(len(colors))]})
    images["path"] = [f"{color} {n}" for n, color in enumerate(colors)]
    prompts = images[["image_id"]].assign(caption_id=0, draw=0, adjective=colors)
    prompts["text"], prompts["pair"] = (
        "a " + prompts["adjective"] + " wing",
        prompts["adjective"] + "_wing",
    )
    prompts["split"] = np.where(prompts["adjective"] == "red", "test_unseen", "test_seen")
    variants = prompts.merge(pd.Series(COLORS, name="other"), how="cross").query(
        "adjective != other"
    )
    return prompts, images, variants.assign(text="a " + variants["other"] + " wing")


def shown_in(entries: pd.DataFrame, images: pd.DataFrame) -> np.ndarray:
    return pictures(images.set_index("image_id").loc[entries["image_id"], "path"].tolist())


def test_adjusting_subtracts_a_multiple_of_what_the_text_gets_from_calibration_images() -> None:
    prompts, images, variants = world()
    reference = pictures(calibration_images(prompts, images, 0))
    adjustment = Adjustment(reference.mean(axis=0), 0.75, {"blue_wing": 0.25})
    candidates = texts([f"a {color} wing" for color in COLORS])
    for split in ("test_seen", "test_unseen"):
        entries = prompts[prompts["split"] == split].reset_index(drop=True)
        shown = shown_in(entries, images)
        options = options_of(entries, split, variants)
        choices = adjective_choices(options, texts, shown, adjustment)
        for row, color in enumerate(entries["adjective"]):
            multiple = 0.25 if color == "blue" else 0.75
            values = candidates @ shown[row] - multiple * (candidates @ reference.T).mean(axis=1)
            assert choices.adjusted[row] == (COLORS[values.argmax()] == color)
        plain = adjective_choices(options, texts, shown)
        assert plain.adjusted is None
        np.testing.assert_array_equal(plain.first, choices.first)


def test_the_prior_of_frequent_adjectives_is_removed() -> None:
    prompts, images, variants = world()
    adjustment = choose_adjustment(prompts, images, variants, texts, pictures)
    assert adjustment.multiple > 0 and adjustment.of_seen.keys() == {
        "black_wing",
        "blue_wing",
        "green_wing",
    }
    held_out = prompts[prompts["split"] == "test_unseen"].reset_index(drop=True)
    shown = shown_in(held_out, images)
    options = options_of(held_out, "test_unseen", variants)
    choices = adjective_choices(options, texts, shown, adjustment)
    assert choices.first.mean() < 0.2 and choices.adjusted.mean() > 0.8
    # No label of a held-out pair is read.
    again = choose_adjustment(
        prompts, images, variants[variants["split"] == "test_seen"], texts, pictures
    )
    assert (again.multiple, again.of_seen) == (adjustment.multiple, adjustment.of_seen)
    assert (
        choose_adjustment(
            prompts, images, variants[variants["split"] == "test_unseen"], texts, pictures
        )
        is None
    )
    for pair, multiple in adjustment.of_seen.items():
        others = variants[variants["pair"] != pair]
        assert choose_adjustment(prompts, images, others, texts, pictures).multiple == multiple
    assert len({adjustment.multiple, *adjustment.of_seen.values()}) > 1


def test_the_best_multiple_and_calibration_images() -> None:
    n = np.array([900, 9])
    means = np.array([[0.9, 0.9, 0.8, 0.7, 0.6], [0.0, 0.0, 0.2, 0.1, 0.1]])
    both = np.column_stack([means * n[:, None], n])
    assert best_multiple(both, np.array(["black", "pink"])) == 0.5, (
        "a rare adjective counts as much"
    )
    assert best_multiple(both, np.array(["black", "black"])) == 0.0, "of equal ones the least"
    assert best_multiple(both[:0], np.array([])) == 0.0
    ids = [f"{n:04}" for n in range(1200)]
    splits = np.resize(["test_seen", "test_unseen", "test_swapped"], 1200)
    prompts = pd.DataFrame({"image_id": ids, "caption_id": 0, "draw": 0, "split": splits})
    images = pd.DataFrame(
        {"image_id": ids, "path": [f"{name}.png" if int(name) % 7 else None for name in ids]}
    )
    drawn = calibration_images(prompts, images, 0)
    assert len(set(drawn)) == 512 and drawn == calibration_images(
        prompts.sample(frac=1, random_state=0), images, 0
    )
    swapped = {
        f"{name}.png" for name, split in zip(ids, splits, strict=True) if split == "test_swapped"
    }
    assert not swapped & set(drawn) and drawn != calibration_images(prompts, images, 1)
    few = [f"{n:04}.png" for n in range(30) if n % 3 < 2 and n % 7]
    assert calibration_images(prompts[:30], images, 0) == few


def test_adjective_accuracy_and_cosines_by_hand() -> None:
    own = np.array([0.5, 0.5, 0.5, 0.5, 0.5])
    #          first | one of two ties | tied with two | one better, one tied | no variant
    entry = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    of_variants = np.array([0.1, 0.4, 0.5, 0.4, 0.5, 0.5, 0.6, 0.5])
    found = adjective_accuracy(own, of_variants, entry)
    assert found.n_adjectives.tolist() == [3, 3, 3, 3, 1]
    np.testing.assert_array_equal(found.first, [1, 1 / 2, 1 / 3, 0, np.nan])
    np.testing.assert_array_equal(found.two_way, [1, 3 / 4, 1 / 2, 1 / 4, np.nan])
    random = np.random.default_rng(0)
    pictures, captions = random.standard_normal((7, 5)), random.standard_normal((9, 5))
    image, text = random.integers(0, 7, 3000), random.integers(0, 9, 3000)
    np.testing.assert_allclose(
        gathered(pictures, captions)(image, text), (pictures @ captions.T)[image, text]
    )
