"""Mutate changed modules and count the mutants that their stage's tests kill: ``make mutate``.

cosmic-ray makes the mutants in a copy of the checkout. Of each module a seeded sample is tried,
each by the quick tests of its stage. Survivors are printed with their difference; fewer than
``TARGET`` percent killed is an error.
"""

import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome
from pydantic import Field
from pydantic_settings import CliPositionalArg

from compclip.core.errors import UserError
from compclip.core.identity.code import PACKAGE, ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from tests.project import Project

TARGET = 95  # percent
CONFIG = """
[cosmic-ray]
module-path = "{module}"
timeout = {timeout}
excluded-modules = []
test-command = "{command}"
[cosmic-ray.distributor]
name = "local"
"""


class Mutate(Command):
    """Mutate modules and count the mutants that their stage's tests kill."""

    modules: CliPositionalArg[list[Path]] = Field(
        [], description="files; default: those that changed since --base"
    )
    base: str = Field("HEAD~1", description="revision of git")
    most: int = Field(20, ge=1, description="mutants of a module")
    timeout: float = Field(300, gt=0, description="seconds after which a mutant counts as killed")
    seed: int = 0


def changed(base: str) -> list[Path]:
    """Return the modules of the product that differ from a revision."""
    names = subprocess.run(
        ["git", "diff", "--name-only", "--diff-filter=d", base, "--", f"{PACKAGE}/*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [Path(name) for name in names if not name.endswith("__init__.py")]


def mutate(project: Project, module: Path, options: Mutate) -> tuple[int, list[str]]:
    """Return how many mutants of a module were tried, and the differences of those that
    survived.
    """
    tests = f"tests/{module.parts[1]}"
    command = shlex.join(
        [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            tests,
        ]
    )
    session, config = project.root / "session.sqlite", project.root / "session.toml"
    session.unlink(missing_ok=True)
    config.write_text(CONFIG.format(module=module, timeout=options.timeout, command=command))
    project.call("cosmic-ray", "init", config.name, session.name)
    with use_db(session, WorkDB.Mode.open) as database:
        items = list(database.work_items)
        chosen = random.Random(f"{options.seed} {module}").sample(
            items, min(options.most, len(items))
        )
        database.clear()
        database.add_work_items(chosen)
    project.call("cosmic-ray", "exec", config.name, session.name)
    with use_db(session, WorkDB.Mode.open) as database:
        results = [result for _, result in database.results]
    return len(results), [
        str(result.diff) for result in results if result.test_outcome == TestOutcome.SURVIVED
    ]


def main(command: Mutate) -> None:
    tried, survivors = 0, list[str]()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        project = Project(Path(folder)).copy()
        for module in command.modules or changed(command.base):
            count, survived = mutate(project, module, command)
            tried, survivors = tried + count, survivors + survived
            cli.log.info("%s: %d of %d mutants killed", module, count - len(survived), count)
            if survived:
                print("\n".join(survived), flush=True)
    killed = tried - len(survivors)
    cli.log.info("%d of %d mutants killed", killed, tried)
    if 100 * killed < TARGET * tried:
        raise UserError(
            f"{len(survivors)} of {tried} mutants survived; test what the differences above change"
        )


if __name__ == "__main__":
    cli.run(main)
