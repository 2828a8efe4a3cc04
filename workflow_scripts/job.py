"""What the scripts of all rules share: a job's paths and params, its log, one-line errors, and
sealed records.

A script has a function ``main``, which reads the inputs, calls the library and writes the outputs,
and ends with ``run_script(main)``. Snakemake starts it (``script:``) and defines ``snakemake``.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from filelock import FileLock, Timeout

import compclip
from compclip.core import digests
from compclip.core.cli import one_line_errors, start_logging
from compclip.core.errors import require
from compclip.core.log import log

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Job:
    """What a rule gives to its script, by the names of the rule.

    Attributes:
        input: a path for each name, or a list of paths; an empty list where the config makes the
            rule leave it out.
        output: likewise.
        params: settings; a section of the config is a dict of JSON values.
        wildcards: as texts.
    """

    input: SimpleNamespace
    output: SimpleNamespace
    params: SimpleNamespace = field(default_factory=SimpleNamespace)
    wildcards: SimpleNamespace = field(default_factory=SimpleNamespace)
    threads: int = 1

    @classmethod
    def of(cls, snakemake: Any) -> "Job":
        """Return the job of Snakemake's own object."""
        params, wildcards = (
            SimpleNamespace(**dict(each.items()))
            for each in (snakemake.params, snakemake.wildcards)
        )
        return cls(
            _paths(snakemake.input), _paths(snakemake.output), params, wildcards, snakemake.threads
        )

    @property
    def where(self) -> str:
        """The data set and the composition, for messages."""
        return f"{self.params.dataset}/{self.wildcards.composition}"


def _paths(named: Any) -> SimpleNamespace:
    paths = {
        name: Path(of) if isinstance(of, str) else [*map(Path, of)] for name, of in named.items()
    }
    return SimpleNamespace(**paths)


@contextmanager
def _alone(log_file: Path) -> Iterator[None]:
    """Let one process at a time run a job, because jobs survive a killed Snakemake; the lock ends
    with its process.
    """
    file = log_file.with_name(f".{log_file.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, poll_interval=0.5)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = "a process"
        with suppress(OSError):  # the holder has just removed it
            holder = file.read_text(errors="replace") or holder
        log.warning(
            "%s is still running this step, possibly from a killed run; waiting until it ends",
            holder,
        )
        lock.acquire()
    try:
        with suppress(OSError):  # a full disk; the lock holds all the same
            file.write_text(f"process {os.getpid()} on {platform.node()}")
        yield
    finally:
        with suppress(OSError):
            file.unlink()
        lock.release()


def run_checked(
    main: Callable[[Job], None], job: Job, name: str, reads: Iterable[str], writes: Iterable[str]
) -> None:
    """Run ``main`` between the check of what it reads and the record of what it writes."""
    inputs = digests.check(map(Path, reads))
    main(job)
    for path in writes:
        digests.record(Path(path), name, getattr(job.params, "code", None), inputs)


def run_script(main: Callable[[Job], None]) -> None:
    """Run the script of a rule, which is ``__main__``; on failure print one line and exit with
    1.
    """
    script = sys.modules["__main__"]
    snakemake = script.__dict__.get("snakemake")
    if snakemake is None:
        sys.exit(
            "error: a script is run by its rule: `snakemake <output>`; to debug one, see "
            "workflow_scripts/stand_in.py"
        )
    # When several processes train together, the first one waits, checks and records.
    first = os.environ.get("RANK", "0") == "0"
    processes = getattr(snakemake.params, "processes", 1)
    if processes > 1 and "RANK" not in os.environ:
        launch = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
        os.execv(sys.executable, [sys.executable, *launch, script.__dict__["__real_file__"]])
    log_file = Path(snakemake.log[0])
    name = ".".join(Path(str(script.__file__)).with_suffix("").parts[-2:])
    start_logging()
    with one_line_errors(log_file), _alone(log_file) if first else nullcontext():
        start_logging(log_file)
        library = Path(str(compclip.__file__)).parents[1]
        require(
            library == CHECKOUT,
            library,
            "not the compclip of this checkout",
            "uninstall it from this environment",
        )
        after = {
            str(path) for path in snakemake.input.get("after") or []
        }  # made before the job, not read by it
        job = Job.of(snakemake)
        if first:
            run_checked(
                main,
                job,
                name,
                [path for path in snakemake.input if path not in after],
                snakemake.output,
            )
        else:
            main(job)
        log.info(
            "done in %.1f CPU seconds", sum(os.times()[:4])
        )  # of this process and its children
