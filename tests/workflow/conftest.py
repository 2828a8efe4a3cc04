"""A copy of the project to run in: the tests never touch the checkout's own results or locks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from workflow_scripts.core.code import ROOT
from workflow_scripts.workflow.run import overlay

# Small, but the whole chain: every stage, every kind of score.
SMALL = """
results: {results}
cache: {cache}
dataset: {{source: sketch, sketch: {{images: 400, species: 25}}}}
split: {{per_image: 2}}
divergence: {{shuffles: 4, subgraphs: {{nodes: 3, branching: 2, keep: 2000}}}}
judge: {{epochs: 2, captions: 2, train_on: half}}
score: {{bootstrap: 200}}
report: {{examples: 3}}
"""


class Project:
    """A checkout in a folder of its own, with the commands that a user runs there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def copy(self) -> Project:
        """The files that git tracks or would track."""
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT, capture_output=True, check=True, text=True,
        ).stdout  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file() and not name.startswith("results/"):
                target = self.root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        return self

    def fork(self, root: Path) -> Project:
        """All of it, with what was run, in another folder."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Project(root)

    def config(self, name: str, results: str, cache: str = ".cache") -> str:
        (self.root / name).write_text(SMALL.format(results=results, cache=cache))
        return name

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def call(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run in the copy; on failure, show what it printed."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def snakemake(self, config: str, *arguments: str, cores: int = 2, check: bool = True):
        return self.call("snakemake", "--cores", str(cores), "--configfile", config, *arguments, check=check)

    def planned(self, config: str) -> dict[str, int]:
        """Rule to number of jobs that a dry run would do."""
        printed = self.snakemake(config, "--dry-run", "--quiet", "rules").stdout
        if "Nothing to be done" in printed:
            return {}
        lines = [line.split() for line in printed.splitlines()]
        start = next(i for i, words in enumerate(lines) if words[:2] == ["job", "count"])
        rows = [words for words in lines[start + 2 :] if len(words) == 2 and words[1].isdigit()]
        return {rule: int(count) for rule, count in rows if rule not in ("total", "all")}

    def artifacts(self, results: str) -> dict[str, str]:
        """Every artifact's hash, by its path in ``results``.

        Logs hold times, presets are other runs, hidden files are the tools' own.
        """
        folder = self.root / results
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
            and path.relative_to(folder).parts[0] not in ("logs", "presets")
            and not path.name.startswith(".")
        }


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The one run of the small config, with two cores and cold caches, by whichever process comes first: to be forked.

    With pytest-xdist, the others wait for it.
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
def project(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which the small config has run once."""
    return first_run.fork(tmp_path_factory.mktemp("project"))


class Repository(Project):
    """A project in git whose default run is the small config's."""

    def git(self, *command: str) -> str:
        return self.call("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command).stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture(scope="session")
def recorded(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The run as the default one, recorded by DVC and committed: to be cloned and forked."""
    made = Repository(first_run.fork(tmp_path_factory.mktemp("recorded")).root)
    whole = overlay(*(yaml.safe_load((made.root / name).read_text()) for name in ("config.yaml", "small.yaml")))
    (made.root / "config.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    shutil.rmtree(made.root / "presets")
    made.call("git", "init", "--quiet")
    made.call("python", "-m", "workflow_scripts.workflow.make_dvc")
    made.call("python", "-m", "workflow_scripts.workflow.record")
    made.commit("run")
    return made
