"""The screen of ``compclip run``, as Snakemake's logger plugin ``compclip``; the full log is in
``.snakemake/log``.
"""

import logging
import re
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from compclip.core.settings.cli import last_logged
from workflow_scripts.root import WORKFLOW_ROOT, run_command

# killed by the kernel, or aborted by the C library for lack of memory
KILLED = re.compile(r"died with <Signals\.SIG(KILL|ABRT)|non-zero exit status 13[47]\b")
OUT_OF_MEMORY = "killed, probably because memory ran out; free some memory; run again to resume"
# an error in the Python of rules, which Snakemake shows with wildcards and traceback
IN_RULES = re.compile(r"^InputFunctionException in rule .*? Error: UserError: (.*?) Wildcards: .*")
# an error that has its whole text, which Snakemake shows with the place in the code
FOREWORD = re.compile(r'^WorkflowError: (.*?)(?: File "[^"]+", line \d+, in .*)?$')
FUTURE = re.compile(r"^WorkflowError .* has older modification time .* than input (\S+) .*")
CLOCK = (
    r"\1: from the future, so a clock was wrong; `find . -newermt now -exec touch {} +`, then "
    r"run again"
)
# A run that started in the same instant has locked the folder.
LOCKED = "locked by another run of Snakemake"
AT_ONCE = re.compile(r"^LockException: .*")
# What Snakemake says after Ctrl-C and after SIGTERM.
ENDED = re.compile("on user request|Will exit after finishing currently running jobs")
RULE = re.compile(r"^ *(?:use rule \w+ as|rule) (\w+)(?: with)?:$", re.MULTILINE)
# The files of rules are named after stages.
STAGES = {
    rule: file.stem
    for file in WORKFLOW_ROOT.glob("rules/*.smk")
    for rule in RULE.findall(file.read_text())
}
# Seconds that a rule's job takes in the default run (others about 4), to estimate the remaining
# work.
WORK = {"load_dataset": 20, "extract_pairs": 40}
WORK |= dict.fromkeys(("train_judge", "train_specs", "measure_splits", "score_images"), 50)
# Seconds as if of finished jobs that took as long as in the default run, so that the first jobs do
# not decide alone how fast this machine is.
PRIOR_WORK = 30.0
LEFT = re.compile(r"about (\d+) s left")  # what a job's log says of the job (core/progress.py)


def how_to_unlock() -> str:
    """Return what to do about Snakemake's lock."""
    unlock = run_command("unlock")
    return f"wait until it ends or, if it was killed, `{unlock}` and run again"


def in_own_words(error: str) -> str:
    """Return an error of Snakemake's as compclip says it."""
    error = AT_ONCE.sub(f".snakemake: {LOCKED}; {how_to_unlock()}", error)
    error = FUTURE.sub(CLOCK, IN_RULES.sub(r"\1", error))
    return FOREWORD.sub(r"\1", error)


def stage_and_work(rule: str) -> tuple[str, float]:
    """Return the stage of a rule (the name of its file, after its run's name if there are several)
    and its work.
    """
    # The rules of a run have its name as prefix. A name of a rule may end with another's.
    names = [name for name in STAGES if f"_{rule}".endswith(f"_{name}")]
    name = max(names, key=len, default=rule)
    run = rule.removesuffix(name).replace("_", " ")
    stage = STAGES.get(name, name)
    return f"{run}{stage}", WORK.get(name, 4)


@dataclass(frozen=True)
class RunningJob:
    log: str  # its path
    stage: str
    work: float  # seconds in the default run
    start: float  # in seconds of this run


@dataclass(frozen=True)
class FailedJob:
    has_reason: bool  # whether the job's log has the reason
    error: str


class LogHandler(LogHandlerBase):
    """Shows a line for each finished stage, and errors at the end; on a terminal, also a line
    updated every second.
    """

    # The interface declares these as properties.
    writes_to_stream = has_filter = has_formatter = True  # type: ignore[assignment]
    writes_to_file = needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.begun = time.monotonic()
        self.closed = threading.Event()  # ends the thread that draws
        self.jobs = 0  # of the whole run
        self.left = Counter[str]()  # jobs of each stage that have not finished
        self.cores = 1  # or nodes of a cluster: how many jobs run at once, if there are as many
        self.work = 0.0  # of all jobs
        self.worked = 0.0  # of those that have finished
        self.spent = 0.0  # seconds that they took
        self.running: dict[int, RunningJob] = {}  # by Snakemake's number of the job
        self.failed: dict[int, FailedJob] = {}
        self.errors: list[str] = []  # Snakemake's own
        self.interrupted = False  # whether the user ended Snakemake

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.__dict__
        message = " ".join(record.getMessage().split())
        event = fields.get("event")
        # Some events of Snakemake name it job_id, others jobid.
        number = fields.get("job_id", fields.get("jobid", 0))
        if event == LogEvent.RESOURCES_INFO:
            self.cores = fields.get("cores") or fields.get("nodes") or self.cores
        elif event == LogEvent.RUN_INFO:
            self.plan(fields["stats"])
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            log = "".join(fields["log"][:1])
            stage, work = stage_and_work(fields["rule_name"])
            self.running[number] = RunningJob(log, stage, work, self.elapsed())
        elif event == LogEvent.JOB_FINISHED and number in self.running:
            self.failed.pop(number, None)  # a retry succeeded
            self.finish(self.running.pop(number))
        elif event == LogEvent.JOB_ERROR and number in self.running:
            self.failed[number] = self.failure(self.running.pop(number))
        elif event == LogEvent.ERROR or record.levelno >= logging.ERROR:
            self.errors.append(in_own_words(message))
        elif record.levelno == logging.WARNING or message.startswith("Nothing to be done"):
            self.show(f"{message}\n")
        self.interrupted |= bool(ENDED.search(message))

    def plan(self, stats: dict[str, int]) -> None:
        """Count the jobs of a run by stage. ``stats``: the number of jobs of each rule."""
        for rule in stats.keys() - {"total", "all"}:
            count = stats[rule]
            stage, work = stage_and_work(rule)
            self.left[stage] += count
            self.work += count * work
        self.jobs = self.left.total()
        threading.Thread(target=self.keep_drawing, daemon=True).start()

    def finish(self, job: RunningJob) -> None:
        stage = job.stage
        self.worked += job.work
        self.spent += self.elapsed() - job.start
        self.left[stage] -= 1
        if not self.left[stage]:
            self.show(f"{stage:10} {self.overall()}\n")

    def failure(self, job: RunningJob) -> FailedJob:
        error = last_logged(job.log, "ERROR")
        reason = error or "failed; see .snakemake/log"
        # A process that is killed cannot log a reason.
        if not error and any(map(KILLED.search, self.errors)):
            reason = OUT_OF_MEMORY
        return FailedJob(bool(error), f"error: {job.stage}: {reason} (log: {job.log})\n")

    def overall(self) -> str:
        """Return the number of finished jobs, the elapsed time and the time left."""
        finished = self.jobs - self.left.total()
        elapsed = self.elapsed()
        progress = f"{finished} of {self.jobs} jobs in {timedelta(seconds=round(elapsed))}"
        # The first job tells nothing about the pace yet.
        if not 0 < finished < self.jobs:
            return progress
        left = timedelta(seconds=round(self.seconds_left()))
        return f"{progress}, about {left} left"

    def elapsed(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self.begun

    def seconds_left(self) -> float:
        """Return the time left if all jobs are as much slower than in the default run as the
        finished ones, and all cores work; at least what a running job says.
        """
        slowness = (self.spent + PRIOR_WORK) / (self.worked + PRIOR_WORK)
        remaining = self.work - self.worked
        estimates = []
        # A copy, because another thread draws.
        for job in list(self.running.values()):
            # A running job has done less than its whole work, however long it takes.
            done = (self.elapsed() - job.start) / slowness
            remaining -= min(0.9 * job.work, done)
            estimate = LEFT.search(last_logged(job.log, "INFO"))
            if estimate:
                estimates.append(float(estimate[1]))
        at_once = max(1, min(self.cores, self.left.total()))
        return max([remaining * slowness / at_once, *estimates])

    def keep_drawing(self) -> None:
        """Redraw the last line: the progress of the run, and the last log line of each running
        job.
        """
        while self.live and not self.closed.wait(1):
            words = [self.overall()]
            # A few jobs fill a line.
            for job in list(self.running.values())[:4]:
                words.append(f"{job.stage}: {last_logged(job.log, 'INFO')}")
            # One column less, because the cursor stands behind the text.
            self.show("; ".join(words)[: shutil.get_terminal_size().columns - 1])

    def show(self, text: str) -> None:
        clear_line = "\r\x1b[J" if self.live else ""
        with suppress(OSError):  # a terminal that was closed
            print(clear_line + text, end="", file=sys.stderr, flush=True)

    def final_errors(self) -> list[str]:
        """Return each error once; if a cluster ran a group of steps as one job, only errors of
        failed steps.
        """
        failed = self.failed.values()
        # All steps of a failed group fail, but only the logs of some have a reason.
        with_reason = [job.error for job in failed if job.has_reason]
        if failed:
            return with_reason or [job.error for job in failed]
        # Without a failed job, Snakemake itself failed; further errors follow from the first.
        return [f"error: {error}\n" for error in self.errors[:1]]

    def close(self) -> None:
        """Show the progress of an unfinished run, and the errors unless the user ended it."""
        if not self.closed.is_set():
            self.closed.set()
            lines = [f"{self.overall()}\n"] if self.left.total() else []
            if not self.interrupted:
                lines += self.final_errors()
            self.show("".join(lines))
        super().close()
