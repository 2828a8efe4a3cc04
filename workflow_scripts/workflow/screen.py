"""What ``make run`` shows of Snakemake, as its logger plugin ``compclip``; all of it is in ``.snakemake/log``."""

import logging
import re
import shutil
import sys
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from compclip.core.code import ROOT

LOGGED = re.compile(r"^\S+ \S+ (INFO|ERROR) (?:error: )?(.*?)(?: \(traceback: [^()]*\))?$", re.MULTILINE)
# By the kernel, or by the C library, which aborts if it cannot have memory.
KILLED = re.compile(r"died with <Signals\.SIG(KILL|ABRT)|non-zero exit status 13[47]\b")
OUT_OF_MEMORY = "killed, probably because memory ran out; free some memory; run again to resume"
# An error of the Python in rules, which Snakemake shows with wildcards and traceback.
IN_RULES = re.compile(r"^InputFunctionException in rule .*? Error: UserError: (.*?) Wildcards: ")
RULE = re.compile(r"^ *(?:use rule \w+ as|rule) (\w+)(?: with)?:$", re.MULTILINE)
# Seconds that a job of a rule takes in the default run, others about 1: how much work is left, whatever its pace.
WORK = {
    "train_judge": 55, "extract_pairs": 40, "measure_splits": 40, "load_dataset": 20, "score_images": 20,
    "list_entries": 15, "score_oracle": 14, "make_table": 9, "measure_health": 9, "audit": 8, "generate_images": 6,
    "make_variants": 5, "swap_adjectives": 4, "make_splits": 3, "train_specs": 60, "classify": 20,
}  # fmt: skip
# Of a running job at most so much is done, however long it has run.
ALMOST = 0.9
STAGES = {rule: file.stem for file in ROOT.glob("rules/*.smk") for rule in RULE.findall(file.read_text())}


class LogHandler(LogHandlerBase):
    """Shows a line for each finished stage, and errors last; on a terminal, also a line that changes every second."""

    writes_to_stream = has_filter = has_formatter = True  # type: ignore[assignment]
    writes_to_file = needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.live, self.begun, self.closed = sys.stderr.isatty(), time.monotonic(), threading.Event()
        self.total, self.done = Counter[str](), Counter[str]()  # jobs of each stage
        self.work = self.worked = 0.0  # by ``WORK``: of all jobs, and of those that have finished
        self.running: dict[int, tuple[str, str]] = {}  # a job's stage and log
        self.started: dict[int, tuple[float, float]] = {}  # when a job has started, and its work
        self.failed: dict[int, tuple[bool, str]] = {}  # whether the job's log tells why, and the error
        self.others: list[str] = []  # Snakemake's own errors
        self.interrupted = False

    def emit(self, record: logging.LogRecord) -> None:
        fields, message = record.__dict__, " ".join(record.getMessage().split())
        event, number = fields.get("event"), fields.get("job_id", fields.get("jobid", 0))
        if event == LogEvent.RUN_INFO:
            for rule in fields["stats"].keys() - {"total", "all"}:
                self.total[stage_of(rule)] += fields["stats"][rule]
                self.work += fields["stats"][rule] * work_of(rule)
            threading.Thread(target=self.keep_drawing, daemon=True).start()
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            self.running[number] = stage_of(fields["rule_name"]), next(iter(fields["log"]), "")
            self.started[number] = time.monotonic(), work_of(fields["rule_name"])
        elif event == LogEvent.JOB_FINISHED and number in self.running:
            self.failed.pop(number, None)  # a retry succeeded
            self.done[stage := self.running.pop(number)[0]] += 1
            self.worked += self.started.pop(number)[1]
            if self.done[stage] == self.total[stage]:
                self.show(f"{stage:10} {self.done[stage]:2} of {self.total[stage]} jobs; {self.overall()}\n")
        elif event == LogEvent.JOB_ERROR and number in self.running:
            stage, log = self.running.pop(number)
            error = logged(log, "ERROR")
            killed = any(map(KILLED.search, self.others))
            why = error or (OUT_OF_MEMORY if killed else "failed; see .snakemake/log")
            self.failed[number] = bool(error), f"error: {stage}: {why} (log: {log})\n"
        elif event == LogEvent.ERROR or record.levelno >= logging.ERROR:
            raised = IN_RULES.search(message)
            self.others.append(raised[1] if raised else message)
        elif record.levelno == logging.WARNING or message.startswith("Nothing to be done"):
            self.show(f"{message}\n")
        self.interrupted |= "on user request" in message

    def overall(self) -> str:
        """Return how many jobs have finished, and the time left if the rest of the work goes on at the same pace."""
        done, total, now = self.done.total(), self.total.total(), time.monotonic()
        parts = [
            min(ALMOST * work, now - start) for number, (start, work) in self.started.items() if number in self.running
        ]
        worked = max(1.0, self.worked + sum(parts))
        seconds = now - self.begun
        took, left = (timedelta(seconds=round(s)) for s in (seconds, seconds * max(0, self.work / worked - 1)))
        return f"{done} of {total} jobs in {took}" + (f", about {left} left" if 0 < done < total else "")

    def keep_drawing(self) -> None:
        """Redraw the last line: how far the run is, and what each running job logged last."""
        while self.live and not self.closed.wait(1):
            jobs = [f"{stage}: {logged(log, 'INFO') or 'started'}" for stage, log in [*self.running.values()][:4]]
            self.show("; ".join([self.overall(), *jobs])[: shutil.get_terminal_size().columns - 1])

    def show(self, text: str) -> None:
        print("\r\x1b[J" * self.live + text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show the errors once; if a cluster ran a group of steps as one job, only those of the steps that failed."""
        if not self.closed.is_set():
            self.closed.set()
            errors = [text for told, text in self.failed.values() if told] or [text for _, text in self.failed.values()]
            errors = [] if self.interrupted else errors or [f"error: {text}\n" for text in self.others[:1]]
            self.show("".join([f"{self.overall()}\n" * (self.done != self.total), *errors]))
        super().close()


def own_name(rule: str) -> str:
    """Return the name of a rule without that of its run, if there are several runs."""
    return max((name for name in STAGES if f"_{rule}".endswith(f"_{name}")), key=len, default=rule)


def work_of(rule: str) -> float:
    return WORK.get(own_name(rule), 1)


def stage_of(rule: str) -> str:
    """Return the stage of a rule, the name of its file; after the run's name if there are several runs."""
    name = own_name(rule)
    return f"{rule.removesuffix(name).replace('_', ' ')}{STAGES.get(name, name)}"


def logged(log: str, level: str) -> str:
    """Return the last line of a level in a step's log, "" if there is none."""
    text = Path(log).read_text(encoding="utf-8", errors="replace") if Path(log).is_file() else ""
    return next((line for kind, line in reversed(LOGGED.findall(text)) if kind == level), "")
