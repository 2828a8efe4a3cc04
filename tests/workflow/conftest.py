"""A copy of the project to run in: tests never touch the results or locks of the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest
import yaml
from filelock import FileLock

from benchmarks.digests import digests
from workflow_scripts.core.code import ROOT

# The whole chain, small: one composition, three generators, a trained judge.
SMALL = """
results: {results}
cache: {cache}
compositions: [color]
dataset: {{source: sketch, sketch: {{images: 240, species: 20, captions: 6}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
split: {{per_image: 2}}
divergence: {{shuffles: 2, subgraphs: {{nodes: 3, branching: 2, keep: 2000}}}}
judge:
  {{model: sketch, pretrained: null, trainable: ["*"], epochs: 2, captions: 2, batch: 64, lr: 0.005, train_on: half}}
generate: {{generators: [photographs, faithful, memorizer]}}
score: {{bootstrap: 200, candidates: 10}}
report: {{examples: 3}}
"""


class Project:
    """A checkout in its own folder, with the commands that a user runs there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def copy(self) -> Self:
        """Copy the files that git tracks or would track."""
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

    def fork(self, root: Path) -> "Project":
        """Copy everything, results included, to another folder."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Project(root)

    def config(self, name: str, results: str, cache: str = ".cache") -> str:
        (self.root / name).write_text(SMALL.format(results=results, cache=cache))
        return name

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def call(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy; if it fails, show what it printed."""
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def snakemake(self, config: str, *arguments: str, cores: int = 2, check: bool = True):
        return self.call("snakemake", "--cores", str(cores), "--configfile", config, *arguments, check=check)

    def planned(self, config: str, *targets: str) -> dict[str, int]:
        """Return the number of jobs of each rule that a dry run lists."""
        printed = self.snakemake(config, "--dry-run", "--quiet", "rules", "--", *targets).stdout
        if "Nothing to be done" in printed:
            return {}
        lines = [line.split() for line in printed.splitlines()]
        start = next(i for i, words in enumerate(lines) if words[:2] == ["job", "count"])
        rows = [words for words in lines[start + 2 :] if len(words) == 2 and words[1].isdigit()]
        return {rule: int(count) for rule, count in rows if rule not in ("total", "all")}

    def artifacts(self, results: str) -> dict[str, str]:
        """Return the hash of each artifact by its path in ``results``."""
        return dict(digests(self.root / results))


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Run the small config once, with two cores and cold caches; to be forked. Other test processes wait for it."""
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
    """Fork the small run."""
    return first_run.fork(tmp_path_factory.mktemp("project"))


class Repository(Project):
    """A project in git whose default run is the small one."""

    def git(self, *command: str) -> str:
        return self.call("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command).stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)


@pytest.fixture(scope="session")
def recorded(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Record the small run as the default one with DVC and commit it; to be cloned and forked."""
    made = Repository(first_run.fork(tmp_path_factory.mktemp("recorded")).root)
    config = yaml.safe_load((made.root / "small.yaml").read_text())
    (made.root / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    shutil.rmtree(made.root / "presets")
    made.call("git", "init", "--quiet")
    made.call("python", "-m", "workflow_scripts.workflow.make_dvc")
    made.call("python", "-m", "workflow_scripts.workflow.record")
    made.commit("run")
    return made
