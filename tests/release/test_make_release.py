"""A release has what others need, described for people and tools; damaged or foreign ones are refused."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from compclip.core.digests import sha256
from compclip.core.errors import UserError
from compclip.io import read_json
from compclip.release.check import RELEASE_FILE
from compclip.release.released import Release, open_release
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.release.conftest import write_release


def test_every_file_is_listed_by_its_digest(release: Release, results: Path) -> None:
    files = {path.relative_to(release.folder).as_posix() for path in release.folder.rglob("*") if path.is_file()}
    assert files == {*release.contents.files, RELEASE_FILE}
    assert all(sha256(release.folder / name) == digest for name, digest in release.contents.files.items())
    assert not [name for name in files if name.endswith((".pkl", ".png")) or "/." in name]
    part = release.part(COMPOSITION)
    assert part.about.generators == [*GENERATORS] and part.about.candidates == 10
    prompts = pd.read_parquet(results / DATASET / COMPOSITION / "prompts.parquet")
    assert part.tables["prompts"].equals(prompts)
    adjusted = part.adjustment("0")
    assert adjusted is not None and adjusted.multiple == part.summary("0")["adjustment"]


def test_equal_runs_give_equal_releases(release: Release, results: Path, tmp_path: Path) -> None:
    again = open_release(write_release(results, tmp_path / "again", images=True, license="mit"))
    archive = again.folder / "images.zip"
    described = {"README.md", "croissant.json"}
    files = {name: of for name, of in again.contents.files.items() if name not in {*described, "images.zip"}}
    assert files == {name: of for name, of in release.contents.files.items() if name not in described}
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assert names == again.images["path"].tolist()
        assert opened.read(names[0]) == (results / names[0]).read_bytes()


def test_front_matter_names_files_that_exist(release: Release) -> None:
    card = (release.folder / "README.md").read_text()
    about = yaml.safe_load(card.split("---\n")[1])
    assert [of["config_name"] for of in about["configs"] if of.get("default")] == ["prompts"]
    for config in about["configs"]:
        for file in config["data_files"]:
            assert len(pd.read_parquet(release.folder / file["path"])) > 0
            assert file["split"].isidentifier() and file["split"] != "all"


def test_croissant_describes_each_file_and_column(release: Release) -> None:
    content = read_json(release.folder / "croissant.json")
    files = {of["@id"]: of for of in content["distribution"]}
    assert {*files} == {*release.contents.files} - {"croissant.json"}
    assert all(of["sha256"] == release.contents.files[name] for name, of in files.items())
    for records in content["recordSet"]:
        for field in records["field"]:
            source = field["source"]
            table = pd.read_parquet(release.folder / source["fileObject"]["@id"])
            assert source["extract"]["column"] in table


def test_croissant_is_valid(release: Release) -> None:
    croissant = pytest.importorskip("mlcroissant", reason="optional: mlcroissant is not installed")
    dataset = croissant.Dataset(str(release.folder / "croissant.json"))
    assert not dataset.metadata.issues.errors
    assert next(iter(dataset.records(f"{COMPOSITION}-prompts")))


def test_datasets_loads_the_folder(release: Release) -> None:
    datasets = pytest.importorskip("datasets", reason="optional: datasets is not installed")
    loaded = datasets.load_dataset(str(release.folder))
    assert loaded[COMPOSITION].num_rows == len(release.part(COMPOSITION).tables["prompts"])


def damaged(folder: Path) -> None:
    file = folder / "judges/0/weights.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def replaced(old: str, new: str) -> Any:
    """Return a change of the text of release.json."""

    def change(folder: Path) -> None:
        text = (folder / RELEASE_FILE).read_text()
        (folder / RELEASE_FILE).write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (damaged, r"weights.safetensors: damaged: its sha256 .*; download the release again"),
        (
            lambda folder: (folder / COMPOSITION / "prompts.parquet").unlink(),
            r"prompts.parquet: missing; download the release again",
        ),
        (replaced('"schema_version": 1', '"schema_version": 2'), r"version 2 of the schema of a release, expected 1; "),
        (replaced('"name": "sketch"', '"name": null'), r"release.json: name: Input should be a valid string; download"),
        (replaced('"two_towers"', '"generative"'), r"judges.0.kind: Input should be 'two_towers'; "),
        (lambda folder: (folder / RELEASE_FILE).write_text("{"), r"release.json: not valid JSON"),
        (lambda folder: (folder / RELEASE_FILE).unlink(), r"no release.json, so it is not a release; "),
    ],
)
def test_other_folders_are_refused(release: Release, tmp_path: Path, change: Any, message: str) -> None:
    folder = Path(shutil.copytree(release.folder, tmp_path / "copy"))
    change(folder)
    with pytest.raises(UserError, match=message):
        open_release(folder)


def test_release_file_is_json_for_other_tools(release: Release) -> None:
    content = json.loads((release.folder / RELEASE_FILE).read_text())
    assert content["compositions"][COMPOSITION]["judges"]["0"]["kind"] == "two_towers"
    assert content["scoring"]["ties"] == "random" and content["schema_version"] == 1
