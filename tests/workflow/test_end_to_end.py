"""The whole chain through Snakemake on a few drawn birds: wiring, reruns, a kill, one core against two."""

import json
import os
import re
import signal
import subprocess
import time

import pandas as pd
import pytest
import yaml

from tests.project import Project
from workflow_scripts.report.table import COLUMNS


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    assert len(one) > 50
    return sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def test_table_has_every_score(project: Project) -> None:
    table = pd.read_csv(project.root / "results" / "table.csv")
    assert list(table.columns) == COLUMNS
    trained = table[table.judge != "oracle"]
    served = trained.groupby(["composition", "generator"]).split.agg(set)
    assert served["color", "photographs"] == {"test_seen", "test_unseen"}
    assert served["color", "faithful"] == {"test_seen", "test_unseen", "test_swapped"}
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


def test_bad_config_is_one_line(project: Project) -> None:
    (project.root / "bad.yaml").write_text("judge: {epoch: 3}\n")
    run = project.call("python", "-m", "workflow_scripts.workflow.run", "--config", "bad.yaml", check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("error: bad.yaml: judge.epoch: unknown key; allowed: ")
    assert len(run.stderr.strip().splitlines()) == 1
    plain = project.snakemake("bad.yaml", check=False)
    assert plain.returncode and "judge.epoch: unknown key" in plain.stderr


@pytest.mark.parametrize(
    ("section", "key", "value", "rerun", "kept"),
    [
        ("score", "bootstrap", 300, {"make_table"}, {"train_judge", "score_images", "swap_adjectives"}),
        ("judge", "epochs", 3, {"train_judge", "score_images"}, {"extract_pairs", "audit", "export"}),
        ("divergence", "shuffles", 5, {"measure_splits"}, {"make_splits", "make_prompts", "train_judge"}),
        ("report", "examples", 2, {"make_page"}, {"make_table", "score_images"}),
    ],
)
def test_one_setting_reruns_what_depends_on_it(
    project: Project, section: str, key: str, value: int, rerun: set[str], kept: set[str]
) -> None:
    config = yaml.safe_load((project.root / "small.yaml").read_text())
    config[section][key] = value
    (project.root / "changed.yaml").write_text(yaml.safe_dump(config))
    planned = project.planned("changed.yaml").keys()
    assert rerun <= planned
    assert not kept & planned


RETURN, EDITED = "\n    return ", "\n    repr(0)\n    return "


@pytest.mark.parametrize(
    ("module", "old", "new", "rerun", "kept"),
    [
        # A comment or a docstring anywhere reruns nothing.
        ("core/lock.py", '"""A lock', '"""The lock', set(), set()),
        ("judge/training.py", "\ndef ", "\n# a comment\ndef ", set(), set()),
        ("judge/training.py", "logits = scale *", "logits = 2 * scale *", {"train_judge"}, {"make_prompts"}),
        ("score/score_images.py", RETURN, EDITED, {"score_images", "make_table"}, {"train_judge", "generate_images"}),
        ("split/make_prompts.py", RETURN, EDITED, {"make_prompts"}, {"train_judge", "swap_adjectives"}),
        ("split/wording.py", RETURN, EDITED, {"swap_adjectives"}, {"train_judge", "load_dataset"}),
        ("report/make_page.py", RETURN, EDITED, {"make_page"}, {"train_judge", "score_images", "make_table"}),
    ],
)
def test_code_reruns_what_it_decides(
    project: Project, module: str, old: str, new: str, rerun: set[str], kept: set[str]
) -> None:
    file = project.root / "workflow_scripts" / module
    before = file.read_text()
    assert old in before
    try:
        file.write_text(before.replace(old, new, 1))
        planned = project.planned("small.yaml").keys()
    finally:
        file.write_text(before)
    assert rerun <= planned and not kept & planned
    assert rerun or kept or not planned


def test_a_killed_run_on_one_core_ends_with_the_same_bytes(project: Project) -> None:
    """Cold caches, one core, killed in the training and resumed; the first run had two cores."""
    config = project.config("killed.yaml", "killed", ".cache_killed")
    wrapper = ("python", "-m", "workflow_scripts.workflow.run", "--config", config, "--cores", "1")
    with subprocess.Popen(
        wrapper, cwd=project.root, env=project.environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        deadline = time.monotonic() + 300
        while not list((project.root / "killed" / "logs").rglob("train_judge.*.log")):
            assert run.poll() is None and time.monotonic() < deadline, "the run ended before the training began"
            time.sleep(0.05)
        # While it runs, a second one is refused in one line.
        second = project.call(*wrapper, check=False)
        assert second.returncode == 1
        assert re.fullmatch(
            r"error: another run is active in this checkout \(process \d+ on \S+, since [-\d]+ [:\d]+,"
            r" config killed.yaml\); wait until it ends",
            second.stderr.strip(),
        )
        os.killpg(run.pid, signal.SIGKILL)
    stale = project.call(*wrapper, check=False)
    assert stale.returncode == 1
    assert len(stale.stderr.strip().splitlines()) == 1 and "make unlock" in stale.stderr
    project.snakemake(config, "--unlock")
    project.call(*wrapper)
    assert differing(project.artifacts("results"), project.artifacts("killed")) == []
