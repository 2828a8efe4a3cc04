"""Object storage by Snakemake's plugin: inputs read from it, results written to it, the same table."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from snakemake_storage_plugin_s3 import StorageProviderSettings

from tests.project import Project
from tests.workflow.servers import BUCKET, CREDENTIALS, Storage, credentials, object_storage
from workflow_scripts.core.errors import UserError
from workflow_scripts.workflow.storage import check_store

pytestmark = pytest.mark.slow

CONFIG = """
results: {results}
cache: .cache_storage
dataset: {{source: table, name: mine, table: {{file: "{file}", images: "{images}"}}}}
compositions: [color]
pairs: {{nouns: birds, selection: {{min_count: 1}}}}
split: {{per_image: 1}}
divergence: {{shuffles: 2, subgraphs: null}}
judge: {{model: sketch, trainable: ["*"], epochs: 1, captions: 1}}
generate: {{generators: [{{name: theirs, kind: folder, path: "{made}"}}]}}
score: {{bootstrap: 100}}
report: {{examples: 1}}
"""
INPUTS = {"file": "captions.csv", "images": "photos", "made": "made"}


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with credentials(), object_storage() as server:
        yield server


@pytest.fixture(scope="module")
def inputs(first_run: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy of the project with a table of captions, images, and a generator's images, taken from the shared run."""
    project = Project(tmp_path_factory.mktemp("storage")).copy()
    made = first_run.root / "results" / "sketch"
    captions = pd.read_parquet(made / "captions.parquet").rename(columns={"text": "caption"})
    captions.to_csv(project.root / INPUTS["file"], index=False)
    hidden = shutil.ignore_patterns(".*")
    shutil.copytree(made / "images", project.root / INPUTS["images"], ignore=hidden)
    drawn = made / "color" / "generated" / "faithful" / "images" / "sketch"
    shutil.copytree(drawn, project.root / INPUTS["made"] / "mine", ignore=hidden)
    return project


def upload(storage: Storage, place: Path, prefix: str) -> None:
    for file in [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]:
        storage.client.upload_file(str(file), BUCKET, f"{prefix}/{file.relative_to(place.parent).as_posix()}")


def on_storage(
    project: Project, storage: Storage, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return project.call(
        "snakemake", "--workflow-profile", "profiles/s3", "--cores", "2", "--configfile", "remote.yaml",
        "--default-storage-prefix", f"s3://{BUCKET}/run", "--storage-s3-endpoint-url", storage.address, *arguments,
        check=check,
    )  # fmt: skip


def test_inputs_and_results_on_object_storage_give_the_same_bytes(inputs: Project, storage: Storage) -> None:
    (inputs.root / "local.yaml").write_text(CONFIG.format(results="local", **INPUTS))
    inputs.snakemake("local.yaml")
    there = {key: f"s3://{BUCKET}/inputs/{name}" for key, name in INPUTS.items()}
    (inputs.root / "remote.yaml").write_text(CONFIG.format(results="results", **there))
    for name in INPUTS.values():
        place = inputs.root / name
        upload(storage, place, "inputs")
        place.rename(place.with_name(f"gone_{name}"))

    on_storage(inputs, storage)
    assert not (inputs.root / "results").exists()
    artifacts = inputs.artifacts("local")
    for name in ("table.csv", "comparisons.csv", "metrics.json", "table.md", "mine/color/splits.csv"):
        assert storage.read(f"run/results/{name}") == (inputs.root / "local" / name).read_bytes(), name
    stored = {key.removeprefix("run/results/") for key in storage.keys("run/results/")}
    assert {name for name in stored if not name.startswith("logs/") and "/." not in name} == set(artifacts)
    assert any(name.startswith("logs/") for name in stored)
    assert "Nothing to be done" in on_storage(inputs, storage, "--dry-run").stdout

    # What is lost there is made again; an input that changes there runs again.
    before = storage.read("run/results/table.csv")
    storage.client.delete_object(Bucket=BUCKET, Key="run/results/table.csv")
    assert "make_table" in on_storage(inputs, storage, "--dry-run", "--quiet", "rules").stdout
    on_storage(inputs, storage, "--", "results/table.csv")
    assert storage.read("run/results/table.csv") == before
    captions = storage.read("inputs/captions.csv")
    storage.client.put_object(Bucket=BUCKET, Key="inputs/captions.csv", Body=captions)
    assert "load_dataset" in on_storage(inputs, storage, "--dry-run", "--quiet", "rules").stdout


def test_what_is_not_there_is_said(inputs: Project, storage: Storage) -> None:
    lost = {key: f"s3://{BUCKET}/nowhere/{name}" for key, name in INPUTS.items()}
    (inputs.root / "remote.yaml").write_text(CONFIG.format(results="other", **lost))
    failed = on_storage(inputs, storage, "--dry-run", check=False)
    # Of a dry run all is on standard output.
    assert failed.returncode and "Missing input files for rule load_dataset" in failed.stdout
    assert f"s3://{BUCKET}/nowhere/captions.csv" in failed.stdout


@pytest.mark.parametrize(
    ("prefix", "server", "message"),
    [
        ("s3://BUCKET/FOLDER", None, "default-storage-prefix: s3://BUCKET/FOLDER: name your own bucket and folder"),
        ("s3://nobodys/run", None, "default-storage-prefix: s3://nobodys/run: there is no bucket nobodys at http://"),
        (f"s3://{BUCKET}/run", "http://127.0.0.1:9", "object storage: Could not connect to the endpoint URL"),
    ],
)
def test_a_store_that_is_not_there_is_said_at_once(storage: Storage, prefix: str, server: str | None, message: str):
    provider = SimpleNamespace(s3c=None, settings=StorageProviderSettings(endpoint_url=server or storage.address))
    with pytest.raises(UserError) as error:
        check_store(provider, prefix)
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
    check_store(
        SimpleNamespace(s3c=None, settings=StorageProviderSettings(endpoint_url=storage.address)), f"s3://{BUCKET}"
    )


def test_without_credentials_it_is_one_line(inputs: Project, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (inputs.root / "remote.yaml").write_text(CONFIG.format(results="other", **INPUTS))
    failed = on_storage(inputs, storage, "--dry-run", check=False)
    said = [line for line in (failed.stdout + failed.stderr).splitlines() if "Unable to locate credentials" in line]
    assert failed.returncode and len(said) == 1
