"""Several hosts train as one: started on each as srun does, here, with a network for each or one for all."""

from __future__ import annotations

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

from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.judge import launch
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.judge.launch import Meeting, find_meeting, first_host, port_of, srun_command, torchrun_options

from .conftest import TOGETHER, VIT, Train, assert_alike

STEP = {"SLURM_JOB_ID": "40007", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "gpu[07-08]", "SLURM_NODEID": "1"}
# Seconds in which all of a training must have ended after one of its hosts is dead, or silent.
SOON = 30


# How it is started


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("one", "one"), ("a,b", "a"), ("gpu[03-05,09],x1", "gpu03"), ("gpu[7,9]", "gpu7"), ("n1-[2-3]", "n1-2"),
        ("r[1-2]n[08-09]", "r1n08"),
    ],
)  # fmt: skip
def test_the_first_of_slurms_nodes(nodes: str, first: str) -> None:
    assert first_host(nodes) == first
    if shutil.which("scontrol"):
        said = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=False)
        assert said.returncode or said.stdout.split()[:1] == [first]


def test_where_hosts_meet() -> None:
    assert find_meeting(2, STEP) == Meeting(1, "gpu07", 10007)
    assert find_meeting(2, {**STEP, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "999"}) == Meeting(1, "10.0.0.1", 999)
    assert find_meeting(3, {"MASTER_ADDR": "a", "NODE_RANK": "2"}) == Meeting(2, "a", 29500)
    # In a batch script, and in a step of one node, srun is to start it on all.
    assert find_meeting(2, {"SLURM_JOB_ID": "40007", "SLURM_NODEID": "0"}) is None
    assert find_meeting(2, {**STEP, "SLURM_STEP_NUM_NODES": "1"}) is None
    assert len({port_of(job) for job in range(20000)}) == 20000
    assert all(1024 < port_of(job) < 32768 for job in (0, 19999, 20000, 2**31))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "^2 hosts, but this is no Slurm job, and MASTER_ADDR and NODE_RANK do not say"),
        ({"MASTER_ADDR": "a"}, "^2 hosts, but this is no Slurm job"),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"}, "^2 hosts, but the Slurm job has 1: profiles/slurm"),
        ({"MASTER_ADDR": "a", "NODE_RANK": "2"}, "^NODE_RANK: 2: must be a number from 0 to 1$"),
        ({"MASTER_ADDR": "a", "NODE_RANK": "0", "MASTER_PORT": "http"}, "^MASTER_PORT: http: must be a number"),
    ],
)
def test_where_hosts_do_not_meet(environment: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_meeting(2, environment)


def test_srun_starts_it_on_every_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a batch script it becomes srun, which starts the same on each node."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "MASTER_", "NODE_RANK"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    arguments = ["--hosts", "2", "--gpus", "4", "--", "a.module", "--log", "x"]
    monkeypatch.setattr(sys, "argv", ["launch", *arguments])
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(os, "execvp", lambda _, command: ran.append(command) or sys.exit(0))
    monkeypatch.setattr(launch.shutil, "which", lambda _: "/bin/srun")
    with pytest.raises(SystemExit):
        launch.main(launch.arguments().parse_args(arguments))
    again = [sys.executable, "-m", "workflow_scripts.judge.launch", *arguments]
    assert ran == [srun_command(2, again)] and ran[0][1:3] == ["--nodes=2", "--ntasks=2"]
    assert ran[0][-len(again) :] == again
    monkeypatch.setattr(launch.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match="no srun"):
        launch.main(launch.arguments().parse_args(arguments))
    assert torchrun_options(4, 1, None) == ["--standalone", "--nproc-per-node", "4"]
    assert torchrun_options(4, 2, Meeting(1, "a", 5))[:4] == ["--nnodes", "2", "--node-rank", "1"]


def test_shares_of_hosts() -> None:
    assert JudgeConfig(batch=24, gpus=4, hosts=3).processes == 12
    with pytest.raises(ValueError, match="batch 128 is no multiple of gpus 4 on 3 hosts"):
        JudgeConfig(batch=128, gpus=4, hosts=3)


# That it trains


class Hosts:
    """Two hosts; ``names`` are their network namespaces, or none: they share the machine's."""

    def __init__(self, names: Sequence[str], settings: dict, squares: Path, place: Path) -> None:
        self.names, self.squares, self.place = names, squares, place
        self.settings = {**settings, "hosts": 2}
        self.port = free_port()

    def start(self, name: str, hosts: Sequence[int] = (0, 1), **environment: str) -> list[subprocess.Popen[str]]:
        """The training on each, as a Slurm step of two tasks would have it; ``name`` is the judge's."""
        return [
            subprocess.Popen(
                [*(["ip", "netns", "exec", self.names[host]] if self.names else []), *command(self, 2, 1, name)],
                env={**os.environ, "OMP_NUM_THREADS": "1", **self.meeting(host), **environment}, cwd=ROOT, text=True,
                stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            )
            for host in hosts
        ]  # fmt: skip

    def meeting(self, host: int) -> dict[str, str]:
        if self.names:
            there = {"MASTER_ADDR": "10.77.0.1", "MASTER_PORT": str(self.port), "NODE_RANK": str(host)}
            return {**there, "GLOO_SOCKET_IFNAME": "veth"}
        job = str(20000 * 3 + self.port - 10000)
        return {**STEP, "SLURM_JOB_ID": job, "SLURM_STEP_NODELIST": "localhost", "SLURM_NODEID": str(host)}

    def log(self, name: str) -> Path:
        return self.place / f"{name}.log"

    def wait_for(self, text: str, name: str, running: Sequence[subprocess.Popen[str]]) -> None:
        deadline = time.monotonic() + 120
        while not self.log(name).is_file() or text not in self.log(name).read_text():
            assert time.monotonic() < deadline, "it did not begin"
            assert all(one.poll() is None for one in running), [one.communicate()[1] for one in running]
            time.sleep(0.1)


def command(hosts: Hosts, count: int, gpus: int, name: str) -> list[str]:
    tables = [f"--{table}={hosts.squares}/{table}.parquet" for table in ("captions", "images", "splits")]
    return [
        sys.executable, "-m", "workflow_scripts.judge.launch", "--hosts", str(count), "--gpus", str(gpus), "--",
        "tests.judge.one_host", *tables, f"--results={hosts.squares}", "--threads=1", f"--cache={hosts.place}/{name}_c",
        f"--settings={json.dumps({**hosts.settings, 'hosts': count, 'gpus': gpus})}", f"--folder={hosts.place}/{name}",
        f"--log={hosts.log(name)}",
    ]  # fmt: skip


def free_port() -> int:
    """A port that a job of Slurm's may be given, and nobody listens at."""
    for port in range(10000 + os.getpid() % 15000, 30000):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no port")


def ended(running: Sequence[subprocess.Popen[str]], within: float) -> list[str]:
    """What each said; all must end in so many seconds."""
    deadline = time.monotonic() + within
    try:
        return [one.communicate(timeout=max(1, deadline - time.monotonic()))[1] for one in running]
    finally:
        for one in running:
            kill(one)


def kill(process: subprocess.Popen[str]) -> None:
    """With all that it started."""
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
    """The judge that two processes of one host train."""
    hosts = Hosts((), settings, squares, tmp_path_factory.mktemp("one_host"))
    subprocess.run(command(hosts, 1, 2, "judge"), env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=ROOT, check=True)
    return hosts.place / "judge"


def same(one: Path, other: Path) -> bool:
    return all((other / file.name).read_bytes() == file.read_bytes() for file in one.iterdir())


def test_two_hosts_train_as_one(settings: dict, squares: Path, tmp_path: Path, one_host: Path, train: Train) -> None:
    """Bytes are those of two processes on one host, and but for rounding those of one process."""
    hosts = Hosts((), settings, squares, tmp_path)
    running = hosts.start("judge")
    said = ended(running, 180)
    assert [one.returncode for one in running] == [0, 0], said
    assert "epoch 1 of 4" in said[0] and "epoch 1 of 4" not in said[1], "the first alone speaks"
    assert same(one_host, tmp_path / "judge")
    assert not list((tmp_path / "judge_c").rglob(".*")), "nothing is left of what hosts showed each other"
    assert_alike(train("start", **{**settings, "epochs": 0}), train("one", **settings), tmp_path / "judge")


def test_a_host_that_is_killed(settings: dict, squares: Path, tmp_path: Path, one_host: Path) -> None:
    hosts = Hosts((), settings, squares, tmp_path)
    running = hosts.start("judge", SLOWLY="0.2")
    hosts.wait_for("epoch 1 of 4", "judge", running)
    kill(running[1])
    said = ended(running, SOON)
    assert running[0].returncode == 1 and not (tmp_path / "judge").exists()
    assert "error: judge.gpus: lost another of the 2 processes" in said[0], said[0]
    running = hosts.start("judge")
    said = ended(running, 180)
    assert [one.returncode for one in running] == [0, 0], said
    assert "resumed behind epoch" in said[0] and same(one_host, tmp_path / "judge")


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them, 10.77.0.1 and 10.77.0.2."""
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


def test_a_host_that_falls_silent(
    settings: dict, squares: Path, tmp_path: Path, one_host: Path, namespaces: tuple[str, str]
) -> None:
    """Its cable is pulled: no connection is closed, and yet both hosts end; with the cable back they go on."""
    hosts = Hosts(namespaces, settings, squares, tmp_path)
    running = hosts.start("judge", SLOWLY="0.2")
    hosts.wait_for("epoch 1 of 4", "judge", running)
    ip("-n", namespaces[1], "link", "set", "veth", "down")
    said = ended(running, SOON)
    assert [one.returncode for one in running] == [1, 1]
    assert all("error: judge.gpus: no sign of" in text for text in said), said
    ip("-n", namespaces[1], "link", "set", "veth", "up")
    running = hosts.start("judge")
    said = ended(running, 180)
    assert [one.returncode for one in running] == [0, 0], said
    assert "resumed behind epoch" in said[0] and same(one_host, tmp_path / "judge")


def test_hosts_that_share_no_cache(settings: dict, squares: Path, tmp_path: Path) -> None:
    """The second writes elsewhere: it says so, and the first ends too."""
    one, other = (Hosts((), settings, squares, tmp_path / name) for name in "ab")
    other.port = one.port
    one.place.mkdir(), other.place.mkdir()
    running = one.start("judge", [0]) + other.start("judge", [1])
    said = ended(running, 60)
    assert [process.returncode for process in running] == [1, 1], said
    assert "error: judge.hosts: " in said[1] and "all hosts must share the cache's folder" in said[1], said
