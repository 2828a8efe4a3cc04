"""What `make run` shows: a line a step, and the errors last, each with its log."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.core.cli import INTERRUPTED
from workflow_scripts.workflow.screen import LogHandler

STAMP = "2026-11-22 17:13:45,123"


def record(message: str = "", level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("snakemake.logging", level, __file__, 1, message, None, None)
    made.__dict__.update(fields)
    return made


class Screen:
    """A handler, the records of a run, and what was shown."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.handler, self.folder, self.capsys = LogHandler(None, None), folder, capsys  # type: ignore[arg-type]
        self.handler.emit(record(event=LogEvent.RUN_INFO, stats={"total": 12, "all": 1}))

    def start(self, number: int, rule: str, run: str = "", **wildcards: str) -> dict[str, Any]:
        log = f"{self.folder}/logs/score/{rule}.log"
        rule = f"{run}_{rule}" if run else rule
        about = {"jobid": number, "rule_name": rule, "log": [log], "shellcmd": f"python {rule}"}
        self.handler.emit(record(event=LogEvent.JOB_INFO, wildcards=wildcards, **about))
        return about

    def fail(self, about: dict[str, Any], logged: str = "", ended: str = "returned non-zero exit status 1.") -> None:
        if logged:
            log = Path(about["log"][0])
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(f"{STAMP} INFO 3 images\n{logged}\n")
        text = f"RuleException:\nCalledProcessError in file \"x.smk\", line 3:\nCommand '{about['shellcmd']}' {ended}"
        self.handler.emit(record(text, logging.ERROR, event=LogEvent.ERROR))
        self.handler.emit(record(level=logging.ERROR, event=LogEvent.JOB_ERROR, rule_msg=None, **about))

    def shown(self) -> list[str]:
        self.handler.emit(record("WorkflowError:\nAt least one job did not complete.", logging.ERROR))
        self.handler.close()
        return self.capsys.readouterr().err.splitlines()[1:]


@pytest.fixture
def screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Screen:
    return Screen(tmp_path, capsys)


def test_the_error_of_a_step_is_last_and_has_its_log(screen: Screen) -> None:
    failed = screen.start(7, "score_images", composition="color", generator="mine")
    screen.fail(failed, f"{STAMP} ERROR violation: x\n{STAMP} ERROR error: a.png: bad; remove it (traceback: t.log)")
    screen.start(8, "one_more", run="birds")
    assert screen.shown() == [
        "[ 1 of 11] score: score images (color, mine)",
        "[ 2 of 11] birds: score: one more",
        f"error: score: score images (color, mine): a.png: bad; remove it (log: {failed['log'][0]})",
    ]


@pytest.mark.parametrize(
    "ended", ["died with <Signals.SIGKILL: 9>.", "returned non-zero exit status 137."], ids=["signal", "status"]
)
def test_a_killed_step_says_so(screen: Screen, ended: str) -> None:
    screen.fail(screen.start(1, "train_judge"), "", ended)
    assert "score: train judge: killed (SIGKILL), probably because memory ran out" in screen.shown()[-1]


def test_a_retry_that_succeeds_is_no_error(screen: Screen) -> None:
    about = screen.start(1, "train_judge")
    screen.fail(about, f"{STAMP} ERROR error: x")
    screen.start(1, "train_judge")
    screen.handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    assert [line for line in screen.shown() if "error: score" in line] == []


def test_of_a_group_only_the_step_that_failed_is_named(screen: Screen) -> None:
    one, other = screen.start(1, "make_prompts"), screen.start(2, "export")
    screen.fail(one | {"indent": True})
    screen.fail(other | {"indent": True}, f"{STAMP} ERROR error: x")
    assert screen.shown()[2:] == [f"error: score: export: x (log: {other['log'][0]})"]


def test_an_interrupted_step_is_no_error(screen: Screen) -> None:
    screen.handler.emit(record("Terminating processes on user request, this might take some time.", logging.WARNING))
    screen.fail(screen.start(1, "train_judge"), f"{STAMP} ERROR {INTERRUPTED}")
    assert [line for line in screen.shown() if line.startswith("error")] == []


def test_an_error_of_snakemake_is_one_line(screen: Screen) -> None:
    text = (
        'WorkflowError in file "/x/rules/common.smk", line 33:\nruns.a: no such\n  folder\n  File "/x/y", line 3, in z'
    )
    screen.handler.emit(record(text, logging.ERROR, event=LogEvent.ERROR))
    assert screen.shown() == ["error: runs.a: no such folder (log: .snakemake/log)"]
