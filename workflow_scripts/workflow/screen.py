"""What ``make run`` shows of Snakemake: a line for each stage, the time left, and errors last, each with its log.

A logger plugin (``--logger compclip``); Snakemake's full output is in ``.snakemake/log``.
"""

import logging
import os
import re
import shutil
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.core.cli import INTERRUPTED
from workflow_scripts.core.code import ROOT

LOGGED = re.compile(r"^\S+ \S+ (INFO|ERROR) (?:error: )?(.*?)(?: \(traceback: [^()]*\))?$", re.MULTILINE)
KILLED = re.compile(r"died with <Signals\.SIGKILL|non-zero exit status 137\b")
RULE = re.compile(r"^ *(?:use rule \w+ as (\w+) with|rule (\w+)):$", re.MULTILINE)
# The stage of each rule: the name of its file.
STAGES = {a or b: file.stem for file in ROOT.glob("rules/*.smk") for a, b in RULE.findall(file.read_text())}


class LogHandler(LogHandlerBase):
    """Counts the jobs of each stage. On a terminal, the last lines are redrawn every second."""

    writes_to_stream = has_filter = has_formatter = True  # type: ignore[assignment]
    writes_to_file = needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.begun = time.monotonic()
        self.total, self.done, self.left = Counter[str](), Counter[str](), Counter[str]()  # by stage, stage, rule
        self.running: dict[int, tuple[str, float, Path]] = {}  # a job's rule, start and log
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)  # that jobs of a rule took
        self.failed: dict[int, tuple[bool, str]] = {}  # whether the job's log tells why, and the error
        self.others: list[str] = []  # Snakemake's own errors
        self.interrupted = False
        self.closed = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        fields, message = record.__dict__, record.getMessage()
        event, number = fields.get("event"), fields.get("job_id", fields.get("jobid", 0))
        if event == LogEvent.RUN_INFO:
            self.left = Counter({rule: n for rule, n in fields["stats"].items() if rule not in ("total", "all")})
            for rule, count in self.left.items():
                self.total[stage_of(rule)] += count
            if self.live:
                threading.Thread(target=self.keep_drawing, daemon=True).start()
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            self.start(number, fields["rule_name"], Path(next(iter(fields["log"]), "")))
        elif event == LogEvent.JOB_FINISHED and number in self.running:
            self.finish(number)
        elif event == LogEvent.JOB_ERROR:
            self.fail(number, fields)
        elif event == LogEvent.ERROR or record.levelno >= logging.ERROR:
            self.others.append(" ".join(message.split()))
        elif "on user request" in message:
            self.interrupted = True
        elif message.startswith("Nothing to be done"):
            self.show("Nothing to do: all results are up to date.\n")
        elif record.levelno == logging.WARNING:
            self.show(" ".join(message.split()) + "\n")

    def start(self, number: int, rule: str, log: Path) -> None:
        if not self.running and not self.seconds:  # how long jobs took in earlier runs
            for file in Path(str(log).rpartition("/logs/")[0], "logs").rglob("*.benchmark.tsv"):
                with suppress(OSError, ValueError, KeyError):
                    row = dict(zip(*(line.split("\t") for line in file.read_text().splitlines()[:2]), strict=True))
                    self.seconds[row["rule_name"]].append(float(row["s"]))
        self.running[number] = rule, time.monotonic(), log

    def finish(self, number: int) -> None:
        rule, started, _ = self.running.pop(number)
        self.failed.pop(number, None)  # a retry succeeded
        self.seconds[rule].append(time.monotonic() - started)
        self.left[rule] -= 1
        self.done[stage := stage_of(rule)] += 1
        if self.done[stage] == self.total[stage]:
            self.show(f"{self.progress(stage)}; {self.overall()}\n")

    def fail(self, number: int, fields: dict[str, Any]) -> None:
        """Keep the error in the log of a failed job, or how the job ended."""
        rule, log = fields["rule_name"], next(iter(fields["log"]), "")
        self.running.pop(number, None)
        error = ended = logged(Path(log), "ERROR")
        self.interrupted |= error == INTERRUPTED
        if not error and any(KILLED.search(text) and f"--log {log}" in text for text in self.others):
            ended = "killed (SIGKILL), probably because memory ran out; free some memory; run again to resume"
        values = ", ".join(map(str, (fields.get("wildcards") or {}).values()))
        name = f"{stage_of(rule)}: {rule.replace('_', ' ')}{values and f' ({values})'}"
        self.failed[number] = bool(error), f"{name}: {ended or 'failed; see .snakemake/log'} (log: {log})"

    def progress(self, stage: str) -> str:
        """Return how many jobs of a stage have finished, and what its longest running job logged last."""
        logs = [log for rule, _, log in [*self.running.values()] if stage_of(rule) == stage]
        note = logged(logs[0], "INFO") if logs else ""
        return f"{stage:10} {self.done[stage]:2} of {self.total[stage]} jobs{note and f': {note}'}"

    def overall(self) -> str:
        """Return how many jobs have finished, and the time left; rules that never ran make it a lower bound."""
        now, took = time.monotonic(), {rule: fmean(seconds) for rule, seconds in self.seconds.items()}
        work = sum(count * took.get(rule, 0) for rule, count in self.left.items())
        work -= sum(min(now - started, took.get(rule, 0)) for rule, started, _ in [*self.running.values()])
        bound = "" if all(rule in took for rule, count in self.left.items() if count) else "more than "
        left = f", {bound}{duration(work / max(1, len(self.running)))} left" if work > 0 else ""
        return f"{self.done.total()} of {self.total.total()} jobs in {duration(now - self.begun)}{left}"

    def keep_drawing(self) -> None:
        """Redraw the last lines; the cursor waits on the first of them, where other processes write."""
        while not self.closed.wait(1):
            stages = dict.fromkeys(stage_of(rule) for rule, _, _ in [*self.running.values()])
            size = shutil.get_terminal_size()
            lines = [line[: size.columns - 1] for line in [*map(self.progress, stages), self.overall()]]
            self.show("\n".join(lines[-size.lines :]) + f"\r\x1b[{len(lines) - 1}A" * (len(lines) > 1))

    def show(self, text: str) -> None:
        with suppress(OSError):  # the terminal is closed
            print("\r\x1b[J" * self.live + text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show the errors; Snakemake calls this when all is done, and Python again when it ends."""
        self.closed.set()
        if self.left.total():
            self.show(f"{self.overall()}\n")
        # Of a group of steps that are one job of a cluster, Snakemake reports each as failed.
        errors = [text for told, text in self.failed.values() if told] or [text for _, text in self.failed.values()]
        if not self.interrupted:
            self.show("".join(f"error: {line}\n" for line in errors or self.others[:1]))
        self.failed, self.others, self.left = {}, [], Counter()
        super().close()


def stage_of(rule: str) -> str:
    """Return the stage of a rule; of several runs, after the run's name."""
    name = max((name for name in STAGES if f"_{rule}".endswith(f"_{name}")), key=len, default=rule)
    return f"{rule.removesuffix(name).replace('_', ' ')}{STAGES.get(name, name)}"


def logged(log: Path, level: str) -> str:
    """Return the last line of a level in a step's log, "" if there is none."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return next((line for kind, line in reversed(LOGGED.findall(text)) if kind == level), "")


def duration(seconds: float) -> str:
    """Return whole seconds as hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))
