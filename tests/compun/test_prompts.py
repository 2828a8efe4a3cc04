"""What a model is asked: the paper's sentences by hand, and the tables of texts that they are made of."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from workflow_scripts.compun.prompts import compound_prompts, read_texts, usual_prompts

COMPOUNDS = pd.DataFrame(
    {
        "compound": ["snow ball", "goldfish", "grill surface thermometer"],
        "first": ["snow", None, "grill surface"],
        "second": ["ball", None, "thermometer"],
    }
)
CAPTIONS = {"snow ball": ["A child throws a snow ball.", "Snow ball on a fence"], "goldfish": ["goldfish in a bowl"]}
DESCRIPTIONS = {"goldfish": ["orange scales", "often swims in a bowl", "is small"]}


def test_the_papers_sentences() -> None:
    """Section 4."""
    prompts = compound_prompts(COMPOUNDS, CAPTIONS, DESCRIPTIONS)
    assert list(prompts) == ["template", "reversed", "descriptions", "examples_1", "examples_2"]
    assert prompts["template"]["goldfish"] == ["a photo of a goldfish"]
    assert prompts["reversed"] == {
        "snow ball": ["a photo of a ball snow"],
        "grill surface thermometer": ["a photo of a thermometer grill surface"],
    }
    start = "a photo of a snow ball. An example of snow ball in an image is"
    examples = [f"{start} A child throws a snow ball.", f"{start} Snow ball on a fence"]
    assert prompts["examples_1"]["snow ball"] == examples[:1] and prompts["examples_2"] == {"snow ball": examples}
    assert prompts["descriptions"] == {
        "goldfish": [
            "a photo of a goldfish, which has orange scales", "a photo of a goldfish, which often swims in a bowl",
            "a photo of a goldfish, which is small",
        ]
    }  # fmt: skip
    assert list(compound_prompts(COMPOUNDS, {}, {})) == ["template", "reversed"]


def test_usual_prompts_have_the_papers_number_of_captions() -> None:
    assert usual_prompts(["template", "examples_1", "examples_5", "examples_7"]) == ["template", "examples_5"]
    assert usual_prompts(["template", "examples_1", "examples_3"]) == ["template", "examples_3"]


def test_tables_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"Snow_Ball": ["one", " two\n"], "b": ["x"]}))
    rows = [("Snow_Ball", "one"), ("b", "x"), ("Snow_Ball", " two\n")]
    pd.DataFrame(rows, columns=["compound", "text"]).to_csv(tmp_path / "a.csv", index=False)
    expected = {"snow ball": ["one", "two"], "b": ["x"]}
    assert read_texts(tmp_path / "a.json") == read_texts(tmp_path / "a.csv") == expected


@pytest.mark.parametrize("kind", ["captions", "descriptions"])
def test_the_same_prompt_has_the_texts_of_any_spelling(kind: str) -> None:
    texts: dict[str, Any] = {"captions": {}, "descriptions": {}, kind: {"snow ball": ["x"]}}
    compounds = COMPOUNDS.assign(compound=["Snow Ball", "b", "c"])
    assert "Snow Ball" in compound_prompts(compounds, **texts)["examples_1" if kind == "captions" else kind]
