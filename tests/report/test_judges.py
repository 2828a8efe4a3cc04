"""What is composed by any judge, against the truth of a drawn world; and where judges agree."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import compclip
from compclip.core.tables import HELD_OUT
from compclip.report.judges import JudgedBy, agreement, compare_judges, scores_of_choices, tau
from compclip.report.judges_view import (
    agreement_view,
    certificate_lines,
    judge_lines,
    judged_generators,
    verdict_lines,
)
from compclip.stats.composed import verdict_of
from tests.judge.drawn_world import NamedColors, Silent, world

CHANCES = {"none": 0.0, "quarter": 0.25, "half": 0.5, "most": 0.75, "all": 1.0}
ANCHORS = dict.fromkeys(("test_seen", "test_unseen", "test_swapped"), ("faithful", "usual"))


def composed(table: pd.DataFrame, generator: str) -> pd.Series:
    is_row = (table["split"] == HELD_OUT) & (table["measure"] == "composes")
    return table[is_row & (table["generator"] == generator)].iloc[0]


def estimates(*judges: NamedColors) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the choices of all judges as members of one, and what is composed by them."""
    entries, variants = world(CHANCES)
    members = []
    for number, judge in enumerate(judges):
        choices = compclip.choose(judge, entries, variants, seed=number)
        members.append(choices.assign(member=str(number)))
    choices = pd.concat(members, ignore_index=True)
    return choices, compclip.fraction_composed(choices, reference="faithful", usual="usual")


def drawn(generator: str) -> float:
    """Return the fraction of held-out prompts whose pair a generator has drawn."""
    entries, _ = world(CHANCES)
    rows = entries[(entries["generator"] == generator) & (entries["split"] == "test_unseen")]
    color = rows["path"].str.extract(r"-(\w+)\.png$")[0]
    return float((color == rows["pair"].str.split("_").str[0]).mean())


def test_a_judge_with_errors_finds_what_was_drawn() -> None:
    _, table = estimates(NamedColors(error=0.3))
    for generator in CHANCES:
        row = composed(table, generator)
        assert row["value"] == pytest.approx(drawn(generator), abs=0.12)
        assert row["same_pairs_low"] <= row["value"] <= row["same_pairs_high"]


def test_a_judge_without_members_has_no_interval_for_new_pairs() -> None:
    _, table = estimates(NamedColors(error=0.3))
    assert table["new_pairs_low"].isna().all()
    row = composed(table, "half")
    assert row["verdict"] == verdict_of(row["same_pairs_low"], row["same_pairs_high"])


def test_members_give_an_interval_for_new_pairs() -> None:
    _, table = estimates(NamedColors(error=0.3), NamedColors(error=0.2))
    row = composed(table, "half")
    assert row["new_pairs_low"] <= row["same_pairs_low"]
    assert row["new_pairs_high"] >= row["same_pairs_high"]


def test_anchors_are_named_instead_of_judged() -> None:
    _, table = estimates(NamedColors())
    assert composed(table, "faithful")["verdict"] == "reference"
    assert composed(table, "usual")["verdict"] == "usual pair"


def judged(judge: NamedColors, name: str) -> JudgedBy:
    choices, _ = estimates(judge)
    unanswered = float((~choices["answered"]).mean())
    return JudgedBy(name, "test", scores_of_choices(choices, None), ANCHORS, unanswered)


@pytest.mark.parametrize("missing", ["generator", "adjective_first", "pair"])
def test_a_table_without_a_column_is_refused(missing: str) -> None:
    choices, _ = estimates(NamedColors())
    with pytest.raises(compclip.UserError, match=f"no column {missing}"):
        compclip.fraction_composed(choices.drop(columns=missing), "faithful", "usual")


HELD_OUT_ROWS = "split == 'test_unseen' and generator == 'half'"


def percent_instead_of_fraction(choices: pd.DataFrame) -> pd.DataFrame:
    return choices.assign(adjective_first=choices["adjective_first"] * 100)


def without_a_value(choices: pd.DataFrame) -> pd.DataFrame:
    rows = choices.query(HELD_OUT_ROWS).index[:7]
    choices.loc[rows, "adjective_first"] = np.nan
    return choices


def without_rows(choices: pd.DataFrame) -> pd.DataFrame:
    return choices.drop(index=choices.query(HELD_OUT_ROWS).index[:7])


def with_ids_of_images(choices: pd.DataFrame) -> pd.DataFrame:
    return choices.assign(image_id=choices["generator"] + choices["image_id"])


def with_words_as_pair(choices: pd.DataFrame) -> pd.DataFrame:
    return choices.assign(pair=choices["pair"].str.replace("_", " "))


def with_another_pair(choices: pd.DataFrame) -> pd.DataFrame:
    is_half = choices["generator"] == "half"
    return choices.assign(pair=choices["pair"].mask(is_half, "red_car"))


def with_a_nameless_member(choices: pd.DataFrame) -> pd.DataFrame:
    return choices.assign(member=None)


def with_a_partial_member(choices: pd.DataFrame) -> pd.DataFrame:
    first, second = choices.assign(member="0"), choices.assign(member="1")
    return pd.concat([first, second[second["generator"] != "half"]], ignore_index=True)


def twice(choices: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([choices, choices], ignore_index=True)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (percent_instead_of_fraction, "column adjective_first: row 0: expected 0 to 1"),
        (without_a_value, "half, test_unseen, member judge: no adjective_first for 7 of 200"),
        (without_rows, "half, test_unseen, member judge: no adjective_first for 7 of 200"),
        (with_ids_of_images, "usual, test_seen, member judge: no adjective_first for 200 of 200"),
        (with_words_as_pair, "choices: pair .*; write adjective_noun"),
        (with_another_pair, "several pairs for the prompt"),
        (with_a_nameless_member, "column member: "),
        (with_a_partial_member, "member 1: no generator .'half'."),
        (twice, "duplicate of an earlier row"),
    ],
)
def test_choices_that_would_give_a_wrong_number_are_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], fault: str
) -> None:
    choices, _ = estimates(NamedColors())
    choices = choices.drop(columns="member")
    with pytest.raises(compclip.UserError, match=fault):
        compclip.fraction_composed(change(choices), "faithful", "usual")


@pytest.mark.parametrize(
    ("usual", "fault"),
    [
        ("faithful", "faithful is reference and usual"),
        ({"test_sen": "usual"}, "split .'test_sen'."),
    ],
)
def test_anchors_that_do_not_fit_are_refused(usual: Any, fault: str) -> None:
    choices, _ = estimates(NamedColors())
    with pytest.raises(compclip.UserError, match=fault):
        compclip.fraction_composed(choices, "faithful", usual)


def test_an_anchor_that_was_not_judged_is_named() -> None:
    choices, _ = estimates(NamedColors())
    with pytest.raises(compclip.UserError, match="no generator .'memorizer'.; choose"):
        compclip.fraction_composed(choices, "faithful", "memorizer")


def test_judges_with_the_same_answers_agree() -> None:
    judges = [judged(NamedColors(), "a"), judged(NamedColors(), "b")]
    judges = [JudgedBy(judge.judge, "test", judge.scores, ANCHORS) for judge in judges]
    table = compare_judges(judges, {})
    (pair,) = agreement(judges, table)
    assert pair["judges"] == ["a", "b"]
    assert pair["tau"]["test_unseen"]["value"] == pytest.approx(1)
    assert pair["verdicts"] == []
    assert all(gap["value"] == 0 for gap in pair["pairs"])


def test_a_silent_judge_is_named_first_and_differs() -> None:
    judges = [judged(NamedColors(), "a"), judged(Silent(), "silent")]
    table = compare_judges(judges, {})
    _, silent = verdict_lines(table, 0.02)
    assert silent.startswith("silent: 14.3 % of its choices have no usable answer; ")
    (pair,) = agreement_view(agreement(judges, table))
    assert pair["judges"] == ["a", "silent"]
    generators = judged_generators(table)
    assert generators == [*CHANCES]
    lines = judge_lines(table, generators, HELD_OUT, "composes")
    assert [line.name for line in lines] == ["a", "silent"]


def test_a_judge_that_fails_its_certificate_is_said_to() -> None:
    judge = replace(judged(NamedColors(), "a"), passes=False)
    (line,) = verdict_lines(compare_judges([judge], {}), 0.02)
    assert line == "a: no verdicts: the judge fails its certificate or bias check."


def test_members_of_the_leading_judge_are_named_with_it() -> None:
    kinds = {
        "adjective": {
            "accuracy": None,
            "chance": 0.5,
            "text_only": None,
            "order_effect": None,
            "n": 3,
        }
    }
    certificate = {"passes": True, "kinds": kinds}
    lines = certificate_lines({"judge": {"0": certificate}, "vit": {"vit-0": certificate}})
    assert [line.name for line in lines] == ["judge-0, adjective", "vit-0, adjective"]


def test_tau_is_that_of_scipy() -> None:
    values = np.random.default_rng(0).integers(0, 5, size=(20, 7, 2)).astype(float)
    expected = [stats.kendalltau(*sample.T).statistic for sample in values]
    assert tau(values) == pytest.approx(expected)


def test_a_model_trained_on_other_data_gets_no_verdict() -> None:
    table = compare_judges([judged(NamedColors(), "a")], {"half": "other"})
    row = composed(table, "half")
    assert pd.isna(row["verdict"])
    assert row["note"].startswith("it was not trained on this split")
    assert row["value"] == pytest.approx(drawn("half"), abs=0.1)
