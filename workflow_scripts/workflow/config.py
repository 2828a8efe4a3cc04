"""The config, typed: one model a section, each in its stage's ``config.py``; unknown keys are refused.

``python -m workflow_scripts.workflow.config --write`` writes ``schemas/config.schema.json``.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError, field_validator

from workflow_scripts.compun.config import CompunConfig
from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import write_text
from workflow_scripts.core.section import SECRET, Section
from workflow_scripts.dataset.config import DatasetConfig
from workflow_scripts.divergence.config import DivergenceConfig
from workflow_scripts.generate.config import GenerateConfig
from workflow_scripts.human.config import HumanConfig
from workflow_scripts.judge.config import JudgeConfig
from workflow_scripts.pairs.config import PairsConfig
from workflow_scripts.report.config import ReportConfig
from workflow_scripts.score.config import ScoreConfig
from workflow_scripts.specs.config import SpecsConfig
from workflow_scripts.split.config import SplitConfig
from workflow_scripts.workflow.dvc_config import DvcConfig

SCHEMA = ROOT / "schemas" / "config.schema.json"
# The name of a run among others: it stands before the names of its rules.
RUN = r"^[a-z][a-z0-9_]*$"
# Whose folder that of the joined table is.
ALL = "all runs together"
# Characters of a mapping that an error still shows.
SHOWN = 100


class Config(Section):
    """A run of compclip."""

    seed: int = Field(0, ge=0, description="every random choice derives from it")
    threads: int = Field(2, ge=1, description="threads of steps that compute floats; other counts, other bytes")
    results: str = Field("results", min_length=1, description="the folder of the artifacts")
    cache: str = Field(".cache", min_length=1, description="the folder of what steps keep between runs")
    container: str | None = Field(
        None, min_length=1, description="image of envs/Dockerfile, file or address, for --sdm conda apptainer"
    )
    compositions: list[str] = Field(["color", "shape"], min_length=1, description="names in lexicons/adjectives")
    dataset: DatasetConfig = Field(default_factory=DatasetConfig)
    pairs: PairsConfig = Field(default_factory=PairsConfig)
    split: SplitConfig = Field(default_factory=SplitConfig)
    divergence: DivergenceConfig = Field(default_factory=DivergenceConfig)
    judge: JudgeConfig = Field(default_factory=JudgeConfig)
    generate: GenerateConfig = Field(default_factory=GenerateConfig)
    score: ScoreConfig = Field(default_factory=ScoreConfig)
    report: ReportConfig = Field(default_factory=ReportConfig)
    specs: SpecsConfig | None = Field(None, description="null: no training with long captions")
    compun: CompunConfig | None = Field(None, description="null: no compound nouns")
    human: HumanConfig | None = Field(None, description="null: nobody is asked")
    dvc: DvcConfig = Field(default_factory=DvcConfig)
    runs: dict[Annotated[str, Field(pattern=RUN)], str | dict[str, Any]] | None = Field(
        None, min_length=1, description="several runs in one: each one's name, and its config, a file or what it says"
    )

    @field_validator("results", "cache")
    @classmethod
    def _local(cls, folder: str) -> str:
        if "://" in folder:
            raise ValueError("must be a local folder; results on object storage are profiles/s3's (docs/sharing.md)")
        return os.path.normpath(folder)

    @field_validator("compositions")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        known = sorted(p.stem for p in (ROOT / "lexicons" / "adjectives").glob("*.yaml"))
        for name in names:
            if name not in known:
                raise ValueError(f"no lexicons/adjectives/{name}.yaml; allowed: {', '.join(known)}")
        if len(set(names)) < len(names):
            raise ValueError("a composition stands twice")
        return names


def _fields(model: type[Section], location: tuple[str | int, ...]) -> list[str]:
    """The keys allowed at ``location``, as far as it can be followed."""
    current: Any = model
    for part in location:
        if isinstance(part, int) or not hasattr(current, "model_fields") or part not in current.model_fields:
            continue
        inner = current.model_fields[part].annotation
        options = [inner, *getattr(inner, "__args__", ())]
        current = next((o for o in options if isinstance(o, type) and issubclass(o, Section)), current)
    return sorted(current.model_fields)


def load_config(values: dict[str, Any], where: str = "config") -> Config:
    """Check ``values``, each run's too; a UserError names the first faulty key, its value and what is allowed."""
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        location = first["loc"]
        key = ".".join(str(part) for part in location if part != "[key]")
        if first["type"] == "extra_forbidden":
            allowed = ", ".join(_fields(Config, location[:-1]))
            raise UserError(f"{where}: {key}: unknown key; allowed: {allowed}") from error
        message = first["msg"].removeprefix("Value error, ")
        if location[0] == "runs" and len(location) == 3 and location[2] != "[key]":
            key, message = ".".join(location[:2]), "must be the file of a config, or what it says"
        if first["type"] == SECRET:
            raise UserError(f"{where}: {key}: {message}") from None
        given = repr(first["input"])
        # A whole section says nothing of the key.
        shown = "" if isinstance(first["input"], dict) and len(given) > SHOWN else f"; it is {given}"
        raise UserError(f"{where}: {key}: {message}{shown}") from error
    for name, own in run_values(values, where).items():
        load_config(own, f"{where}: runs.{name}")
    return config


def read_values(file: Path) -> dict[str, Any]:
    """What a config file says, unchecked."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{file}: no such config") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read as a config ({getattr(error, 'strerror', None) or error})") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    if values is not None and not isinstance(values, dict):
        raise UserError(f"{file}: must map keys to values")
    return values or {}


def overlay(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """``top`` laid over ``base``, key by key, as Snakemake lays a ``--configfile`` over another."""
    both = {
        k: overlay(base[k], v) if isinstance(v, dict) and isinstance(base.get(k), dict) else v for k, v in top.items()
    }
    return {**base, **both}


def run_values(values: dict[str, Any], where: str = "config") -> dict[str, dict[str, Any]]:
    """What each of the ``runs`` says, by name: its own, laid over what stands beside ``runs``; none without runs.

    A run that names no folder for its results gets one in the folder of all. Raises UserError where two share one.
    """
    shared = {key: value for key, value in values.items() if key != "runs"}
    results = shared.get("results", Config.model_fields["results"].default)
    folders = {os.path.realpath(str(results)): ALL}
    found = {}
    for name, said in (values.get("runs") or {}).items():
        own = read_values(Path(said)) if isinstance(said, str) else said
        if own.get("runs"):
            raise UserError(f"{where}: runs.{name}: has runs of its own: name them here")
        found[name] = overlay({**shared, "results": f"{results}/{name}"}, own)
        folder = os.path.realpath(str(found[name]["results"]))
        for other, whose in folders.items():
            both = os.path.commonpath([folder, other])
            # The folder of all may hold those of each.
            if folder == other or whose != ALL and both in (folder, other):
                how = "" if folder == other else "inside " if both == other else "around "
                raise UserError(
                    f"{where}: runs.{name}.results: {found[name]['results']} is {how}that of {whose}: give it another"
                )
        folders[folder] = f"runs.{name}"
    return found


def schema_text() -> str:
    """The JSON schema of the config, as it stands in ``schemas/``."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def main(options: argparse.Namespace) -> None:
    if options.write:
        write_text(schema_text(), SCHEMA)
    else:
        print(schema_text(), end="")


if __name__ == "__main__":
    parser = cli.parser(__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {SCHEMA.relative_to(ROOT)}")
    cli.run(main, parser)
