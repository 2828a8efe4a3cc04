"""A one-node Slurm that the tests start and stop themselves, and a copy of the project to run
through it.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.project import Project

NEEDED = ("munged", "munge", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
# Slurm finds its settings nowhere else: the executor's plugin takes SLURM_CONF from the steps that
# it starts.
SETTINGS = Path("/etc/slurm")
# More memory than the machine may have: what a job asks for is counted against it, and never the
# test's reason to wait. A job that holds more than it asked for is killed by Slurm itself, which
# looks once a second.
SLURM_CONF = """
ClusterName=compclip
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,sched_min_interval=0
MinJobAge=3600
KillWait=5
ReturnToService=2
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=64000 Gres=gpu:1 State=UNKNOWN
PartitionName=work Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# Any device stands for a GPU: what is tested is that one is asked for.
GRES_CONF = "Name=gpu File=/dev/null\n"


def refusal() -> str | None:
    """Why no Slurm can be started here, or None."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"{absent[0]} is not here: apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "a Slurm of the tests' own must be started as root"
    if not Path("/etc/munge/munge.key").is_file():
        return "/etc/munge/munge.key is not here: dpkg-reconfigure munge"
    for port in (6817, 6818):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return f"port {port} is taken: a Slurm is at work here already"
    return None


def wait_until(holds, what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.2)


class Slurm:
    """The daemons, and what the tests ask of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, stack: ExitStack) -> None:
        """Start munged, slurmctld and slurmd; ``stack`` stops them and puts settings back."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        values = {
            "folder": self.folder,
            "host": socket.gethostname().split(".")[0],
            "cpus": max(2, os.cpu_count()),
        }
        SETTINGS.mkdir(exist_ok=True)
        for name, text in (("slurm.conf", SLURM_CONF.format(**values)), ("gres.conf", GRES_CONF)):
            file = SETTINGS / name
            if file.is_file():
                stack.callback(file.write_bytes, file.read_bytes())
            else:
                stack.callback(file.unlink)
            file.write_text(text)
        if subprocess.run(["munge", "-n"], capture_output=True).returncode:
            run = Path("/run/munge")
            run.mkdir(mode=0o755, exist_ok=True)
            shutil.chown(run, "munge", "munge")
            self.daemon(
                stack, "munged", "runuser", "-u", "munge", "--", "munged", "--foreground", "--force"
            )
            self.wait("munge", "-n")
        self.daemon(stack, "slurmctld", "slurmctld", "-D", "-i")
        self.wait("scontrol", "ping")
        self.daemon(stack, "slurmd", "slurmd", "-D")
        wait_until(lambda: self.printed("sinfo", "-h", "-o", "%t") == "idle", "the node is idle")
        stack.callback(self.printed, "scancel", "--user", "root")

    def daemon(self, stack: ExitStack, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        stack.callback(self.stop, process)

    def stop(self, process: subprocess.Popen) -> None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait(self, *command: str) -> None:
        wait_until(
            lambda: subprocess.run(command, capture_output=True).returncode == 0, " ".join(command)
        )

    def printed(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    def running(self) -> list[str]:
        """The jobs that wait or run."""
        return self.printed("squeue", "-h", "-o", "%i").split()

    def last(self) -> int:
        """The number of the newest job: how many were submitted, since arrays are not used."""
        return (
            int(self.printed("scontrol", "show", "config").split("NEXT_JOB_ID")[1].split()[1]) - 1
        )

    def details(self, job: int) -> dict[str, str]:
        """What ``scontrol show job`` says of a job, key by key."""
        shown = self.printed("scontrol", "-o", "show", "job", str(job))
        return dict(part.split("=", 1) for part in shown.split() if "=" in part)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A running Slurm; skips, with the reason, where none can be started."""
    reason = refusal()
    if reason:
        pytest.skip(reason)
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    with ExitStack() as stack:
        cluster.start(stack)
        yield cluster


# Asked often, so that the tests wait less.
HURRIED = ("--slurm-init-seconds-before-status-checks", "2")


class ClusterProject(Project):
    """A copy of the project whose steps are jobs of a scheduler."""

    def command(self, profile: str, config: str, target: str, *arguments: str) -> tuple[str, ...]:
        """What a user types, in more of a hurry."""
        return (
            *("snakemake", "--workflow-profile", f"profiles/{profile}", "--configfile", config),
            *(*HURRIED, "--latency-wait", "20", *arguments, "--", target),
        )

    def submit(
        self, profile: str, config: str, target: str, *arguments: str, check: bool = True
    ) -> str:
        """Run to ``target``; what the user's terminal shows."""
        done = self.call(*self.command(profile, config, target, *arguments), check=check)
        assert check or done.returncode, "it should have failed"
        return done.stdout + done.stderr

    def interrupt(self, slurm: Slurm, profile: str, config: str, target: str, until: str) -> None:
        """Begin the same, press Ctrl-C once the file ``until`` is there, and wait until no job is
        left.
        """
        with subprocess.Popen(
            self.command(profile, config, target),
            cwd=self.root,
            env=self.environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as run:
            try:
                wait_until(
                    lambda: (self.root / until).exists() and slurm.running(),
                    f"{until}, and a job",
                    300,
                )
                assert run.poll() is None
                os.kill(run.pid, signal.SIGINT)
                assert run.wait(60) != 0
            finally:
                if run.poll() is None:
                    os.killpg(run.pid, signal.SIGKILL)
        wait_until(lambda: not slurm.running(), "the jobs are cancelled")

    def table(self, results: str) -> bytes:
        return (self.root / results / "table.csv").read_bytes()


@pytest.fixture(scope="session")
def project(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> ClusterProject:
    """A copy to run in."""
    copy = ClusterProject(tmp_path_factory.mktemp("project"))
    copy.copy()
    return copy


@pytest.fixture(scope="session")
def local(project: ClusterProject) -> bytes:
    """The table of the small config as a local run makes it, with a cache of its own."""
    project.snakemake(
        project.config("local.yaml", "local", ".cache_local"), "--", "local/table.csv"
    )
    return project.table("local")
