"""A copy of the project to run in: tests never touch the results or locks of the checkout.

Fixture ``first_run`` is such a copy with one small finished run of the whole chain: the world that
tests read.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from compclip.core.identity.code import ROOT

DATASET, COMPOSITION, GENERATORS = (
    "sketch",
    "color",
    ("photographs", "faithful", "memorizer", "usual"),
)
# The whole chain, small: one composition, three generators, a trained judge; long captions, drawn
# compounds, people.
SMALL = """
results: {results}
cache: {cache}
compositions: [color]
dataset: {{source: sketch, sketch: {{images: 240, species: 20, captions: 6}}}}
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
split: {{per_image: 2, heldout: {{fraction: 0.1, window: [25, 75], prefer_swappable: false}}}}
divergence: {{shuffles: 2, subgraphs: {{nodes: 3, keep: 2000}}}}
judge:
  {{seeds: [0], model: sketch, pretrained: null, trainable: ["*"],
    epochs: 2, captions: 2, batch: 64, lr: 0.005, train_on: half}}
generate: {{generators: [photographs, faithful, memorizer, usual]}}
score: {{candidates: 10}}
report: {{examples: 3}}
specs:
  test: 40
  base: {{model: sketch_text, epochs: 1, batch: 50, train_on: train}}
  training: {{epochs: 1, batch: 20, accumulation: 2, lr: 0.001, warmup: 0.2, precision: fp32}}
compun: {{drawn: {{tested: 24, things: 240}}}}
human: {{}}
"""


def artifact_digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each artifact's path below ``folder`` and the sha256 of its content; logs contain
    times.
    """
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if (
            file.is_file()
            and parts[0] != "logs"
            and not any(part.startswith(".") for part in parts)
        ):
            yield "/".join(parts), hashlib.sha256(file.read_bytes()).hexdigest()


class Project:
    """A checkout in its own folder, with the commands that a user runs there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def copy(self) -> Self:
        """Copy the files that git tracks or would track."""
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
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
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def call(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy; if it fails, show what it printed."""
        done = subprocess.run(
            command, cwd=self.root, env=self.environment, capture_output=True, text=True
        )
        if check and done.returncode:
            raise AssertionError(
                f"{' '.join(command)} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def snakemake(self, config: str, *arguments: str, cores: int = 2, check: bool = True):
        return self.call(
            "snakemake", "--cores", str(cores), "--configfile", config, *arguments, check=check
        )

    def make(self, config: str, *arguments: str, cores: int = 1, check: bool = True):
        """Do what `make run` does."""
        run = (
            "python",
            "-m",
            "workflow_scripts.workflow.run",
            "--config",
            config,
            "--cores",
            str(cores),
        )
        return self.call(*run, *arguments, check=check)

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
        return dict(artifact_digests(self.root / results))
