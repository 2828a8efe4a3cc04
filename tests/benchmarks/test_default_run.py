"""The benchmark of the default run reads what Snakemake measured."""

from benchmarks.speed import default_run
from tests.project import Project


def test_each_rule_of_a_run_is_measured(first_run: Project) -> None:
    figures = default_run.measure(first_run.root / "results")
    assert {"train_judge", "make_table"} <= figures["CPU seconds"].keys()
    assert figures["ours"] > 0 and figures["n"] >= len(figures["CPU seconds"]) > 10
    assert abs(sum(figures["CPU seconds"].values()) - figures["baseline"]) < figures["n"]
