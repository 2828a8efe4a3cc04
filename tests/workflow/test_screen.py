"""What `make run` shows: a line a stage, the time left, and the errors last, each with its log."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.core.cli import INTERRUPTED
from workflow_scripts.workflow import screen as module
from workflow_scripts.workflow.screen import LogHandler

STAMP = "2026-11-22 17:13:45,123"


def record(message: str = "", level: int = logging.INFO, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("snakemake.logging", level, __file__, 1, message, None, None)
    made.__dict__.update(fields)
    return made


class Screen:
    """A handler, the records of a run, and what was shown."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], **counts: int) -> None:
        self.handler, self.folder, self.capsys = LogHandler(None, None), folder, capsys  # type: ignore[arg-type]
        self.now = 0.0
        stats = {**counts, "total": sum(counts.values()) + 1, "all": 1}
        self.handler.emit(record(event=LogEvent.RUN_INFO, stats=stats))

    def start(self, number: int, rule: str, run: str = "", **wildcards: str) -> dict[str, Any]:
        log = f"{self.folder}/logs/score/{rule}.log"
        rule = f"{run}_{rule}" if run else rule
        about = {"jobid": number, "rule_name": rule, "log": [log], "shellcmd": f"python {rule}"}
        self.handler.emit(record(event=LogEvent.JOB_INFO, wildcards=wildcards, **about))
        return about

    def log(self, about: dict[str, Any], line: str) -> None:
        log = Path(about["log"][0])
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{STAMP} INFO 3 images\n{line}\n")

    def fail(self, about: dict[str, Any], logged: str = "", ended: str = "returned non-zero exit status 1.") -> None:
        if logged:
            self.log(about, logged)
        text = f"RuleException:\nCalledProcessError in file \"x.smk\", line 3:\nCommand '{about['shellcmd']}' {ended}"
        self.handler.emit(record(text, logging.ERROR, event=LogEvent.ERROR))
        self.handler.emit(record(level=logging.ERROR, event=LogEvent.JOB_ERROR, rule_msg=None, **about))
        self.handler.emit(record("WorkflowError:\nAt least one job did not complete.", logging.ERROR))

    def finish(self, number: int) -> None:
        self.handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=number))

    def shown(self) -> list[str]:
        self.handler.close()
        self.handler.close()
        return self.capsys.readouterr().err.splitlines()[1:]


@pytest.fixture
def screen(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Screen:
    """One job that trains a judge, two that score, and as many of a run named birds; seconds pass as tests say."""
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0 + (clock[0].now if clock else 0))
    monkeypatch.setattr(LogHandler, "keep_drawing", lambda self: None)
    clock: list[Screen] = []
    clock.append(Screen(tmp_path, capsys, train_judge=1, score_images=2, birds_train_judge=1, birds_score_images=2))
    return clock[0]


def test_a_stage_is_a_line_when_it_ends(screen: Screen) -> None:
    screen.start(1, "train_judge")
    screen.now = 90
    screen.finish(1)
    screen.start(2, "score_images", run="birds")
    screen.now = 100
    screen.finish(2)
    screen.start(3, "score_images", run="birds")
    screen.now = 400
    screen.finish(3)
    # Nobody knows yet how long birds_train_judge and score_images take.
    assert screen.shown() == [
        "judge      1 of 1 job, 90 s; 1 of 6 jobs in 90 s",
        "birds score 2 of 2 jobs, 5 min; 3 of 6 jobs in 7 min",
        "3 of 6 jobs in 7 min",
    ]


def test_the_time_left_is_that_of_the_jobs_that_remain(screen: Screen) -> None:
    records = screen.folder / "logs" / "score" / "a.benchmark.tsv"
    records.parent.mkdir(parents=True)
    records.write_text("s\th:m:s\trule_name\n100.0\t0:01:40\tscore_images\n")
    screen.start(1, "train_judge")
    screen.now = 60
    assert screen.handler.overall() == "0 of 6 jobs in 60 s, over 3 min left"  # two jobs of 100 s, and others
    screen.finish(1)
    for rule in ("birds_train_judge", "birds_score_images"):
        records.with_name(f"{rule}.benchmark.tsv").write_text(
            records.read_text().replace("score_images", rule).replace("100.0", "60.0")
        )
    screen.handler.folders.clear()
    screen.start(2, "score_images")
    screen.start(3, "birds_train_judge")
    screen.now = 100
    # Of 2 x 100 + 60 + 2 x 60 s, 80 have passed, two jobs at a time for 40 s of 100.
    assert screen.handler.overall().endswith(", about 4 min left")
    # This run's own jobs count more than those of earlier runs.
    screen.finish(2)
    assert screen.handler.overall().endswith(", about 2 min left")


def test_a_log_gets_a_line_a_minute(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    about = screen.start(1, "train_judge")
    screen.log(about, f"{STAMP} INFO epoch 3 of 10")
    for screen.now in range(0, 181, 10):
        screen.handler.draw()
    assert screen.shown()[:-1] == [
        f"0 of 6 jobs in {spent}; judge      0 of 1 job: epoch 3 of 10" for spent in ("60 s", "2 min", "3 min")
    ]


def test_a_terminal_is_updated_in_place(screen: Screen) -> None:
    screen.handler.live = True
    screen.capsys.readouterr()
    for number in (1, 2):
        screen.start(number, ("train_judge", "score_images")[number - 1])
    screen.handler.draw()
    screen.handler.draw()
    drawn = screen.capsys.readouterr().err
    one = "\r\x1b[Jjudge      0 of 1 job\nscore      0 of 2 jobs\n0 of 6 jobs in 0 s\x1b[2A\r"
    assert drawn == one * 2


def test_each_rule_has_a_stage() -> None:
    texts = [file.read_text() for file in (module.ROOT / "rules").glob("*.smk")]
    rules = {rule for text in texts for rule in re.findall(r"^ *rule (\w+):", text, re.MULTILINE)}
    assert rules <= module.STAGES.keys() and module.STAGES["extract_own_pairs"] == "pairs"


def test_the_error_of_a_step_is_last_and_has_its_log(screen: Screen) -> None:
    failed = screen.start(7, "score_images", composition="color", generator="mine")
    screen.fail(failed, f"{STAMP} ERROR violation: x\n{STAMP} ERROR error: a.png: bad; remove it (traceback: t.log)")
    screen.start(8, "score_images", run="birds")
    assert screen.shown() == [
        "0 of 6 jobs in 0 s",
        f"error: score: score images (color, mine): a.png: bad; remove it (log: {failed['log'][0]})",
    ]


@pytest.mark.parametrize(
    "ended", ["died with <Signals.SIGKILL: 9>.", "returned non-zero exit status 137."], ids=["signal", "status"]
)
def test_a_killed_step_says_so(screen: Screen, ended: str) -> None:
    screen.fail(screen.start(1, "train_judge"), "", ended)
    assert "judge: train judge: killed (SIGKILL), probably because memory ran out" in screen.shown()[-1]


def test_a_retry_that_succeeds_is_no_error(screen: Screen) -> None:
    about = screen.start(1, "train_judge")
    screen.fail(about, f"{STAMP} ERROR error: x")
    screen.start(1, "train_judge")
    screen.finish(1)
    assert [line for line in screen.shown() if "error: judge" in line] == []


def test_of_a_group_only_the_step_that_failed_is_named(screen: Screen) -> None:
    one, other = screen.start(1, "make_prompts"), screen.start(2, "export")
    screen.fail(one | {"indent": True})
    screen.fail(other | {"indent": True}, f"{STAMP} ERROR error: x")
    assert screen.shown()[1:] == [f"error: split: export: x (log: {other['log'][0]})"]


def test_an_interrupted_step_is_no_error(screen: Screen) -> None:
    screen.handler.emit(record("Terminating processes on user request, this might take some time.", logging.WARNING))
    screen.fail(screen.start(1, "train_judge"), f"{STAMP} ERROR {INTERRUPTED}")
    assert [line for line in screen.shown() if line.startswith("error")] == []


def test_an_error_of_snakemake_is_one_line(screen: Screen) -> None:
    text = (
        'WorkflowError in file "/x/rules/common.smk", line 33:\nruns.a: no such\n  folder\n  File "/x/y", line 3, in z'
    )
    screen.handler.emit(record(text, logging.ERROR, event=LogEvent.ERROR))
    assert screen.shown()[1:] == ["error: runs.a: no such folder (log: .snakemake/log)"]
