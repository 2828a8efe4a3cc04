"""The screen of ``make run``, as Snakemake's logger plugin ``compclip``; the full log is in
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
from datetime import timedelta

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from compclip.core.cli import last_logged
from compclip.core.code import ROOT

# killed by the kernel, or aborted by the C library for lack of memory
KILLED = re.compile(r"died with <Signals\.SIG(KILL|ABRT)|non-zero exit status 13[47]\b")
OUT_OF_MEMORY = "killed, probably because memory ran out; free some memory; run again to resume"
# an error in the Python of rules, which Snakemake shows with wildcards and traceback
IN_RULES = re.compile(r"^InputFunctionException in rule .*? Error: UserError: (.*?) Wildcards: .*")
FUTURE = re.compile(r"^WorkflowError .* has older modification time .* than input (\S+) .*")
CLOCK = (
    r"\1: from the future, so a clock was wrong; `find . -newermt now -exec touch {} +`, then "
    r"run again"
)
# A run that started in the same instant has locked the folder.
LOCKED = "locked by another run of Snakemake"
UNLOCK = "wait until it ends or, if it was killed, `make unlock` and run again"
AT_ONCE = re.compile(r"^LockException: .*")
# What Snakemake says after Ctrl-C and after SIGTERM.
ENDED = re.compile("on user request|Will exit after finishing currently running jobs")
RULE = re.compile(r"^ *(?:use rule \w+ as|rule) (\w+)(?: with)?:$", re.MULTILINE)
STAGES = {
    rule: file.stem for file in ROOT.glob("rules/*.smk") for rule in RULE.findall(file.read_text())
}
# Seconds that a rule's job takes in the default run (others about 4), to estimate the remaining
# work.
WORK = {"load_dataset": 20, "extract_pairs": 40}
WORK |= dict.fromkeys(("train_judge", "train_specs", "measure_splits", "score_images"), 50)
LEFT = re.compile(r"about (\d+) s left")  # what a job's log says of the job (core/progress.py)


def in_own_words(error: str) -> str:
    """Return an error of Snakemake's as compclip says it."""
    error = AT_ONCE.sub(f".snakemake: {LOCKED}; {UNLOCK}", error)
    return FUTURE.sub(CLOCK, IN_RULES.sub(r"\1", error))


def stage_and_work(rule: str) -> tuple[str, float]:
    """Return the stage of a rule (the name of its file, after its run's name if there are several)
    and its work.
    """
    name = max((name for name in STAGES if f"_{rule}".endswith(f"_{name}")), key=len, default=rule)
    return f"{rule.removesuffix(name).replace('_', ' ')}{STAGES.get(name, name)}", WORK.get(name, 4)


class LogHandler(LogHandlerBase):
    """Shows a line for each finished stage, and errors at the end; on a terminal, also a line
    updated every second.
    """

    writes_to_stream = has_filter = has_formatter = True  # type: ignore[assignment]
    writes_to_file = needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.live, self.begun, self.closed = (
            sys.stderr.isatty(),
            time.monotonic(),
            threading.Event(),
        )
        self.jobs, self.left = (
            0,
            Counter[str](),
        )  # all jobs, and those of each stage that have not finished
        self.work = self.worked = 0.0  # of all jobs, and of those that have finished
        self.running: dict[
            int, tuple[str, str, float, float]
        ] = {}  # a job's log, stage, work and start
        self.failed: dict[
            int, tuple[bool, str]
        ] = {}  # whether the job's log has the reason, and the error
        self.errors, self.interrupted = (
            list[str](),
            False,
        )  # Snakemake's own errors; whether the user ended it

    def emit(self, record: logging.LogRecord) -> None:
        fields, message = record.__dict__, " ".join(record.getMessage().split())
        event, number = fields.get("event"), fields.get("job_id", fields.get("jobid", 0))
        if event == LogEvent.RUN_INFO:
            for rule in fields["stats"].keys() - {"total", "all"}:
                stage, work = stage_and_work(rule)
                self.left[stage] += fields["stats"][rule]
                self.work += fields["stats"][rule] * work
            self.jobs = self.left.total()
            threading.Thread(target=self.keep_drawing, daemon=True).start()
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            self.running[number] = (
                "".join(fields["log"][:1]),
                *stage_and_work(fields["rule_name"]),
                time.monotonic(),
            )
        elif event == LogEvent.JOB_FINISHED and number in self.running:
            self.failed.pop(number, None)  # a retry succeeded
            _, stage, work, _ = self.running.pop(number)
            self.worked += work
            self.left[stage] -= 1
            if not self.left[stage]:
                self.show(f"{stage:10} {self.overall()}\n")
        elif event == LogEvent.JOB_ERROR and number in self.running:
            log, stage, *_ = self.running.pop(number)
            error, killed = last_logged(log, "ERROR"), any(map(KILLED.search, self.errors))
            why = error or (OUT_OF_MEMORY if killed else "failed; see .snakemake/log")
            self.failed[number] = bool(error), f"error: {stage}: {why} (log: {log})\n"
        elif event == LogEvent.ERROR or record.levelno >= logging.ERROR:
            self.errors.append(in_own_words(message))
        elif record.levelno == logging.WARNING or message.startswith("Nothing to be done"):
            self.show(f"{message}\n")
        self.interrupted |= bool(ENDED.search(message))

    def overall(self) -> str:
        """Return the number of finished jobs, and the time left at the same pace, at least what a
        running job says.
        """
        done, now = self.jobs - self.left.total(), time.monotonic()
        parts = (
            min(0.9 * work, now - start) for *_, work, start in [*self.running.values()]
        )  # less than a whole job
        rest = max(0, self.work / max(1.0, self.worked + sum(parts)) - 1)
        said = [LEFT.search(last_logged(log, "INFO")) for log, *_ in [*self.running.values()]]
        ahead = max([(now - self.begun) * rest, *(float(found[1]) for found in said if found)])
        took, left = (timedelta(seconds=round(seconds)) for seconds in (now - self.begun, ahead))
        return f"{done} of {self.jobs} jobs in {took}" + (
            f", about {left} left" if 0 < done < self.jobs else ""
        )

    def keep_drawing(self) -> None:
        """Redraw the last line: the progress of the run, and the last log line of each running
        job.
        """
        while self.live and not self.closed.wait(1):
            jobs = [
                f"{stage}: {last_logged(log, 'INFO')}"
                for log, stage, *_ in [*self.running.values()][:4]
            ]
            self.show("; ".join([self.overall(), *jobs])[: shutil.get_terminal_size().columns - 1])

    def show(self, text: str) -> None:
        with suppress(OSError):  # a terminal that was closed
            print("\r\x1b[J" * self.live + text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show each error once; if a cluster ran a group of steps as one job, only errors of failed
        steps.
        """
        if not self.closed.is_set():
            self.closed.set()
            told = [text for has_reason, text in self.failed.values() if has_reason]
            errors = (
                told
                or [text for _, text in self.failed.values()]
                or [f"error: {e}\n" for e in self.errors[:1]]
            )
            progress = [f"{self.overall()}\n"] if self.left.total() else []
            self.show("".join(progress if self.interrupted else progress + errors))
        super().close()
