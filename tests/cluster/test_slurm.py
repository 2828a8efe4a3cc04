"""The workflow through a real Slurm of one node: the same table, and what happens when things go
wrong.
"""

import re

import pandas as pd
import pytest

from tests.cluster.conftest import ClusterProject, Slurm
from tests.project import GENERATORS


def test_a_failed_job_shows_its_own_error(project: ClusterProject, slurm: Slurm) -> None:
    (project.root / "captions.csv").write_text("image_id,caption\n1,a red bird\n")
    source = "{source: table, table: {file: captions.csv, images: not_here}}"
    (project.root / "broken.yaml").write_text(
        f"results: broken\ncompositions: [color]\ndataset: {source}\ngenerate: "
        f"{{generators: [photographs]}}\n"
    )
    once = ("--retries", "0")
    shown = project.submit(
        "slurm", "broken.yaml", "broken/table/captions.parquet", *once, check=False
    )
    assert "Error in rule load_dataset" in shown
    assert "error: not_here: no such folder of images" in shown


def test_killed_for_memory_comes_again_with_more(project: ClusterProject, slurm: Slurm) -> None:
    # Two Snakemakes and the step's first imports take more than 400 MiB for seconds: of 250 Slurm
    # kills it.
    first = slurm.last() + 1
    config = project.config("memory.yaml", "memory", ".cache_memory")
    asks = ("--set-resources", "extract_pairs:mem_mb=250+2750*(attempt-1)")
    shown = project.submit("slurm", config, "memory/sketch/pairs.parquet", *asks)
    jobs = [slurm.details(job) for job in range(first, slurm.last() + 1)]
    parser = [job for job in jobs if "extract_pairs" in job["Comment"]]
    assert [job["MinMemoryNode"] for job in parser] == ["250M", "3000M"]
    assert [job["JobState"] for job in parser] == ["FAILED", "COMPLETED"]
    log = (
        project.root
        / "results"
        / "logs"
        / "slurm"
        / "rule_extract_pairs"
        / f"{parser[0]['JobId']}.log"
    )
    assert str(log) in shown
    assert "exceeded memory limit" in log.read_text()
    assert "Trying to restart job" in shown
    assert len(pd.read_parquet(project.root / "memory" / "sketch" / "pairs.parquet")) > 0


@pytest.fixture(scope="module")
def printed(project: ClusterProject, slurm: Slurm) -> tuple[str, range]:
    """What a run that was cancelled and started again printed the second time, and its jobs'
    numbers.
    """
    config = project.config("slurm.yaml", "results", ".cache_slurm")
    project.interrupt(
        slurm, "slurm", config, "results/table.csv", until="results/sketch/captions.parquet"
    )
    first = slurm.last() + 1
    shown = project.submit("slurm", config, "results/table.csv")
    return shown, range(first, slurm.last() + 1)


def test_cancelled_and_started_again_the_table_is_the_local_one(
    project: ClusterProject, printed: tuple[str, range], local: bytes
) -> None:
    assert project.table("results") == local
    assert not project.planned("slurm.yaml").keys() & {"score_images", "train_judge", "make_table"}


def test_many_small_jobs_are_submitted_as_few(printed: tuple[str, range]) -> None:
    """One job does all steps of a group, which here has one composition's."""
    shown, jobs = printed
    steps = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", shown, re.M)}
    assert steps.pop("total") >= 16
    assert (
        len(jobs)
        == len(re.findall("has been submitted with SLURM jobid", shown))
        <= sum(steps.values()) - 8
    )


def test_jobs_ask_for_what_their_rules_say(slurm: Slurm, printed: tuple[str, range]) -> None:
    asked = {}
    for job in range(1, printed[1].stop):
        details = slurm.details(job)
        asked[re.split("_wildcards|_color", details["Comment"])[0]] = details
    judge, load = asked["rule_train_judge"], asked["rule_load_dataset"]
    assert judge["TRES"].startswith("cpu=2,mem=8000M") and judge["TresPerJob"] == "gres:gpu:1"
    assert judge["TimeLimit"] == "12:00:00"
    assert re.match(r"cpu=[1-4],mem=2000M", load["TRES"]) and "TresPerJob" not in load
    score = asked["rule_score_images"]
    assert score["TRES"].startswith("cpu=2,mem=8000M") and score["TresPerJob"] == "gres:gpu:1"
    minutes = 20 * (len(GENERATORS) + 1)
    assert score["TimeLimit"] == f"{minutes // 60:02}:{minutes % 60:02}:00"
