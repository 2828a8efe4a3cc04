"""The benchmark of the default run, on a run of four jobs."""

from pathlib import Path

import pytest

from benchmarks.speed.__main__ import lines
from benchmarks.speed.default_run import Ran, cpu_seconds, critical_path, figures, makespan, read_run
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.graph import Job

JOBS = {"load": (10, 1, ()), "parse": (20, 2, (0,)), "draw": (4, 1, (0,)), "table": (1, 1, (1, 2))}
RAN = [Ran(f"stage/{name}", cpu, threads, after) for name, (cpu, threads, after) in JOBS.items()]


def test_the_critical_path_is_the_longest_chain() -> None:
    assert [job.name for job in critical_path(RAN)] == ["stage/load", "stage/parse", "stage/table"]
    assert sum(job.alone for job in critical_path(RAN)) == 10 + 20 / 2 + 1


def test_jobs_wait_for_their_inputs_and_for_cores() -> None:
    assert makespan(RAN, 1) == sum(job.cpu for job in RAN)
    assert makespan(RAN, 2) == 10 + 10 + 4 + 1
    assert makespan(RAN, 3) == 10 + 10 + 1
    assert makespan([Ran(str(n), 1.0, 1, ()) for n in range(5)], 2) == 3


def test_the_figures_are_read_from_benchmark_files(tmp_path: Path) -> None:
    graph = [
        Job(name, tuple(f"{list(JOBS)[n]}.out" for n in after), (f"{name}.out",), f"r/logs/{name}/{name}.log", "", "")
        for name, (_, _, after) in JOBS.items()
    ]
    with pytest.raises(UserError, match=r"load\.benchmark\.tsv: not found"):
        read_run(graph, tmp_path)
    for name, (cpu, threads, _) in JOBS.items():
        file = tmp_path / f"r/logs/{name}/{name}.benchmark.tsv"
        file.parent.mkdir(parents=True)
        file.write_text(f"s\tcpu_time\tthreads\n{cpu / threads:.2f}\t{cpu}\t{threads}\n")
    measured = figures(read_run(graph, tmp_path))
    assert (measured["baseline"], measured["ours"], measured["n"]) == (35, 25, 4)
    assert measured["critical path"] == {"load/load": 10, "parse/parse": 10, "table/table": 1, "sum": 21}
    assert len(list(lines("default_run", measured))) == 5


def test_cpu_time_after_the_last_sample_is_added() -> None:
    assert cpu_seconds(10.25, 10.0) == 10.25
    assert cpu_seconds(60.5, 45.5) == 60.5
    assert cpu_seconds(0.25, 0.0) == 0.25
