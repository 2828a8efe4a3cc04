"""Judges that read every pair, none, or only seen ones; synonyms, accuracies and hubs worked by
hand.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.core.artifacts.files import write_json
from compclip.core.artifacts.heldout import matched_pairs
from compclip.score.adjust import choose_adjustment
from compclip.score.bias import BiasCheck
from compclip.score.entries import Numbered
from compclip.score.measure_bias import (
    bias_entries,
    entries_by_images,
    measure_bias,
    synonyms,
    with_synonyms,
)
from compclip.score.score_images import WrongFirstRanks
from compclip.stats.r_precision import Entries, blocks, make_pool
from tests.score.world import COLORS, FakeJudge
from workflow_scripts.layout import Layout
from workflow_scripts.score.section import read_bias_check


class Blind(FakeJudge):
    """Reads no colors in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        return super().encode_texts(
            [" ".join(w for w in t.split() if w not in COLORS) for t in texts], batch
        )


class Biased(FakeJudge):
    """Reads red as blue in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        red, blue = " purple ", " red "
        return super().encode_texts(
            [t.replace(" red ", red).replace(" blue ", blue) for t in texts], batch
        )


NOUNS = ("wing", "bill")
HELD_OUT = ["red_bill", "red_wing"]


def measured(judge: FakeJudge) -> dict:
    """Return the bias of a judge on images of a wing and a bill of two colors; red is held out,
    black is frequent.
    """
    rows = [
        (
            f"{wing} {bill}",
            place,
            f"a {wing} wing and a {bill} bill",
            (wing, bill)[place],
            NOUNS[place],
        )
        for wing, bill in product(COLORS, repeat=2)
        for place in (0, 1)
    ]
    captions = pd.DataFrame(
        rows, columns=["image_id", "caption_id", "text", "adjective", "noun"]
    ).assign(class_id=None)
    shown, held_out = (
        captions.drop_duplicates("image_id").set_index("image_id")["text"],
        captions["adjective"] == "red",
    )
    prompts = captions[held_out | ~captions["image_id"].str.contains("red")].assign(draw=0)
    prompts["split"] = np.where(prompts["adjective"] == "red", "test_unseen", "test_seen")
    prompts["pair"] = prompts["adjective"] + "_" + prompts["noun"]
    variants = prompts.merge(pd.Series(COLORS, name="other"), how="cross").query(
        "adjective != other"
    )
    variants["text"] = [
        row.text.replace(f"{row.adjective} {row.noun}", f"{row.other} {row.noun}")
        for row in variants.itertuples()
    ]
    ranking = captions.drop_duplicates(["adjective", "noun"])
    ranking = ranking.assign(
        percentile=ranking["adjective"].map({"red": 50, "blue": 50, "green": 50, "black": 90})
    )
    pairs = captions.assign(relation="adjacent")
    pairs["adjective_start"] = [
        row.text.index(f"{row.adjective} {row.noun}") for row in pairs.itertuples()
    ]
    pairs["adjective_end"] = pairs["adjective_start"] + pairs["adjective"].str.len()
    pairs["noun_start"], pairs["noun_end"] = pairs["adjective_end"] + 1, pairs["adjective_end"] + 5
    images = captions.drop_duplicates("image_id").assign(path=lambda rows: rows["image_id"])

    def embed_texts(texts: Sequence[str]) -> np.ndarray:
        return judge.encode_texts(texts, 1) if texts else np.zeros((0, 16), np.float32)

    def embed_images(paths: Sequence[str]) -> np.ndarray:
        return np.array([judge.embed(shown[path]) for path in paths], np.float32).reshape(-1, 16)

    adjustment = choose_adjustment(prompts, images, variants, embed_texts, embed_images)
    captions, pairs = (
        captions[["image_id", "caption_id", "class_id", "text"]],
        pairs.drop(columns="text"),
    )
    real = entries_by_images(prompts, images)
    entries = bias_entries(real, captions, pairs, ranking, HELD_OUT, variants)
    return measure_bias(embed_texts, embed_images, adjustment, entries)


def test_a_judge_that_reads_colors_passes_and_a_biased_one_does_not() -> None:
    content = measured(FakeJudge())
    of = content["images"]["real"]
    assert of["matched"]["accuracy"] == of["held_out"]["accuracy"] == of["seen"]["two_way"] == 1
    assert of["difference"]["value"] == 0 and of["seen"]["chance"] == 0.25
    # Black pairs are seen, but more frequent than held-out ones.
    assert (of["seen"]["n"], of["matched"]["n"], of["held_out"]["n"]) == (18, 12, 8)
    assert (of["seen"]["pairs"], of["matched"]["pairs"], of["held_out"]["pairs"]) == (6, 4, 2)
    assert [of["n"] for of in content["pairs"].values()] == [4, 4] and list(
        content["pairs"]
    ) == HELD_OUT
    bias_check = BiasCheck({"0": content}, 0.15)
    assert bias_check.passes and not bias_check.unrecognized

    content = measured(Biased())
    of, bias_check = content["images"]["real"], BiasCheck({"0": content}, 0.15)
    expected = of["held_out"]["accuracy"] - of["matched"]["accuracy"]
    assert of["difference"]["value"] == pytest.approx(expected, abs=2e-6) and expected < 0
    assert bias_check.passes is False and set(bias_check.unrecognized) == set(HELD_OUT)

    of = measured(Blind())["images"]["real"]
    assert (
        of["seen"]["accuracy"] == of["held_out"]["accuracy"] == 0.25
        and of["seen"]["two_way"] == 0.5
    )
    assert BiasCheck({"0": measured(Blind())}, 0.15).passes is False, (
        "not above chance on held-out pairs"
    )


def test_matched_pairs_and_synonyms() -> None:
    percentiles = {
        "red_wing": 30,
        "blue_wing": 29.9,
        "gray_wing": 30,
        "tan_wing": 50,
        "red_bill": 60,
        "tan_bill": 61,
    }
    rows = [(*name.split("_"), percentile) for name, percentile in percentiles.items()]
    ranking = pd.DataFrame(rows, columns=["adjective", "noun", "percentile"])
    assert matched_pairs(ranking, ["red_wing", "red_bill"]) == {"gray_wing", "tan_wing"}
    assert matched_pairs(ranking, ["pink_wing"]) == set(), "not ranked"
    texts = (
        ["a gray wing"] * 99
        + ["an ashen wing"] * 2
        + ["a grey wing"] * 98
        + ["a gey wing", "a red bill"]
    )
    captions = pd.DataFrame({"image_id": "a", "caption_id": range(len(texts)), "text": texts})
    words = captions["text"].str.split()
    start = words.str[0].str.len() + 1
    pairs = captions.assign(adjective_start=start, adjective_end=start + words.str[1].str.len())
    pairs["adjective"] = np.where(words.str[1] == "red", "red", "gray")
    others = synonyms(captions, pairs.drop(columns="text"))
    # A misspelling is not a synonym, and red has none.
    assert others == {("gray", f): "gray" for f in ("grey", "ashen", "gey")} | {
        ("gray", "gray"): "grey"
    }

    entries = pd.DataFrame(
        {"image_id": "b", "caption_id": [0, 1], "text": ["this has an ashen wing", "a red wing"]}
    )
    mention = {
        "adjective": "gray",
        "adjective_start": 12,
        "adjective_end": 17,
        "noun": "wing",
        "noun_start": 18,
    }
    pairs = entries.iloc[:1].assign(**mention, noun_end=22, relation="adjacent")
    replaced = with_synonyms(entries.assign(pair="gray_wing"), pairs, others)
    assert replaced["text"].tolist() == ["this has a gray wing"]


def of_judge(low: float = -0.1, held_out: float = 0.6, pairs: dict | None = None) -> dict:
    """Return the content of a judge's bias.json: lower limits of the difference and of held-out
    accuracy.
    """
    difference = {
        "value": -0.05,
        "new_pairs_low": -0.3,
        "new_pairs_high": 0.2,
        "same_pairs_low": low,
        "same_pairs_high": 0.01,
    }
    real = {"difference": difference, "held_out": {"same_pairs_low": held_out, "chance": 0.25}}
    unknown = {"difference": None, "held_out": {"n": 0}}
    return {"images": {"real": real, "drawn": unknown}, "pairs": pairs or {}}


def test_failing_judges_and_pairs_that_judges_do_not_read(tmp_path: Path) -> None:
    """Without matched pairs it is unknown unless held-out pairs are chosen by chance."""
    for held_out, passes in ((0.26, None), (0.25, False)):
        unmatched = of_judge(held_out=held_out)
        unmatched["images"]["real"]["difference"] = None
        bias_check = BiasCheck({"0": unmatched}, 0.15)
        assert bias_check.passes is passes and "are not compared" in bias_check.note
        assert ("they may choose" in bias_check.note) == (passes is False)

    def content(gray: float) -> dict:
        read = {"accuracy": 0.7, "same_pairs_low": 0.5, "chance": 0.1}
        pairs = {
            "tan_wing": read,
            "gray_head": read | {"accuracy": gray, "same_pairs_low": gray - 0.1},
        }
        # Of few images a greater accuracy may be chance; images of one class have no interval.
        pairs |= {
            "red_bill": read | {"same_pairs_low": 0.08},
            "red_eye": read | {"same_pairs_low": None},
            "red_leg": {"n": 0},
        }
        return of_judge(pairs=pairs)

    bias_check = BiasCheck({"0": content(0.34), "1": content(0.62)}, 0.15)
    assert bias_check.unrecognized == pytest.approx({"gray_head": 0.48, "red_bill": 0.7})
    assert bias_check.unrecognized_note.endswith("real images: gray head (48 %), red bill (70 %).")
    assert BiasCheck({"0": content(0.62)}, 0.15).unrecognized.keys() == {"red_bill"}
    assert BiasCheck({"0": of_judge()}, 0.15).unrecognized_note == ""
    # Judges fail if they may lose more, or choose by chance.
    for judges, passes, words in (
        ([of_judge(low=-0.15)], True, "is −5.0 [−15.0, 1.0] points at worst (real images)."),
        (
            [of_judge(low=-0.19), of_judge()],
            True,
            "[−14.5, 1.0] points at worst (real images, mean over 2 judges).",
        ),
        (
            [of_judge(low=-0.21), of_judge()],
            False,
            "they may lose more than 15 points (score.max_bias) on real",
        ),
        (
            [of_judge(held_out=0.25)] * 2,
            False,
            "choose adjectives of held-out pairs by chance on real images. No",
        ),
        ([of_judge(held_out=0.25), of_judge(held_out=0.26)], True, "Bias check: "),
    ):
        layout = Layout(tmp_path, "d", "color")
        for name, of in enumerate(judges):
            write_json(of, layout.folder / "bias" / f"{name}.json")
        bias_check = read_bias_check(layout, list(map(str, range(len(judges)))), 0.15)
        assert bias_check.passes is passes and words in bias_check.note


def test_hubness_by_hand() -> None:
    # Texts and images of three classes in turn; image 0 has caption 0, and so on.
    pool, classes = (
        make_pool(np.arange(150), np.arange(150) % 3, np.arange(150)),
        np.array([0, 1, 2, 0]),
    )
    numbered = Numbered(Entries(np.arange(4), classes, []), pool, [])

    def hubness(values: np.ndarray, rows: slice = slice(None)) -> float | None:
        nearest = WrongFirstRanks(150, numbered)
        for chosen, block in blocks(lambda rows: values[rows], classes):
            before = block.copy()
            nearest.add(chosen, block)
            assert (block == before).all(), "other measures read the same block"
        return nearest.hubness(np.arange(4)[rows])

    values = np.zeros((4, 150))
    values[:, 149] = 1.0  # a hub, of class 2
    values[[0, 1, 2, 3], [0, 1, 2, 3]] = 0.5
    values[3, 3], values[0, 7] = 2.0, 1.5
    # Image 0 ranks caption 7 first, image 1 the hub, image 2 is of the hub's class, image 3 is
    # right: one of two wrong first ranks is the hub's, but of 150 captions two are the most
    # frequent 1 %.
    assert hubness(values) == 1.0
    values[2, 10] = values[1, 11] = 3.0
    assert hubness(values) == pytest.approx(2 / 3)
    assert hubness(values, slice(2)) == 1.0
    assert hubness(np.eye(4, 150)) is None
