"""Fixtures that several stages' tests share."""

import logging
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from workflow_scripts.core.cli import log

# A busy machine must not fail a test, nor one commit pass now and fail then.
settings.register_profile("compclip", deadline=None, derandomize=True)
settings.load_profile("compclip")

# Tests that were started in the background ignore Ctrl-C, and so would what they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: beside them one process gets through all others."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    """A step that a test runs in this process starts its own log."""
    yield
    for handler in list(log.handlers):
        log.removeHandler(handler)
        with suppress(OSError):
            handler.close()
    log.propagate, log.level = True, logging.NOTSET
    logging.raiseExceptions = True


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """The lines of the log, debugging ones and tracebacks included."""
    recorded: list[str] = []
    handler, level = logging.Handler(), log.level
    handler.emit = lambda record: recorded.append(logging.Formatter().format(record))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield recorded
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture(scope="session")
def cub_root() -> Path:
    """The folder of the real archives that preset birds50 names; skips where it is not there."""
    preset = yaml.safe_load((ROOT / "presets" / "birds50" / "config.yaml").read_text())
    folder = ROOT / preset["dataset"]["cub"]["root"]
    if not (folder / "cub_captions.zip").is_file():
        pytest.skip(f"the real archives are not in {preset['dataset']['cub']['root']}")
    return folder


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up results folder: data set ``tiny``, composition ``color``."""
    from tests.made_up import make_results

    return make_results(tmp_path_factory.mktemp("made_up") / "results")
