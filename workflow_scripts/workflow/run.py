"""Run the workflow for a config and print its table: ``compclip run``, which ``make run`` calls.

The working folder holds the results, the cache and Snakemake's state. Only one run at a time is
possible in it: a second one is refused while the first one's Snakemake locks exist.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil  # of Snakemake
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.errors import require
from compclip.core.identity import digests
from compclip.core.settings import cli
from compclip.core.settings.cli import Command, Terminated
from workflow_scripts.places import check_writable
from workflow_scripts.root import WORKFLOW_ROOT, run_command
from workflow_scripts.workflow.check import report_findings
from workflow_scripts.workflow.config import read_config
from workflow_scripts.workflow.loading import is_running
from workflow_scripts.workflow.screen import LOCKED, how_to_unlock

# Snakemake's state, in the working folder.
STATE = Path(".snakemake")
# Snakemake of this environment, which need not be activated; -P: without the user's modules.
SNAKEMAKE = [sys.executable, "-P", "-m", "snakemake", "--snakefile", f"{WORKFLOW_ROOT}/Snakefile"]
# The folder of the package of Snakemake's logger plugin, screen.py.
PLUGINS = Path(__file__).with_name("plugins")
# The part of table.md for the screen.
HEADLINES_PATTERN = re.compile(
    "<!-- headlines -->\n```text\n(.*?)```\n<!-- /headlines -->\n", re.DOTALL
)
MOST_LINES = 12
DRY_RUN = {"-n", "--dry-run", "--dryrun"}
# Options of Snakemake with which steps run on other machines or in other environments.
RUNS_ELSEWHERE = re.compile(
    r"--(executor|profile|workflow-profile|sdm|software-deployment|use-)|(^| )-e "
)


class Run(Command):
    """Run the workflow for a config and print its table."""

    config: Path = Field(Path("config.yaml"), description="config.yaml, a preset's or your own")
    cores: int = Field(
        os.cpu_count() or 1, ge=1, le=1_000_000, description="cores that Snakemake may use"
    )
    snakemake: CliPositionalArg[list[str]] = Field(
        [], description="after --: more arguments for Snakemake"
    )


class Unlock(Command):
    """Remove the lock that a killed run left in the working folder."""


def check_alone() -> None:
    """Raise UserError if Snakemake's locks show another run in this folder, possibly a killed
    one.
    """
    require(not any(STATE.glob("locks/*")), STATE.absolute(), LOCKED, how_to_unlock())


def stop(pid: int) -> None:
    """Interrupt a Snakemake as Ctrl-C does, and terminate all that it started."""
    with suppress(psutil.NoSuchProcess):
        snakemake = psutil.Process(pid)
        started = snakemake.children(recursive=True)
        # A shell lets what it starts in the background ignore Ctrl-C; Snakemake then ends when its
        # jobs have.
        is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        # Snakemake first: it then knows why its jobs end.
        snakemake.send_signal(signal.SIGTERM if is_ignored else signal.SIGINT)
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.terminate()


def run_snakemake(command: list[str]) -> None:
    """Run Snakemake to its end; raise UserError if it is killed."""
    # Snakemake finds its logger plugins on the path, by the names of their packages.
    python_path = filter(None, [str(PLUGINS), str(WORKFLOW_ROOT), os.environ.get("PYTHONPATH")])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(python_path),
        cli.UNDER_RUN: "1",
    }
    interruption: KeyboardInterrupt | None = None
    with subprocess.Popen(command, env=environment) as snakemake:
        # Even after an interruption, Snakemake's own end is waited for.
        code = None
        while code is None:
            try:
                code = snakemake.wait()
            except Terminated as error:
                interruption = error
                stop(snakemake.pid)
            except KeyboardInterrupt as error:  # Snakemake receives it too, and gets time to end
                interruption = error
    if interruption:
        if code < 0:
            # A terminal that closes also ends Snakemake, which then leaves its locks.
            for lock in STATE.glob("locks/*"):
                lock.unlink(missing_ok=True)
        raise interruption
    require(
        code >= 0,
        "Snakemake",
        f"killed (signal {-code})",
        f"`{run_command('unlock')}`, then run again to resume",
    )
    if code:
        sys.exit(1)  # the errors are on the screen already


def headlines(table: Path) -> str:
    """Return the part of a checked table for the screen."""
    digests.check([table])
    text = table.read_text(encoding="utf-8")
    if "<!-- headlines" in text:
        return "\n".join(HEADLINES_PATTERN.findall(text))
    # A table without headlines is shown from its beginning.
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = ["…"]
    return "\n".join(lines)


def print_results(folder: str, log: Path) -> None:
    """Print the headlines of a results folder, after checking its tables, and the paths of pages,
    tables and log.
    """
    files: list[tuple[str, Path]] = []
    for name, page_name in (("table", "report"), ("specs", "specs"), ("compun", "compun")):
        table = Path(folder, f"{name}.md")
        page = Path(folder, f"{page_name}.html")
        if table.is_file():
            print(headlines(table))
        files += [("page", page), ("table", table)]
    # Not every config makes every page.
    files = [(kind, path) for kind, path in files if path.is_file()]
    for kind, path in [*files, ("log", log)]:
        print(f"{kind + ':':6} {path}")


def unlock(command: Unlock) -> None:
    fault = "a run is still alive in this folder"
    require(not is_running(), STATE.absolute(), fault, "wait until it ends, or end it with Ctrl-C")
    locks = list(STATE.glob("locks/*"))
    for lock in locks:
        lock.unlink(missing_ok=True)
    cli.log.info("%s: %d locks removed", STATE.absolute(), len(locks))


def make_release(command: Run) -> None:
    """Run the workflow up to the release."""
    main(command.model_copy(update={"snakemake": [*command.snakemake, "make_release"]}))
    release = Path(read_config(command.config).results, "release")
    # A dry run makes none.
    if release.is_dir():
        print(f"release: {release}")


def main(command: Run) -> None:
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    config = read_config(command.config)
    check_alone()
    # Before Snakemake starts, so that the error is one line.
    for folder in (STATE, Path(config.results), config.cache):
        check_writable(folder)
    # Words that are not options; a value of an option counts, too, and only relaxes the check.
    has_targets = not all(word.startswith("-") for word in command.snakemake)
    is_local = not RUNS_ELSEWHERE.search(" ".join(command.snakemake))
    report_findings(command.config, is_local, has_targets)
    options = ["--cores", str(command.cores), "--configfile", str(command.config)]
    earlier_logs = set(STATE.glob("log/*.log"))
    # Targets first, because --configfile would read a file name after it as another config.
    # A dry run shows Snakemake's own list of jobs with the reason of each.
    if not DRY_RUN & {*command.snakemake}:
        options += ["--logger", "compclip"]
    run_snakemake([*SNAKEMAKE, *command.snakemake, *options])
    logs = set(STATE.glob("log/*.log")) - earlier_logs
    # A dry run has no log, and the results are those of an earlier run.
    if logs:
        print_results(config.results, min(logs))


if __name__ == "__main__":
    cli.run(main)
