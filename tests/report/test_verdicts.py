"""Falls beyond the reference, verdicts and scores by pair, against plain computations of made-up scores."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from compclip.core.tables import DIVERGENCE, TESTS
from compclip.io import empty_table
from compclip.report import by_pair, comparisons
from compclip.report.make_table import make_table
from compclip.report.table import Scored
from compclip.report.verdicts import FEW_PAIRS, LEAST_SEEN, MARGIN, few_pairs, none_line, verdicts
from compclip.stats.paired import holm
from tests.report.scored import SKILLS, scores


def tables(found: list[Scored], reference: str | None = "faithful") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of scores.parquet and of comparisons.csv."""
    return make_table([(found, empty_table(DIVERGENCE), {})], reference, chunks=2, bootstrap=50)[:2]


@pytest.fixture(scope="module")
def made() -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables(scores())


def words(
    table: pd.DataFrame, differences: pd.DataFrame, reference: str | None = "faithful", healthy: bool | None = None
):
    return {v.generator: v.word for v in verdicts(table, differences, reference, healthy)}


def lines(table: pd.DataFrame, differences: pd.DataFrame, healthy: bool | None = None) -> str:
    return "\n".join(verdict.line for verdict in verdicts(table, differences, "faithful", healthy))


def test_verdicts(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    expected = dict.fromkeys(SKILLS, "composes")
    expected |= {"faithful": "reference", "memorizer": "memorizes", "blind": "inconclusive"}
    assert words(*made) == expected
    said = lines(*made)
    row = made[1].query("kind == 'beyond' and a == 'memorizer' and measure == 'adjective_accuracy'").set_index("split")
    for split, name in (("test_unseen", "unseen"), ("test_swapped", "swapped")):
        one = row.loc[split]
        points = f"{-100 * one.difference:.1f} [{-100 * one.high:.1f}, {-100 * one.low:.1f}]"
        assert points in said and f"({name})" in said
    assert "points more than faithful on held-out pairs" in said and "ceiling" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("blind: ")]
    assert line.startswith(
        "blind: inconclusive: may have little to lose: adjective accuracy on seen captions is 10.8 ["
    )
    assert line.endswith(" (without the image: 16.7; faithful: 78.0).")


# A little more than nothing, and less than rounding hides.
E = 1e-9
# R-precision on seen captions (low, high) and adjective accuracy (low) as fractions of the reference's, the interval of
# the fall beyond the reference's on unseen and on swapped, and the word.
DECISIONS = [
    ((0.5, 0.9), 0.9, (-0.05, 0.05), (-0.05, 0.05), "composes"),
    ((-0.01, MARGIN - E), 0.9, (-0.3, -0.1), (-0.3, -0.1), "does not follow prompts"),
    ((0.05, MARGIN), 0.9, (-0.05, 0.05), (-0.05, 0.05), "composes"),
    ((0.0, 0.9), 0.9, (-0.3, -0.1), (-0.3, -0.1), "inconclusive: may not follow prompts"),
    ((E, 0.9), 0.9, (-0.3, -0.1), (-0.3, -0.1), "memorizes"),
    ((np.nan, np.nan), 0.9, (-0.3, -0.1), (-0.3, -0.1), "inconclusive: R-precision of faithful"),
    ((0.5, 0.9), 0.9, (-0.3, -E), (-0.05, 0.05), "memorizes"),
    ((0.5, 0.9), 0.9, (-0.05, 0.05), (-0.3, -E), "memorizes"),
    ((0.5, 0.9), 0.9, (-0.3, 0.0), (-0.3, 0.0), "inconclusive: loses"),
    ((0.5, 0.9), LEAST_SEEN, (-0.05, 0.05), (-0.05, 0.05), "composes"),
    ((0.5, 0.9), LEAST_SEEN - E, (-0.05, 0.05), (-0.05, 0.05), "inconclusive: may have little to lose"),
    ((0.5, 0.9), LEAST_SEEN - E, (-0.3, -0.1), (-0.05, 0.05), "memorizes"),
    ((0.5, 0.9), 0.9, (-MARGIN + E, 0.05), (-MARGIN + E, 0.05), "composes"),
    ((0.5, 0.9), 0.9, (-MARGIN, 0.05), (-0.05, 0.05), "inconclusive: loses"),
    ((0.5, 0.9), 0.9, (-0.05, 0.05), (-MARGIN, 0.05), "inconclusive: loses"),
]  # fmt: skip


@pytest.mark.parametrize(("follows", "least", "unseen", "swapped", "word"), DECISIONS)
def test_a_verdict_changes_just_at_its_threshold(
    made: tuple[pd.DataFrame, pd.DataFrame], follows: tuple, least: float, unseen: tuple, swapped: tuple, word: str
) -> None:
    table, differences = made[0].copy(), made[1].copy()
    row = (table["generator"] == "composer") & (table["split"] == "test_seen")
    table.loc[row & (table["measure"] == "r_precision_normalized"), ["low", "high"]] = follows
    table.loc[row & (table["measure"] == "adjective_accuracy_normalized"), "low"] = least
    if np.isnan(follows[0]):
        table = table[table["measure"] != "r_precision_normalized"]
    for split, ends in (("test_unseen", unseen), ("test_swapped", swapped)):
        beyond = (differences["kind"] == "beyond") & (differences["a"] == "composer") & (differences["split"] == split)
        differences.loc[beyond, ["low", "high"]] = ends
    (line,) = [line for line in lines(table, differences).splitlines() if line.startswith("composer: ")]
    assert line.startswith(f"composer: {word}")


def test_without_a_normalized_score_nothing_composes(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = made[0][made[0]["measure"] != "adjective_accuracy_normalized"]
    assert "composes" not in words(table, made[1]).values()


def test_no_verdict_by_an_unfit_judge(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    assert set(words(*made, healthy=False).values()) == {"reference", "inconclusive"}
    assert "withheld, because falls cannot be distinguished" in lines(*made, healthy=False)
    assert words(*made, healthy=True) == words(*made)


def test_photographs_as_the_reference_serve_no_swapped_captions() -> None:
    found = scores()
    table, differences = tables(found, "photographs")
    beyond = differences[differences["kind"] == "beyond"]
    assert set(beyond["split"]) == {"test_unseen"} and set(beyond["b"]) == {"photographs"}
    assert words(table, differences, "photographs")["memorizer"] == "memorizes"
    normalized = table[table["measure"].str.endswith("_normalized")]
    table.loc[normalized.index, ["low", "high"]] = [-0.01, 0.05]
    assert words(table, differences, "photographs")["memorizer"] == "does not follow prompts"
    assert "test_swapped" not in set(normalized["split"])


@pytest.mark.parametrize("reference", [None, "nobody", "photographs"])
def test_without_a_reference_there_is_no_verdict(reference: str | None) -> None:
    found = scores({"faithful": SKILLS["faithful"], "memorizer": SKILLS["memorizer"]}, images=20)
    table, differences = tables(found, reference)
    assert not verdicts(table, differences, reference, None)
    assert none_line(reference).startswith(f"no verdict: {reference or 'the reference'}")
    assert not (differences["kind"] == "beyond").any()


def test_a_wide_interval_is_inconclusive_and_few_pairs_are_named(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    found = scores({"faithful": SKILLS["faithful"], "composer": (0.7, 0.5, 0.5)}, images=12, pairs=4)
    table, differences = tables(found)
    assert words(table, differences)["composer"] == "inconclusive"
    (warning,) = few_pairs(table)
    assert warning.startswith("few pairs: unseen tests 4 and swapped tests 4 held-out pairs, fewer than 10")
    assert "5 pairs ±" in warning
    for pairs in (0, 1, FEW_PAIRS - 1, FEW_PAIRS):
        named = [f"unseen tests {pairs} and swapped tests" in line for line in few_pairs(made[0].assign(pairs=pairs))]
        assert named == [True] * (0 < pairs < FEW_PAIRS)


def values(found: list[Scored], generator: str, split: str, column: str) -> np.ndarray:
    """Return the scores by judge, (n, J); all generators have the same entries."""
    (score,) = [s for s in found if (s.generator, s.split) == (generator, split)]
    return np.stack([table[column] for table in score.by_judge], axis=1)


def plain_interval(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[float, float, float]:
    """Return a difference of means with its interval. parts: images, pairs and values (n, J) of each side."""
    value, variance, spread, judges = 0.0, 0.0, 0.0, 0.0
    for sign, (images, pairs, by_judge) in zip((1, -1), parts, strict=False):
        error = (by_judge.mean(axis=1) - by_judge.mean()) / len(by_judge)
        value, judges = value + sign * by_judge.mean(), judges + sign * by_judge.mean(axis=0)
        sums = [
            np.array([error[keys == key].sum() for key in sorted(set(keys))])
            for keys in (images, pairs, np.char.add(images.astype(str), pairs.astype(str)))
        ]
        of_image, of_pair, cell = (float((s**2).sum()) for s in sums)
        m, w = len(sums[0]), np.array([(pairs == p).mean() for p in sorted(set(pairs))])
        centred = np.eye(len(w)) - np.outer(np.ones(len(w)), w)
        a = centred.T @ np.diag(w**2) @ centred
        for part, degrees in (
            (max(0, of_pair - cell) * (w**2).sum() / np.trace(a), max(1, np.trace(a) ** 2 / np.trace(a @ a))),
            (max(of_image, cell) * m / (m - 1), m - 1),
        ):
            variance, spread = variance + part, spread + part**2 / degrees
    part = np.var(judges, ddof=1) / len(judges)
    variance, spread = variance + part, spread + part**2 / (len(judges) - 1)
    half = stats.t.ppf(0.975, variance**2 / spread) * variance**0.5
    return value, value - half, value + half


@pytest.mark.parametrize(
    "column, measure", [("adjective_first", "adjective_accuracy"), ("expected_top1", "r_precision")]
)
def test_falls_beyond_the_reference_against_plain_numpy(column: str, measure: str) -> None:
    found = scores()
    of = {(s.generator, s.split): s.entries for s in found}
    rows = pd.DataFrame(comparisons.comparisons(found, "faithful", 50))
    rows = rows[(rows["kind"] == "beyond") & (rows["measure"] == measure)].set_index(["a", "split"])
    for name in ("composer", "memorizer", "blind"):
        apart = {
            split: values(found, name, split, column) - values(found, "faithful", split, column) for split in TESTS
        }
        sides = {split: (of[name, split]["image_id"].to_numpy(), of[name, split]["pair"].to_numpy()) for split in TESTS}
        swapped = plain_interval([(*sides["test_swapped"], apart["test_swapped"] - apart["test_seen"])])
        unseen = plain_interval([(*sides[split], apart[split]) for split in ("test_unseen", "test_seen")])
        for split, expected in (("test_swapped", swapped), ("test_unseen", unseen)):
            assert tuple(rows.loc[(name, split), ["difference", "low", "high"]]) == pytest.approx(expected, abs=1e-9)


def test_the_family_of_primary_comparisons(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    rows = made[1]
    primary = (rows["kind"] == "beyond") | ((rows["kind"] == "generators") & (rows["split"] != "test_seen"))
    assert set(rows.loc[primary, "family"]) == {"primary"} and set(rows.loc[~primary, "family"]) == {"exploratory"}
    assert rows.loc[~primary, "p_holm"].isna().all()
    for _, family in rows[primary].groupby("measure"):
        # Unseen: 5 generators, 4 beyond the reference; swapped: 4, 3 beyond.
        assert len(family) == 10 + 6 + 4 + 3
        assert family["p_holm"].to_numpy(float) == pytest.approx(holm(family["p"].to_numpy(float)), abs=2e-5)


def test_normalized_scores(made: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table = made[0].set_index(["measure", "generator", "split"])
    for measure, blind in (("r_precision", 0.02), ("adjective_accuracy", 1 / 6)):
        for generator in ("composer", "memorizer", "blind"):
            score, reference = (table.at[(measure, name, "test_swapped"), "value"] for name in (generator, "faithful"))
            row = table.loc[(f"{measure}_normalized", generator, "test_swapped")]
            assert row["value"] == pytest.approx((score - blind) / (reference - blind), abs=1e-5)
            assert row["low"] < row["value"] < row["high"]
    assert table.at[("adjective_accuracy_normalized", "faithful", "test_seen"), "value"] == 1
    none = tables(scores({"faithful": (0.16, 0.16, 0.16), "blind": SKILLS["blind"]}, images=30))[0]
    assert "adjective_accuracy_normalized" not in set(none["measure"])


def test_by_pair() -> None:
    found = scores()
    rows = pd.DataFrame(by_pair.by_pair(found))
    assert list(rows.columns) == by_pair.PAIR_COLUMNS
    of = {(s.generator, s.split): s.entries for s in found}
    for row in rows[rows["generator"] == "memorizer"].itertuples():
        own, seen = of["memorizer", row.split], of["memorizer", "test_seen"]
        kept = (own["pair"] == row.pair).to_numpy()
        assert (row.n, row.images) == (kept.sum(), own[kept]["image_id"].nunique())
        for measure, column in (("r_precision", "expected_top1"), ("adjective_accuracy", "adjective_first")):
            score, base = getattr(row, measure), seen[kept] if row.split == "test_swapped" else seen
            assert score == pytest.approx(own.loc[kept, column].mean())
            assert getattr(row, f"{measure}_low") <= score <= getattr(row, f"{measure}_high")
            fall = getattr(row, f"{measure}_fall")
            if row.split == "test_seen":
                assert pd.isna(fall)
            else:
                assert fall == pytest.approx(score - base[column].mean())
                assert getattr(row, f"{measure}_fall_low") < fall < getattr(row, f"{measure}_fall_high")
    assert by_pair.ranked_pairs(rows, "test_swapped", "adjective_accuracy")[0] in set(rows["pair"])


def test_missing_images_and_single_pairs_give_no_interval() -> None:
    """A generator whose images are all missing on seen, and a split of one pair."""
    found = scores({"faithful": SKILLS["faithful"], "memorizer": SKILLS["memorizer"]}, images=10, pairs=1)
    empty = [i for i, s in enumerate(found) if (s.generator, s.split) == ("memorizer", "test_seen")]
    for i in empty:
        found[i] = Scored(
            found[i].about, found[i].summary, found[i].entries[:0], tuple(t[:0] for t in found[i].by_judge)
        )
    rows = pd.DataFrame(comparisons.comparisons(found, "faithful", 50))
    assert rows.loc[rows["kind"] == "beyond", "difference"].isna().all()
    assert rows["low"].isna().all() and rows["p_holm"].isna().all()
    assert list(by_pair.by_pair(found))
