"""What ``make run`` shows of Snakemake: a line for each step that starts, and its errors last.

A logger plugin of Snakemake, which writes its full output to ``.snakemake/log``. Steps print their own lines and
progress bars; their errors are read from their logs.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.core.cli import CLEAR, INTERRUPTED

# The plugin's package, found in the folder that run.py puts on Python's path.
PLUGINS = Path(__file__).with_name("plugins")
# The error in a step's log, without what the screen adds itself.
ERROR = re.compile(rf"^\S+ \S+ ERROR (?:error: (.*?)(?: \(traceback: [^()]*\))?|{INTERRUPTED})$", re.MULTILINE)
# Lines of Snakemake's errors on where in the rules they arose.
PLACE = re.compile(r'\s*File "|\w+(Error|Exception)( in .*)?:$')
KILLED = re.compile(r"died with <Signals\.(SIG\w+)|non-zero exit status (137|143)\b")


class LogHandler(LogHandlerBase):
    """Shows steps by their names, and at the end the errors."""

    writes_to_stream = True  # type: ignore[assignment]
    writes_to_file = False  # type: ignore[assignment]
    has_filter = True  # type: ignore[assignment]
    has_formatter = True  # type: ignore[assignment]
    needs_rulegraph = False  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.total = 0
        self.names: dict[int, str] = {}  # of steps in the order of their start, by Snakemake's number
        self.failed: dict[int, str] = {}
        self.unsure: dict[int, str] = {}
        self.others: list[str] = []  # Snakemake's own errors
        self.interrupted = False

    def emit(self, record: logging.LogRecord) -> None:
        fields = record.__dict__
        event, message = fields.get("event"), record.getMessage()
        if event == LogEvent.RUN_INFO:
            counts = fields.get("stats") or {}
            self.total = counts.get("total", 0) - counts.get("all", 0)
            self.show(f"{self.total} steps; Snakemake's log: {log_file()}")
        elif event == LogEvent.JOB_INFO and fields["rule_name"] != "all":
            self.names.setdefault(fields["jobid"], step_name(fields))
            number = list(self.names).index(fields["jobid"]) + 1
            self.show(f"[{number:{len(str(self.total))}} of {self.total}] {self.names[fields['jobid']]}")
        elif event == LogEvent.JOB_FINISHED:
            self.failed.pop(fields["job_id"], None)
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

    def fail(self, fields: Mapping[str, Any]) -> None:
        """Keep the error in a failed step's log, or how it ended."""
        number, logs = fields["jobid"], [str(log) for log in fields["log"]]
        name = self.names.get(number, fields["rule_name"])
        for log in logs:
            if (error := logged_error(Path(log))) is not None:
                self.failed[number] = f"{name}: {error} (log: {log})" if error else ""
                return
        # Of a group of steps that are one job of a cluster, Snakemake reports each, whether it failed or not.
        failed = self.unsure if fields.get("indent") else self.failed
        failed[number] = f"{name}: {ending(fields, self.others)}{f' (log: {logs[0]})' if logs else ''}"

    def show(self, line: str) -> None:
        with suppress(OSError):  # nobody reads
            print(f"{CLEAR if sys.stderr.isatty() else ''}{line}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Show the errors; Snakemake calls this when all is done."""
        if not self.interrupted:
            failed = [*self.failed.values()] or [*self.unsure.values()]
            for line in filter(None, failed or [own_error(text) for text in self.others[:1]]):
                self.show(f"error: {line}")
        self.failed, self.unsure, self.others = {}, {}, []
        super().close()


def step_name(fields: Mapping[str, Any]) -> str:
    """Return the name of a step: ``score: score images (color, faithful)``; of several runs, after the run's."""
    log = " ".join(map(str, fields.get("log") or ()))
    stage = log.split("/logs/")[-1].split("/")[0] if "/logs/" in log else ""
    values = ", ".join(map(str, (fields.get("wildcards") or {}).values()))
    # The rules of a run have its name as a prefix; the log has the rule's own name.
    rule = fields["rule_name"]
    own = Path(log).name.split(".")[0]
    run, name = (rule.removesuffix(f"_{own}"), own) if rule.endswith(f"_{own}") else ("", rule)
    return f"{': '.join(filter(None, (run, stage, name.replace('_', ' '))))}{f' ({values})' if values else ''}"


def logged_error(log: Path) -> str | None:
    """Return the error in a step's log, "" if the user interrupted the step, None if there is none."""
    try:
        match = ERROR.search(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
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
