"""The table and the comparisons from scores made by hand."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.made_up import write_fid
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, read_json, write_json, write_table
from workflow_scripts.core.tables import DIVERGENCE, SCORES, TESTS
from workflow_scripts.report import make_table, readable, verdicts
from workflow_scripts.report.readable import percent
from workflow_scripts.report.rows import of_measure
from workflow_scripts.report.steps import MakeTable
from workflow_scripts.report.table import COLUMNS, as_csv
from workflow_scripts.stats.r_precision import expected_top1


def entries(seed: int, ids: list[str], captions: int, beaten: float, pair: bool = False) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    rows = [(i, c, 0) for i in ids for c in range(captions)]
    table = pd.DataFrame(rows, columns=["image_id", "caption_id", "draw"])
    n = len(table)
    table["pair"] = pd.Series(["red_wing"] * (n - 1) + ["blue_bill"] if pair else [None] * n, dtype="str")
    table["similarity"] = 0.5
    table["p_beaten"] = (beaten * generator.random(n)).round(6)
    table["p_tied"] = 0.0
    table["expected_top1"] = expected_top1(table["p_beaten"], table["p_tied"]).round(6)
    table["hit"] = generator.random(n) < table["expected_top1"]
    table["weight"] = np.where(table["pair"] == "red_wing", 0.25, 1.0)
    # The last prompt has no variants.
    table["adjectives"] = [4] * (n - 1) + [1]
    table["adjective_first"] = table["hit"].astype(float).where(table["adjectives"] > 1)
    return table


def about(split: str, table: pd.DataFrame, prompts: str = "pairs", distractors: str = "original", **more) -> dict:
    name = split if distractors == "original" else f"{split}.distractors-{distractors}"
    adjective = {"adjective": table["adjective_first"].mean(), "adjective_chance": 0.25}
    pool = {"entries_with_fewer_than_candidates": 0, "eligible_least": 500}
    return {
        "set": name, "split": split, "prompts": prompts, "distractors": distractors, "judged": len(table),
        "images": table["image_id"].nunique(), "missing": [], "unreadable": [], "pool": pool, **adjective,
        "adjective_judged": int(table["adjective_first"].count()), **more,
    }  # fmt: skip


SEEN, UNSEEN = [f"s{i}" for i in range(30)], [f"u{i}" for i in range(20)]
CUT = {"rule": "the most frequent pair, to 1.25 times the next", "cut": {"red_wing": {"of": 29, "kept": 1}}}


def write_scores(folder: Path, generator: str, judge: str, beaten: float, seed: int, **cut) -> None:
    """Scores of the three splits; ``test_seen`` has two captions an image, the first of which is swapped."""
    tables = {
        "test_seen": entries(seed, SEEN, 2, beaten),
        "test_unseen": entries(seed + 1, UNSEEN, 2, beaten),
        "test_swapped": entries(seed + 2, SEEN, 1, 3 * beaten, pair=True),
    }
    tables["test_swapped.distractors-swapped"] = tables["test_swapped"]
    seen, unseen, swapped, _ = tables.values()
    blind = {} if judge == "oracle" else {"blind_control": 0.01, "hubness": None}
    scores = [
        about("test_seen", seen, **blind),
        about("test_seen", seen[seen["caption_id"] == 0], "swapped", **blind),
        about("test_unseen", unseen, **blind),
        about("test_swapped", swapped, "swapped", balance=cut.get("balance", CUT), **blind),
        about("test_swapped", swapped, "swapped", "swapped", balance=cut.get("balance", CUT), **blind),
    ]
    for name, table in tables.items():
        write_table(table, folder / f"{name}.parquet", SCORES)
    summary = {
        "dataset": "d", "composition": "color", "generator": generator, "train_on": "half", "seed": 3,
        "candidates": 100, "ties": "random", "class_rule": "other class", "images_without_class": 0, "judge": judge,
        "judge_hash": None if judge == "oracle" else "0123", "truncated_captions": 2, "scores": scores,
    }  # fmt: skip
    write_json(summary, folder / "summary.json")


def write_divergences(place: Path, **measured: dict[str, float]) -> None:
    """``definition={split: compound divergence of its prompts}``; that of all captions is 0.001."""
    rows = [
        {
            "definition": definition, "split": split, "texts": texts, "train": 90, "test": 30, "atoms": 9,
            "compounds": 20, "atom_divergence": 0.1 * compound, "compound_divergence": compound,
            "random_atom_mean": 0.0001, "random_atom_std": 0.0, "random_compound_mean": 0.03,
            "random_compound_std": 0.002, "shuffles": 7,
        }
        for definition, splits in measured.items()
        for split, value in splits.items()
        for texts, compound in (("captions", 0.001), ("prompts", value))
    ]  # fmt: skip
    table = pd.DataFrame(rows) if rows else empty_table(DIVERGENCE)
    write_table(table, place / "divergence.parquet", DIVERGENCE)


DIVERGENCES = dict(zip(TESTS, (0.05, 0.4, 0.7), strict=True))


def make_scores(folder: Path) -> Path:
    """Fill the results folder of data set ``d``, composition ``color``, and return it."""
    place = folder / "d" / "color"
    place.mkdir(parents=True)
    pd.DataFrame({"image_id": SEEN, "caption_id": 0}).to_parquet(place / "swapped.parquet")
    write_divergences(place, pairs=DIVERGENCES, subgraphs=DIVERGENCES)
    draw = {"source": "drawn", "window": [25, 75], "fraction": 0.1, "prefer": "any", "seed": 3}
    write_json({"pairs": ["red_wing"], **draw}, place / "heldout.json")
    for name, beaten in (("good_one", 0.005), ("bad", 0.2)):
        write_scores(place / "scores" / "0" / name, name, "fake", beaten, 10)
    write_scores(place / "scores" / "oracle" / "bad", "bad", "oracle", 0.1, 30)
    for judge in ("0", "1", "2"):
        write_json({"ratio": 0.8}, place / "health" / f"{judge}.json")
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return make_scores(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with the tables made, for tests that only read."""
    folder = make_scores(tmp_path_factory.mktemp("tables"))
    run(folder)
    return folder


def run(results: Path, **more: list[str]) -> dict[str, pd.DataFrame]:
    names = {
        "csv": "table.csv",
        "md": "table.md",
        "tex": "table.tex",
        "comparisons": "comparisons.csv",
        "pairs": "pairs.csv",
    }
    outputs = {name: results / file for name, file in {**names, "metrics": "metrics.json"}.items()}
    given = {"results": results, "dataset": "d", "compositions": ["color"], "generators": ["good_one", "bad"]}
    more = {"judges": ["0"], "reference": "good_one"} | more
    make_table.main(MakeTable(**given, oracle=["bad"], chunks=10, bootstrap=400, **outputs, **more))
    return {name: pd.read_csv(results / f"{name}.csv") for name in ("table", "comparisons")}


def test_an_unhealthy_judge_is_reported(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(results)
    assert "- Judge health 0.80: " in capsys.readouterr().out
    write_json({"ratio": 0.4}, results / "d" / "color" / "health" / "0.json")
    run(results)
    said = "- Judge health 0.40, below score.health 0.5: falls on held-out pairs cannot be distinguished from"
    assert said in capsys.readouterr().out and said in (results / "table.md").read_text()


def test_rows(done: Path) -> None:
    table = pd.read_csv(done / "table.csv", dtype={"judge_hash": str})
    assert table["seed"].tolist() == [3] * 15 and table["judge_hash"].iloc[0] == "0123"
    assert list(table.columns) == COLUMNS
    keys = table[["generator", "split", "prompts", "distractors", "judge"]]
    assert len(table) == 15 and not keys.duplicated().any()
    mine = table[(table["generator"] == "good_one")]
    assert mine[["split", "prompts", "distractors"]].agg(" ".join, axis=1).tolist() == [
        "test_seen pairs original", "test_seen swapped original", "test_unseen pairs original",
        "test_swapped swapped original", "test_swapped swapped swapped",
    ]  # fmt: skip
    assert mine["n"].tolist() == [60, 30, 40, 30, 30] and mine["images"].tolist() == [30, 30, 20, 30, 30]
    scores = pd.read_parquet(done / "d/color/scores/0/good_one/test_swapped.parquet")
    row = mine.iloc[3]
    assert row["exact"] == pytest.approx(scores["expected_top1"].mean(), abs=1e-6)
    assert row["balanced"] == pytest.approx(np.average(scores["expected_top1"], weights=scores["weight"]), abs=1e-6)
    assert row["sampled_mean"] == pytest.approx(scores["hit"].mean(), abs=1e-6)
    assert row["exact_low"] < row["exact"] < row["exact_high"]
    assert mine["balanced"].isna().tolist() == [True, True, True, False, False]
    oracle = table[table["judge"] == "oracle"]
    assert len(oracle) == 5 and oracle["blind_control"].isna().all() and oracle["judge_hash"].isna().all()


def test_six_decimals(done: Path) -> None:
    for line in (done / "table.csv").read_text().splitlines()[1:]:
        cells = dict(zip(COLUMNS, line.split(","), strict=True))
        for cell in [*line.split(",")[8:20], *line.split(",")[21:41], cells["subgraph_divergence"]]:
            assert cell == "" or len(cell.split(".")[1]) == 6, line
    rows = [{"x": 1.0, "n": 3, "s": "a"}, {"x": None, "n": 4, "s": None}, {"x": -1e-9, "n": 5, "s": "b"}]
    assert as_csv(rows, ["x", "n", "s"]) == "x,n,s\n1.000000,3,a\n,4,\n0.000000,5,b\n"


def test_comparisons(done: Path) -> None:
    both = pd.read_csv(done / "comparisons.csv")
    assert both["measure"].value_counts().to_dict() == {"exact": 9, "adjective": 9}
    found = of_measure(both, "exact").set_index(["a", "b", "split"])
    assert list(found.index) == [
        ("good_one", "bad", "test_seen"),
        ("good_one", "bad", "test_unseen"),
        ("good_one", "bad", "test_swapped"),
        ("good_one test_unseen", "good_one test_seen", "test_unseen"),
        ("good_one test_swapped", "good_one test_seen", "test_swapped"),
        ("bad test_unseen", "bad test_seen", "test_unseen"),
        ("bad test_swapped", "bad test_seen", "test_swapped"),
        ("bad", "good_one", "test_unseen"),
        ("bad", "good_one", "test_swapped"),
    ]
    assert found["n"].tolist() == [60, 40, 30, 40, 30, 40, 30, 40, 30]
    assert ((found["low"] <= found["difference"]) & (found["difference"] <= found["high"])).all()

    def scores(name: str) -> pd.DataFrame:
        return pd.read_parquet(done / f"d/color/scores/0/{name}.parquet")

    seen = scores("bad/test_seen")
    same = seen[seen["caption_id"] == 0]["expected_top1"].mean()
    expected = scores("bad/test_swapped")["expected_top1"].mean() - same
    rows = found["difference"]
    assert rows["bad test_swapped", "bad test_seen", "test_swapped"] == pytest.approx(expected, abs=2e-6)
    expected = (scores("good_one/test_seen")["expected_top1"] - seen["expected_top1"]).mean()
    assert rows["good_one", "bad", "test_seen"] == pytest.approx(expected, abs=2e-6)
    assert found.loc[("good_one", "bad", "test_unseen"), "low"] > 0


def test_generators_are_compared_on_the_entries_of_both(results: Path) -> None:
    file = results / "d/color/scores/0/bad/test_unseen.parquet"
    write_table(pd.read_parquet(file).iloc[10:], file, SCORES)
    summary = results / "d/color/scores/0/bad/summary.json"
    text = summary.read_text()
    assert text.count('"judged": 40') == 1
    summary.write_text(text.replace('"judged": 40', '"judged": 30'))
    found = of_measure(run(results)["comparisons"], "exact").set_index(["a", "split"])
    assert found.loc[("good_one", "test_unseen"), "n"] == 30
    summary.write_text(text)
    with pytest.raises(UserError, match="30 entries, but summary.json counts 40"):
        run(results)


def test_a_generator_without_images_has_rows(results: Path, capsys: pytest.CaptureFixture) -> None:
    folder = results / "d/color/scores/0/bad"
    text = (folder / "summary.json").read_text()
    for file in folder.glob("*.parquet"):
        write_table(pd.read_parquet(file).iloc[:0], file, SCORES)
    for n in (60, 40, 30):
        text = text.replace(f'"judged": {n}', '"judged": 0')
    (folder / "summary.json").write_text(text)
    found = run(results)
    rows = found["table"][(found["table"]["generator"] == "bad") & (found["table"]["judge"] == "fake")]
    assert rows["n"].tolist() == [0] * 5 and rows["exact"].isna().all()
    assert (found["comparisons"].set_index("a").loc["bad test_unseen", "n"] == 0).all()
    assert "| bad" in capsys.readouterr().out


def test_markdown_is_printed_and_readable(results: Path, capsys: pytest.CaptureFixture) -> None:
    row = run(results)["table"].iloc[0]
    text = (results / "table.md").read_text()
    assert capsys.readouterr().out == text
    shown, _, rest = text.partition("<!-- /headlines -->\n\n")
    lines = rest.splitlines()
    assert lines[0] == "## d, color" and lines[2].startswith("- good_one: reference: loses ")
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = lines[start : lines.index("", start)]
    assert len({line.count("|") for line in table}) == 1 and len({len(line) for line in table}) == 1
    assert len(table) == 12
    assert percent(row["exact"], row["exact_low"], row["exact_high"]) in table[2]
    assert "2 captions are longer" in text and "half of the test images" in text
    assert "good_one, bad; swapped: red_wing 29 to 1; the most frequent pair" in text


def test_a_judge_without_training_is_noted(results: Path) -> None:
    for file in results.glob("d/color/scores/0/*/summary.json"):
        write_json(read_json(file) | {"judge_epochs": 0}, file)
    run(results)
    text = (results / "table.md").read_text()
    assert "which was taken as it was given (judge.epochs: 0)" in text and "has seen" not in text


def test_scores_are_means_over_judges(results: Path) -> None:
    one = run(results)["table"]
    for folder in (results / "d/color/scores/0").iterdir():
        copied = shutil.copytree(folder, results / "d/color/scores/4" / folder.name)
        for file in copied.glob("*.parquet"):
            table = pd.read_parquet(file)
            write_table(table.assign(expected_top1=0.5 * table["expected_top1"]), file, SCORES)
        write_json(read_json(copied / "summary.json") | {"judge_hash": "4567"}, copied / "summary.json")
    shutil.copy(results / "d/color/health/0.json", results / "d/color/health/4.json")
    tables = run(results, judges=["0", "4"])
    table = tables["table"].assign(judge_seed=tables["table"]["judge_seed"].fillna(-1))
    rows = table[(table["generator"] == "good_one") & (table["distractors"] == "original")].set_index("judge_seed")
    unseen = rows[rows["split"] == "test_unseen"]
    assert unseen.index.tolist() == [-1, 0, 4] and unseen["judges"].tolist() == [2, 1, 1]
    assert unseen["judge_hash"].isna().tolist() == [True, False, False]
    own = one[(one["generator"] == "good_one") & (one["split"] == "test_unseen")].iloc[0]
    assert unseen["exact"].tolist() == pytest.approx([0.75 * own["exact"], own["exact"], 0.5 * own["exact"]], abs=2e-6)
    assert unseen["exact_se_judges"].isna().tolist() == [False, True, True]
    # The standard error of the mean of x and x / 2, which widens the interval.
    assert unseen["exact_se_judges"].iloc[0] == pytest.approx(0.25 * own["exact"], abs=2e-6)
    assert unseen["exact_high"].iloc[0] - unseen["exact_low"].iloc[0] > 2 * (own["exact_high"] - own["exact_low"])
    # Only means are compared, and shown to be read.
    assert len(of_measure(tables["comparisons"], "exact")) == 9
    text = (results / "table.md").read_text()
    assert "means over 2 judges" in text and text.split("/headlines")[1].count("| good_one") == 5
    file = results / "d/color/scores/4/bad/test_unseen.parquet"
    write_table(pd.read_parquet(file).iloc[::-1], file, SCORES)
    with pytest.raises(UserError, match="bad: judges scored different images of test_unseen; score again"):
        run(results, judges=["0", "4"])


def test_missing_balance_is_noted(results: Path) -> None:
    rule = "no cut: 1 pair, 2 needed"
    write_scores(results / "d/color/scores/0/bad", "bad", "fake", 0.2, 10, balance={"rule": rule, "cut": {}})
    run(results)
    text = (results / "table.md").read_text()
    assert "(no cut)" in text and rule in text


def test_latex_has_a_row_a_generator_and_says_what_is_measured(done: Path) -> None:
    text = (done / "table.tex").read_text()
    assert r"good\_one" in text and "good_one" not in text and text.isascii()
    body = [line for line in text.splitlines() if line.endswith((r"\\", r"\\[2pt]"))]
    assert [line.split(" & ")[0] for line in body] == ["", "generator", r"good\_one", "bad"]
    assert {line.count("&") for line in body[1:]} == {6}
    for part in (
        r"\label{tab:d-color}",
        r"\toprule",
        "adjective accuracy: how often",
        "The judge is fake",
        r"\end{table}",
    ):
        assert text.count(part) == 1


@pytest.mark.slow
def test_latex_compiles(done: Path, tmp_path: Path) -> None:
    program = shutil.which("tectonic") or shutil.which("pdflatex")
    if program is None:
        pytest.skip("neither tectonic nor pdflatex is installed")
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    (tmp_path / "a.tex").write_text(head + (done / "table.tex").read_text() + r"\end{document}")
    subprocess.run([program, "a.tex"], cwd=tmp_path, check=True, stdin=subprocess.DEVNULL)
    assert (tmp_path / "a.pdf").stat().st_size > 1000 and "Overfull" not in (tmp_path / "a.log").read_text()


@pytest.mark.parametrize("generators", [1, 9, 25])
def test_the_screen_shows_at_most_twelve_lines_of_table_in_80_columns(generators: int) -> None:
    row = {"exact": 0.5, "adjective": None}
    names = ["g0", *(f"stable-diffusion-xl-{n}" for n in range(1, generators))]
    main = dict.fromkeys(names, {"test_seen": row, "test_swapped": row})
    found = [verdicts.Verdict(name, "composes", ": x") for name in names]
    shown = readable.headlines("birds", {"color": (main, found), "shape": (main, [])})
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    start = next(n for n, line in enumerate(lines) if line.split()[:2] == ["color", "color"])
    table = lines[start : lines.index("", start)]
    assert len(table) == 3 + min(generators, 9) <= 12
    assert table[3].split() == ["g0", *["50.0", "–", "50.0", "–", "–", "–"] * 2]
    assert all(line.startswith("stable-…n-xl-") for line in table[4:])
    words = " ".join(shown.split())
    assert f"- color: composes: {', '.join(names)}. - shape: no verdict." in words
    assert ("16 more generators" in shown) == (generators == 25)


def test_fid_is_a_column_if_measured(results: Path, done: Path) -> None:
    assert "FID" not in (done / "table.md").read_text()
    write_fid(results / "d" / "color" / "fid" / "bad.json")
    run(results, fid=["bad"])
    text = (results / "table.md").read_text()
    assert " FID |\n" in text
    found = {tuple(row[:4]): row[-1] for row in readable_cells(text, "generator") if row[-1] != "–"}
    assert found == {
        ("bad", "seen", "pairs", "original"): "12.30",
        ("bad", "swapped", "swapped", "original"): "30.00 (balanced 31.50)",
    }
    assert "FID is the Fréchet distance" in text and "seen: 10,000 generated and 54 real images" in text


def divergences_by_row(table: pd.DataFrame) -> dict[tuple[str, ...], list[tuple[float, ...]]]:
    """Return the last three columns, 9 for none, of each split, prompts and distractors."""
    keys = ["split", "prompts", "distractors"]
    return {
        key: list(dict.fromkeys(rows.iloc[:, -3:].fillna(9).itertuples(index=False, name=None)))
        for key, rows in table.groupby(keys)
    }


def test_divergences_of_the_prompts_do_not_depend_on_generator_and_judge(results: Path) -> None:
    write_divergences(results / "d" / "color", pairs=DIVERGENCES, subgraphs={"test_unseen": 0.6, "test_swapped": 0.8})
    assert divergences_by_row(run(results)["table"]) == {
        ("test_seen", "pairs", "original"): [(0.005, 0.05, 9)],
        # The swapped captions of seen are not measured alone.
        ("test_seen", "swapped", "original"): [(9, 9, 9)],
        ("test_unseen", "pairs", "original"): [(0.04, 0.4, 0.6)],
        ("test_swapped", "swapped", "original"): [(0.07, 0.7, 0.8)],
        ("test_swapped", "swapped", "swapped"): [(0.07, 0.7, 0.8)],
    }


def readable_cells(text: str, first: str) -> list[list[str]]:
    """Return the cells of the last Markdown table whose head begins with ``first``."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    heads = [i for i, row in enumerate(rows) if row[0] in ("generator", "divergence from train")]
    start = [i for i in heads if rows[i][0] == first][-1]
    return rows[start + 2 : next((i for i in heads if i > start), None)]


def test_divergences_have_a_table_of_their_own(results: Path) -> None:
    write_divergences(results / "d" / "color", pairs={"test_unseen": 0.4})
    run(results)
    text = (results / "table.md").read_text()
    assert readable_cells(text, "divergence from train") == [
        ["atoms: adjectives and nouns", "–", "0.040 (random < 0.001)", "–"],
        ["compounds: pairs", "–", "0.400 (random 0.030 ± 0.002)", "–"],
    ]
    assert "7 random divisions" in text
    assert not any("0.400" in cell for row in readable_cells(text, "generator") for cell in row)


def test_without_divergences(results: Path) -> None:
    write_divergences(results / "d" / "color")
    assert run(results)["table"].iloc[:, -3:].isna().all(axis=None)
    assert "ivergence" not in (results / "table.md").read_text() + (results / "table.tex").read_text()


def test_same_scores_give_the_same_bytes(results: Path, done: Path) -> None:
    run(results)
    for name in ("table.csv", "comparisons.csv", "table.md", "table.tex", "metrics.json"):
        assert (results / name).read_bytes() == (done / name).read_bytes()


def test_tables_say_whose_split_it_is(results: Path) -> None:
    run(results)
    assert "follow the paper's rule" in (results / "table.md").read_text()
    file = results / "d" / "color" / "heldout.json"
    write_json(read_json(file) | {"source": "published"}, file)
    run(results)
    assert "The 1 held-out pairs are those of a published split." in (results / "table.md").read_text()
