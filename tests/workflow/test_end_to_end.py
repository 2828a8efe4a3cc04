"""The whole chain, through Snakemake itself, on a few drawn birds."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tests.workflow.conftest import Project

COLUMNS = """
    dataset composition generator split prompts n images exact exact_low exact_high sampled_mean sampled_std balanced
    balanced_low balanced_high blind_control judge judge_hash candidates class_rule distractors seed
    atom_divergence compound_divergence subgraph_divergence
""".split()


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    assert len(one) > 100
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def test_table_has_every_score(project: Project) -> None:
    table = pd.read_csv(project.root / "results" / "table.csv")
    assert list(table.columns) == COLUMNS
    trained = table[table.judge != "oracle"]
    served = trained.groupby(["composition", "generator"]).split.agg(set)
    for composition in ("color", "shape"):
        assert served[composition, "photographs"] == {"test_seen", "test_unseen"}
        assert served[composition, "faithful"] == {"test_seen", "test_unseen", "test_swapped"}
    assert ((table.exact_low <= table.exact) & (table.exact <= table.exact_high)).all()
    # The sampled score is an unbiased estimate of the exact one: ten standard errors of n Bernoulli draws.
    assert ((table.sampled_mean - table.exact).abs() <= 10 * 0.5 / table.n**0.5).all()
    assert table[table.split == "test_swapped"].balanced.notna().all()
    assert table[table.split != "test_swapped"].balanced.isna().all()
    # What DVC compares are the scores that are compared here.
    whole = (trained.prompts != "swapped") | trained.balanced.notna()
    compared = trained[whole & (trained.distractors == "original")]
    metrics = json.loads((project.root / "results" / "metrics.json").read_text())["sketch"]
    found = {(c, g, f"test_{s}"): v for c, of in metrics.items() for g, by in of.items() for s, v in by.items()}
    exact = compared.set_index(["composition", "generator", "split"]).exact
    assert found == pytest.approx((100 * exact).to_dict(), abs=0.006)
    # Held-out pairs, which train has not, put test_unseen farther away than test_seen.
    apart = trained[trained.prompts != "swapped"].groupby(["composition", "split"]).compound_divergence.first()
    assert (apart.xs("test_seen", level="split") < apart.xs("test_unseen", level="split")).all()


def test_second_run_does_nothing(project: Project) -> None:
    before = project.artifacts("results")
    assert "Nothing to be done" in project.snakemake("small.yaml").stderr
    assert project.planned("small.yaml") == {}
    assert project.artifacts("results") == before


def test_one_core_and_warm_cache_give_the_same_bytes(project: Project) -> None:
    first = project.artifacts("results")
    # Cold cache, one core.
    project.snakemake(project.config("one.yaml", "one", ".cache_one"), cores=1)
    assert differing(first, project.artifacts("one")) == []
    # Warm cache, two cores.
    shutil.rmtree(project.root / "one")
    project.snakemake("one.yaml", cores=2)
    assert differing(first, project.artifacts("one")) == []


@pytest.mark.parametrize(
    ("key", "value", "rerun", "kept"),
    [
        ("score", "{bootstrap: 300}", {"make_table"}, {"train_judge", "swap_adjectives", "load_dataset"}),
        (
            "judge",
            "{epochs: 3, captions: 2, train_on: half}",
            {"train_judge", "score_images"},
            {"extract_pairs", "audit", "export"},
        ),
        (
            "divergence",
            "{shuffles: 5, subgraphs: {nodes: 3, branching: 2, keep: 2000}}",
            {"measure_splits"},
            {"extract_pairs", "make_splits", "make_prompts", "train_judge", "score_images"},
        ),
        ("report", "{examples: 2}", {"make_page"}, {"make_table", "score_images"}),
    ],
)
def test_one_setting_reruns_what_depends_on_it(
    project: Project, key: str, value: str, rerun: set[str], kept: set[str]
) -> None:
    lines = (project.root / "small.yaml").read_text().splitlines()
    assert any(line.startswith(f"{key}:") for line in lines)
    changed = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
    (project.root / "changed.yaml").write_text("\n".join(changed))
    planned = project.planned("changed.yaml").keys()
    assert rerun <= planned
    assert not kept & planned


def test_a_division_by_divergence_runs_to_the_report(project: Project) -> None:
    small = (project.root / "small.yaml").read_text()
    for old, new in (
        ("results: results", "results: divided"),
        ("{per_image: 2}", "{method: divergence, per_image: 2, divergence: {train: 0.5, test: 0.3, restarts: 2}}"),
    ):
        assert old in small
        small = small.replace(old, new)
    small += "compositions: [color]\ngenerate: {generators: [photographs, faithful]}\n"
    (project.root / "divided.yaml").write_text(small)
    project.snakemake("divided.yaml")
    place = project.root / "divided" / "sketch" / "color"
    side = pd.read_parquet(place / "division.parquet").set_index("image_id")["side"]
    split = pd.read_parquet(place / "splits.parquet").set_index("image_id")["split"]
    assert side.value_counts().to_dict() == {"train": 200, "test": 120, "unused": 80}
    assert set(split.index[split == "train"]) <= set(side.index[side == "train"])
    assert set(split.index[split == "test_unseen"]) <= set(side.index[side == "test"])
    heldout = json.loads((place / "heldout.json").read_text())
    assert heldout["source"] == "divergence" and heldout["pairs"]
    audit = json.loads((place / "audit.json").read_text())
    assert audit["violations"] == [] and audit["counts"]["images_unused"] == 400 - len(split)
    # What was divided to diverge does, and what is measured is what the division says it reached.
    division = json.loads((place / "division.json").read_text())
    table = pd.read_parquet(place / "divergence.parquet").set_index(["definition", "split", "texts"])
    assert division["atom_divergence"] <= 0.02
    unseen = table.loc[("pairs", "test_unseen", "captions")]
    assert unseen["compound_divergence"] > 3 * unseen["random_compound_mean"]
    scores = pd.read_csv(project.root / "divided" / "table.csv")
    assert {"test_seen", "test_unseen", "test_swapped"} == set(scores["split"])
    assert (project.root / "divided" / "report.html").stat().st_size > 0


def test_shards_give_the_same_table(first_run: Project, tmp_path: Path) -> None:
    """Embeddings made by three jobs each, from a cold cache; without shards there is no such job."""
    fork = first_run.fork(tmp_path / "shards")
    assert not list(fork.root.glob("results/**/embed*"))
    few = (fork.root / "small.yaml").read_text() + "generate: {generators: [faithful]}\n"
    (fork.root / "one.yaml").write_text(few)
    fork.snakemake("one.yaml", "--", "results/table.csv")
    before = (fork.root / "results/table.csv").read_bytes()
    scores = {name: sha for name, sha in fork.artifacts("results").items() if "/scores/faithful/" in name}
    assert "score: {bootstrap: 200}" in few
    (fork.root / "three.yaml").write_text(few.replace("score: {bootstrap: 200}", "score: {bootstrap: 200, shards: 3}"))
    shutil.rmtree(fork.root / ".cache" / "embeddings")
    (fork.root / "results/table.csv").unlink()
    fork.snakemake("three.yaml", "--", "results/table.csv")
    made = sorted(path.name for path in fork.root.glob("results/sketch/*/embeddings/faithful/*"))
    assert made == sorted(f"{shard}-of-3.parquet" for shard in (1, 2, 3) for _ in range(2))
    assert (fork.root / "results/table.csv").read_bytes() == before
    after = fork.artifacts("results")
    assert scores and scores == {name: after[name] for name in scores}


def test_one_module_reruns_what_imports_it(project: Project) -> None:
    module = project.root / "workflow_scripts" / "split" / "make_prompts.py"
    before = module.read_text()
    try:
        module.write_text(before + "\n# changed\n")
        planned = project.planned("small.yaml").keys()
    finally:
        module.write_text(before)
    assert "make_prompts" in planned
    assert not planned & {"load_dataset", "extract_pairs", "rank_pairs", "train_judge", "swap_adjectives"}
    assert project.planned("small.yaml") == {}


def test_killed_run_resumes_to_the_same_bytes(project: Project) -> None:
    config = project.config("killed.yaml", "killed", ".cache_killed")
    wrapper = ("python", "-m", "workflow_scripts.workflow.run", "--config", config, "--cores", "2")
    with subprocess.Popen(
        wrapper, cwd=project.root, env=project.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        deadline = time.monotonic() + 300
        logs = [project.root / "killed" / "logs" / "sketch" / name / "train_judge.log" for name in ("color", "shape")]
        while not any(log.exists() for log in logs):
            assert run.poll() is None and time.monotonic() < deadline, "the run ended before the judge began"
            time.sleep(0.05)
        # While it runs, a second one is refused in one line.
        second = project.call(*wrapper, check=False)
        assert second.returncode == 1
        assert re.fullmatch(
            r"error: another run is at work in this checkout \(process \d+ on \S+, since [-\d]+ [:\d]+,"
            r" config killed.yaml\): wait until it ends",
            second.stderr.strip(),
        )
        os.killpg(run.pid, signal.SIGKILL)
    stale = project.call(*wrapper, check=False)
    assert stale.returncode == 1
    assert len(stale.stderr.strip().splitlines()) == 1 and "make unlock" in stale.stderr
    project.snakemake(config, "--unlock")
    project.call(*wrapper)
    assert differing(project.artifacts("results"), project.artifacts("killed")) == []


def test_bad_config_is_one_line(project: Project) -> None:
    (project.root / "bad.yaml").write_text("judge: {epoch: 3}\n")
    run = project.call("python", "-m", "workflow_scripts.workflow.run", "--config", "bad.yaml", check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("error: bad.yaml: judge.epoch: unknown key; allowed: ")
    assert len(run.stderr.strip().splitlines()) == 1
    plain = project.snakemake("bad.yaml", check=False)
    assert plain.returncode and "judge.epoch: unknown key" in plain.stderr


def test_dvc_versions_the_run(project: Project, tmp_path: Path) -> None:
    """repro, status, push; in a clone pull and touch: both tools find nothing to do, then just what changed."""
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")
    preset = project.root / "presets" / "small"
    preset.mkdir(parents=True, exist_ok=True)
    config = project.config("presets/small/config.yaml", "results/presets/small")
    project.call("python", "-m", "workflow_scripts.workflow.make_dvc", "--config", config)
    project.call("git", "init", "-q")
    project.call("git", "add", "--all")
    project.call(*git, "commit", "-qm", "project")
    project.call("dvc", "remote", "add", "--default", "--force", "store", str(tmp_path / "store"))
    stages = "presets/small/dvc.yaml"
    project.call("dvc", "repro", stages)
    assert differing(project.artifacts("results/presets/small"), project.artifacts("results")) == []
    assert "up to date" in project.call("dvc", "status", stages).stdout
    # What Snakemake has run by itself is recorded as DVC would have; where there is no lock yet, in another order.
    lock = preset / "dvc.lock"
    reproduced = lock.read_bytes()
    project.call("python", "-m", "workflow_scripts.workflow.record", "--config", config)
    assert lock.read_bytes() == reproduced
    lock.unlink()
    project.call("python", "-m", "workflow_scripts.workflow.record", "--config", config)
    assert yaml.safe_load(lock.read_bytes()) == yaml.safe_load(reproduced)
    project.call("git", "add", "--all")
    project.call(*git, "commit", "-qm", "run")
    project.call("dvc", "push", stages)

    clone = Project(tmp_path / "clone")
    project.call("git", "clone", "-q", str(project.root), str(clone.root))
    clone.call("dvc", "pull", stages)
    clone.snakemake(config, "--touch", "--forceall", cores=1)
    assert clone.planned(config) == {}
    assert "up to date" in clone.call("dvc", "status", stages).stdout

    text = (clone.root / config).read_text()
    (clone.root / config).write_text(text.replace("bootstrap: 200", "bootstrap: 300"))
    planned = clone.planned(config).keys()
    assert "make_table" in planned and not planned & {"train_judge", "audit", "extract_pairs"}
    changed = clone.call("dvc", "status", stages).stdout
    assert "report:" in changed and "judge:" not in changed and "split:" not in changed
    (clone.root / config).write_text(text)

    module = clone.root / "workflow_scripts" / "split" / "audit.py"
    module.write_text(module.read_text() + "\n# changed\n")
    planned = clone.planned(config).keys()
    assert "audit" in planned and not planned & {"train_judge", "swap_adjectives", "extract_pairs"}
    changed = clone.call("dvc", "status", stages).stdout
    assert "split:" in changed and "judge:" not in changed and "pairs:" not in changed
