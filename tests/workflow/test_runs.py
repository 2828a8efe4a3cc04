"""Several runs in one: the same as each alone, one table of all."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from compclip.core.code import ROOT
from compclip.core.errors import UserError
from compclip.core.tables import MEASUREMENTS
from compclip.io import read_frame, write_table
from tests.graph import Job, jobs
from tests.project import Project
from workflow_scripts.runs.join_tables import join_rows
from workflow_scripts.workflow.config import load_config, run_values

PUBLISHED = ROOT / "presets" / "published.yaml"
# Rules that read what all generators made.
OF_ALL_GENERATORS = {"score_images", "make_table", "make_page", "list_entries"}


def written(values: dict[str, Any], path: Path) -> Path:
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def copy(tmp_path: Path) -> Project:
    """A copy of the project in which nothing has run."""
    return Project(tmp_path).copy()


def test_the_oracle_scores_every_generator_whose_scenes_are_known(tmp_path: Path) -> None:
    generators = ["photographs", "shuffled", "faithful", "memorizer", "unbound", "blind"]
    generators.append({"name": "mine", "kind": "folder", "path": "images"})
    found = jobs(written({"compositions": ["color"], "generate": {"generators": generators}}, tmp_path / "c.yaml"))
    scored = {Path(file).name for job in found if job.rule == "score_oracle" for file in job.outputs}
    assert scored == {"photographs", "shuffled", "faithful", "memorizer", "unbound", "blind"}


def without_prefix(found: list[Job], run: str) -> list[tuple]:
    return sorted((job.rule.removeprefix(f"{run}_"), job.stage, job.inputs, job.outputs, job.params) for job in found)


@pytest.mark.slow
def test_a_run_among_others_is_the_run_alone() -> None:
    together = jobs(PUBLISHED)
    for run, preset in (("birds", "published_birds"), ("flowers", "published_flowers")):
        alone = jobs(PUBLISHED.with_name(f"{preset}.yaml"))
        assert alone
        mine = [job for job in together if job.rule.startswith(f"{run}_")]
        assert without_prefix(mine, run) == without_prefix(alone, "")
    assert [job.rule for job in together if job.stage == "runs"] == ["join_tables"]


def test_what_stands_beside_runs_is_said_of_each() -> None:
    runs = {"a": {"judge": {"lr": 0.1}}, "b": {"seed": 4}}
    assert run_values({"results": "r", "seed": 3, "judge": {"epochs": 2}, "runs": runs}) == {
        "a": {"results": "r/a", "seed": 3, "judge": {"epochs": 2, "lr": 0.1}},
        "b": {"results": "r/b", "seed": 4, "judge": {"epochs": 2}},
    }
    assert run_values({"seed": 3}) == {}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ({"a": {"judge": {"epoch": 2}}}, "mine.yaml: runs.a: judge.epoch: unknown key"),
        ({"a": {"pair": 2}}, "mine.yaml: runs.a: pair: unknown key"),
        ({"a": {"results": "r/b"}, "b": {}}, "mine.yaml: runs.b.results: r/b is the folder of runs.a"),
        ({"a": {"results": "r"}}, "mine.yaml: runs.a.results: r is the folder of all runs"),
        (
            {"a": {"results": "r/x"}, "b": {"results": "./r/x/"}},
            "mine.yaml: runs.b.results: ./r/x/ is the folder of runs.a",
        ),
        ({"a": {"runs": {"b": {}}}}, "mine.yaml: runs.a: contains runs itself"),
        ({"a": "nowhere.yaml"}, "nowhere.yaml: no such config file"),
        ({"a": "presets"}, "presets: not readable as a config (Is a directory)"),
        ({"a": 3}, "mine.yaml: runs.a: expected the file of a config or its content"),
        ({"a": {"results": ["r"]}}, "mine.yaml: runs.a: results: "),
        ({"A-1": {}}, "mine.yaml: runs.A-1: a name has lower-case letters"),
        ({}, "mine.yaml: runs: "),
    ],
)
def test_a_faulty_run_is_named(runs: dict, message: str) -> None:
    with pytest.raises(UserError) as error:
        load_config({"results": "r", "runs": runs}, "mine.yaml")
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_joined_data_are_the_rows_by_run() -> None:
    one = pd.DataFrame([["birds", "3"]], columns=["dataset", "n"])
    joined = join_rows({"a": one, "b": one.assign(n="")})
    assert joined.to_numpy().tolist() == [["a", "birds", "3"], ["b", "birds", ""]] and joined.columns[0] == "run"
    with pytest.raises(UserError, match="different columns"):
        join_rows({"a": one, "b": one[["dataset"]]})


@pytest.mark.slow
def test_the_tables_of_all_runs_are_joined_and_printed(copy: Project) -> None:
    """Each run's tables stand there; the rule joins them, and the command prints what it made."""
    for run in ("one", "two"):
        place = copy.root / "all" / run
        place.mkdir(parents=True)
        scores = pd.DataFrame([{"dataset": f"{run}s", "composition": "color", "split": "test_seen", "measure": "fid"}])
        types = {name: column.dtype for name, column in MEASUREMENTS.columns.items()}
        write_table(scores.reindex(columns=[*types]).astype(types), place / "scores.parquet", MEASUREMENTS)
        (place / "scores.csv").write_text("dataset,measure\nx,fid\n")
        (place / "table.csv").write_text(f"dataset,n\n{run}s,1\n")
        (place / "comparisons.csv").write_text("dataset,a\nx,y\n")
        (place / "pairs.csv").write_text("dataset,pair\nx,y\n")
        (place / "table.md").write_text(f"## {run}s, color\n")
        (place / "table.tex").write_text("\\begin{table}\n")
        (place / "report.html").write_text("a page")
    written({"results": "all", "runs": {"one": {}, "two": {"seed": 1}}}, copy.root / "mine.yaml")
    done = copy.call(
        "python", "-m", "workflow_scripts.workflow.run", "--config", "mine.yaml", "--cores", "1",
        "--", "all/table.csv", "--allowed-rules", "join_tables",
    )  # fmt: skip
    assert pd.read_csv(copy.root / "all" / "table.csv").values.tolist() == [["one", "ones", 1], ["two", "twos", 1]]
    scores = read_frame(copy.root / "all" / "scores.parquet")
    assert scores[["run", "dataset"]].to_numpy().tolist() == [["one", "ones"], ["two", "twos"]]
    assert scores.attrs == {"schema_version": MEASUREMENTS.version}
    assert (copy.root / "all" / "table.tex").read_text().splitlines()[0] == "% one"
    readable = "# one\n\n## ones, color\n\n# two\n\n## twos, color\n"
    assert (copy.root / "all" / "table.md").read_text() == readable
    assert readable in done.stdout and done.stdout.count("## ones") == 1
    assert all(f"page:  all/{name}/report.html" in done.stdout for name in ("one", "two"))


def test_each_composition_takes_its_own_judge(tmp_path: Path) -> None:
    """The authors published a judge for each: {composition} in judge.pretrained."""
    weights = {name: tmp_path / f"C_CUB_{name}.pt" for name in ("color", "shape")}
    for file in weights.values():
        file.touch()
    judge = {"model": "sketch", "pretrained": str(tmp_path / "C_CUB_{composition}.pt"), "epochs": 0, "share": False}
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"results": str(tmp_path / "results"), "judge": judge}))
    training = [job for job in jobs(config) if job.rule == "train_judge"]
    assert len(training) == 2
    for job in training:
        (own,) = (file for name, file in weights.items() if f"/{name}/" in job.outputs[0])
        assert {str(file) for file in weights.values()} & set(job.inputs) == {str(own)}
        assert f"'pretrained': '{own}'" in job.params and "{composition}" not in job.params


CONFIG = """
results: {folder}
cache: {cache}
compositions: [{names}]
dataset: {{source: sketch, sketch: {{images: 120, species: 12}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
judge: {{model: sketch, pretrained: null, trainable: ["*"], epochs: 1, share: false}}
"""


def test_the_jobs_of_a_composition_are_the_same_beside_another(tmp_path: Path) -> None:
    alike = []
    for names in ("color", "color, shape"):
        config = tmp_path / f"{names}.yaml"
        config.write_text(CONFIG.format(folder=tmp_path / "r", cache=tmp_path / "c", names=names))
        made = [job for job in jobs(config) if job.stage in ("dataset", "pairs", "split", "judge", "generate", "score")]
        alike.append({(job.rule, job.inputs, job.params) for job in made if "shape" not in job.wildcards.values()})
    assert alike[0] == alike[1] and len(alike[0]) > 10


@pytest.mark.slow
def test_splits_are_the_same_beside_another_composition(tmp_path: Path) -> None:
    """With a shared lexicon, and with one of the user's own."""
    project = Project(tmp_path).copy()
    (tmp_path / "lexicons" / "adjectives" / "look.yaml").write_text("little: [tiny, small]\nbig: [large]\nshort:\n")
    made = []
    for folder, names in (("one", "color"), ("two", "color, shape"), ("three", "look, color")):
        config = CONFIG.format(folder=folder, cache=".cache", names=names)
        (tmp_path / f"{folder}.yaml").write_text(config)
        ranked = [f"{folder}/sketch/{name}/ranking.parquet" for name in names.split(", ")]
        targets = [*ranked, f"{folder}/sketch/color/prompts.parquet"]
        project.snakemake(f"{folder}.yaml", "--", *targets)
        place = tmp_path / folder / "sketch" / "color"
        made.append({file.name: file.read_bytes() for file in place.iterdir() if file.is_file()})
    assert made[0] == made[1] == made[2] and "splits.csv" in made[0]


def test_rules_read_the_pairs_of_their_composition() -> None:
    """A composition with a lexicon of its own has pairs of its own."""
    texts = [file.read_text() for file in (ROOT / "rules").glob("**/*.smk")]
    assert not [text for text in texts if "<dataset>/pairs.parquet" in text]
