"""The analysis of choices: by hand, against independent values, and from the command."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.compun.analyze_choices import ANALYSIS_COLUMNS, analyze_choices
from compclip.core.tables import CHOICES
from compclip.io import check_table
from compclip.stats.paired import holm
from tests.compun.conftest import MODELS, read
from tests.specs.evaluated import refused

THREE = ["similarity_compound", "similarity_n1", "similarity_n2"]


def made(rows: list[tuple[str, str, str, float, float, float]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["compound", "model", "prompt", *THREE])
    three = table[THREE].to_numpy()
    table["answer"] = np.array(["compound", "n1", "n2"])[three.argmax(axis=1)]
    table["right"] = three[:, 0] > three[:, 1:].max(axis=1)
    return check_table(table.assign(rank=(three >= three[:, :1]).sum(axis=1)), CHOICES, "choices")


def test_by_hand() -> None:
    similarities = {
        "template": {"a": (0.3, 0.2, 0.1), "b": (0.2, 0.3, 0.1), "c": (0.3, 0.1, 0.3), "d": (0.1, 0.0, 0.2)},
        "examples_2": {"a": (0.4, 0.2, 0.1), "b": (0.4, 0.3, 0.1), "c": (0.3, 0.1, 0.2), "e": (0.1, 0.2, 0.3)},
    }
    choices = made([(name, "m", prompt, *three) for prompt, of in similarities.items() for name, three in of.items()])
    compounds = pd.DataFrame({"compound": list("abcde"), "kind": ["either", "either", "none", None, None]})
    people = {"value": 0.9, "low": 0.8, "high": 1.0, "n": 5}
    small = analyze_choices(choices, compounds, people, resamples=200)
    rows = small.set_index(["model", "prompt", "measure"])
    assert rows.index.is_unique and list(small) == ANALYSIS_COLUMNS
    expected = {
        # One of four is right, one ties; a ranks first of all, the tie second.
        ("template", "right"): (1 / 4, 4), ("template", "tied"): (1 / 4, 4), ("template", "first"): (1 / 4, 4),
        ("examples_2", "right"): (3 / 4, 4), ("examples_2", "tied"): (0, 4), ("examples_2", "first"): (3 / 4, 4),
        # Of a, b and c, which both were asked of, the template has a, the examples all.
        ("examples_2", "minus template"): (2 / 3, 3),
        ("template", "wrong, either"): (1 / 2, 2), ("template", "wrong, none"): (1, 1),
        ("examples_2", "wrong, either"): (0, 2), ("examples_2", "wrong, none"): (0, 1),
    }  # fmt: skip
    values = {key[1:]: (row["value"], row["n"]) for key, row in rows.loc[["m"]].iterrows()}
    assert values.keys() == expected.keys()
    assert all(values[key] == pytest.approx(expected[key]) for key in expected)
    # Two of three differ, in one direction: 2 / 2 ** 2.
    assert rows.loc[("m", "examples_2", "minus template"), "p"] == pytest.approx(0.5)
    assert small[small["model"] == "people"][["measure", "value", "n"]].values.tolist() == [["right", 0.9, 5]]


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [1, 2, 120])
def test_where_all_or_none_are_right_the_interval_is_exact(right: bool, n: int) -> None:
    """Clopper and Pearson's: one end is the share itself, beyond the other such a sample has 2.5 % chance."""
    choices = made([(f"c{i}", model, "template", 0.3 if right else 0.1, 0.2, 0.1) for i in range(n) for model in "ab"])
    compounds = pd.DataFrame({"compound": [f"c{i}" for i in range(n)], "kind": "both"})
    rows = analyze_choices(choices, compounds, resamples=200).set_index(["model", "measure"])
    row = rows.loc[("a", "right")]
    chance = row["low"] if right else 1 - row["high"]
    assert (row["high"] if right else row["low"]) == row["value"] == right and chance**n == pytest.approx(0.025)
    wrong = rows.loc[("a", "wrong, both")]
    assert wrong["high"] - wrong["low"] == pytest.approx(row["high"] - row["low"])
    # Neither has more than the other at any compound: no interval of the difference.
    difference = rows.loc[("b", "minus a")]
    assert difference["value"] == 0 and pd.isna(difference["low"]) and difference["n"] == n and difference["p"] == 1


def test_differences_are_tested_with_holms_correction_and_faulty_choices_refused(place: Path) -> None:
    """Of prompts, all tests of a model; of models, all tests under all usual prompts."""
    choices = read(place, "choices/choices")
    table = analyze_choices(choices, read(place, "compounds"), resamples=100)
    right = choices.set_index(["model", "prompt", "compound"])["right"].unstack("compound")
    tested = table[table["measure"].str.startswith("minus")].set_index(["model", "prompt", "measure"])
    usual = ["template", "reversed", "descriptions", "examples_5"]
    first, second = MODELS
    families = [[((model, p), (model, "template"), "minus template") for p in usual[1:]] for model in MODELS]
    families.append([((second, p), (first, p), f"minus {first}") for p in usual])
    assert len(tested) == sum(map(len, families))
    for family in families:
        exact = []
        for one, other, measure in family:
            a, b = right.loc[one], right.loc[other]
            exact.append(stats.binomtest(int((a & ~b).sum()), max(1, int((a != b).sum()))).pvalue)
            row = tested.loc[(*one, measure)]
            assert row["value"] == pytest.approx(a.mean() - b.mean()) and row["low"] < row["value"] < row["high"]
        rows = [tested.loc[(*one, measure), "p"] for one, _, measure in family]
        assert rows == pytest.approx(holm(exact).tolist())
    faulty = choices.assign(compound="x" + choices["compound"])
    for table, fault in ((faulty, "23 compounds are not in"), (choices.head(0), "choices: there are none")):
        assert fault in refused(lambda table=table: analyze_choices(table, read(place, "compounds")))
