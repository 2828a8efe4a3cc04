"""What a model is asked: the paper's sentences by hand, and which compounds lack what a prompt takes."""

import json
from pathlib import Path

import pandas as pd

from tests.specs.evaluated import refused
from workflow_scripts.clip.prompts import TEMPLATE, by_captions, by_descriptions, read_templates, read_texts
from workflow_scripts.compun.prompt_names import read_prompt
from workflow_scripts.compun.prompts import compound_prompts

COMPOUNDS = pd.DataFrame(
    {
        "compound": ["snow ball", "goldfish", "grill surface thermometer"],
        "first": ["snow", None, "grill surface"],
        "second": ["ball", None, "thermometer"],
    }
)
CAPTIONS = {"snow ball": ["A child throws a snow ball.", "Snow ball on a fence"], "goldfish": ["goldfish in a bowl"]}
DESCRIPTIONS = {"goldfish": ["orange scales", "often swims in a bowl", "is small"]}


def test_template_and_reversed() -> None:
    prompts, lacking = compound_prompts(COMPOUNDS, {}, {}, 7, None)
    assert list(prompts) == ["template", "reversed"]
    assert prompts["template"]["snow ball"] == [["a photo of a snow ball"]]
    assert prompts["reversed"] == {
        "snow ball": [["a photo of a ball snow"]],
        "grill surface thermometer": [["a photo of a thermometer grill surface"]],
    }
    assert lacking == {"template": [], "reversed": ["goldfish"]}


def test_examples_are_the_first_captions() -> None:
    prompts, lacking = compound_prompts(COMPOUNDS, CAPTIONS, {}, 7, None)
    # The paper's section 4; an ensemble of one text a caption.
    first = ["a photo of a snow ball. An example of snow ball in an image is A child throws a snow ball."]
    second = ["a photo of a snow ball. An example of snow ball in an image is Snow ball on a fence"]
    assert prompts["examples_1"]["snow ball"] == [first] and prompts["examples_2"] == {"snow ball": [first, second]}
    assert list(prompts) == ["template", "reversed", "examples_1", "examples_2"]
    assert lacking["examples_1"] == ["grill surface thermometer"]
    assert lacking["examples_2"] == ["goldfish", "grill surface thermometer"]
    assert "examples_2" not in compound_prompts(COMPOUNDS, CAPTIONS, {}, 1, None)[0]


def test_descriptions() -> None:
    prompts, lacking = compound_prompts(COMPOUNDS, {}, DESCRIPTIONS, 7, None)
    assert prompts["descriptions"] == {
        "goldfish": [
            ["a photo of a goldfish, which has orange scales"],
            ["a photo of a goldfish, which often swims in a bowl"],
            ["a photo of a goldfish, which is small"],
        ]
    }
    assert lacking["descriptions"] == ["snow ball", "grill surface thermometer"]


def test_each_prompt_has_its_ensemble() -> None:
    templates = ["a bad photo of a {}.", "the {}"]
    prompts, _ = compound_prompts(COMPOUNDS, CAPTIONS, DESCRIPTIONS, 2, templates)
    alone = [name for name in prompts if not name.endswith("_ensemble")]
    assert list(prompts) == [*alone, *(f"{name}_ensemble" for name in alone)] and len(alone) == 5
    assert prompts["template_ensemble"]["goldfish"] == [["a bad photo of a goldfish.", "the goldfish"]]
    assert prompts["examples_1_ensemble"]["goldfish"] == [
        [
            "a bad photo of a goldfish. An example of goldfish in an image is goldfish in a bowl",
            "the goldfish. An example of goldfish in an image is goldfish in a bowl",
        ]
    ]
    assert prompts["descriptions_ensemble"]["goldfish"][0][0] == "a bad photo of a goldfish, which has orange scales"
    for name in prompts:
        for compound, ensembles in prompts[name].items():
            plain = prompts[name.removesuffix("_ensemble")]
            assert len(ensembles) == len(plain[compound]), "an ensemble for each text, not one more"
            assert {len(texts) for texts in ensembles} == ({2} if name.endswith("_ensemble") else {1})
        # The analysis takes every name apart.
        assert read_prompt(name).ensemble == name.endswith("_ensemble")


def test_a_name_with_braces_stays() -> None:
    assert by_captions("{x}", ["{}"], [TEMPLATE]) == [["a photo of a {x}. An example of {x} in an image is {}"]]
    assert by_descriptions("x", ["{}"], [TEMPLATE]) == [["a photo of a x, which has {}"]]
    assert read_templates("photo") == ["a photo of a {}"]


def test_texts_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    for content, said in [
        ([], "must map each compound to its texts"),
        ({"a": ["x"], "b": "x"}, "compound 'b': expected a list of texts"),
        ({"b": []}, "compound 'b': expected a list"),
        ({"b": ["x", " "]}, "none of them empty"),
    ]:
        path.write_text(json.dumps(content))
        assert said in refused(lambda: read_texts(path, "compound"))
