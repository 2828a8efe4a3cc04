"""Prompt following: the captions among which a prompt is chosen, and its expected value."""

import numpy as np
import pandas as pd
import pytest

from compclip.core.tables import TESTS
from compclip.judge.chooser import JudgedImage
from compclip.score.choose_texts import OF_PROMPT, Asker, choose_texts
from compclip.score.prompt_following import CANDIDATES, prompt_distractors
from compclip.split.pools import Pools, class_names
from compclip.stats.r_precision import expected_top1

IMAGES = 40
CLASSES = 8
NO_SWAPS = pd.DataFrame(columns=["image_id", "caption_id", "text", "swapped_text"])


def captions(classes: int = CLASSES) -> pd.DataFrame:
    """Return two captions of each image; the second ones are equal within a class."""
    rows = []
    for image in range(IMAGES):
        key = {"image_id": f"{image:02}", "class_id": str(image % classes)}
        rows.append(key | {"caption_id": 0, "text": f"bird {image}"})
        rows.append(key | {"caption_id": 1, "text": f"class {image % classes}"})
    return pd.DataFrame(rows)


def distractors(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Return the distractors of each image's first caption."""
    judged = table[["image_id"]].drop_duplicates().assign(split="test_seen")
    prompts = table[table["caption_id"] == 0].assign(split="test_seen", draw=0, pair=None)
    pools = Pools(table, judged, NO_SWAPS)
    return prompt_distractors(prompts, pools, class_names(table), seed)


def test_distractors_are_other_texts_of_other_classes() -> None:
    table = captions()
    class_by_text = table.groupby("text")["class_id"].agg(set)
    own_class = table.drop_duplicates("image_id").set_index("image_id")["class_id"]
    drawn = distractors(table)
    assert not drawn.duplicated().any()
    assert set(drawn["split"]) == {"test_seen"}
    counts = drawn.groupby("image_id").size()
    assert len(counts) == IMAGES and counts.max() == CANDIDATES - 1
    for row in drawn.to_dict("records"):
        assert own_class[row["image_id"]] not in class_by_text[row["text"]]


def test_the_seed_draws_distractors() -> None:
    first, again, other = (distractors(captions(), seed) for seed in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)


def test_images_of_one_class_have_no_distractors() -> None:
    assert distractors(captions(classes=1)).empty


class Noisy:
    """A judge whose scores are fixed numbers for each image and text."""

    name = "noisy"
    hash = "1"

    def __init__(self, scores: dict[tuple[str, str], float]) -> None:
        self.scores_by_key = scores

    def choose(self, images: list[JudgedImage], options: list[list[str]]) -> list[np.ndarray]:
        chances = []
        for image, texts in zip(images, options, strict=True):
            scores = np.array([self.scores_by_key[image.path.stem, text] for text in texts])
            chances.append((scores == scores.max()) / (scores == scores.max()).sum())
        return chances


def test_its_mean_over_draws_is_the_exact_r_precision_of_ten_candidates() -> None:
    """All texts differ, and the pool is large, so that few draws repeat a text."""
    table = captions()[lambda rows: rows["caption_id"] == 0]
    stream = np.random.default_rng(0)
    texts = table["text"].tolist()
    scores = {(name, text): stream.random() for name in table["image_id"] for text in texts}
    for name, text in zip(table["image_id"], texts, strict=True):
        scores[name, text] = 0.7 + 0.3 * stream.random()
    own_class = table.set_index("image_id")["class_id"]
    beaten = []
    for name, own in zip(table["image_id"], texts, strict=True):
        others = table.loc[table["class_id"] != own_class[name], "text"]
        beaten.append(np.mean([scores[name, text] > scores[name, own] for text in others]))
    expected = expected_top1(np.array(beaten), np.zeros(IMAGES), CANDIDATES).mean()
    entries = table.assign(split="test_seen", draw=0, pair=None, generator="g")
    entries["path"] = entries["image_id"] + ".png"
    seeds = range(30)
    means = []
    for seed in seeds:
        others = {OF_PROMPT: distractors(table, seed)}
        choices = choose_texts(Noisy(scores), entries, others, Asker(seed=seed))
        means.append(choices[OF_PROMPT].mean())
    error = 3 * np.std(means) / len(means) ** 0.5
    assert np.mean(means) == pytest.approx(expected, abs=error)


def test_a_missing_image_follows_no_prompt() -> None:
    table = captions()
    entries = table[table["caption_id"] == 0].assign(split=TESTS[0], draw=0, pair=None)
    entries = entries.assign(generator="g", path=None)
    choices = choose_texts(Noisy({}), entries, {OF_PROMPT: distractors(table)}, Asker())
    assert (choices[OF_PROMPT] == 0).all()
