"""What ``make run`` shows of Snakemake: the progress of each stage, the time left, and the errors last.

A logger plugin of Snakemake, which writes its full output to ``.snakemake/log``. Steps write what they do to their own
logs, and only warnings to the screen.
"""

import logging
import os
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.core.cli import INTERRUPTED
from workflow_scripts.core.code import ROOT

# The plugin's package, found in the folder that run.py puts on Python's path.
PLUGINS = Path(__file__).with_name("plugins")
# The error in a step's log, without what the screen adds itself.
ERROR = re.compile(rf"^\S+ \S+ ERROR (?:error: (.*?)(?: \(traceback: [^()]*\))?|{INTERRUPTED})$", re.MULTILINE)
LOGGED = re.compile(r"^\S+ \S+ INFO (.*)$", re.MULTILINE)
# Lines of Snakemake's errors on where in the rules they arose.
PLACE = re.compile(r'\s*File "|\w+(Error|Exception)( in .*)?:$')
KILLED = re.compile(r"died with <Signals\.(SIG\w+)|non-zero exit status (137|143)\b")
RULE = re.compile(r"^ *(?:use rule \w+ as (\w+) with|rule (\w+)):$", re.MULTILINE)
# The stage of each rule: the name of its file.
STAGES = {a or b: file.stem for file in ROOT.glob("rules/*.smk") for a, b in RULE.findall(file.read_text())}
QUIET = 60.0  # seconds without a line, after which a log gets one
CLEAR_BELOW = "\r\x1b[J"


@dataclass
class Stage:
    """How many of a stage's jobs have finished, and when the first started."""

    total: int = 0
    done: int = 0
    started: float | None = None


@dataclass
class Running:
    """A job that runs, and when its log was last written before (ns)."""

    rule: str
    started: float
    log: Path
    written: int


class LogHandler(LogHandlerBase):
    """Shows the stages, and at the end the errors.

    On a terminal, the last lines show where the run is. The cursor waits on the first of them, so that what other
    processes write takes their place until they are drawn again.
    """

    writes_to_stream = True  # type: ignore[assignment]
    writes_to_file = False  # type: ignore[assignment]
    has_filter = True  # type: ignore[assignment]
    has_formatter = True  # type: ignore[assignment]
    needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.started = self.shown = time.monotonic()
        self.width = 1
        self.stages: dict[str, Stage] = {}
        self.left: Counter[str] = Counter()  # jobs to finish, by rule
        self.running: dict[int, Running] = {}
        self.seconds: dict[str, list[float]] = {}  # that each rule's finished jobs took
        self.recorded: dict[str, list[float]] = {}  # and those of earlier runs
        self.folders: set[Path] = set()  # of logs, whose records are read
        self.names: dict[int, str] = {}  # of jobs, by Snakemake's number
        self.failed: dict[int, str] = {}
        self.unsure: dict[int, str] = {}
        self.others: list[str] = []  # Snakemake's own errors
        self.interrupted = False
        self.closed = threading.Event()
        self.drawing = self.lock or threading.RLock()  # what protects a handler's emit

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.__dict__
        event, message = fields.get("event"), record.getMessage()
        if event == LogEvent.RUN_INFO:
            self.begin(fields.get("stats") or {})
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            self.start(fields)
        elif event == LogEvent.JOB_FINISHED:
            self.failed.pop(fields["job_id"], None)
            self.finish(fields["job_id"])
        elif event == LogEvent.JOB_ERROR:
            self.fail(fields)
        elif event == LogEvent.ERROR or record.levelno >= logging.ERROR:
            self.others.append(message)
        elif "on user request" in message:
            self.interrupted = True
        elif message.startswith("Nothing to be done"):
            self.show("Nothing to do: all results are up to date.")
        elif record.levelno == logging.WARNING:
            self.show(" ".join(message.split()))

    def begin(self, counts: Mapping[str, int]) -> None:
        """Show the number of jobs; from now on, draw every second."""
        self.left = Counter({rule: count for rule, count in counts.items() if rule not in ("total", "all")})
        for rule, count in self.left.items():
            self.stages.setdefault(stage_of(rule), Stage()).total += count
        self.width = max(len(str(stage.total)) for stage in self.stages.values())
        self.started = time.monotonic()
        self.show(f"{counted(self.left.total())}; Snakemake's log: {log_file()}")
        threading.Thread(target=self.keep_drawing, daemon=True).start()

    def keep_drawing(self) -> None:
        while not self.closed.wait(1):
            with self.drawing:
                if not self.closed.is_set():
                    self.draw()

    def start(self, fields: Mapping[str, Any]) -> None:
        """Note the start of a job."""
        number, rule, log = fields["jobid"], fields["rule_name"], Path(next(iter(fields["log"]), ""))
        self.names.setdefault(number, step_name(fields))
        self.running[number] = Running(rule, time.monotonic(), log, last_written(log))
        stage = self.stages.setdefault(stage_of(rule), Stage())
        stage.started = stage.started or self.running[number].started
        folder = Path(str(log).rpartition("/logs/")[0], "logs")
        if folder not in self.folders:
            self.folders.add(folder)
            read_benchmarks(folder, self.recorded)

    def finish(self, number: int) -> None:
        """Note the end of a job; show its stage if that ended too."""
        if (job := self.running.pop(number, None)) is None:
            return
        now = time.monotonic()
        self.seconds.setdefault(job.rule, []).append(now - job.started)
        self.left[job.rule] -= 1
        name = stage_of(job.rule)
        stage = self.stages[name]
        stage.done += 1
        if stage.done == stage.total:
            self.show(f"{self.progress(name)}, {duration(now - (stage.started or now))}; {self.overall()}")

    def progress(self, name: str) -> str:
        """Return how far a stage is, and what its longest running job logged last."""
        stage = self.stages[name]
        note = next((last_line(job) for job in self.running.values() if stage_of(job.rule) == name), "")
        return f"{name:10} {stage.done:{self.width}} of {counted(stage.total)}{note and f': {note}'}"

    def overall(self) -> str:
        """Return how far the run is, and the time left."""
        elapsed = duration(time.monotonic() - self.started)
        done, total = (sum(getattr(stage, key) for stage in self.stages.values()) for key in ("done", "total"))
        return f"{done} of {counted(total)} in {elapsed}{self.time_left()}"

    def time_left(self) -> str:
        """Return the time left in words, from how long the jobs of each rule took, in this run or before.

        Rules that never ran make it a lower bound. As many jobs run at once as on average so far.
        """
        now = time.monotonic()
        took = {rule: fmean(seconds) for rule, seconds in (self.recorded | self.seconds).items()}
        work = sum(count * took.get(rule, 0) for rule, count in self.left.items())
        work -= sum(min(now - job.started, took.get(job.rule, 0)) for job in self.running.values())
        busy = sum(map(sum, self.seconds.values())) + sum(now - job.started for job in self.running.values())
        if work <= 0 or not busy:
            return ""
        known = all(rule in took for rule, count in self.left.items() if count)
        return f", {'about' if known else 'over'} {duration(work * (now - self.started) / busy)} left"

    def draw(self) -> None:
        """Show where the run is: on a terminal in the last lines, in a log if it got no line for a while."""
        at_work = [name for name, stage in self.stages.items() if stage.started and stage.done < stage.total]
        lines = [*map(self.progress, at_work), self.overall()]
        if self.live:
            size = shutil.get_terminal_size()
            lines = [line[: size.columns - 1] for line in lines[1 - size.lines :]]
            up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
            self.write(f"{CLEAR_BELOW}{chr(10).join(lines)}{up}\r")
        elif time.monotonic() - self.shown >= QUIET:
            self.show("; ".join(lines[::-1]))

    def fail(self, fields: Mapping[str, Any]) -> None:
        """Keep the error in a failed step's log, or how it ended."""
        number, logs = fields["jobid"], [str(log) for log in fields["log"]]
        self.running.pop(number, None)
        name = self.names.get(number, fields["rule_name"])
        for log in logs:
            if (error := logged_error(Path(log))) is not None:
                self.failed[number] = f"{name}: {error} (log: {log})" if error else ""
                return
        # Of a group of steps that are one job of a cluster, Snakemake reports each, whether it failed or not.
        failed = self.unsure if fields.get("indent") else self.failed
        failed[number] = f"{name}: {ending(fields, self.others)}{f' (log: {logs[0]})' if logs else ''}"

    def show(self, line: str) -> None:
        self.shown = time.monotonic()
        self.write(f"{CLEAR_BELOW if self.live else ''}{line}\n")

    def write(self, text: str) -> None:
        with suppress(OSError):  # nobody reads
            print(text, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show the errors; Snakemake calls this when all is done."""
        with self.drawing:
            self.closed.set()
        if self.left.total():
            self.show(self.overall())
        if not self.interrupted:
            failed = [*self.failed.values()] or [*self.unsure.values()]
            for line in filter(None, failed or [own_error(text) for text in self.others[:1]]):
                self.show(f"error: {line}")
        # It is closed once more when Python ends.
        self.failed, self.unsure, self.others, self.left = {}, {}, [], Counter()
        super().close()


def rule_of(name: str) -> tuple[str, str]:
    """Return the run that a rule's name has as a prefix, "" if there is one run, and the rule's own name."""
    own = max((rule for rule in STAGES if f"_{name}".endswith(f"_{rule}")), key=len, default=name)
    return name.removesuffix(own).removesuffix("_"), own


@cache
def stage_of(name: str) -> str:
    """Return the stage of a rule; of several runs, after the run's name."""
    run, rule = rule_of(name)
    return " ".join(filter(None, (run, STAGES.get(rule, rule))))


def step_name(fields: Mapping[str, Any]) -> str:
    """Return the name of a step: ``score: score images (color, faithful)``; of several runs, after the run's."""
    run, rule = rule_of(fields["rule_name"])
    values = ", ".join(map(str, (fields.get("wildcards") or {}).values()))
    name = ": ".join(filter(None, (run, STAGES.get(rule), rule.replace("_", " "))))
    return f"{name}{f' ({values})' if values else ''}"


def counted(jobs: int) -> str:
    return f"{jobs} job{'s' if jobs != 1 else ''}"


def duration(seconds: float) -> str:
    """Return a time in the unit that a reader would choose."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def read_benchmarks(folder: Path, into: dict[str, list[float]]) -> None:
    """Add the seconds of each rule's jobs in earlier runs, from what Snakemake recorded beside their logs."""
    for file in folder.rglob("*.benchmark.tsv"):
        with suppress(OSError, ValueError, KeyError):  # without them there is no estimate
            names, values = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[:2])
            row = dict(zip(names, values, strict=True))
            into.setdefault(row["rule_name"], []).append(float(row["s"]))


def last_written(log: Path) -> int:
    """Return when a file was last written, in ns; 0 if it does not exist."""
    try:
        return log.stat().st_mtime_ns
    except OSError:
        return 0


def content(log: Path) -> str:
    """Return the text of a log, "" if it cannot be read."""
    with suppress(OSError):
        return log.read_text(encoding="utf-8", errors="replace")
    return ""


def last_line(job: Running) -> str:
    """Return what a job logged last."""
    by_this_run = last_written(job.log) != job.written
    return next(reversed(LOGGED.findall(content(job.log))), "") if by_this_run else ""


def logged_error(log: Path) -> str | None:
    """Return the error in a step's log, "" if the user interrupted the step, None if there is none."""
    match = ERROR.search(content(log))
    return match and (match[1] or "")


def ending(fields: Mapping[str, Any], others: list[str]) -> str:
    """Return how a step ended that says nothing itself."""
    text = next((text for text in others if fields["shellcmd"] and fields["shellcmd"] in text), "")
    if match := KILLED.search(text):
        signal = match[1] or {"137": "SIGKILL", "143": "SIGTERM"}[match[2]]
        memory = ", probably because memory ran out; free some memory" if signal == "SIGKILL" else ""
        return f"killed ({signal}){memory}; run again to resume"
    message = fields.get("rule_msg")
    return " ".join(str(message).split()) if message else f"failed without a message; see {log_file()}"


def own_error(text: str) -> str:
    """Return an error of Snakemake itself in one line, without the places in rules files."""
    lines = [line.strip() for line in text.splitlines() if not PLACE.match(line)]
    return f"{' '.join(filter(None, lines))} (log: {log_file()})"


def log_file() -> str:
    """Return Snakemake's own log, relative to the project."""
    handlers = logging.getLogger("snakemake.logging").handlers
    files = [os.path.relpath(handler.baseFilename) for handler in handlers if isinstance(handler, logging.FileHandler)]
    return files[0] if files else ".snakemake/log"
