"""A copy of the project to run in: the tests never touch the checkout's own results or locks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workflow_scripts.common.code import ROOT

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
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A copy in which the small config has run once, with two cores and cold caches."""
    copy = Project(tmp_path_factory.mktemp("project")).copy()
    copy.snakemake(copy.config("small.yaml", "results"))
    yield copy
