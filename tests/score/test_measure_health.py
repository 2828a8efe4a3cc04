"""Judges that read every pair, none, or only seen ones; synonyms and accuracies worked by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.core import tables
from compclip.io import empty_table, read_json, write_json, write_table
from compclip.score.measure_health import drawn_entries, ratio, synonyms, with_synonym
from compclip.split.wording import Mention
from tests.score.world import COLORS, FakeJudge, build, make_job
from workflow_scripts.layout import Layout
from workflow_scripts.score import measure_health
from workflow_scripts.score.section import read_health

NONE = empty_table(tables.VARIANTS)


class Blind(FakeJudge):
    """Reads no colors in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        return super().encode_texts([" ".join(w for w in t.split() if w not in COLORS) for t in texts], batch)


class Biased(FakeJudge):
    """Reads red as blue in captions."""

    def encode_texts(self, texts: list[str], batch: int) -> np.ndarray:
        red, blue = " purple ", " red "
        return super().encode_texts([t.replace(" red ", red).replace(" blue ", blue) for t in texts], batch)


def world(root: Path) -> Path:
    """Results whose prompts test their first pair, red held out; a red wing is also written ruby."""
    results = build(root)
    place = results / "d" / "color"
    captions = pd.read_parquet(results / "d" / "captions.parquet")
    splits = pd.read_parquet(place / "splits.parquet")
    words = captions["text"].str.split()
    captions["color"], captions["noun"] = words.str[1], words.str[2]
    splits["split"] = np.where(
        splits["image_id"].isin(captions.loc[captions["color"] == "red", "image_id"]), "test_unseen", "test_seen"
    )
    write_table(splits, place / "splits.parquet", tables.SPLIT)
    prompts = captions.merge(splits, on="image_id")
    prompts = prompts[(prompts["color"] == "red") == (prompts["split"] == "test_unseen")]
    prompts = prompts.assign(pair=prompts["color"] + "_" + prompts["noun"], draw=0)
    prompts = prompts[prompts["caption_id"] == 0]
    for row in prompts.itertuples():
        # A bag of words cannot tell which color is which part's; the whole caption it knows.
        (results / "d" / "images" / f"{row.image_id}.png").write_text(row.text)
    prompts["file_name"] = prompts["image_id"] + "/" + prompts["caption_id"].astype(str)
    write_table(prompts[list(tables.PROMPTS.columns)], place / "prompts.parquet", tables.PROMPTS)
    rows = [
        (row.split, row.image_id, row.caption_id, color, row.text.replace(f"a {row.color}", f"a {color}", 1), [])
        for row in prompts.itertuples()
        for color in COLORS
        if color != row.color
    ]
    variants = pd.DataFrame(rows, columns=list(tables.VARIANTS.columns))
    write_table(variants, place / "variants.parquet", tables.VARIANTS)
    pairs = captions.assign(adjective=captions["color"], adjective_start=2, relation="adjacent")
    pairs["adjective_end"] = 2 + pairs["color"].str.len()
    pairs["noun_start"] = pairs["adjective_end"] + 1
    pairs["noun_end"] = pairs["noun_start"] + pairs["noun"].str.len()
    write_table(pairs[list(tables.PAIRS.columns)], results / "d" / "pairs.parquet", tables.PAIRS)
    return results


def measured(root: Path, monkeypatch: pytest.MonkeyPatch, judge: FakeJudge) -> dict:
    results = world(root)
    monkeypatch.setattr("compclip.clip.model.load_judge", lambda *_: judge)
    of_scores = make_job(results, scores=root)
    of_scores.input.pairs, of_scores.output.health = results / "d" / "pairs.parquet", root / "health.json"
    measure_health.main(of_scores)
    return read_json(root / "health.json")


def test_a_judge_that_reads_colors_is_healthy_and_a_biased_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = measured(tmp_path / "reads", monkeypatch, FakeJudge())["images"]["real"]
    assert of["seen"]["accuracy"] == of["held_out"]["accuracy"] == of["ratio"] == of["seen"]["two_way"] == 1
    assert of["seen"]["chance"] == 0.25 and of["seen"]["n"] > 5 and of["held_out"]["n"] > 2

    biased = measured(tmp_path / "biased", monkeypatch, Biased())
    assert biased["images"]["real"]["held_out"]["accuracy"] < 0.3 and biased["ratio"] == 0

    of = measured(tmp_path / "blind", monkeypatch, Blind())["images"]["real"]
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
    # A misspelling is no synonym, and red has none.
    assert others == {("gray", f): "gray" for f in ("grey", "ashen", "gey")} | {("gray", "gray"): "grey"}

    def mention(text: str, word: str) -> Mention:
        at = text.index(word)
        return Mention("gray", "wing", at, at + len(word), len(text) - 4, len(text), "adjacent")

    said = "this bird has an ashen wing"
    assert with_synonym(said, [mention(said, "ashen")], others) == "this bird has a gray wing"
    assert with_synonym("a red wing", [], others) is None


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
