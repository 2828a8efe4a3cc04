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
from compclip.core.errors import require
from compclip.core.identity import digests
from compclip.core.identity.installation import version_in
from compclip.core.log import log
from compclip.core.memory import collect_rarely, keep_freed_memory
from compclip.core.settings.cli import one_line_errors, start_logging
from workflow_scripts.root import WORKFLOW_ROOT, workflow_version


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
    def from_snakemake(cls, snakemake: Any) -> "Job":
        """Return the job of Snakemake's own object."""
        return cls(
            input=_paths(snakemake.input),
            output=_paths(snakemake.output),
            params=SimpleNamespace(**dict(snakemake.params.items())),
            wildcards=SimpleNamespace(**dict(snakemake.wildcards.items())),
            threads=snakemake.threads,
        )

    @property
    def location(self) -> str:
        """The data set and the composition, as messages give them."""
        return f"{self.params.dataset}/{self.wildcards.composition}"


def _paths(files: Any) -> SimpleNamespace:
    """Return the named files of a rule; a name stands for one path or for a list of paths."""
    paths: dict[str, Path | list[Path]] = {}
    for name, value in files.items():
        paths[name] = Path(value) if isinstance(value, str) else [Path(path) for path in value]
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
        # At first without waiting, to tell the user why nothing happens.
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


def tune_process() -> None:
    """Apply the settings of a step's process, which change no result."""
    keep_freed_memory()
    collect_rarely()


def run_checked(
    main: Callable[[Job], None], job: Job, name: str, reads: Iterable[str], writes: Iterable[str]
) -> None:
    """Run ``main`` between the check of what it reads and the record of what it writes."""
    # The digests are of the files as they were read, not as they are after the job.
    inputs = digests.check(map(Path, reads))
    main(job)
    code = getattr(job.params, "code", None)
    for path in writes:
        digests.record(Path(path), name, code, inputs)


def _check_library() -> None:
    """Refuse a compclip of another version, because the workflow's own decides what reruns."""
    library = Path(str(compclip.__file__)).parents[1]
    version = version_in(library)
    expected = workflow_version()
    fault = f"compclip {version}, but the workflow in {WORKFLOW_ROOT} is of version {expected}"
    remedy = "install that version here, or uninstall this one"
    require(version == expected, library, fault, remedy)


def _replace_by_group(processes: int, real_file: str) -> None:
    """Replace this process by several that train together, each of which runs the script again."""
    launch = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}")
    # The process keeps its id, so that Snakemake's signals still reach it.
    os.execv(sys.executable, [sys.executable, *launch, real_file])


def cpu_seconds() -> float:
    """Return the user and system time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def run_script(main: Callable[[Job], None]) -> None:
    """Run the script of a rule, which is ``__main__``; on failure print one line and exit with
    1.
    """
    script = sys.modules["__main__"]
    snakemake = script.__dict__.get("snakemake")
    if snakemake is None:
        sys.exit(
            "error: a script is run by its rule: `snakemake <output>`; to debug one, see "
            "workflow_scripts/mock_job.py"
        )
    tune_process()
    # torch.distributed.run sets RANK in each process of a group.
    processes = getattr(snakemake.params, "processes", 1)
    if processes > 1 and "RANK" not in os.environ:
        # The file that Snakemake runs: the script with a preamble that defines ``snakemake``.
        _replace_by_group(processes, script.__dict__["__real_file__"])
    # The first process of a group waits, checks and records for all.
    is_first = os.environ.get("RANK", "0") == "0"
    log_file = Path(snakemake.log[0])
    # stage.script, which the records of artifacts name
    step = ".".join(Path(str(script.__file__)).with_suffix("").parts[-2:])
    # The log file belongs to the holder of the lock; a waiting process writes to the screen only.
    start_logging()
    with one_line_errors(log_file), _alone(log_file) if is_first else nullcontext():
        start_logging(log_file)
        _check_library()
        job = Job.from_snakemake(snakemake)
        if is_first:
            run_checked(main, job, step, snakemake.input, snakemake.output)
        else:
            main(job)
        log.info("done in %.1f CPU seconds", cpu_seconds())
