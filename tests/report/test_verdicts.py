"""Fractions composed, words, comparisons and scores by pair, against plain computations of made-up scores."""

import numpy as np
import pandas as pd
import pytest

from compclip.report import by_pair, comparisons
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.readable import missing_lines
from compclip.report.table import Scored
from compclip.report.verdicts import FEW_PAIRS, LEAST_FOLLOWED, Verdict, few_pairs, none_line, verdicts
from compclip.stats.paired import holm
from tests.report.scored import ANCHORS, SKILLS, mixed, scores, tables_of


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, ...]:
    return tables_of(scores())


def verdicts_by_name(table: pd.DataFrame, healthy: bool | None = None) -> dict[str, Verdict]:
    return {verdict.generator: verdict for verdict in verdicts(table, ANCHORS, healthy)}


def words(table: pd.DataFrame) -> dict[str, str]:
    return {name: verdict.word for name, verdict in verdicts_by_name(table).items()}


def test_fractions_composed_and_how_a_generator_follows(made: tuple[pd.DataFrame, ...]) -> None:
    """By plain means of all entries and judges; evidence by sums over each pair."""
    found = {(score.generator, score.split): score for score in scores()}
    table = made[0].set_index(["measure", "generator", "split"])
    for split in HELDOUT_SPLITS:
        of = {
            name: values(found[name, split]) for name, skills in SKILLS.items() if skills[2] or split != "test_swapped"
        }
        habit, whole = of["memorizer"], of["faithful"] - of["memorizer"]
        for name, by_judge in of.items():
            row = table.loc[("fraction_composed", name, split)]
            assert row["value"] == pytest.approx((by_judge - habit).mean() / whole.mean(), abs=1e-6)
            for kind in ("same_pairs", "new_pairs"):
                assert row[f"{kind}_low"] <= row["value"] <= row[f"{kind}_high"]
            assert row["n"] == len(by_judge) and row["pairs"] == 20
        pairs = found["faithful", split].entries["pair"]
        evidence = pd.Series(whole.mean(axis=1)).groupby(pairs).sum() / whole.mean(axis=1).sum()
        by_name = made[2].query("split == @split and generator == 'blind'").set_index("pair")["evidence"]
        pd.testing.assert_series_equal(by_name, evidence, check_names=False, atol=1e-6)
    for generator in ("composer", "memorizer", "blind"):
        score, reference = (table.at[("r_precision", name, "test_seen"), "value"] for name in (generator, "faithful"))
        row = table.loc[("r_precision_normalized", generator, "test_seen")]
        assert row["value"] == pytest.approx((score - 0.02) / (reference - 0.02), abs=1e-5)
        assert row["new_pairs_low"] <= row["same_pairs_low"] <= row["value"]
        assert row["value"] <= row["same_pairs_high"] <= row["new_pairs_high"]
    assert table.at[("r_precision_normalized", "faithful", "test_seen"), "value"] == 1


def values(score: Scored) -> np.ndarray:
    """Return adjective accuracy by entry and judge."""
    return np.stack([table["adjective_first"] for table in score.by_judge], axis=1)


def test_words_and_few_pairs_are_named(made: tuple[pd.DataFrame, ...]) -> None:
    said = words(made[0])
    assert said["faithful"] == "reference" and said["memorizer"] == "habit"
    assert said["photographs"] == "composes" != said["blind"]
    assert said["composer"] in ("composes", "mostly composes", "mostly to composes")
    line = verdicts_by_name(made[0])["composer"].line
    row = made[0].set_index(["measure", "generator", "split"]).loc[("fraction_composed", "composer", "test_swapped")]
    these, others = (
        (f"{100 * row[f'{kind}_low']:.0f}", f"{100 * row[f'{kind}_high']:.0f}") for kind in ("same_pairs", "new_pairs")
    )
    assert f"{100 * row['value']:.0f} % [{these[0]}, {these[1]}] of 20 held-out pairs (swapped;" in line
    assert f"new pairs: [{others[0]}, {others[1]}]" in line
    assert "of the reference's R-precision on seen captions" in line
    (warning,) = few_pairs(tables_of(scores(images=12, pairs=4))[0])
    assert warning.startswith("few pairs: unseen tests 4 and swapped tests 4 held-out pairs, fewer than 10")
    assert "5 pairs ±" in warning
    for pairs in (0, 1, FEW_PAIRS - 1, FEW_PAIRS):
        named = [f"unseen tests {pairs} and swapped tests" in line for line in few_pairs(made[0].assign(pairs=pairs))]
        assert named == [True] * (0 < pairs < FEW_PAIRS)


@pytest.mark.parametrize("whole_pairs", [False, True])
def test_mixtures_are_estimated_and_named_right(whole_pairs: bool) -> None:
    """Each prompt, or each pair, is drawn faithfully with a known chance, and from memory otherwise."""
    found = scores()
    fractions = (0.0, 0.25, 0.5, 0.75, 1.0)
    for number, fraction in enumerate(fractions):
        for seed in range(4):
            found += mixed(found, f"mix{number}_{seed}", fraction, seed, whole_pairs)
    table = tables_of(found)[0]
    rows = table[(table["measure"] == "fraction_composed") & table["generator"].str.startswith("mix")]
    means = rows.groupby(rows["generator"].str[3].astype(int))["value"].mean()
    assert means.is_monotonic_increasing
    assert means.to_numpy() == pytest.approx(np.array(fractions), abs=0.12 if whole_pairs else 0.05)
    said = words(table)
    for seed in range(4):
        assert said[f"mix0_{seed}"] == "memorizes" and said[f"mix4_{seed}"] == "composes"
        assert said[f"mix2_{seed}"] not in ("memorizes", "composes")


def test_intervals_are_simultaneous_over_the_generators_that_are_not_controls() -> None:
    found = scores()
    for seed in range(5):
        found += mixed(found, f"model{seed}", 0.5, seed)
    table = tables_of(found)[0].set_index(["measure", "generator", "split"])
    for split in HELDOUT_SPLITS:
        alone, together = (table.loc[(f"fraction_composed{kind}", "model3", split)] for kind in ("", "_together"))
        assert together["value"] == alone["value"]
        for kind in ("same_pairs", "new_pairs"):
            widths = [row[f"{kind}_high"] - row[f"{kind}_low"] for row in (alone, together)]
            assert 1.1 < widths[1] / widths[0] < 1.6
    assert ("fraction_composed_together", "blind", "test_swapped") not in table.index
    one = tables_of(scores() + mixed(found, "model", 0.5))[0]
    assert "fraction_composed_together" not in set(one["measure"])


# R-precision on seen captions as a fraction of the reference's, low and high, and the begin of the line.
FOLLOWING = [
    ((0.5, 0.9), "composer: "),
    ((0.02, LEAST_FOLLOWED - 1e-9), "composer: does not follow prompts: "),
    ((0.02, LEAST_FOLLOWED + 1e-9), "composer: no word: may not follow prompts; "),
    ((LEAST_FOLLOWED + 1e-9, 0.9), "composer: "),
    ((np.nan, np.nan), "composer: no word: not known whether it follows prompts; "),
]


@pytest.mark.parametrize(("follows", "begin"), FOLLOWING)
def test_there_is_no_word_for_a_generator_that_may_not_follow_prompts(
    made: tuple[pd.DataFrame, ...], follows: tuple[float, float], begin: str
) -> None:
    table = made[0].copy()
    row = (table["generator"] == "composer") & (table["measure"] == "r_precision_normalized")
    table.loc[row & (table["split"] == "test_seen"), ["same_pairs_low", "same_pairs_high"]] = follows
    if np.isnan(follows[0]):
        table = table[~row]
    line = verdicts_by_name(table)["composer"].line
    assert line.startswith(begin)
    assert ("composes" in line) == (begin == "composer: ")


def test_no_word_by_an_unfit_judge_and_the_primary_comparisons(made: tuple[pd.DataFrame, ...]) -> None:
    unfit = verdicts_by_name(made[0], healthy=False)["composer"].line
    assert unfit.startswith("composer: no word: the judge does not read held-out")
    assert verdicts_by_name(made[0], healthy=True) == verdicts_by_name(made[0])
    alone = tables_of(scores(judges=1))[0]
    assert verdicts_by_name(alone)["composer"].line.startswith("composer: no word: one judge; ")
    assert "not known for new pairs and judges: one judge" in verdicts_by_name(alone)["composer"].line
    rows = made[1]
    primary = (rows["kind"] == "generators") & (rows["split"] != "test_seen")
    assert set(rows.loc[primary, "family"]) == {"primary"} and set(rows.loc[~primary, "family"]) == {"exploratory"}
    assert rows.loc[~primary, "p_holm"].isna().all()
    for _, family in rows[primary].groupby("measure"):
        assert len(family) == 10 + 6  # unseen: 5 generators; swapped: 4
        assert family["p_holm"].to_numpy(float) == pytest.approx(holm(family["p"].to_numpy(float)), abs=2e-5)


def test_without_different_anchors_there_is_no_fraction() -> None:
    for reference in (None, "unknown"):
        anchors = dict.fromkeys(HELDOUT_SPLITS, (reference, "memorizer"))
        table = tables_of(scores(images=20), anchors)[0]
        assert not verdicts(table, anchors, None) and "fraction_composed" not in set(table["measure"])
        assert none_line(anchors).startswith("no fraction composed: no generator is reference")
    alike = {**SKILLS, "memorizer": SKILLS["faithful"]}
    table = tables_of(scores(alike, images=30))[0]
    rows = table[table["measure"] == "fraction_composed"]
    assert rows["value"].isna().all() and rows["note"].str.contains("may be 0").all()
    assert "not measurable on unseen (reference minus habit is " in verdicts_by_name(table)["composer"].line


def test_pair_rows() -> None:
    found = scores()
    rows = pd.DataFrame(by_pair.pair_rows(found, {}))
    assert list(rows.columns) == by_pair.PAIR_COLUMNS
    of = {(s.generator, s.split): s.entries for s in found}
    for row in rows[rows["generator"] == "memorizer"].itertuples():
        own = of["memorizer", row.split]
        kept = own[own["pair"] == row.pair]
        assert (row.n, row.images) == (len(kept), kept["image_id"].nunique())
        for measure, column in (("r_precision", "expected_top1"), ("adjective_accuracy", "adjective_first")):
            score = getattr(row, measure)
            assert score == pytest.approx(kept[column].mean())
            assert getattr(row, f"{measure}_low") <= score <= getattr(row, f"{measure}_high")
    # A generator whose images are all missing on seen, and a split of one pair.
    found = scores({"faithful": SKILLS["faithful"], "memorizer": SKILLS["memorizer"]}, images=10, pairs=1)
    empty = [i for i, s in enumerate(found) if (s.generator, s.split) == ("memorizer", "test_seen")]
    for i in empty:
        found[i] = Scored(
            found[i].about, found[i].summary, found[i].entries[:0], tuple(t[:0] for t in found[i].by_judge)
        )
    rows = pd.DataFrame(comparisons.comparisons(found))
    assert rows.loc[rows["split"] == "test_seen", "difference"].isna().all()
    assert rows["new_pairs_low"].isna().all() and rows["p_holm"].isna().all()
    assert list(by_pair.pair_rows(found, {}))


def test_who_leaves_out_prompts_gains_nothing_and_is_named_first() -> None:
    """A third of the images are missing: they count as wrong, beside a comparison on the images that both have."""
    scored = [of for of in scores() if of.generator in ("faithful", "memorizer")]
    lacking = []
    for of in scored:
        if of.generator == "faithful":
            gone = np.arange(len(of.entries)) % 3 == 0
            wrong = {"similarity": np.nan, "expected_top1": 0.0, "adjective_first": 0.0, "hit": False}
            tables = [table.copy() for table in of.by_judge]
            for table in tables:
                table.loc[gone, list(wrong)] = list(wrong.values())
            lacking.append(Scored(of.about, {**of.summary, "generator": "lacking"}, tables[0], tuple(tables)))
    table, differences, _ = tables_of([*scored, *lacking])
    unseen = table[table["split"] == "test_unseen"].set_index(["generator", "measure"])["value"]
    assert 0.6 < unseen["lacking", "fraction_composed"] < 0.72
    assert words(table)["lacking"] == "half to mostly"
    of_unseen = differences[(differences["split"] == "test_unseen") & (differences["b"] == "lacking")]
    of_unseen = of_unseen[of_unseen["measure"] == "adjective_accuracy"].set_index(["a", "kind"])
    of_faithful = of_unseen.loc["faithful"]["difference"]
    assert of_faithful["both_made"] == 0 < of_faithful["generators"]
    assert of_unseen.loc["faithful"]["n"].to_dict() == {"generators": 400, "both_made": 266}
    assert "both_made" not in set(tables_of(scored)[1]["kind"]), "only where images are missing"
    split = {"split": "test_unseen", "distractors": "original", "judged": 400, "unreadable": [], "missing": ["a"] * 4}
    few, many = ({"generator": name, "scores": [{**split, **of}]} for name, of in (
        ("few", {}), ("many", {"unreadable": ["b"]})
    ))  # fmt: skip
    assert missing_lines([few, many]) == ["many lacks 5 of 400 images of unseen: they count as wrong."]
