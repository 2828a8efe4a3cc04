"""The tables of the small run, against its scores; and of what it does not have: several judges,
faults, no images.
"""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import empty_table, read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import DIVERGENCE, HELD_OUT, MEASUREMENTS, ORACLE, SCORES, TESTS
from compclip.report import summary, verdicts
from compclip.report.make_table import (
    CompositionResults,
    as_csv,
    rows_of_composition,
    with_decimals,
)
from compclip.report.measures import COMPARED, MEASURES
from compclip.report.rows import main_rows, pivot, select_measure
from compclip.report.summary import Line, TableCell, View
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report import scored
from tests.report.pages import RUN, place_of
from tests.scripts import job
from workflow_scripts.report import make_table

OUTPUTS = {
    "scores": "scores.parquet",
    "csv": "scores.csv",
    "table": "table.csv",
    "md": "table.md",
    "tex": "table.tex",
    "comparisons": "comparisons.csv",
    "pairs": "pairs.csv",
    "metrics": "metrics.json",
}


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    """A copy of what tables are made of."""
    ignored = shutil.ignore_patterns("images", "export", "figures", "entries")
    return Path(shutil.copytree(results, tmp_path / "results", ignore=ignored))


def run(results: Path, **more: Any) -> dict[str, pd.DataFrame]:
    """Make the tables again as the small run did."""
    params = RUN | {"results": results, "oracle_generators": list(GENERATORS), "chunks": 10} | more
    captions = {"captions": results / DATASET / "captions.parquet"}
    make_table.main(
        job(captions, {name: results / file for name, file in OUTPUTS.items()}, **params)
    )
    scores = read_table(results / "scores.parquet", MEASUREMENTS)
    return {"scores": scores, "comparisons": pd.read_csv(results / "comparisons.csv")}


def scores_of(results: Path, generator: str, name: str, judge: str = "0") -> pd.DataFrame:
    return pd.read_parquet(place_of(results) / "scores" / judge / generator / f"{name}.parquet")


def test_a_row_is_a_value_of_a_measure(results: Path) -> None:
    scores = read_table(results / "scores.parquet", MEASUREMENTS)
    assert scores.attrs == {"schema_version": MEASUREMENTS.version} and set(
        scores["measure"]
    ) <= set(MEASURES)
    one = scores[(scores["generator"] == "faithful") & (scores["measure"] == "r_precision")]
    kinds = one[["split", "prompts", "distractors", "judge"]].agg(" ".join, axis=1)
    assert [kind.removesuffix(" sketch") for kind in kinds if not kind.endswith("oracle")] == [
        "test_seen pairs original",
        "test_seen matched original",
        "test_seen swapped original",
        "test_unseen pairs original",
        "test_swapped swapped original",
        "test_swapped swapped swapped",
    ]
    assert (kinds.str.endswith("oracle")).sum() == 6
    assert (
        scores["new_pairs_low"].isna()
        | (scores["new_pairs_low"] <= scores["value"])
        & (scores["value"] <= scores["new_pairs_high"])
    ).all()
    assert set(select_measure(scores, "r_precision_balanced")["split"]) == {"test_swapped"}
    assert select_measure(scores, "r_precision_balanced")["new_pairs_low"].notna().all()
    ceilings = select_measure(scores, "adjective_accuracy_ceiling").set_index("split")["value"]
    assert ceilings.to_dict() == dict.fromkeys(TESTS, 1.0), "captions of drawn birds agree"
    assert ORACLE not in set(select_measure(scores, "blind_control")["judge"])
    for oracle in (False, True):
        for generator, values in pivot(main_rows(scores, oracle=oracle)).items():
            for split in {split for split, _ in values} - {HELD_OUT}:
                entries = scores_of(results, generator, split, ORACLE if oracle else "0").query(
                    "draw == 0"
                )
                asked, of = (
                    entries[entries["adjectives"] > 1],
                    {m: row for (s, m), row in values.items() if s == split},
                )
                by_judge = [] if oracle else [("adjective_accuracy_adjusted", asked)]
                for name, rows in (
                    ("r_precision", entries),
                    ("adjective_accuracy", asked),
                    *by_judge,
                ):
                    counts = [len(rows), rows["image_id"].nunique(), rows["pair"].nunique()]
                    assert [of[name][key] for key in ("n", "images", "pairs")] == counts
                    expected = rows[MEASURES[name].column].mean()
                    assert of[name]["value"] == pytest.approx(expected, abs=1e-6)
                mean = of["r_precision_sampled"]["value"]
                assert mean == pytest.approx(entries["hit"].mean(), abs=0.05), (
                    "of chunks of unequal size"
                )
                if split == "test_swapped":
                    expected = np.average(entries["expected_top1"], weights=entries["weight"])
                    assert of["r_precision_balanced"]["value"] == pytest.approx(expected, abs=1e-6)
    measured = pd.read_parquet(place_of(results) / "divergence.parquet")
    measured = measured[measured["texts"] == "prompts"].set_index(["definition", "split"])
    rows = scores[scores["generator"].isna() & scores["measure"].str.endswith("divergence")]
    assert len(rows) == 9 and rows["judge"].isna().all()
    for name, place in {
        "atom": ("pairs", "atom"),
        "compound": ("pairs", "compound"),
        "subgraph": ("subgraphs", "compound"),
    }.items():
        for row in select_measure(rows, f"{name}_divergence").itertuples():
            expected = measured.loc[(place[0], row.split)]
            assert (row.value, row.n) == (
                pytest.approx(expected[f"{place[1]}_divergence"], abs=1e-6),
                expected["test"],
            )


def test_adjusted_scores_are_beside_the_others_but_not_in_tables_of_the_published_protocol(
    copied: Path, results: Path
) -> None:
    title = "### Adjusted adjective accuracy"
    assert (
        title in (results / "table.md").read_text()
        and "adjusted" not in (results / "table.csv").read_text()
    )
    assert "adjusted" not in (results / "comparisons.csv").read_text()
    for generator in GENERATORS:
        file = place_of(copied) / "scores" / "0" / generator / "summary.json"
        summary = read_json(file)
        for score in summary["scores"]:
            score["prompts"] = {"pairs": "all"}.get(score["prompts"], score["prompts"])
        write_json(summary, file)
    scores = run(copied)["scores"]
    assert (
        len(select_measure(scores, "adjective_accuracy_adjusted"))
        and title not in (copied / "table.md").read_text()
    )


def test_csv_tables_and_comparisons_follow_from_the_scores(results: Path) -> None:
    scores = read_table(results / "scores.parquet", MEASUREMENTS)
    assert (results / "scores.csv").read_text() == as_csv(
        scores.assign(schema_version=MEASUREMENTS.version)
    )
    paper, shown = (
        pd.read_csv(results / "table.csv").set_index("generator"),
        pivot(main_rows(scores)),
    )
    assert list(paper.index) == list(shown) == list(GENERATORS)
    for generator, values in shown.items():
        for (split, measure), row in values.items():
            for end in ("value", "new_pairs_low", "new_pairs_high") if measure in COMPARED else ():
                column = f"{split.removeprefix('test_')}_{measure}_{end}".removesuffix("_value")
                assert paper.at[generator, column] == row[end]
    table = pd.DataFrame(
        [
            {"x": 1.0, "n": 3, "s": "a"},
            {"x": None, "n": 4, "s": None},
            {"x": -1e-9, "n": 5, "s": "b"},
        ]
    )
    assert as_csv(with_decimals(table)) == "x,n,s\n1.000000,3,a\n,4,\n0.000000,5,b\n"
    both = pd.read_csv(results / "comparisons.csv")
    assert both["measure"].value_counts().nunique() == 1
    known = both.dropna(subset="new_pairs_low")
    assert (
        (known["new_pairs_low"] <= known["difference"])
        & (known["difference"] <= known["new_pairs_high"])
    ).all()
    rows = select_measure(both, "r_precision").set_index(["kind", "a", "split"]).sort_index()
    seen = scores_of(results, "memorizer", "test_seen")
    others = scores_of(results, "faithful", "test_seen")
    one = rows.loc[("generators", "faithful", "test_seen")].query("b == 'memorizer'").iloc[0]
    assert one["difference"] == pytest.approx(
        (others["expected_top1"] - seen["expected_top1"]).mean(), abs=2e-6
    )


def test_ceilings_have_a_note_and_small_p_values_are_bold() -> None:
    counts = {
        "test_seen": {"ceiling": 0.8},
        "test_unseen": {"ceiling": 0.75},
        "test_swapped": {"ceiling": None},
    }
    composition = CompositionResults(
        scored.scores(), empty_table(DIVERGENCE), fids={}, variants=counts
    )
    rows = rows_of_composition(composition, None, 10)
    table = pd.DataFrame(rows, columns=[*MEASUREMENTS.columns])
    of = select_measure(table, "adjective_accuracy_ceiling")
    assert dict(zip(of["split"], of["value"], strict=True)) == {
        "test_seen": 0.8,
        "test_unseen": 0.75,
    }
    assert of["generator"].isna().all() and not main_rows(table)["generator"].isna().any()
    assert "75.0 to 80.0 % (human ceiling)" in summary.ceiling_note(table, "adjective_accuracy")
    assert not summary.ceiling_note(table, "r_precision")
    assert not summary.ceiling_note(table.assign(value=1.0), "adjective_accuracy"), "captions agree"
    # An interval of one comparison among many may exclude 0 by chance.
    measured = {
        "kind": "generators",
        "split": "test_seen",
        "measure": "r_precision",
        "new_pairs_low": 0.01,
        "new_pairs_high": 0.2,
        "n": 9,
    }
    cases = [("primary", 0.04), ("primary", 0.06), ("exploratory", 0.001)]
    rows = [
        {
            **measured,
            "a": "x",
            "b": "y",
            "value": 0.1,
            "difference": 0.1,
            "family": family,
            "p_holm": p,
        }
        for family, p in cases
    ]
    lines = summary._between(pd.DataFrame(rows)).lines
    assert [line.cells[2].bold for line in lines] == [True, False, False]


def test_generators_are_compared_on_the_entries_of_both_also_without_images(copied: Path) -> None:
    folder = place_of(copied) / "scores" / "0" / "memorizer"
    kept, summary = (
        scores_of(copied, "memorizer", "test_unseen").iloc[10:],
        read_json(folder / "summary.json"),
    )
    write_table(kept, folder / "test_unseen.parquet", SCORES)
    with pytest.raises(
        UserError,
        match=rf"{len(kept)} entries, but summary.json counts {len(kept) + 10}; score again",
    ):
        run(copied)
    for score in summary["scores"]:
        score["judged"] -= 10 * (score["set"] == "test_unseen")
    write_json(summary, folder / "summary.json")
    found = select_measure(run(copied)["comparisons"], "r_precision").set_index(
        ["kind", "a", "b", "split"]
    )
    assert found.loc[("generators", "faithful", "memorizer", "test_unseen"), "n"] == len(kept)
    for file in folder.glob("*.parquet"):
        write_table(pd.read_parquet(file).iloc[:0], file, SCORES)
    write_json(
        summary | {"scores": [score | {"judged": 0} for score in summary["scores"]]},
        folder / "summary.json",
    )
    empty = run(copied)
    rows = select_measure(empty["scores"], "r_precision").query(
        "generator == 'memorizer' and judge != 'oracle'"
    )
    assert (rows["n"] == 0).all() and rows["value"].isna().all() and len(rows) == 5
    assert (empty["comparisons"].query("a == 'memorizer' or b == 'memorizer'")["n"] == 0).all()
    assert "| memorizer   |               – |" in (copied / "table.md").read_text()


def test_scores_are_means_over_judges(copied: Path) -> None:
    place, one = place_of(copied), select_measure(run(copied)["scores"], "r_precision")
    shutil.copytree(place / "scores" / "0", place / "scores" / "4")
    for file in (place / "scores" / "4").rglob("*.parquet"):
        table = pd.read_parquet(file)
        write_table(table.assign(expected_top1=0.5 * table["expected_top1"]), file, SCORES)
    shutil.copy(place / "bias" / "0.json", place / "bias" / "4.json")
    table = select_measure(run(copied, judges=["0", "4"])["scores"], "r_precision")
    rows = table[
        (table["generator"] == "faithful")
        & (table["split"] == "test_unseen")
        & (table["judge"] != "oracle")
    ]
    assert rows["judge_seed"].fillna("").tolist() == ["", "0", "4"] and rows["judges"].tolist() == [
        2,
        1,
        1,
    ]
    assert rows["judge_hash"].isna().tolist() == [True, False, False]
    own = one[(one["generator"] == "faithful") & (one["split"] == "test_unseen")].iloc[0]
    assert rows["value"].tolist() == pytest.approx(
        [0.75 * own["value"], own["value"], 0.5 * own["value"]], abs=2e-6
    )
    assert rows["se_judges"].isna().tolist() == [False, True, True]
    # The standard error of the mean of x and x / 2, which widens the interval.
    assert rows["se_judges"].iloc[0] == pytest.approx(0.25 * own["value"], abs=2e-6)
    assert (
        rows["new_pairs_high"].iloc[0] - rows["new_pairs_low"].iloc[0]
        > own["new_pairs_high"] - own["new_pairs_low"]
    )
    assert "means over 2 judges" in (copied / "table.md").read_text()
    file = place / "scores" / "4" / "memorizer" / "test_unseen.parquet"
    write_table(pd.read_parquet(file).iloc[::-1], file, SCORES)
    with pytest.raises(
        UserError, match="memorizer: judges scored different images of test_unseen; score again"
    ):
        run(copied, judges=["0", "4"])


FIRST, SWAPPED = "scores/0/photographs/summary.json", "scores/0/memorizer/summary.json"
FIT = {
    "difference": {"value": -0.05, "same_pairs_low": -0.14, "same_pairs_high": 0.04},
    "held_out": {"n": 0},
}
UNREAD = {"n": 50, "accuracy": 0.24, "same_pairs_low": 0.14, "chance": 0.08}
NARROW = {"entries_with_fewer_than_candidates": 3, "eligible_least": 8}


# A file of the results, how it or its score of swapped changes, and what the table says then and
# does not say before.
@pytest.mark.parametrize(
    ("file", "changed", "note"),
    [
        (
            "bias/0.json",
            {"images": {"real": FIT}},
            "is −5.0 [−14.0, 4.0] points at worst (real images).\n",
        ),
        (
            "bias/0.json",
            {"pairs": {"gray_head": UNREAD}},
            "not recognize on real images: gray head (24 %).",
        ),
        ("heldout.json", {"source": "published"}, "held-out pairs are those of a published split."),
        (FIRST, {"judge_epochs": 0}, "which was used without training (judge.epochs: 0)"),
        (FIRST, {"ties": "own_first"}, "ties count as won, as published."),
        (FIRST, {"chunking": "published"}, "equal chunks, as published, without the remainder"),
        (FIRST, {"images_without_class": 3}, "3 judged images have no class: each is its own"),
        (FIRST, {"truncated_captions": 2}, "2 captions are longer than the judge reads"),
        (
            SWAPPED,
            {"missing": ["a", "b"]},
            "memorizer; swapped: 2 images are missing and count as wrong: they are",
        ),
        (
            SWAPPED,
            {"balance": {"rule": "no cut: 1", "cut": {}}},
            "memorizer; swapped: not balanced (no cut: 1).",
        ),
        (
            SWAPPED,
            {"balance": {"rule": "to 1.25", "cut": {"red_wing": {"of": 29, "kept": 1}}}},
            "memorizer; swapped: balancing reduces red wing from 29 to 1 (to 1.25).",
        ),
        (
            SWAPPED,
            {"pool": NARROW},
            "memorizer; swapped: 3 entries have fewer than 9 eligible captions (at least 8).",
        ),
    ],
)
def test_what_a_reader_must_know_is_noted(
    copied: Path, results: Path, file: str, changed: dict[str, Any], note: str
) -> None:
    content = read_json(place_of(copied) / file)
    scores = [score for score in content.get("scores", []) if score["set"] == "test_swapped"]
    for part in scores if file == SWAPPED else [content]:
        part |= changed
    write_json(content, place_of(copied) / file)
    run(copied)
    assert (
        note in (copied / "table.md").read_text() and note not in (results / "table.md").read_text()
    )


@pytest.mark.parametrize(
    ("trained_on", "mark"),
    [("other", "trained on other data"), ("unknown", "training data unknown")],
)
def test_models_of_other_training_data_are_marked(copied: Path, trained_on: str, mark: str) -> None:
    run(copied, training_data={"photographs": trained_on, "memorizer": "split"})
    text = (copied / "table.md").read_text()
    # In each table of scores, not on the screen, where names are short.
    assert text.count(f"| photographs ({mark})") > 2
    assert mark not in text.split("```")[1]
    assert "| memorizer (" not in text


def test_fid_and_divergences_have_tables_of_their_own(copied: Path, results: Path) -> None:
    before = (results / "table.md").read_text()
    assert "Fréchet" not in before and "### Divergence from train" in before
    seen, swapped = {"fid": 12.3, "about": "few"}, {"fid": 30.0, "balanced": 31.5, "about": "x"}
    splits = {"test_seen": seen | {"generated": 5}, "test_swapped": swapped | {"generated": 6}}
    write_json({"splits": splits}, place_of(copied) / "fid" / "memorizer.json")
    file = place_of(copied) / "divergence.parquet"
    write_table(pd.read_parquet(file).iloc[:0], file, DIVERGENCE)
    rows = run(copied, fid=["memorizer"])["scores"].dropna(subset="generator").query("judge.isna()")
    found = rows[["split", "measure", "value", "n"]].fillna(0).to_numpy().tolist()
    assert found[::2] == [["test_seen", "fid", 12.3, 5], ["test_swapped", "fid_balanced", 31.5, 0]]
    text = (copied / "table.md").read_text()
    assert (
        "| memorizer   |  12.30 |        – |     30.00 |               31.50 |" in text
        and "seen: few" in text
    )
    assert "ivergence" not in text + (copied / "table.tex").read_text()


def test_markdown_and_latex(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Markdown is printed and readable; LaTeX is escaped, has a row a generator and says what is
    measured.
    """
    folder = place_of(copied) / "scores" / "0" / "photographs"
    write_json(
        read_json(folder / "summary.json") | {"judge": "ViT_B{32}~^&%$#\\<"},
        folder / "summary.json",
    )
    run(copied)
    text = (copied / "table.md").read_text()
    assert capsys.readouterr().out == text
    lines = text.partition("<!-- /headlines -->\n\n")[2].splitlines()
    assert lines[0] == f"## {DATASET}, {COMPOSITION}" and "- faithful: reference." in lines[:6]
    for table in (part.splitlines() for part in text.split("\n\n") if part.startswith("| ")):
        assert (
            len({line.count("|") for line in table}) == 1
            and len({len(line) for line in table}) == 1
        )
    text = (copied / "table.tex").read_text()
    assert (
        text.isascii()
        and r"ViT\_B\{32\}\textasciitilde{}\textasciicircum{}\&\%\$\#\textbackslash{}$<$" in text
    )
    body = [line for line in text.splitlines() if line.endswith((r"\\", r"\\[2pt]"))]
    assert [line.split(" & ")[0].strip("& ") for line in body][1:] == ["generator", *GENERATORS]
    assert {line.count("&") for line in body[1:]} == {6}
    label = rf"\label{{tab:{DATASET}-{COMPOSITION}}}"
    for part in (label, r"\toprule", "adjective accuracy: how often", r"\end{table}"):
        assert text.count(part) == 1


@pytest.mark.slow
def test_latex_compiles(results: Path, tmp_path: Path) -> None:
    program = shutil.which("tectonic") or shutil.which("pdflatex")
    if program is None:
        pytest.skip("neither tectonic nor pdflatex is installed")
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    (tmp_path / "a.tex").write_text(head + (results / "table.tex").read_text() + r"\end{document}")
    subprocess.run([program, "a.tex"], cwd=tmp_path, check=True, stdin=subprocess.DEVNULL)
    assert (tmp_path / "a.pdf").stat().st_size > 1000 and "Overfull" not in (
        tmp_path / "a.log"
    ).read_text()


def summary_of(names: list[str]) -> summary.Summary:
    """Return a summary of generators, one of which is the reference."""
    cells = [TableCell("93", "[91, 95]"), TableCell("94"), TableCell("50", "[40, 60]"), None]
    headings = ["draws seen pairs", "seen pairs, truth", "composes", "composes, truth"]
    view = View("", "generator", headings, [])
    lines = [Line(name, cells) for name in names]
    given = [verdicts.Verdict(name, "composes", "x") for name in names]
    if names:
        lines.append(Line("right", cells))
        given.append(verdicts.Verdict("right", "reference", ""))
    views = {"composed": [replace(view, lines=lines)]}
    return summary.Summary("birds", given, ["none"], [], views, [], "")


@pytest.mark.parametrize("generators", [1, 9, 25])
def test_the_screen_shows_at_most_twelve_lines_of_table_in_80_columns(generators: int) -> None:
    names = ["g0", *(f"stable-diffusion-xl-{n}" for n in range(1, generators))]
    shown = summary.headlines("birds", {"color": summary_of(names), "shape": summary_of([])})
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(n for n, line in enumerate(lines) if line.startswith("generator"))
    table = lines[start : lines.index("", start)]
    assert len(table) == 2 + min(generators, 9) <= 12
    assert " ".join(table[2].split()) == "g0 93 [91, 95] 94 50 [40, 60] –"
    assert all(line.startswith("stable-…n-xl-") for line in table[3:])
    words = " ".join(shown.split())
    assert f"- verdicts: {', '.join(names)}: composes." in words
    assert words.endswith("- none ``` <!-- /headlines -->")
    assert ("16 more generators" in shown) == (generators == 25)


def test_anchors_are_the_scale_of_the_screens_table() -> None:
    shown = summary.headlines("birds", {"color": summary_of(["mine"])})
    assert "composes 100: draws what is asked (right)" in shown
    assert "\nright " not in shown


def test_the_screen_of_anchors_alone_says_what_to_add() -> None:
    given = [verdicts.Verdict("right", "reference", "")]
    alone = replace(summary_of([]), verdicts=given)
    assert "name your model's images" in summary.headlines("birds", {"color": alone})
