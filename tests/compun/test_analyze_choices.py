"""The results of stage compun: by hand, against plain loops, and from the command."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.compun.made_up import analyze_place, make_choices, make_compounds, make_place
from workflow_scripts.compun import published
from workflow_scripts.compun.analyze_choices import (
    Estimator,
    accuracies,
    analyze,
    by_kind,
    check_choices,
    compare,
    people_of,
    retrieved,
)  # fmt: skip
from workflow_scripts.compun.choices import is_tied
from workflow_scripts.compun.prompt_names import in_order, read_prompt, usual_prompts
from workflow_scripts.compun.published import OURS, PAPER
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import check_table, read_json
from workflow_scripts.core.tables import CHOICES, RETRIEVAL


def _choices(rows: list[tuple[str, str, str, float, float, float]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["compound", "model", "prompt", *list(CHOICES.columns)[3:6]])
    three = table[list(CHOICES.columns)[3:6]].to_numpy()
    table["answer"] = np.array(["compound", "n1", "n2"])[three.argmax(axis=1)]
    table["right"] = three[:, 0] > three[:, 1:].max(axis=1)
    return check_table(table, CHOICES, "choices")


@pytest.fixture
def small() -> pd.DataFrame:
    return _choices(
        [
            ("a", "m", "template", 0.30, 0.20, 0.10),
            ("b", "m", "template", 0.20, 0.30, 0.10),
            ("c", "m", "template", 0.30, 0.10, 0.30),
            ("d", "m", "template", 0.10, 0.00, 0.20),
            ("a", "m", "examples_2", 0.40, 0.20, 0.10),
            ("b", "m", "examples_2", 0.40, 0.30, 0.10),
            ("c", "m", "examples_2", 0.30, 0.10, 0.20),
            ("e", "m", "examples_2", 0.10, 0.20, 0.30),
        ]
    )


def test_accuracy_by_hand(small: pd.DataFrame) -> None:
    table = accuracies(small, Estimator(200, 0)).set_index("prompt")
    first = table.loc["template"]
    assert first[["accuracy", "n", "right", "n1", "n2", "ties"]].tolist() == [0.25, 4, 1, 1, 1, 1]
    assert first["similarity"] == pytest.approx(0.30) and 0 <= first["low"] <= 0.25 <= first["high"] <= 1
    assert table.loc["examples_2", "accuracy"] == 0.75
    assert table.loc["examples_2", "similarity"] == pytest.approx((0.4 + 0.4 + 0.3) / 3)
    assert is_tied(small).sum() == 1


def test_comparison_is_of_common_compounds(small: pd.DataFrame) -> None:
    (row,) = compare(small, "prompt", Estimator(200, 0)).to_dict("records")
    # Of a, b, c: the template has a alone, the examples have all three.
    assert (row["a"], row["b"], row["model"], row["n"]) == ("examples_2", "template", "m", 3)
    assert (row["both"], row["a_only"], row["b_only"], row["neither"]) == (1, 2, 0, 0)
    assert row["difference"] == pytest.approx(2 / 3) and row["p_exact"] == pytest.approx(0.5)
    assert row["p_holm"] == row["p_exact"]
    assert compare(small, "model", Estimator(200, 0)).empty
    apart = small[((small["prompt"] == "template") & (small["compound"] == "d")) | (small["compound"] == "e")]
    assert compare(apart, "prompt", Estimator(200, 0)).empty


def test_holms_families() -> None:
    """Of prompts, all tests of a model; of models, all tests under all prompts."""
    choices, _ = make_choices(make_compounds())
    prompts, models = (compare(choices, between, Estimator(50, 0)) for between in ("prompt", "model"))
    for part in (*(part for _, part in prompts.groupby("model")), models):
        smallest = part.loc[part["p_exact"].idxmin()]
        assert len(part) > 2 and smallest["p_holm"] == pytest.approx(min(1, smallest["p_exact"] * len(part)))


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [1, 2, 120])
def test_where_all_or_none_are_right_the_interval_is_exact(right: bool, n: int) -> None:
    """Clopper and Pearson's: one end is the share itself, beyond the other such a sample has 2.5 % chance."""
    rows = [(f"c{i}", model, "template", 0.3 if right else 0.1, 0.2, 0.1) for i in range(n) for model in "ab"]
    row = accuracies(_choices(rows), Estimator(200, 0)).iloc[0]
    chance = row["low"] if right else 1 - row["high"]
    assert (row["high"] if right else row["low"]) == row["accuracy"] == right
    assert chance**n == pytest.approx(0.025)
    kinds = by_kind(_choices(rows), pd.Series({f"c{i}": "both" for i in range(n)}), Estimator(200, 0)).iloc[0]
    assert kinds["wrong_high"] - kinds["wrong_low"] == pytest.approx(row["high"] - row["low"])
    # Neither has more than the other at any compound: no interval of the difference.
    difference = compare(_choices(rows), "model", Estimator(200, 0)).iloc[0]
    assert difference["difference"] == 0 and pd.isna(difference["low"]) and difference["n"] == n


def test_people_are_counted() -> None:
    accuracy = {"value": 0.9, "low": 0.8, "high": 1.0, "n": 5}
    found = {"accuracy": accuracy, "workers": {"answered": 4, "left_out": 1, "met_no_gold_task": 0}}
    assert people_of(found) == accuracy | {"note": "3 kept, 1 left out"}
    assert people_of(found | {"accuracy": None}) is None


def test_kinds_by_hand(small: pd.DataFrame) -> None:
    kinds = pd.Series({"a": "either", "b": "either", "c": "none"})
    table = by_kind(small[small["prompt"] == "template"], kinds, Estimator(200, 0)).set_index("kind")
    assert table.loc["either", ["n", "wrong", "right"]].tolist() == [2, 1, 1]
    assert table.loc["either", "similarity"] == pytest.approx(0.30)
    assert table.loc["none", ["n", "wrong", "wrong_share"]].tolist() == [1, 1, 1.0]
    # No right answer: no similarity. "both" has no compound, and d no kind.
    assert pd.isna(table.loc["none", "similarity"]) and list(table.index) == ["either", "none"]
    assert by_kind(small, pd.Series(dtype=object), Estimator(200, 0)).empty


def test_retrieved_counts_no_tie() -> None:
    rows = [("a", 0, 0), ("b", 0, 1), ("c", 2, 0), ("d", 0, 0)]
    table = pd.DataFrame([(n, "m", "template", 12, a, t) for n, a, t in rows], columns=list(RETRIEVAL.columns))
    row = retrieved(check_table(table, RETRIEVAL, "x"), Estimator(100, 0)).iloc[0]
    assert (row["found"], row["n"], row["images"], row["ties"], row["median_rank"]) == (0.5, 4, 12, 1, 1.5)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("template", ("template", None, False)),
        ("examples_7_ensemble", ("examples", 7, True)),
        ("reversed_ensemble", ("reversed", None, True)),
    ],
)
def test_prompt(name: str, parts: tuple[str, int | None, bool]) -> None:
    assert read_prompt(name) == parts


@pytest.mark.parametrize("name", ["examples", "template_3", "other", "examples_x", ""])
def test_unknown_prompt(name: str) -> None:
    with pytest.raises(UserError, match="examples_N"):
        read_prompt(name)


def test_usual_prompts() -> None:
    assert usual_prompts(["template", "examples_1", "examples_5", "examples_7"]) == ["template", "examples_5"]
    assert usual_prompts(["examples_1", "examples_3"]) == ["examples_3"]
    assert usual_prompts(["template"]) == ["template"]


def test_order() -> None:
    choices, _ = make_choices(make_compounds())
    names = list(in_order(choices)["prompt"].drop_duplicates())
    assert names[:2] == ["template", "reversed"] and names[-1] == "template_ensemble"
    assert list(in_order(choices)["model"].drop_duplicates()) == list(choices["model"].drop_duplicates())


def test_beside_says_whose_it_is() -> None:
    compounds = make_compounds()
    choices, ranks = make_choices(compounds)
    people = {"value": 0.9, "low": 0.8, "high": 0.95, "n": 59}
    tables, summary = analyze(compounds, choices, ranks, people, {"ALBEF": "no weights"}, Estimator(50, 0))
    beside = tables["beside"]
    assert set(beside["whose"]) == {PAPER, OURS}
    paper = beside[(beside["whose"] == PAPER) & (beside["table"] == "1")]
    assert paper["value"].tolist() == [line.accuracy for line in published.TABLE_1] and paper["low"].isna().all()
    ours = beside[(beside["whose"] == OURS) & (beside["table"] == "1")]
    # Two models by the five usual prompts, people, and the model that could not be loaded.
    assert len(ours) == 2 * 5 + 2 and "examples_1" not in set(ours["prompt"])
    assert ours[ours["note"].notna()]["note"].tolist() == ["not loaded: no weights"]
    counts = beside[(beside["table"] == "2") & (beside["whose"] == PAPER)]
    assert counts["prompt"].tolist() == [f"examples_{n}" for n in range(1, 8)]
    assert beside[(beside["table"] == "retrieval") & (beside["whose"] == PAPER)]["value"].tolist() == [0.12]
    assert (summary["compounds"], summary["judged"], summary["incomplete"]["count"], summary["ties"]) == (60, 59, 1, 1)
    assert sum(summary["kinds"].values()) + summary["judged_without_kind"] == 59


def test_published_agrees_with_itself() -> None:
    by_name = {(line.model, line.prompt): line.accuracy for line in published.TABLE_1}
    assert by_name["CLIP", "examples_5"] == published.TABLE_2[5]
    assert sum(published.KINDS.values()) == published.COMPOUNDS and published.IMAGES == 3 * published.COMPOUNDS
    # Section 6 calls 12 % a drop of 66.25 points.
    assert by_name["CLIP", "template"] - published.RETRIEVAL.accuracy == pytest.approx(0.6625)


def test_choices_of_other_compounds(small: pd.DataFrame) -> None:
    compounds = make_compounds(3)
    with pytest.raises(UserError, match="'a' is not among the compounds"):
        check_choices(small, compounds, Path("choices.parquet"))
    with pytest.raises(UserError, match="no choices"):
        check_choices(small.head(0), compounds, Path("choices.parquet"))


def test_same_bytes(tmp_path: Path) -> None:
    place = make_place(tmp_path, pictures=False)
    one, two = (analyze_place(place, tmp_path / name) for name in ("one", "two"))
    files = sorted(path.name for path in one.iterdir())
    assert files == ["accuracy.csv", "beside.csv", "comparisons.csv", "kinds.csv", "retrieval.csv", "summary.json"]
    for name in files:
        assert (one / name).read_bytes() == (two / name).read_bytes()
    assert read_json(one / "summary.json")["not_loaded"] == {"ALBEF": "no <i>maintained</i> library"}


def test_a_list_without_kinds_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    analysis = analyze_place(make_place(tmp_path, kinds=False, pictures=False), tmp_path / "out")
    assert "no compound has a kind" in caplog.text and "ALBEF was not loaded" in caplog.text
    assert len(pd.read_csv(analysis / "kinds.csv")) == 0
