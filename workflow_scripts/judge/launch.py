"""Start a training on several GPUs of one host or of several: torchrun on each host.

In a Slurm job of so many nodes it starts itself on every node by srun, and finds there from Slurm's variables where
the hosts meet: at the first node, at a port that follows from the job's number. Anywhere else it is started on each
host, with MASTER_ADDR (a name or address of the first), NODE_RANK (0 there, then 1, 2, ...) and, where 29500 is
taken, MASTER_PORT in the environment.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import NamedTuple

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError

# torchrun's own.
PORT = 29500


class Meeting(NamedTuple):
    """This host's number, and where it meets the others."""

    host: int
    address: str
    port: int


def first_host(nodes: str) -> str:
    """The first name of Slurm's list of nodes: of ``gpu[03-05,9],other`` it is gpu03."""
    return re.sub(r"\[(\w+)[^]]*\]", r"\1", nodes).split(",")[0]


def port_of(job: int) -> int:
    """A port for a job of Slurm's, below those that systems give away."""
    return 10000 + job % 20000


def find_meeting(hosts: int, environment: Mapping[str, str]) -> Meeting | None:
    """Where this host meets the others; None where srun is to start us on each of a Slurm job's nodes first.

    Raises UserError where the environment does not say it.
    """

    def number(name: str, least: int, most: int, otherwise: int) -> int:
        text = environment.get(name) or str(otherwise)
        if not text.isdecimal() or not least <= int(text) <= most:
            raise UserError(f"{name}: {text}: must be a number from {least} to {most}")
        return int(text)

    address = environment.get("MASTER_ADDR")
    if address and environment.get("NODE_RANK"):
        return Meeting(number("NODE_RANK", 0, hosts - 1, 0), address, number("MASTER_PORT", 1, 65535, PORT))
    job = environment.get("SLURM_JOB_ID")
    if not job:
        raise UserError(
            f"{hosts} hosts, but this is no Slurm job, and MASTER_ADDR and NODE_RANK do not say where they meet and"
            " which this one is: see python -m workflow_scripts.judge.launch --help"
        )
    # These alone are of a step: a batch script has the job's, and is on the first node only.
    if environment.get("SLURM_STEP_NUM_NODES") != str(hosts):
        nodes = environment.get("SLURM_JOB_NUM_NODES") or str(hosts)
        if nodes.isdecimal() and int(nodes) < hosts:
            raise UserError(f"{hosts} hosts, but the Slurm job has {nodes}: profiles/slurm asks for as many")
        return None
    return Meeting(
        number("SLURM_NODEID", 0, hosts - 1, 0),
        address or first_host(environment["SLURM_STEP_NODELIST"]),
        number("MASTER_PORT", 1, 65535, port_of(int(job))),
    )


def torchrun_options(gpus: int, hosts: int, meeting: Meeting | None) -> list[str]:
    """What torchrun is told on this host."""
    each = ["--nproc-per-node", str(gpus)]
    if meeting is None:
        return ["--standalone", *each]
    here = ["--node-rank", str(meeting.host), "--master-addr", meeting.address, "--master-port", str(meeting.port)]
    return ["--nnodes", str(hosts), *here, *each]


def srun_command(hosts: int, command: list[str]) -> list[str]:
    """``command`` once on each node of the Slurm job, with all that the job has there; where one fails all end."""
    return [
        "srun", f"--nodes={hosts}", f"--ntasks={hosts}", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none",
        "--mpi=none", "--kill-on-bad-exit=1", *command,
    ]  # fmt: skip


def main(options: argparse.Namespace) -> None:
    meeting = find_meeting(options.hosts, os.environ) if options.hosts > 1 else None
    if options.hosts > 1 and meeting is None:
        if not shutil.which("srun"):
            raise UserError("a Slurm job, but there is no srun to start the other hosts: put it on the PATH")
        again = [sys.executable, "-m", "workflow_scripts.judge.launch", *sys.argv[1:]]
        os.execvp("srun", srun_command(options.hosts, again))
    # Here, not above: torch is slow to import.
    from torch.distributed import DistError, run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        run.main([*torchrun_options(options.gpus, options.hosts, meeting), "-m", "--", *options.command])
    except ChildFailedError:
        # Each process has said itself what was wrong.
        sys.exit(1)
    except DistError as error:
        where = f"{meeting.address}:{meeting.port}" if meeting else "this host"
        raise UserError(
            f"the hosts did not meet at {where} ({cli.one_line(error)[:200]}): see that all were started, that the"
            " name leads there, that the port is free (MASTER_PORT says another)"
        ) from error


def arguments() -> argparse.ArgumentParser:
    parser = cli.parser(__doc__)
    parser.add_argument("--hosts", type=cli.positive, default=1)
    parser.add_argument("--gpus", type=cli.positive, default=1, help="processes of each host")
    parser.add_argument("command", nargs="+", metavar="MODULE", help="behind --: the module, then its options")
    return parser


if __name__ == "__main__":
    cli.run(main, arguments())
