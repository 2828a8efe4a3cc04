"""Fixtures that several stages' tests share."""

import functools
import logging
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock
from hypothesis import settings

from compclip.core.log import log
from tests.project import Project

# The same verdict with a GPU as without; `make test-gpu` runs what needs one. Here, before torch
# looks for one, and in the environment, for the processes that tests start.
if os.environ.get("COMPCLIP_GPU") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = (
    "--no-sandbox --disable-gpu --force-color-profile=srgb --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
).split()

# A busy machine must not fail a test, nor one commit pass now and fail then.
settings.register_profile("compclip", deadline=None, derandomize=True)
# `make explore`: other examples each time, and more; what fails is printed with how to repeat it.
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("COMPCLIP_EXAMPLES", "compclip"))

# Tests that were started in the background ignore Ctrl-C, and so would what they start and
# interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: beside them one process gets through all others."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Count the examples of a property test that end without being rejected: at least a quarter
    must.
    """
    handle = getattr(getattr(item, "obj", None), "hypothesis", None)
    if handle is None:
        return (yield)
    inner, counts = handle.inner_test, Counter[str]()

    @functools.wraps(inner)
    def counting(*arguments: Any, **named: Any) -> None:
        counts["drawn"] += 1
        inner(*arguments, **named)
        counts["reached"] += 1

    handle.inner_test = counting
    try:
        yield
    finally:
        handle.inner_test = inner
    assert 4 * counts["reached"] >= counts["drawn"] > 0, (
        f"few examples reach the property: {dict(counts)}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let skips fail where COMPCLIP_SKIPS is `fail`, as in .ci/run, apart from those whose reason
    says `optional`.
    """
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and os.environ.get("COMPCLIP_SKIPS") == "fail"
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "optional" not in reason:
            report.outcome, report.longrepr = "failed", f"{reason}; COMPCLIP_SKIPS=fail demands it"
    return report


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


# Per module, because while playwright runs, its event loop prevents tests from calling Snakemake.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium with a profile of its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    binary = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if binary is None:
        pytest.skip(f"no Chromium on this machine (looked for {', '.join(CHROMIUM)})")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=binary, args=SWITCHES)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    opened = []

    def open_page(file: Path, fragment: str = "", **options: Any) -> Any:
        opened.append(browser.new_page(bypass_csp=True, **options))
        opened[-1].goto(file.as_uri() + fragment)
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


@pytest.fixture(scope="session")
def cub_root() -> Path:
    """The folder of the real archives that preset birds50 names; skips where it is not there."""
    preset = yaml.safe_load((ROOT / "presets" / "birds50.yaml").read_text())
    folder = ROOT / preset["dataset"]["cub"]["root"]
    if not (folder / "cub_captions.zip").is_file():
        pytest.skip(f"optional: the real archives are not in {preset['dataset']['cub']['root']}")
    return folder


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Run the small config once, with two cores and cold caches; to be forked. Other test processes
    wait for it.
    """
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    run = Project(place / "first_run")
    with FileLock(place / "first_run.lock"):
        if not (place / "first_run.done").exists():
            shutil.rmtree(run.root, ignore_errors=True)
            run.copy().snakemake(run.config("small.yaml", "results"))
            (place / "first_run.done").touch()
    return run


@pytest.fixture(scope="session")
def results(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the results of the small run: data set ``sketch``, composition ``color``."""
    return Path(
        shutil.copytree(first_run.root / "results", tmp_path_factory.mktemp("small") / "results")
    )


@pytest.fixture(scope="session")
def project(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Fork the small run."""
    return first_run.fork(tmp_path_factory.mktemp("project"))
