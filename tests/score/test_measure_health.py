"""Judges that read every pair, none, or only seen ones; synonyms and accuracies worked by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.io import write_json
from compclip.score.measure_health import drawn_entries, measure_health, ratio, synonyms, with_synonyms
from tests.score.world import COLORS, FakeJudge
from workflow_scripts.layout import Layout
from workflow_scripts.score.section import read_health


class Blind(FakeJudge):
    """Reads no colors in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        return super().encode_texts([" ".join(w for w in t.split() if w not in COLORS) for t in texts], batch)


class Biased(FakeJudge):
    """Reads red as blue in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        red, blue = " purple ", " red "
        return super().encode_texts([t.replace(" red ", red).replace(" blue ", blue) for t in texts], batch)


def measured(judge: FakeJudge) -> dict:
    """Return the health of a judge on images of a wing and a bill of two colors; a red wing is held out."""
    rows = [(f"{wing} {bill}", f"a {wing} wing and a {bill} bill", wing) for wing, bill in product(COLORS, repeat=2)]
    captions = pd.DataFrame(rows, columns=["image_id", "text", "adjective"]).assign(caption_id=0, noun="wing")
    held_out, shown = captions["adjective"] == "red", captions.set_index("image_id")["text"]
    seen = captions[held_out | ~captions["text"].str.contains("red")]
    prompts = seen.assign(split=np.where(held_out[seen.index], "test_unseen", "test_seen"), draw=0)
    prompts["pair"] = prompts["adjective"] + "_wing"
    variants = prompts.merge(pd.Series(COLORS, name="other"), how="cross").query("adjective != other")
    variants["text"] = [f"a {row.other}{row.text[2 + len(row.adjective) :]}" for row in variants.itertuples()]
    pairs = captions.drop(columns="text").assign(relation="adjacent", adjective_start=2)
    pairs["adjective_end"] = 2 + pairs["adjective"].str.len()
    pairs["noun_start"], pairs["noun_end"] = pairs["adjective_end"] + 1, pairs["adjective_end"] + 5
    return measure_health(
        lambda texts: judge.encode_texts(texts, 1) if texts else np.zeros((0, 16)),
        lambda paths: np.array([judge.embed(shown[path]) for path in paths]).reshape(-1, 16),
        captions=captions[["image_id", "caption_id", "text"]], images=captions.assign(path=captions["image_id"]),
        pairs=pairs, prompts=prompts, variants=variants, swapped=captions.iloc[:0],
    )  # fmt: skip


def test_a_judge_that_reads_colors_is_healthy_and_a_biased_one_is_not() -> None:
    of = measured(FakeJudge())["images"]["real"]
    assert of["seen"]["accuracy"] == of["held_out"]["accuracy"] == of["ratio"] == of["seen"]["two_way"] == 1
    assert of["seen"]["chance"] == 0.25 and of["seen"]["n"] > 5 and of["held_out"]["n"] > 2

    biased = measured(Biased())
    assert biased["images"]["real"]["held_out"]["accuracy"] < 0.3 and biased["ratio"] == 0

    of = measured(Blind())["images"]["real"]
    assert of["seen"]["accuracy"] == of["held_out"]["accuracy"] == 0.25 and of["seen"]["two_way"] == 0.5
    assert of["ratio"] == 0, "not above chance on seen pairs either"


def test_drawn_captions_are_the_same_before_and_after_a_swap() -> None:
    keys = pd.DataFrame({"image_id": ["a", "a", "b"], "caption_id": [0, 1, 0], "draw": 0, "split": "test_seen"})
    prompts = keys.assign(text="a red wing", pair="red_wing", file_name=["x", "y", "z"])
    manifest = keys.assign(path="p.png", status="ok")
    swapped = pd.DataFrame({"image_id": ["a"], "caption_id": [1]})
    part = drawn_entries(prompts, manifest, swapped, "test_seen")
    assert part[["image_id", "caption_id", "path"]].to_numpy().tolist() == [["a", 1, "p.png"]]


@pytest.mark.parametrize(
    ("seen", "low", "held_out", "expected"),
    [(0.6, 0.5, 0.45, 0.75), (0.5, 0.4, -0.1, 0.0), (0.02, 0.2, 0.5, 0.0), (None, None, 0.5, None)],
)
def test_ratio(seen: float | None, low: float | None, held_out: float, expected: float | None) -> None:
    of_seen = {"n": int(seen is not None), "corrected": seen, "low": low, "chance": 0.25}
    assert ratio(of_seen, {"n": 1, "corrected": held_out}) == expected


def test_a_synonym_is_the_most_frequent_other_form() -> None:
    texts = ["a gray wing"] * 99 + ["an ashen wing"] * 2 + ["a grey wing"] * 98 + ["a gey wing", "a red bill"]
    captions = pd.DataFrame({"image_id": "a", "caption_id": range(len(texts)), "text": texts})
    words = captions["text"].str.split()
    start = words.str[0].str.len() + 1
    pairs = captions.assign(adjective_start=start, adjective_end=start + words.str[1].str.len())
    pairs["adjective"] = np.where(words.str[1] == "red", "red", "gray")
    others = synonyms(captions, pairs.drop(columns="text"))
    # A misspelling is not a synonym, and red has none.
    assert others == {("gray", f): "gray" for f in ("grey", "ashen", "gey")} | {("gray", "gray"): "grey"}

    entries = pd.DataFrame({"image_id": "b", "caption_id": [0, 1], "text": ["this has an ashen wing", "a red wing"]})
    mention = {"adjective": "gray", "adjective_start": 12, "adjective_end": 17, "noun": "wing", "noun_start": 18}
    pairs = entries.iloc[:1].assign(**mention, noun_end=22, relation="adjacent")
    replaced = with_synonyms(entries.assign(pair="gray_wing"), pairs, others)
    assert replaced["text"].tolist() == ["this has a gray wing"]


@pytest.mark.parametrize(
    ("ratios", "healthy", "words"),
    [
        ([0.9, 0.7], True, "Judge health 0.80: "),
        ([0.6, 0.3], False, "0.45, below score.health 0.5: falls on held-out pairs cannot be distinguished"),
        ([None], None, "not measured"),
    ],
)
def test_health_is_the_mean_over_judges(
    tmp_path: Path, ratios: list[float | None], healthy: bool | None, words: str
) -> None:
    layout = Layout(tmp_path, "d", "color")
    for name, of_judge in enumerate(ratios):
        write_json({"ratio": of_judge}, layout.place / "health" / f"{name}.json")
    health = read_health(layout, list(map(str, range(len(ratios)))), 0.5)
    assert health.healthy is healthy and words in health.line
