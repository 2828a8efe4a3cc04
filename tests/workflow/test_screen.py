"""What `make run` shows: a line a stage, the time left, and the errors last, each with its log."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.workflow import screen as module
from workflow_scripts.workflow.screen import LogHandler


class Screen:
    """A handler that gets the records of a run, and what it shows; a job's number is that of its
    rule.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], **counts: int) -> None:
        self.handler, self.folder, self.capsys = LogHandler(None, None), folder, capsys  # type: ignore[arg-type]
        self.now, self.rules = 0.0, [*counts]
        self.emit(
            event=LogEvent.RUN_INFO, stats={**counts, "total": sum(counts.values()) + 1, "all": 1}
        )

    def emit(self, message: str = "", level: int = logging.INFO, **fields: Any) -> None:
        record = logging.LogRecord("snakemake.logging", level, __file__, 1, message, None, None)
        record.__dict__.update(fields)
        self.handler.emit(record)

    def start(self, rule: str, logged: str = "") -> None:
        log = self.folder / f"{rule}.log"
        log.write_text(logged and f"2026-11-22 17:13:45,123 {logged}\n")
        self.emit(
            event=LogEvent.JOB_INFO, jobid=self.rules.index(rule), rule_name=rule, log=[str(log)]
        )

    def finish(self, rule: str) -> None:
        self.emit(event=LogEvent.JOB_FINISHED, job_id=self.rules.index(rule))

    def fail(
        self, rule: str, logged: str = "", ended: str = "returned non-zero exit status 1."
    ) -> None:
        self.start(rule, logged)
        self.emit(
            f"CalledProcessError:\nCommand 'python x' {ended}", logging.ERROR, event=LogEvent.ERROR
        )
        self.emit(level=logging.ERROR, event=LogEvent.JOB_ERROR, jobid=self.rules.index(rule))
        self.emit("WorkflowError:\nAt least one job did not complete.", logging.ERROR)

    def shown(self) -> list[str]:
        self.handler.close()
        self.handler.close()
        return self.capsys.readouterr().err.replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Screen:
    """One job that trains a judge, two that score, and as many of a run named birds; seconds pass
    as tests say.
    """
    monkeypatch.setattr(module, "WORK", {"train_judge": 50, "score_images": 50})
    clock: list[Screen] = []
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0 + (clock[0].now if clock else 0))
    clock.append(
        Screen(
            tmp_path,
            capsys,
            train_judge=1,
            score_images=2,
            birds_train_judge=1,
            birds_score_images=2,
        )
    )
    return clock[0]


def test_a_stage_is_a_line_when_it_ends(screen: Screen) -> None:
    for rule, seconds in (
        ("train_judge", 90),
        ("birds_score_images", 10),
        ("birds_score_images", 3900),
    ):
        screen.start(rule)
        screen.now += seconds
        screen.finish(rule)
    screen.start("score_images", "INFO 1 of 9 images (1 per second, about 7321 s left) ")
    assert screen.shown() == [
        # (90 + 30) / (50 + 30) times as slow as the default run, for 5 jobs of 50 s
        "judge      1 of 6 jobs in 0:01:30, about 0:06:15 left",
        "birds score 3 of 6 jobs in 1:06:40, about 0:55:58 left",
        "3 of 6 jobs in 1:06:40, about 2:02:01 left",  # as the running job says
    ]


@pytest.mark.parametrize("slowness", [0.5, 1, 3])
def test_the_time_left_is_that_of_a_slower_machine_with_two_cores(
    screen: Screen, slowness: float
) -> None:
    screen.emit(event=LogEvent.RESOURCES_INFO, cores=2)
    for rule in ("train_judge", "birds_train_judge"):
        screen.start(rule)
    screen.now += 50 * slowness
    for rule in ("train_judge", "birds_train_judge"):
        screen.finish(rule)
    # Four jobs of 50 s are left, two at once.
    assert screen.handler.seconds_left() == pytest.approx(100 * slowness, rel=0.25)


def test_a_terminal_is_updated_in_place(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    screen.handler.live = True
    screen.start("score_images", "INFO 7 of 9 images")
    twice = iter([False, False, True])
    monkeypatch.setattr(screen.handler.closed, "wait", lambda seconds: next(twice))
    monkeypatch.setenv("COLUMNS", "43")
    screen.handler.keep_drawing()
    assert (
        screen.capsys.readouterr().err == "\r\x1b[J0 of 6 jobs in 0:00:00; score: 7 of 9 imag" * 2
    )


def test_each_rule_has_a_stage() -> None:
    texts = [file.read_text() for file in (module.WORKFLOW_ROOT / "rules").glob("*.smk")]
    rules = {rule for text in texts for rule in re.findall(r"^ *rule (\w+):", text, re.MULTILINE)}
    assert rules <= module.STAGES.keys() and module.STAGES["extract_pairs"] == "pairs"


@pytest.mark.parametrize(
    ("logged", "ended", "error"),
    [
        (
            "ERROR error: a.png: bad; remove it (traceback: t.log)",
            "returned 1.",
            "a.png: bad; remove it",
        ),
        ("INFO 3 images", "died with <Signals.SIGKILL: 9>.", module.OUT_OF_MEMORY),
        ("", "died with <Signals.SIGABRT: 6>.", module.OUT_OF_MEMORY),
        ("", "returned non-zero exit status 137.", module.OUT_OF_MEMORY),
        ("", "returned non-zero exit status 2.", "failed; see .snakemake/log"),
    ],
)
def test_the_error_of_a_step_is_last_and_has_its_log(
    screen: Screen, logged: str, ended: str, error: str
) -> None:
    screen.fail("score_images", logged, ended)
    screen.start("birds_score_images")
    assert screen.shown() == [
        "0 of 6 jobs in 0:00:00",
        f"error: score: {error} (log: score_images.log)",
    ]


def test_only_errors_that_remain_are_shown(screen: Screen) -> None:
    # A retry succeeds; of a group of steps that a cluster ran as one job, one has failed.
    screen.fail("train_judge", "ERROR error: x")
    screen.start("train_judge")
    screen.finish("train_judge")
    screen.fail("birds_train_judge")
    screen.fail("score_images", "ERROR error: y")
    errors = [line for line in screen.shown() if line.startswith("error")]
    assert errors == ["error: score: y (log: score_images.log)"]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("WorkflowError:\nmodule a: no such\n  folder", "module a: no such folder"),
        (
            'WorkflowError:\na: of another version\n  File "/b.py", line 4, in c',
            "a: of another version",
        ),
        (
            "InputFunctionException in rule a … Error: UserError: c: full; delete it Wildcards: "
            "judge=0 …",
            "c: full; ",
        ),
        (
            "LockException:\nError: Directory cannot be locked. Please make sure",
            ".snakemake: locked by another run of Sna",
        ),
        (
            "WorkflowError in rule a … Output b has older modification time (1) than input c (2). "
            "…",
            "c: from the fut",
        ),
    ],
)
@pytest.mark.parametrize(
    "ended",
    [
        "",
        "Terminating processes on user request, this might take some time.",
        "Will exit after finishing currently running jobs (scheduler).",
    ],
)
def test_an_error_is_one_line_and_an_interruption_is_none(
    screen: Screen, told: str, error: str, ended: str
) -> None:
    screen.emit(told, logging.ERROR, event=LogEvent.ERROR)
    if ended:
        screen.emit(ended)
    errors = screen.shown()[1:]
    assert len(errors) == (not ended)
    for line in errors:
        assert line.startswith(f"error: {error}") and " File " not in line
