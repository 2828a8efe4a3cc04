"""What is composed, verdicts, comparisons and scores by pair, against plain computations of made-up
scores.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from compclip.core.tables import HELD_OUT, HELD_OUT_SPLITS, ORACLE
from compclip.report import by_pair, comparisons
from compclip.report.scored import Scored
from compclip.report.summary import missing_lines
from compclip.report.verdicts import (
    DRAWS_NOTHING,
    FEW_PAIRS,
    NO_VERDICT,
    OTHER_TRAINING,
    Verdict,
    few_pairs,
    none_line,
    verdicts,
)
from compclip.stats.composed import LEAST_DRAWN
from compclip.stats.estimates import INTERVAL_COLUMNS
from compclip.stats.paired import holm
from tests.report.scored import ANCHORS, SKILLS, mixed, scores, tables_of


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, ...]:
    return tables_of(scores())


def verdicts_by_name(
    table: pd.DataFrame,
    passes_bias_check: bool | None = None,
    training_data: dict[str, str] | None = None,
) -> dict[str, Verdict]:
    return {
        verdict.generator: verdict
        for verdict in verdicts(table, ANCHORS, passes_bias_check, training_data)
    }


def names_of(table: pd.DataFrame) -> dict[str, str]:
    return {name: verdict.verdict for name, verdict in verdicts_by_name(table).items()}


def test_anchors_have_fixed_values_and_skills_are_consistent(
    made: tuple[pd.DataFrame, ...],
) -> None:
    table = made[0].set_index(["measure", "generator", "split"])
    for split in (*HELD_OUT_SPLITS, HELD_OUT):
        for name, value in (("faithful", 1), ("memorizer", 0)):
            for measure in ("composes", "draws_held_out_pairs"):
                row = table.loc[(measure, name, split)]
                assert row["value"] == value and row[[*INTERVAL_COLUMNS]].isna().all(), (
                    "known by definition"
                )
    for name in ("composer", "photographs"):
        seen = table.loc[("draws_seen_pairs", name, "test_seen")]
        composes, drawn = (
            table.loc[(measure, name, HELD_OUT)] for measure in ("composes", "draws_held_out_pairs")
        )
        assert drawn["value"] == pytest.approx(seen["value"] * composes["value"], abs=1e-5)
        for row in (seen, composes, drawn):
            assert row["same_pairs_low"] <= row["value"] <= row["same_pairs_high"]
        assert composes["new_pairs_low"] < composes["value"] < composes["new_pairs_high"]
    assert table.loc[("draws_seen_pairs", "memorizer", "test_seen")]["value"] > 0.9, (
        "it draws seen pairs"
    )
    assert table.loc[("draws_seen_pairs", "faithful", "test_seen")]["value"] == 1
    # The photographs serve no swapped prompts: their value for all held-out ones is that for unseen
    # ones.
    unseen, whole = (
        table.loc[("composes", "photographs", split)] for split in ("test_unseen", HELD_OUT)
    )
    assert (
        unseen["value"] == whole["value"]
        and ("composes", "photographs", "test_swapped") not in table.index
    )
    drawn_pairs = (
        made[2].query("split == 'test_unseen' and generator == 'composer'").dropna(subset="drawn")
    )
    composes = table.loc[("composes", "composer", "test_unseen")]
    assert len(drawn_pairs) == composes["pairs"]


def test_verdicts_and_few_pairs_are_named(made: tuple[pd.DataFrame, ...]) -> None:
    given = names_of(made[0])
    assert given["faithful"] == "reference" and given["memorizer"] == "usual pair"
    assert "composes" in given["photographs"] and "composes" in given["composer"]
    assert given["blind"] in (DRAWS_NOTHING, NO_VERDICT) and "usual" not in given
    line = verdicts_by_name(made[0])["composer"].line
    rows = made[0].set_index(["measure", "generator", "split"])
    for measure, split, text in (
        ("draws_seen_pairs", "test_seen", "draws {} of seen pairs"),
        ("composes", HELD_OUT, "composes {} of held-out pairs"),
        ("composes", "test_swapped", "swapped {}"),
    ):
        row = rows.loc[(measure, "composer", split)]
        low, high = (f"{100 * row[f'same_pairs_{end}']:.0f}" for end in ("low", "high"))
        assert text.format(f"{100 * row['value']:.0f} % [{low}, {high}]") in line
    recognized = rows.loc[("composes", "composer", HELD_OUT)]["pairs"]
    assert f"over {recognized} recognized pairs" in line and 10 < recognized <= 20
    (warning,) = few_pairs(tables_of(scores(images=12, pairs=4))[0])
    assert warning.startswith(
        "few pairs: unseen tests 4 and swapped tests 4 held-out pairs, fewer than 10"
    )
    assert "5 pairs ±" in warning
    for pairs in (0, 1, FEW_PAIRS - 1, FEW_PAIRS):
        named = [
            f"unseen tests {pairs} and swapped tests" in line
            for line in few_pairs(made[0].assign(pairs=pairs))
        ]
        assert named == [True] * (0 < pairs < FEW_PAIRS)


@pytest.mark.parametrize("whole_pairs", [False, True])
def test_mixtures_are_estimated_and_named_right(whole_pairs: bool) -> None:
    """Each prompt, or each pair, is drawn faithfully with a known chance, and from memory
    otherwise.
    """
    found = scores()
    fractions = (0.0, 0.25, 0.5, 0.75, 1.0)
    for number, fraction in enumerate(fractions):
        for seed in range(4):
            found += mixed(found, f"mix{number}_{seed}", fraction, seed, whole_pairs)
    table = tables_of(found)[0]
    rows = table[(table["measure"] == "composes") & table["generator"].str.startswith("mix")]
    rows = rows[rows["split"] == HELD_OUT]
    means = rows.groupby(rows["generator"].str[3].astype(int))["value"].mean()
    assert means.is_monotonic_increasing
    assert means.to_numpy() == pytest.approx(np.array(fractions), abs=0.12 if whole_pairs else 0.06)
    given = names_of(table)
    for seed in range(4):
        assert "memorizes" in given[f"mix0_{seed}"] and "composes" in given[f"mix4_{seed}"]
        assert given[f"mix2_{seed}"] not in ("memorizes", "composes")


def test_intervals_are_simultaneous_over_the_generators_that_are_not_controls() -> None:
    found = scores()
    for seed in range(5):
        found += mixed(found, f"model{seed}", 0.5, seed)
    table = tables_of(found)[0].set_index(["measure", "generator", "split"])
    alone, together = (
        table.loc[(f"composes{end}", "model3", HELD_OUT)] for end in ("", "_together")
    )
    assert together["value"] == alone["value"]
    widths = [row["same_pairs_high"] - row["same_pairs_low"] for row in (alone, together)]
    assert 1.05 < widths[1] / widths[0] < 1.8
    assert ("composes_together", "blind", HELD_OUT) not in table.index
    one = tables_of(scores() + mixed(found, "model", 0.5))[0]
    assert "composes_together" not in set(one["measure"])


# The interval of what is drawn of seen pairs, and the begin of the line.
DRAWING = [
    ((0.5, 0.9), "composer: "),
    ((0.02, LEAST_DRAWN - 1e-9), "composer: does not draw seen pairs: draws "),
]


@pytest.mark.parametrize(("drawn", "begin"), DRAWING)
def test_a_generator_that_draws_no_seen_pair_is_said_to(
    made: tuple[pd.DataFrame, ...], drawn: tuple[float, float], begin: str
) -> None:
    table = made[0].copy()
    row = (table["generator"] == "composer") & (table["measure"] == "draws_seen_pairs")
    table.loc[row, ["same_pairs_low", "same_pairs_high"]] = drawn
    line = verdicts_by_name(table)["composer"].line
    assert line.startswith(begin)
    assert ("composes" in line) == (begin == "composer: ")


@pytest.mark.parametrize("told", ["other", "unknown"])
def test_only_models_of_this_split_get_a_verdict(made: tuple[pd.DataFrame, ...], told: str) -> None:
    verdict = verdicts_by_name(made[0], training_data={"composer": told})["composer"]
    assert verdict.verdict == NO_VERDICT and verdict.reason.startswith(OTHER_TRAINING[told])
    assert (
        "composes"
        in verdicts_by_name(made[0], training_data={"composer": "split"})["composer"].verdict
    )


def test_no_verdict_by_failing_judges_and_the_primary_comparisons(
    made: tuple[pd.DataFrame, ...],
) -> None:
    failed = verdicts_by_name(made[0], passes_bias_check=False)["composer"].line
    assert failed.startswith("composer: no verdict: the judges fail the bias check; draws ")
    assert verdicts_by_name(made[0], passes_bias_check=True) == verdicts_by_name(made[0])
    alone = tables_of(scores(judges=1))[0]
    assert verdicts_by_name(alone)["composer"].line.startswith("composer: no verdict: one judge, ")
    rows = made[1]
    primary = (rows["kind"] == "generators") & (rows["split"] != "test_seen")
    assert set(rows.loc[primary, "family"]) == {"primary"} and set(
        rows.loc[~primary, "family"]
    ) == {"exploratory"}
    assert rows.loc[~primary, "p_holm"].isna().all()
    for _, family in rows[primary].groupby("measure"):
        assert len(family) == 10 + 6  # unseen: 5 generators; swapped: 4
        assert family["p_holm"].to_numpy(float) == pytest.approx(
            holm(family["p"].to_numpy(float)), abs=2e-5
        )


def test_without_anchors_there_is_no_estimate() -> None:
    for reference in (None, "unknown"):
        anchors = dict.fromkeys(("test_seen", *HELD_OUT_SPLITS), (reference, "memorizer"))
        table = tables_of(scores(images=20), anchors)[0]
        assert not verdicts(table, anchors, None) and "composes" not in set(table["measure"])
        assert none_line(anchors).startswith(
            "no estimate of what is composed: a split has no reference"
        )
    alike = {**SKILLS, "faithful": SKILLS["blind"]}
    table = tables_of(scores(alike, images=30))[0]
    rows = table[(table["measure"] == "composes") & (table["generator"] == "composer")]
    assert (
        rows["value"].isna().all() and rows["note"].str.startswith("the judges recognize no").all()
    )
    assert verdicts_by_name(table)["composer"].line.startswith(
        "composer: no verdict: the judges recognize no"
    )


def test_swaps_that_are_not_exclusive_do_not_count() -> None:
    """A generator that draws only these swaps composes nothing."""
    found = [*scores(), *mixed(scores(), "mixed", 0.5, seed=1)]
    drawn = np.random.default_rng(1).random(len(found[-1].entries)) < 0.5  # as ``mixed`` draws
    values = {}
    for name, eligible in (("all", True), ("exclusive", ~drawn)):
        marked = [
            replace(of, entries=of.entries.assign(eligible=eligible))
            if of.split == "test_swapped"
            else of
            for of in found
        ]
        rows = (
            tables_of(marked)[0]
            .set_index(["measure", "generator", "split", "judge_seed"])
            .sort_index()
        )
        values[name] = rows.loc[("composes", "mixed", "test_swapped")].iloc[0]
    assert values["all"]["value"] == pytest.approx(0.5, abs=0.15)
    assert values["exclusive"]["value"] == pytest.approx(0, abs=0.05)
    assert values["exclusive"]["n"] < 0.6 * values["all"]["n"]


def drawn_again(score: Scored) -> Scored:
    """Return the score of matched prompts with a second draw of each, with the same choices."""
    entries, *by_judge = (
        pd.concat([of, of.assign(draw=1)]) for of in (score.entries, *score.by_judge)
    )
    return replace(
        score,
        entries=entries.reset_index(drop=True),
        by_judge=tuple(of.reset_index(drop=True) for of in by_judge),
    )


def test_further_draws_of_matched_prompts_say_what_is_drawn_of_seen_pairs() -> None:
    found = scores()
    again = [drawn_again(of) if of.is_matched else of for of in found]
    one, two = (
        tables_of(of)[0]
        .set_index(["measure", "generator", "split", "judge_seed", "prompts"])
        .sort_index()
        for of in (found, again)
    )
    seen = "draws_seen_pairs", "composer", "test_seen"
    assert two.loc[seen]["n"].tolist() == [2 * one.loc[seen]["n"].iloc[0]]
    assert two.loc[seen]["value"].iloc[0] == pytest.approx(one.loc[seen]["value"].iloc[0], abs=0.02)
    # The scores of all prompts have one draw each.
    whole = "r_precision", "composer", "test_seen"
    counts = (
        one.loc[whole].query("prompts == 'pairs'")["n"],
        two.loc[whole].query("prompts == 'pairs'")["n"],
    )
    assert counts[0].tolist() == counts[1].tolist()


def by_oracle(score: Scored) -> Scored:
    """Return a score of the oracle, which sees what the first judge sees."""
    (entries, *_) = score.by_judge
    summary = {**score.summary, "judge": ORACLE}
    return replace(score, entries=entries, by_judge=(entries,), summary=summary)


def test_what_was_drawn_is_counted_by_the_oracle() -> None:
    found = scores()
    table = tables_of([*found, *map(by_oracle, found)])[0]
    rows = table[(table["judge"] == ORACLE) & (table["split"] == HELD_OUT)]
    drawn = rows[rows["measure"] == "composes"].set_index("generator")["value"]
    for name in ("composer", "memorizer"):
        seen, unseen, _ = SKILLS[name]
        assert seen and unseen
        assert drawn[name] == pytest.approx(unseen / seen, abs=0.1)


def test_pair_rows() -> None:
    found = scores()
    rows = pd.DataFrame(by_pair.pair_rows(found, None))
    assert list(rows.columns) == by_pair.PAIR_COLUMNS
    of = {(s.generator, s.split): s.entries for s in found}
    for row in rows[rows["generator"] == "memorizer"].itertuples():
        own = of["memorizer", row.split]
        kept = own[own["pair"] == row.pair]
        assert (row.n, row.images) == (len(kept), kept["image_id"].nunique())
        for measure, column in (
            ("r_precision", "expected_top1"),
            ("adjective_accuracy", "adjective_first"),
        ):
            score = getattr(row, measure)
            assert score == pytest.approx(kept[column].mean())
            assert getattr(row, f"{measure}_low") <= score <= getattr(row, f"{measure}_high")
    # A generator whose images are all missing on seen, and a split of one pair.
    found = [
        of
        for of in scores(dict(list(SKILLS.items())[1:4]), images=10, pairs=1)
        if of.generator != "composer"
    ]
    empty = [i for i, s in enumerate(found) if (s.generator, s.split) == ("memorizer", "test_seen")]
    for i in empty:
        found[i] = Scored(
            found[i].set_summary,
            found[i].summary,
            found[i].entries[:0],
            tuple(t[:0] for t in found[i].by_judge),
        )
    rows = pd.DataFrame(comparisons.comparisons(found))
    assert rows.loc[rows["split"] == "test_seen", "difference"].isna().all()
    assert rows["new_pairs_low"].isna().all() and rows["p_holm"].isna().all()
    assert list(by_pair.pair_rows(found, None))


def test_who_leaves_out_prompts_gains_nothing_and_is_named_first() -> None:
    """A third of the images are missing: they count as wrong, beside a comparison on the images
    that both have.
    """
    scored = [of for of in scores() if of.generator in ("faithful", "memorizer", "usual")]
    lacking = []
    for of in scored:
        if of.generator == "faithful":
            gone = np.arange(len(of.entries)) % 3 == 0
            wrong = {
                "similarity": np.nan,
                "expected_top1": 0.0,
                "adjective_first": 0.0,
                "hit": False,
                "adjective_chosen": None,
            }
            tables = [table.copy() for table in of.by_judge]
            for table in tables:
                table.loc[gone, list(wrong)] = list(wrong.values())
            lacking.append(
                Scored(
                    of.set_summary, {**of.summary, "generator": "lacking"}, tables[0], tuple(tables)
                )
            )
    table, differences, _ = tables_of([*scored, *lacking])
    unseen = table[table["split"] == "test_unseen"].set_index(["generator", "measure"])["value"]
    assert (
        0.6
        < unseen["lacking", "adjective_accuracy"] / unseen["faithful", "adjective_accuracy"]
        < 0.72
    )
    whole = table[table["split"] == HELD_OUT].set_index(["generator", "measure"])["value"]
    assert whole["lacking", "composes"] == pytest.approx(1, abs=0.1), (
        "as many seen images are missing"
    )
    seen = table[table["split"] == "test_seen"].set_index(["generator", "measure"])["value"]
    assert seen["lacking", "draws_seen_pairs"] == pytest.approx(2 / 3, abs=0.05)
    of_unseen = differences[
        (differences["split"] == "test_unseen") & (differences["b"] == "lacking")
    ]
    of_unseen = of_unseen[of_unseen["measure"] == "adjective_accuracy"].set_index(["a", "kind"])
    of_faithful = of_unseen.loc["faithful"]["difference"]
    assert of_faithful["both_have_images"] == 0 < of_faithful["generators"]
    assert of_unseen.loc["faithful"]["n"].to_dict() == {"generators": 400, "both_have_images": 266}
    assert "both_have_images" not in set(tables_of(scored)[1]["kind"]), (
        "only where images are missing"
    )
    split = {
        "split": "test_unseen",
        "distractors": "original",
        "judged": 400,
        "broken": [],
        "missing": ["a"] * 4,
    }
    few, many = (
        {"generator": name, "scores": [{**split, **of}]}
        for name, of in (("few", {}), ("many", {"broken": ["b"]}))
    )
    assert missing_lines([few, many]) == [
        "many lacks 5 of 400 images of unseen: they count as wrong."
    ]
