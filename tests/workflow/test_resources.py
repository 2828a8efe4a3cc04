"""What rules ask a scheduler for, beside what their jobs used; and the two profiles for clusters."""

import math
import re
from pathlib import Path

import pytest
import yaml

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.resources import SNAKEMAKE, by_rule, measured, profile, text

HEAD = "s\tmax_rss\tcpu_time\trule_name\tthreads\tresources\n"


def line(rule: str, seconds: float, rss: float | str, busy: float, threads: int = 1, **resources: int) -> str:
    return f"{HEAD}{seconds}\t{rss}\t{busy}\t{rule}\t{threads}\t{resources}\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder: rule one with two jobs, rule short too short to be measured, rule train."""
    (tmp_path / "logs").mkdir()
    for name, row in (
        ("one.a", line("one", 60, 300, 30, mem_mb=1000, runtime=60)),
        ("one.b", line("one", 120, 900, 120, mem_mb=1000, runtime=60)),
        ("short", line("short", 0.2, "-", 0.1, mem_mb=1000, runtime=30)),
        ("train", line("train", 600, 1000, 900, 2, mem_mb=9000, runtime=720)),
    ):
        (tmp_path / "logs" / f"{name}.benchmark.tsv").write_text(row)
    return tmp_path


def test_rules_are_compared_with_what_they_ask_for(run: Path) -> None:
    table = by_rule(measured(run)).set_index("rule")
    assert list(table.index) == ["one", "short", "train"]
    one, train = table.loc["one"], table.loc["train"]
    assert (one["jobs"], one["seconds"], one["rss"]) == (2, 120, 900)
    assert one["cpu"] == pytest.approx((0.5 + 1.0) / 2)
    assert train["cpu"] == pytest.approx(900 / (600 * 2))
    # 900 MiB and Snakemake's are more than 1000; 720 minutes are more than 20 times 10.
    assert one["note"] == "memory too little, time much"
    assert train["note"] == "memory much, time much"
    assert math.isnan(table.loc["short", "rss"]) and table.loc["short", "note"] == ""
    assert text(table.reset_index()).count("\n") == 4


def test_profile_lines_hold_what_was_measured_and_grow(run: Path) -> None:
    table = by_rule(measured(run))
    asked = yaml.safe_load(profile(table))["set-resources"]
    assert asked.keys() == {"one", "short", "train"}
    for row in table.itertuples():
        memory, minutes = (eval(asked[row.rule][name], {"attempt": 1}) for name in ("mem_mb", "runtime"))
        assert not row.rss + SNAKEMAKE > memory and memory >= 1000
        assert minutes * 60 >= 3 * row.seconds
        assert eval(asked[row.rule]["mem_mb"], {"attempt": 2}) == 2 * memory


def test_a_broken_file_is_named(run: Path) -> None:
    (run / "logs" / "train.benchmark.tsv").write_text("nonsense\n1\n")
    with pytest.raises(UserError, match=r"train\.benchmark\.tsv: not an extended benchmark"):
        measured(run)


def test_profiles_for_clusters_agree() -> None:
    """Both say the same of everything but their executor; what they group, rules name."""
    slurm, generic = (
        yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text()) for name in ("slurm", "generic")
    )
    own = {"executor", "default-resources", "seconds-between-status-checks", "max-status-checks-per-second"}

    def shared(profile: dict) -> dict:
        return {
            key: value for key, value in profile.items() if not key.startswith(("slurm-", "cluster-")) | (key in own)
        }

    assert shared(slurm) == shared(generic)
    assert slurm["rerun-incomplete"] and slurm["show-failed-logs"]
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    named = set(re.findall(r'group:\n +"(\w+)"', rules))
    assert {entry.split("=")[0] for entry in slurm["group-components"]} <= named
