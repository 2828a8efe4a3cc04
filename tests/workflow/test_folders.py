"""The workflow from another working folder, and as a module of another Snakefile."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_interface_common.exceptions import WorkflowError

from compclip.core.errors import UserError
from compclip.core.identity import digests
from compclip.core.identity.code import ROOT
from tests.graph import Job, jobs
from tests.project import SMALL, Project
from workflow_scripts.places import adjective_lexicons, lexicon_file, users_or_shipped
from workflow_scripts.workflow.config import read_config
from workflow_scripts.workflow.versions import check_versions

MODULE = """
configfile: "mine.yaml"


module compclip:
    snakefile:
        "{root}/Snakefile"
    config:
        config


use rule * from compclip
"""
# A file of the checkout that settings name.
TABLE = "compclip/clip/towers/efficientnet_lite2.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a config."""
    path = tmp_path / "work"
    path.mkdir()
    monkeypatch.chdir(path)
    (path / "mine.yaml").write_text(SMALL.format(results="results", cache=".cache"))
    return path


def compared(planned: list[Job]) -> list[tuple]:
    """Return what decides the artifacts of jobs, with paths of the checkout as in the checkout."""
    return [
        (
            job.rule,
            [path.removeprefix(f"{ROOT}/") for path in job.inputs],
            job.outputs,
            job.log,
            job.script,
            job.params.replace(f"{ROOT}/", ""),
        )
        for job in planned
    ]


def test_a_folder_and_a_module_plan_the_jobs_of_the_checkout(folder: Path) -> None:
    (folder / "Snakefile").write_text(MODULE.format(root=ROOT))
    weights = folder.with_name("w.pt")
    weights.touch()
    small = (folder / "mine.yaml").read_text()
    tower = f"train_on: half, tower: {{model: resnet18, weights: {weights}, rename: {TABLE}}}"
    (folder / "mine.yaml").write_text(small.replace("train_on: half", tower))
    elsewhere = compared(jobs(folder / "mine.yaml", folder=folder))
    as_module = compared(jobs(None, folder / "Snakefile", folder))
    os.chdir(ROOT)
    in_checkout = compared(jobs(folder / "mine.yaml"))
    assert len(in_checkout) > 30
    assert elsewhere == in_checkout
    assert as_module == in_checkout


def test_the_documented_snakefile_runs_each_data_set(folder: Path) -> None:
    page = (ROOT / "docs" / "captions.md").read_text()
    documented = page.partition("## Several data sets")[2].split("```")[1].removeprefix("python")
    (folder / "Snakefile").write_text(documented.replace("/path/to/compclip", str(ROOT)))
    outputs = {path for job in jobs(None, folder / "Snakefile", folder) for path in job.outputs}
    assert {"results/birds/report.html", "results/mine/report.html"} <= outputs


def test_lexicons_of_the_working_folder_are_used_beside_those_of_the_checkout(folder: Path) -> None:
    (folder / "lexicons" / "adjectives").mkdir(parents=True)
    (folder / "lexicons" / "adjectives" / "age.yaml").write_text("ancient: []\n")
    (folder / "mine.yaml").write_text("{base: config.yaml, compositions: [color, age]}")
    assert read_config(Path("mine.yaml")).compositions == ["color", "age"]
    assert lexicon_file("adjectives", "age") == "lexicons/adjectives/age.yaml"
    shared = [f"{ROOT}/lexicons/adjectives/{name}.yaml" for name in ("color", "shape")]
    assert adjective_lexicons("age") == [*shared, "lexicons/adjectives/age.yaml"]


def test_a_lexicon_with_the_name_of_a_shared_one_is_refused(folder: Path) -> None:
    (folder / "lexicons" / "adjectives").mkdir(parents=True)
    (folder / "lexicons" / "adjectives" / "color.yaml").write_text("mauve: []\n")
    with pytest.raises(UserError, match="color.yaml: has the name of a lexicon of compclip"):
        read_config(Path("mine.yaml"))


def test_a_users_file_comes_before_that_of_the_checkout(folder: Path) -> None:
    assert users_or_shipped("config.yaml") == f"{ROOT}/config.yaml"
    (folder / "config.yaml").touch()
    assert users_or_shipped("config.yaml") == "config.yaml"
    assert users_or_shipped("absent.csv") == "absent.csv"


@pytest.mark.parametrize(
    ("base", "written", "seed"),
    [
        ("first.yaml", {"sub/first.yaml": 1, "first.yaml": 2}, 1),
        ("first.yaml", {"first.yaml": 2}, 2),
        ("config.yaml", {"config.yaml": 3}, 3),
        ("config.yaml", {}, 0),
    ],
)
def test_a_base_is_beside_its_config_or_in_the_working_folder_or_in_the_checkout(
    folder: Path, base: str, written: dict[str, int], seed: int
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "mine.yaml").write_text(f"base: {base}")
    for name, value in written.items():
        (folder / name).write_text(f"{{base: config.yaml, seed: {value}}}")
    assert read_config(Path("sub/mine.yaml")).seed == seed


def test_a_preset_keeps_its_base_where_the_working_folder_has_one_of_that_name(
    folder: Path,
) -> None:
    (folder / "config.yaml").write_text("{base: presets/mcd.yaml, seed: 7}")
    config = read_config(Path("config.yaml"))
    assert (config.seed, config.split.method) == (7, "divergence")


@pytest.mark.parametrize(
    ("snakefile", "message"),
    [
        ("", "config.yaml: no such config file; write one, or name yours with --configfile"),
        (
            MODULE.partition("    config:")[0],
            "module compclip: its config is empty; write config: ",
        ),
        (
            MODULE.replace('configfile: "mine.yaml"', ""),
            'module compclip: its config is empty; .* with configfile: "mine.yaml" above',
        ),
        (MODULE, "module compclip: results: expected|module compclip: judge.epoch: unknown key"),
    ],
)
def test_what_is_wrong_with_a_config_is_one_line(
    folder: Path, snakefile: str, message: str
) -> None:
    path = ROOT / "Snakefile"
    if snakefile:
        path = folder / "Snakefile"
        (folder / "mine.yaml").write_text("{judge: {epoch: 1}}")
        path.write_text(f"{snakefile.format(root=ROOT)}\nuse rule * from compclip as c_*\n")
    with pytest.raises(WorkflowError, match=message) as error:
        jobs(None, path, folder)
    assert "\n" not in str(error.value)


def test_modules_with_one_folder_of_results_are_refused(folder: Path) -> None:
    second = MODULE.replace("compclip:", "second:").replace("from compclip", "from second as s_*")
    text = MODULE + second
    (folder / "Snakefile").write_text(text.format(root=ROOT))
    message = "module second: results: results is also the folder of module compclip; give each"
    with pytest.raises(WorkflowError, match=message):
        jobs(None, folder / "Snakefile", folder)


# Without the optional stages.
QUICK = SMALL.partition("specs:")[0].replace("epochs: 2", "epochs: 1")


def content(root: Path) -> dict[str, tuple[int, int]]:
    """Return the time and size of each file and folder."""
    status = {str(path.relative_to(root)): path.lstat() for path in sorted(root.rglob("*"))}
    return {name: (entry.st_mtime_ns, entry.st_size) for name, entry in status.items()}


@pytest.mark.slow
def test_a_folder_and_a_module_make_the_bytes_of_the_checkout_and_write_nothing_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's own caches lie beside its modules.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    checkout = Project(tmp_path / "checkout").copy()
    elsewhere = Project(tmp_path / "elsewhere")
    importer = Project(tmp_path / "importer")
    for project in (checkout, elsewhere, importer):
        project.root.mkdir(exist_ok=True)
        (project.root / "mine.yaml").write_text(QUICK.format(results="results", cache=".cache"))
    (importer.root / "Snakefile").write_text(MODULE.format(root=checkout.root))

    checkout.snakemake("mine.yaml")
    before = content(checkout.root)
    directory = ("--snakefile", f"{checkout.root}/Snakefile", "--directory", str(elsewhere.root))
    elsewhere.snakemake(f"{elsewhere.root}/mine.yaml", *directory)
    importer.call("snakemake", "--cores", "2")

    artifacts = checkout.artifacts("results")
    assert "report.html" in artifacts
    assert elsewhere.artifacts("results") == artifacts
    assert importer.artifacts("results") == artifacts
    assert content(checkout.root) == before


class Kept:
    """A workflow whose one job Snakemake does not run again."""

    def __init__(self, code: str, output: Path) -> None:
        params = SimpleNamespace(code=code)
        job = SimpleNamespace(params=params, output=[str(output)])
        self.dag = SimpleNamespace(jobs=[job], needrun=lambda job: False)


def test_artifacts_of_another_version_are_refused(tmp_path: Path) -> None:
    artifact = tmp_path / "captions.parquet"
    artifact.touch()
    digests.record(artifact, "dataset.load_dataset", "a")
    check_versions(Kept("a", artifact))
    with pytest.raises(WorkflowError, match="made by another version of compclip; choose"):
        check_versions(Kept("b", artifact))


def test_a_damaged_record_ends_a_run_with_what_to_make_again(tmp_path: Path) -> None:
    artifact = tmp_path / "captions.parquet"
    artifact.touch()
    digests.record(artifact, "dataset.load_dataset", "a")
    digests.record_file(artifact).write_bytes(b"{bad")
    with pytest.raises(WorkflowError, match=f"make it again: --forcerun {artifact}$"):
        check_versions(Kept("a", artifact))
