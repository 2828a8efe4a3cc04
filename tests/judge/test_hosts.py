"""Several hosts train as one: two torchruns on this machine, with a network for each or one for both."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.judge.conftest import TOGETHER, VIT, Train, assert_alike, untrained
from workflow_scripts.core.code import ROOT
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.launch import launch_command

# Seconds in which a training must have ended after one of its hosts is dead, silent, or elsewhere.
SOON = 90

# The command


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Slurm job of two nodes, whose srun runs its command on each."""
    programs = {
        "scontrol": 'test "$*" = "show hostnames gpu[07-08]" && printf "gpu07\\ngpu08\\n"',
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; for n in 0 1; do SLURM_NODEID=$n "$@"; done',
        "torchrun": 'printf "%s\\n" "$*"',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "SLURM_JOB_ID": "40007", "SLURM_JOB_NODELIST": "gpu[07-08]"}


def started(gpus: int, hosts: int, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = f"{launch_command(gpus, hosts)} a.module --name 'two words'"
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)


def test_srun_starts_torchrun_on_every_node(slurm: dict[str, str]) -> None:
    options = "--nnodes=2 --nproc-per-node=4 --master-addr=gpu07 --master-port=10007 -m -- a.module --name two words"
    assert started(4, 2, slurm).stdout.splitlines() == [f"--node-rank={node} {options}" for node in (0, 1)]
    other = started(4, 2, {**slurm, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "999"}).stdout
    assert other.count("--master-addr=10.0.0.1 --master-port=999 -m --") == 2


def test_several_hosts_need_slurm(slurm: dict[str, str]) -> None:
    refused = started(4, 2, {"PATH": slurm["PATH"]})
    assert refused.returncode and "SLURM_JOB_ID: several hosts need a Slurm job; elsewhere" in refused.stderr
    assert not refused.stdout


def test_one_host_needs_no_slurm(slurm: dict[str, str]) -> None:
    assert launch_command(1, 1) == "python -m"
    said = started(2, 1, {"PATH": slurm["PATH"]}).stdout
    assert said.split()[:4] == ["--standalone", "--nproc-per-node=2", "-m", "--"]


def test_the_batch_is_divided_by_all_gpus() -> None:
    assert JudgeConfig(batch=24, gpus=4, hosts=3).processes == 12
    with pytest.raises(ValueError, match="batch 128 must be divisible by gpus 3"):
        JudgeConfig(batch=128, gpus=3)
    with pytest.raises(ValueError, match="batch 128 must be divisible by gpus 4 times hosts 3"):
        JudgeConfig(batch=128, gpus=4, hosts=3)


# The training


class Hosts:
    """Two hosts; ``names`` are their network namespaces, or none: they share the machine's."""

    def __init__(self, names: Sequence[str], settings: dict, squares: Path, place: Path) -> None:
        self.names, self.squares, self.place = names, squares, place
        self.settings = {**settings, "hosts": 2}
        self.port = free_port()

    def start(self, name: str, hosts: Sequence[int] = (0, 1), **environment: str) -> list[subprocess.Popen[str]]:
        """Start the training of judge ``name`` on each host."""
        interface = {"GLOO_SOCKET_IFNAME": "veth"} if self.names else {}
        address = "10.77.0.1" if self.names else "localhost"
        meeting = ["--nnodes=2", f"--master-addr={address}", f"--master-port={self.port}"]
        return [
            subprocess.Popen(
                [
                    *(["ip", "netns", "exec", self.names[host]] if self.names else []),
                    *command(self, [*meeting, f"--node-rank={host}"], 2, 1, name),
                ],
                env={**os.environ, "OMP_NUM_THREADS": "1", **interface, **environment}, cwd=ROOT, text=True,
                stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            )
            for host in hosts
        ]  # fmt: skip

    def log(self, name: str) -> Path:
        return self.place / f"{name}.log"

    def wait_for(self, text: str, name: str, running: Sequence[subprocess.Popen[str]]) -> None:
        deadline = time.monotonic() + 120
        while not self.log(name).is_file() or text not in self.log(name).read_text():
            assert time.monotonic() < deadline, "it did not begin"
            assert all(one.poll() is None for one in running), [one.communicate()[1] for one in running]
            time.sleep(0.1)


def command(hosts: Hosts, meeting: list[str], count: int, gpus: int, name: str) -> list[str]:
    tables = [f"--{table}={hosts.squares}/{table}.parquet" for table in ("captions", "images", "splits")]
    return [
        sys.executable, "-m", "torch.distributed.run", *meeting, f"--nproc-per-node={gpus}",
        "-m", "--", "tests.judge.one_host", *tables,
        f"--results={hosts.squares}", "--threads=1", f"--cache={hosts.place}/{name}_c",
        f"--settings={json.dumps({**hosts.settings, 'hosts': count, 'gpus': gpus})}", f"--judge={hosts.place}/{name}",
        f"--log={hosts.log(name)}",
    ]  # fmt: skip


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def ended(running: Sequence[subprocess.Popen[str]], within: float) -> list[str]:
    """Return what each printed; all must end in so many seconds."""
    deadline = time.monotonic() + within
    try:
        return [one.communicate(timeout=max(1, deadline - time.monotonic()))[1] for one in running]
    finally:
        for one in running:
            kill(one)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it started."""
    if process.poll() is None:
        for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
            one.kill()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict:
    file = tmp_path_factory.mktemp("model") / "vit.json"
    file.write_text(json.dumps(VIT))
    return {"model": str(file), **TOGETHER, "epochs": 4}


@pytest.fixture(scope="module")
def one_host(settings: dict, squares: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the judge that two processes of one host train."""
    hosts = Hosts((), settings, squares, tmp_path_factory.mktemp("one_host"))
    words, environment = command(hosts, ["--standalone"], 1, 2, "judge"), {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(words, env=environment, cwd=ROOT, check=True)
    return hosts.place / "judge"


def same(one: Path, other: Path) -> bool:
    return all((other / file.name).read_bytes() == file.read_bytes() for file in one.iterdir())


def assert_resumes(hosts: Hosts, one_host: Path, **environment: str) -> None:
    """Check that a second start ends with the judge of one host."""
    running = hosts.start("judge", **environment)
    said = ended(running, 180)
    assert [one.returncode for one in running] == [0, 0], said
    assert "resumed after epoch" in said[0] and same(one_host, hosts.place / "judge")


@pytest.mark.slow
def test_two_hosts_train_as_one(settings: dict, squares: Path, tmp_path: Path, one_host: Path, train: Train) -> None:
    """Bytes are those of two processes on one host and, except for rounding, those of one process."""
    hosts = Hosts((), settings, squares, tmp_path)
    running = hosts.start("judge")
    said = ended(running, 180)
    assert [one.returncode for one in running] == [0, 0], said
    assert "epoch 1 of 4" in said[0] and "epoch 1 of 4" not in said[1], "only the first logs"
    assert same(one_host, tmp_path / "judge")
    assert not list((tmp_path / "judge_c").rglob(".*")), "no file of check_shared remains"
    start = untrained(squares, tmp_path / "start", **settings)
    assert_alike(start, train("one", **settings), tmp_path / "judge")


@pytest.mark.slow
def test_a_host_that_is_killed(settings: dict, squares: Path, tmp_path: Path, one_host: Path) -> None:
    hosts = Hosts((), settings, squares, tmp_path)
    running = hosts.start("judge", SLOWLY="0.2")
    hosts.wait_for("epoch 1 of 4", "judge", running)
    kill(running[1])
    said = ended(running, SOON)
    assert running[0].returncode == 1 and not (tmp_path / "judge").exists()
    assert "error: judge.gpus: lost another of the 2 processes" in said[0], said[0]
    assert_resumes(hosts, one_host)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Yield two network namespaces with a cable between them, 10.77.0.1 and 10.77.0.2."""
    if not shutil.which("ip"):
        pytest.skip("needs ip (iproute2)")
    names = (f"compclip-a{os.getpid()}", f"compclip-b{os.getpid()}")
    made = [subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False) for name in names]
    if made[0].returncode:
        pytest.skip(f"network namespaces are not allowed here ({made[0].stderr.strip()})")
    try:
        ip("link", "add", "veth", "netns", names[0], "type", "veth", "peer", "name", "veth", "netns", names[1])
        for number, name in enumerate(names, start=1):
            ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", "veth")
            ip("-n", name, "link", "set", "veth", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"SLOWLY": "0.2"}, {"LONG": "10"}], ids=["training", "the other one works"])
def test_a_host_that_falls_silent(
    settings: dict,
    squares: Path,
    tmp_path: Path,
    one_host: Path,
    namespaces: tuple[str, str],
    environment: dict[str, str],
) -> None:
    """Its cable is pulled: no connection is closed, but both hosts end; with the cable back they resume."""
    hosts = Hosts(namespaces, settings, squares, tmp_path)
    running = hosts.start("judge", **environment)
    hosts.wait_for("epoch 1 of 4", "judge", running)
    ip("-n", namespaces[1], "link", "set", "veth", "down")
    said = ended(running, SOON)
    assert [one.returncode for one in running] == [1, 1]
    assert all("error: judge.gpus: lost another of the 2 processes" in text for text in said), said
    ip("-n", namespaces[1], "link", "set", "veth", "up")
    assert_resumes(hosts, one_host, **environment)


@pytest.mark.slow
def test_hosts_that_share_no_cache(settings: dict, squares: Path, tmp_path: Path) -> None:
    """The second host writes elsewhere and says so, and the first ends too."""
    one, other = (Hosts((), settings, squares, tmp_path / name) for name in "ab")
    other.port = one.port
    one.place.mkdir(), other.place.mkdir()
    running = one.start("judge", [0]) + other.start("judge", [1])
    said = ended(running, SOON)
    assert [process.returncode for process in running] == [1, 1], said
    assert "error: judge.hosts: " in said[1] and "all hosts must share the cache's folder" in said[1], said
