"""The same through the generic executor, whose three commands are Slurm's here."""

import subprocess
import threading

from tests.cluster.conftest import ClusterProject, Slurm, wait_until


def test_interrupted_killed_and_the_same_table(
    project: ClusterProject, slurm: Slurm, local: bytes
) -> None:
    config = project.config("generic.yaml", "generic", ".cache_slurm")
    project.interrupt(
        slurm, "generic", config, "generic/table.csv", until="generic/sketch/color/splits.parquet"
    )

    # Of the second run the scheduler kills a job, which can no longer say so: the status command
    # does.
    def kill_one() -> None:
        wait_until(slurm.running, "a job", 300)
        subprocess.run(["scancel", *slurm.running()], check=True)

    killer = threading.Thread(target=kill_one)
    killer.start()
    shown = project.submit("generic", config, "generic/table.csv")
    killer.join()
    assert "Trying to restart job" in shown
    assert project.table("generic") == local
    assert list((project.root / "results" / "logs" / "cluster").glob("*.log"))
