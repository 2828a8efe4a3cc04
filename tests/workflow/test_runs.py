"""Several data sets, each the same as alone, with one table; what each seed changes."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import yaml

from compclip.core.artifacts.parquet import read_frame
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.tables import MEASUREMENTS
from compclip.report.join_tables import join_tables
from tests.graph import Job, jobs
from tests.project import Project
from workflow_scripts.job import Job as ScriptJob
from workflow_scripts.mock_job import load_workflow, mock_job
from workflow_scripts.report import join_tables as script
from workflow_scripts.workflow.config import load_config

PUBLISHED = ROOT / "presets" / "published.smk"


def written(values: dict[str, Any], path: Path) -> Path:
    path.write_text(yaml.safe_dump(values))
    return path


def test_scenes_of_the_oracle_and_judges_of_each_composition(tmp_path: Path) -> None:
    generators = ["photographs", "shuffled", "faithful", "memorizer", "unbound", "blind"]
    generators.append({"name": "mine", "kind": "folder", "path": "images"})
    found = jobs(
        written(
            {"compositions": ["color"], "generate": {"generators": generators}}, tmp_path / "c.yaml"
        )
    )
    scored = {
        Path(file).name for job in found if job.rule == "score_oracle" for file in job.outputs
    }
    assert scored == {"photographs", "shuffled", "faithful", "memorizer", "unbound", "blind"}
    # The authors published a judge for each composition: {composition} in judge.pretrained.
    weights = {name: tmp_path / f"C_CUB_{name}.pt" for name in ("color", "shape")}
    for file in weights.values():
        file.touch()
    judge = {
        "model": "sketch",
        "pretrained": str(tmp_path / "C_CUB_{composition}.pt"),
        "epochs": 0,
        "shared": False,
    }
    config = written(
        {"results": str(tmp_path / "results"), "judge": judge}, tmp_path / "config.yaml"
    )
    training = [job for job in jobs(config) if job.rule == "train_judge"]
    assert len(training) == 2
    for job in training:
        (own,) = (file for name, file in weights.items() if f"/{name}/" in job.outputs[0])
        assert {str(file) for file in weights.values()} & set(job.inputs) == {str(own)}
        assert f"'pretrained': '{own}'" in job.params and "{composition}" not in job.params


def without_prefix(found: list[Job], run: str) -> list[tuple]:
    return sorted(
        (job.rule.removeprefix(f"{run}_"), job.stage, job.inputs, job.outputs, job.params)
        for job in found
    )


@pytest.mark.slow
def test_a_data_set_among_others_is_the_run_alone() -> None:
    together = jobs(None, PUBLISHED)
    for run in ("birds", "flowers"):
        alone = jobs(PUBLISHED.with_name(f"published_{run}.yaml"))
        assert alone
        mine = [job for job in together if job.rule.startswith(f"{run}_")]
        assert without_prefix(mine, run) == without_prefix(alone, "")


def test_the_published_tables_are_joined() -> None:
    planned = jobs(None, PUBLISHED)
    (joining,) = [job for job in planned if job.rule == "join_tables"]
    made = {path for job in planned for path in job.outputs}
    assert made.issuperset(joining.inputs)
    assert len(joining.inputs) == 2 * len(joining.outputs)


def test_rows_are_joined_by_run() -> None:
    one = pd.DataFrame([["birds", "3"]], columns=["dataset", "n"])
    joined = join_tables({"a": one, "b": one.assign(n="")})
    assert joined.to_numpy().tolist() == [["a", "birds", "3"], ["b", "birds", ""]]
    assert joined.columns[0] == "run"
    with pytest.raises(UserError, match="different columns"):
        join_tables({"a": one, "b": one[["dataset"]]})


def test_a_config_with_several_runs_names_the_new_way() -> None:
    with pytest.raises(UserError) as error:
        load_config({"runs": {"a": {}}}, "mine.yaml")
    assert str(error.value).startswith("mine.yaml: runs: removed; write a Snakefile")
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_joined_tables_keep_every_cell(first_run: Project, tmp_path: Path) -> None:
    results = first_run.root / "results"
    names = ["scores.parquet", "scores.csv", "table.csv", "table.md", "table.tex"]
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        for name in names:
            shutil.copy(results / name, tmp_path / run)
    tables = [tmp_path / run / name for run in ("one", "two") for name in names]
    joined = [tmp_path / name for name in names]
    job = ScriptJob(
        input=SimpleNamespace(tables=tables),
        output=SimpleNamespace(joined=joined),
        params=SimpleNamespace(runs=["one", "two"]),
    )
    script.main(job)
    table = pd.read_csv(tmp_path / "table.csv")
    alone = pd.read_csv(results / "table.csv")
    assert table.groupby("run").size().to_dict() == {"one": len(alone), "two": len(alone)}
    assert table[table["run"] == "two"][[*alone]].reset_index(drop=True).equals(alone)
    schema = {"schema_version": MEASUREMENTS.version}
    assert read_frame(tmp_path / "scores.parquet").attrs == schema
    assert (tmp_path / "table.tex").read_text().splitlines()[0] == "% one"
    chapters = re.findall("^# (.*)$", (tmp_path / "table.md").read_text(), re.MULTILINE)
    assert chapters == ["one", "two"]


CONFIG = """
results: {folder}
cache: {cache}
compositions: [{names}]
dataset: {{source: sketch, sketch: {{images: 120, species: 12}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
judge: {{model: sketch, pretrained: null, trainable: ["*"], epochs: 1, shared: false}}
"""


def test_compositions_do_not_change_jobs_and_shards_are_jobs(tmp_path: Path) -> None:
    alike = []
    for names in ("color", "color, shape"):
        config = tmp_path / f"{names}.yaml"
        config.write_text(CONFIG.format(folder=tmp_path / "r", cache=tmp_path / "c", names=names))
        planned = [
            job
            for job in jobs(config)
            if job.stage in ("dataset", "pairs", "split", "judge", "generate", "score")
        ]
        alike.append(
            {
                (job.rule, job.inputs, job.params)
                for job in planned
                if "shape" not in job.wildcards.values()
            }
        )
    assert alike[0] == alike[1] and len(alike[0]) > 10
    # A composition with a lexicon of its own has pairs of its own.
    rules = [file.read_text() for file in (ROOT / "rules").glob("**/*.smk")]
    assert not [text for text in rules if "<dataset>/pairs.parquet" in text]
    # One shard of captions is no further job.
    made = []
    for shards in (1, 3):
        config = tmp_path / "config.yaml"
        text = CONFIG.format(folder=tmp_path / "r", cache=tmp_path / "c", names="color")
        config.write_text(text.replace("dataset: {", f"dataset: {{shards: {shards}, "))
        made.append({path: job for job in jobs(config) for path in job.outputs})
    folders = [f"{tmp_path}/r/sketch/pairs/{shard}-of-3.parquet" for shard in (1, 2, 3)]
    further = made[1].keys() - made[0].keys()
    assert {*folders} < further and made[0].keys() < made[1].keys()
    steps = "audit", "contested", "offers", "variants"
    assert {Path(path).parent.name for path in further} == {"pairs", *steps} and len(
        further
    ) == 3 * 7
    joined = made[1][f"{tmp_path}/r/sketch/pairs.parquet"]
    assert [path for path in joined.inputs if path in folders] == folders


# Rules, and the wildcards of a job.
COLOR = {"composition": "color"}
RULES: dict[str, dict[str, str]] = {
    "load_dataset": {},
    "sample_heldout": COLOR,
    "make_splits": COLOR,
    "swap_adjectives": COLOR,
    "make_prompts": COLOR,
    "train_judge": COLOR | {"judge": "4"},
    "generate_images": COLOR | {"generator": "photographs"},
    "score_images": COLOR,
    "make_table": {},
}


def test_each_seed_changes_what_it_draws_and_has_a_default(tmp_path: Path) -> None:
    """All other steps follow by what they read, or not at all."""

    def settings(**values: Any) -> dict[str, dict[str, Any]]:
        """Return the params of each rule that Snakemake compares, for a config."""
        workflow = load_workflow(
            written({"judge": {"seeds": [4]}} | values, tmp_path / "config.yaml")
        )
        return {
            rule: vars(mock_job(rule, workflow, **given).params) for rule, given in RULES.items()
        }

    before = settings()

    def changed(**values: Any) -> set[str]:
        return {rule for rule, params in settings(**values).items() if params != before[rule]}

    assert changed(seeds={"world": 1}) == {"load_dataset"}
    split = {"sample_heldout", "make_splits", "swap_adjectives", "make_prompts"}
    assert changed(seeds={"split": 1}) == split
    assert changed(seeds={"judge_half": 1}) == {"make_prompts", "train_judge", "score_images"}
    # Only what reads all judges changes with one more.
    assert changed(judge={"seeds": [4, 7]}) == {"score_images", "make_table"}
    # A judge of a given seed depends on `seed` only by `judge_half`.
    assert changed(seed=1) == {*RULES} - {"make_table"}
    assert "train_judge" not in changed(seed=1, seeds={"judge_half": 0})
    config = load_config({"seed": 3, "seeds": {"split": 5}})
    assert config.seeds.model_dump() == {
        "world": 3,
        "split": 5,
        "judge_half": 3,
    } and config.members == [
        "3",
        "4",
    ]
    for alone in ({"shared": False}, {"epochs": 0}):
        assert load_config({"seed": 3, "judge": alone}).members == ["3"]
    assert load_config({"judge": {"seeds": [2, 0]}}).members == ["2", "0"]
