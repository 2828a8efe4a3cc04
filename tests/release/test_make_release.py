"""A release has what others need, described for people and tools; damaged or foreign ones are
refused.
"""

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from benchmarks import forge
from compclip.core.artifacts.files import read_json, write_json
from compclip.core.errors import UserError, one_line
from compclip.core.identity.digests import digests, sha256
from compclip.release.open_release import RELEASE_FILE, Release, open_release
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.release.conftest import write_release


def test_every_file_is_listed_by_its_digest(release: Release, results: Path) -> None:
    files = {
        path.relative_to(release.folder).as_posix()
        for path in release.folder.rglob("*")
        if path.is_file()
    }
    assert files == {*release.contents.files, RELEASE_FILE}
    assert all(
        sha256(release.folder / name) == digest for name, digest in release.contents.files.items()
    )
    assert not [name for name in files if name.endswith((".pkl", ".png")) or "/." in name]
    part = release.part(COMPOSITION)
    assert part.contents.generators == [*GENERATORS] and part.contents.candidates == 10
    prompts = pd.read_parquet(results / DATASET / COMPOSITION / "prompts.parquet")
    assert part.tables["prompts"].equals(prompts)
    adjusted = part.adjustment("0")
    assert adjusted is not None and adjusted.multiple == part.summary("0")["adjustment"]


def test_equal_runs_give_equal_releases(release: Release, results: Path, tmp_path: Path) -> None:
    again = open_release(write_release(results, tmp_path / "again", images=True, license="mit"))
    archive = again.folder / "images.zip"
    described = {"README.md", "croissant.json"}
    files = {
        name: of
        for name, of in again.contents.files.items()
        if name not in {*described, "images.zip"}
    }
    assert files == {
        name: of for name, of in release.contents.files.items() if name not in described
    }
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


def test_the_card_says_what_becomes_of_missing_images(release: Release) -> None:
    card = (release.folder / "README.md").read_text()
    assert "Missing and broken images are refused; with `--missing`, they count as wrong." in card


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
        (
            replaced('"schema_version": 3', '"schema_version": 2'),
            r"release.json: made by compclip \d+\.\S+: version 2 of the schema of a release, "
            "expected 3; make the release again, ",
        ),
        (
            lambda folder: (folder / RELEASE_FILE).write_text('{"schema_version": 4}'),
            r"made by a later compclip: version 4 of the schema of a release, expected 3; ",
        ),
        (
            replaced('"name": "sketch"', '"name": null'),
            r"release.json: name: Input should be a valid string; download",
        ),
        (
            replaced('"two_towers"', '"generative"'),
            r"judges.0.kind: Input should be 'two_towers'; ",
        ),
        (lambda folder: (folder / RELEASE_FILE).write_text("{"), r"release.json: not valid JSON"),
        (
            lambda folder: (folder / RELEASE_FILE).unlink(),
            r"no release.json, so it is not a release; ",
        ),
    ],
)
def test_other_folders_are_refused(
    release: Release, tmp_path: Path, change: Any, message: str
) -> None:
    folder = Path(shutil.copytree(release.folder, tmp_path / "copy"))
    change(folder)
    with pytest.raises(UserError, match=message):
        open_release(folder)


def put(name: str, *path: str | int, value: Any) -> Any:
    """Return a change of a value in a JSON file, after which release.json has the digests of all
    files.
    """

    def change(folder: Path) -> None:
        content = read_json(folder / name)
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        if path:
            inner[path[-1]] = value
        (folder / name).write_text(json.dumps(content if path else value))
        if name != RELEASE_FILE:
            sign(folder)

    return change


def sign(folder: Path) -> None:
    content = read_json(folder / RELEASE_FILE)
    files = {name: digest for name, digest in digests(folder).items() if name != RELEASE_FILE}
    write_json(content | {"files": files}, folder / RELEASE_FILE)


def list_file(name: str) -> Any:
    """Return a change after which release.json lists a file that is not in the folder."""

    def change(folder: Path) -> None:
        content = read_json(folder / RELEASE_FILE)
        content["files"][name] = "0" * 64
        write_json(content, folder / RELEASE_FILE)

    return change


def exchanged(name: str, make: Any) -> Any:
    """Return a change that puts something else at the place of a file."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


def with_column(name: str, column: str, value: Any) -> Any:
    """Return a change of a column of a table; release.json has the new digests."""

    def change(folder: Path) -> None:
        table = pd.read_parquet(folder / name)
        table.assign(**{column: value}).to_parquet(folder / name)
        sign(folder)

    return change


def bomb(folder: Path) -> None:
    """Write captions of 2.5 GB into a file of some kB."""
    forge.bomb(folder)
    assert (folder / "captions.parquet").stat().st_size < 50_000
    sign(folder)


def run_lengths(folder: Path) -> None:
    """Write a billion rows into a file of some kB."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 22, np.int32)), pa.array(["a"]))
    table = pa.table({"image_id": column, "text": column})
    with pq.ParquetWriter(folder / "captions.parquet", table.schema) as writer:
        for _ in range(4):
            writer.write_table(table)
    sign(folder)


ABOUT = ("compositions", COMPOSITION)
ADJUSTMENT = f"{COMPOSITION}/adjustments/0.json"
BIAS = f"{COMPOSITION}/bias/0.json"
SUMMARY = f"{COMPOSITION}/scores/0/faithful/summary.json"
SCORED = f"{COMPOSITION}/scores/0/faithful/test_unseen.parquet"
CONTROL = ("scores", 0)
SPOILED: dict[str, tuple[Any, str]] = {
    "no files": (
        put(RELEASE_FILE, "files", value={}),
        "README.md: not listed in release.json; download",
    ),
    "unlisted file": (
        lambda folder: (folder / "more.txt").write_text("x"),
        "more.txt: not listed in release.json",
    ),
    "unlisted file of a judge": (
        lambda folder: (folder / "judges/0/merges.json").write_text("{}"),
        "judges/0/merges.json: not listed",
    ),
    "absolute path": (list_file("/etc/hostname"), "'/etc/hostname' is not a plain relative path"),
    "path outside": (list_file("../x"), "'../x' is not a plain relative path"),
    "path outside and back": (list_file("color/../../x"), "is not a plain relative path"),
    "drive": (list_file("C:x"), "'C:x' is not a plain relative path"),
    "alternate stream": (list_file("README.md:x"), "is not a plain relative path"),
    "backslash": (list_file("color\\x"), "is not a plain relative path"),
    "empty part": (list_file("color//x"), "is not a plain relative path"),
    "NUL": (list_file("a\0b"), "is not a plain relative path"),
    "line break": (list_file("a\nb"), "is not a plain relative path"),
    "overlong path": (list_file("x" * 5000), "String should have at most 500 characters"),
    "digest": (
        put(RELEASE_FILE, "files", "README.md", value="0" * 63),
        "files.README.md: String should match pattern",
    ),
    "sparse": (
        exchanged("README.md", lambda file: (file.touch(), os.truncate(file, 1 << 40))),
        "README.md: 1,099,511,627,776 bytes, more than the limit of",
    ),
    "one anchor": (
        put(RELEASE_FILE, *ABOUT, "anchors", value={"test_unseen": [None, None]}),
        "anchors: Dictionary",
    ),
    "pipe": (exchanged("README.md", os.mkfifo), "README.md: not a regular file"),
    "device": (
        exchanged("README.md", lambda file: file.symlink_to("/dev/zero")),
        "README.md: not a regular file",
    ),
    "link": (
        exchanged("README.md", lambda file: file.symlink_to("release.json")),
        "README.md: not a regular file",
    ),
    "linked folder": (
        lambda folder: (folder / "more").symlink_to("/etc"),
        "more: not a regular file",
    ),
    "release.json is a pipe": (
        exchanged(RELEASE_FILE, os.mkfifo),
        "no release.json, so it is not a release",
    ),
    "dictionary that expands": (
        bomb,
        "captions.parquet: unpacks to over 200 times its size; do not trust it",
    ),
    "run lengths that expand": (
        run_lengths,
        "captions.parquet: unpacks to over 200 times its size",
    ),
    "a table without bytes": (
        lambda folder: ((folder / "captions.parquet").write_bytes(b""), sign(folder)),
        "captions.parquet: not a readable Parquet file",
    ),
    "free key": (put(RELEASE_FILE, "more", value=1), "more: Extra inputs are not permitted"),
    "batch 0": (
        put(RELEASE_FILE, "batch", value=0),
        "batch: Input should be greater than or equal to 1",
    ),
    "batch 1e12": (
        put(RELEASE_FILE, "batch", value=10**12),
        "batch: Input should be less than or equal to 65536",
    ),
    "batch as text": (
        put(RELEASE_FILE, "batch", value="256"),
        "batch: Input should be a valid integer",
    ),
    "threads": (
        put(RELEASE_FILE, "threads", value=-1),
        "threads: Input should be greater than or equal to 1",
    ),
    "seed": (put(RELEASE_FILE, "seed", value=True), "seed: Input should be a valid integer"),
    "NaN": (
        put(RELEASE_FILE, "max_bias", value=float("nan")),
        "release.json: Out of range float values",
    ),
    "schema version": (
        put(RELEASE_FILE, "schema_version", value=True),
        "version True of the schema of a release",
    ),
    "scoring as text": (
        put(RELEASE_FILE, "scoring", "candidates", value="10"),
        "scoring.candidates: Input should be",
    ),
    "chunks": (put(RELEASE_FILE, "scoring", "chunks", value=10**8), "at most 10,000 chunks"),
    "set twice": (
        put(RELEASE_FILE, "scoring", "distractors", value=["original"] * 2),
        "a value is listed twice",
    ),
    "candidates 0": (
        put(RELEASE_FILE, *ABOUT, "candidates", value=0),
        "candidates: Input should be greater than",
    ),
    "too many candidates": (
        put(RELEASE_FILE, *ABOUT, "candidates", value=9999),
        "9999 candidates need 9998 captions",
    ),
    "judge in /": (
        put(RELEASE_FILE, *ABOUT, "judges", "0", "folder", value="/"),
        "'/' is not a plain relative path",
    ),
    "judge elsewhere": (
        put(RELEASE_FILE, *ABOUT, "judges", "0", "folder", value="color"),
        "color/model.json: missing; download the release again",
    ),
    "unknown judge": (
        put(
            RELEASE_FILE,
            *ABOUT,
            "judges",
            value={"7": {"kind": "two_towers", "folder": "judges/0", "hash": "x"}},
        ),
        "color/bias/7.json: not a regular file",
    ),
    "no generators": (
        put(RELEASE_FILE, *ABOUT, "generators", value=[]),
        "generators: List should have at least 1",
    ),
    "unknown generator": (
        put(
            RELEASE_FILE,
            *ABOUT,
            "generators",
            value=["photographs", "faithful", "memorizer", "usual", "x"],
        ),
        "color/scores/0/x/summary.json: not a regular file",
    ),
    "generator twice": (
        put(RELEASE_FILE, *ABOUT, "generators", value=["faithful", "memorizer", "faithful"]),
        "generators: a value is listed twice",
    ),
    "unknown reference": (
        put(RELEASE_FILE, "reference", value="x"),
        "a reference or anchor is not one of its",
    ),
    "unknown anchor": (
        put(RELEASE_FILE, *ABOUT, "anchors", "test_unseen", value=["x", None]),
        "a reference or anchor is not one of its generators",
    ),
    "name of two lines": (
        put(RELEASE_FILE, "name", value="a\nb"),
        "release.json: name: String should match pattern",
    ),
    "overlong name": (
        put(RELEASE_FILE, "name", value="a" * 101),
        "name: String should have at most 100 characters",
    ),
    "license of two lines": (
        put(RELEASE_FILE, "license", value="a\nb"),
        "license: expected one line of printable",
    ),
    "bias of another kind": (put(BIAS, value=[]), "bias/0.json: : Input should be"),
    "bias above 1": (
        put(BIAS, "images", "real", "seen", "accuracy", value=17),
        "images.real.seen.accuracy: Input should be less than or equal to 1",
    ),
    "summary of another kind": (
        put(SUMMARY, value={}),
        "faithful/summary.json: dataset: Field required",
    ),
    "blind control 17": (
        put(SUMMARY, *CONTROL, "blind_control", value=17),
        "scores.0.blind_control: Input should be less than or equal to 1",
    ),
    "blind control NaN": (
        put(SUMMARY, *CONTROL, "blind_control", value=float("nan")),
        "faithful/summary.json: Out of range float values",
    ),
    "hubness -5": (
        put(SUMMARY, *CONTROL, "hubness", value=-5),
        "scores.0.hubness: Input should be greater",
    ),
    "set outside": (
        put(SUMMARY, *CONTROL, "set", value="../../x"),
        "other sets than the release scores",
    ),
    "a summary's set twice": (
        lambda folder: put(SUMMARY, "scores", value=read_json(folder / SUMMARY)["scores"][:1] * 2)(
            folder
        ),
        "other sets than the release scores",
    ),
    "adjustment": (put(ADJUSTMENT, value=[]), "adjustments/0.json: "),
    "a short mean": (
        lambda folder: put(ADJUSTMENT, "mean", value=read_json(folder / ADJUSTMENT)["mean"][1:])(
            folder
        ),
        "adjustments/0.json: mean has not 128 numbers",
    ),
    "variants": (
        put(f"{COMPOSITION}/variants.json", "splits", value={"train": {}}),
        "splits.train",
    ),
    "held-out pairs": (
        put(f"{COMPOSITION}/heldout.json", "pairs", value=[]),
        "heldout.json: no list of pairs",
    ),
    "similarity 1e308": (
        with_column(SCORED, "similarity", 1e308),
        "impossible similarities or chances",
    ),
    "p_beaten": (
        with_column(SCORED, "p_beaten", -0.01),
        "column p_beaten: row 0: expected 0 to 1, got",
    ),
    "both chances": (with_column(SCORED, "p_tied", 0.9), "impossible similarities or chances"),
    "hit": (with_column(SCORED, "hit", None), "column hit: expected bool"),
    "entries of other images": (with_column(SCORED, "draw", 7), "row 0: unknown "),
    "prompts without text": (
        with_column(f"{COMPOSITION}/prompts.parquet", "text", " "),
        "no prompts, or a blank one",
    ),
    "prompts of no caption": (
        with_column(f"{COMPOSITION}/prompts.parquet", "caption_id", 77),
        "prompts.parquet: row",
    ),
    "images outside": (
        lambda folder: with_column(
            f"{COMPOSITION}/prompts.parquet",
            "file_name",
            "/etc/" + pd.read_parquet(folder / COMPOSITION / "prompts.parquet")["file_name"],
        )(folder),
        "not usable as a path inside a folder",
    ),
}


@pytest.mark.parametrize("change, message", SPOILED.values(), ids=[*SPOILED])
def test_spoiled_releases_are_refused_in_one_line(
    release: Release, tmp_path: Path, change: Any, message: str
) -> None:
    folder = Path(shutil.copytree(release.folder, tmp_path / "copy"))
    change(folder)
    with pytest.raises(UserError) as error:
        open_release(folder)
    assert message in str(error.value) and "\n" not in one_line(error.value)


def test_what_tools_put_into_the_folder_is_not_read(release: Release, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(release.folder, tmp_path / "copy"))
    (folder / ".gitattributes").write_text("*.parquet filter=lfs")
    (folder / ".cache" / "huggingface").mkdir(parents=True)
    (folder / ".cache" / "huggingface" / "CACHEDIR.TAG").write_text("x")
    assert open_release(folder).digest == release.digest


def test_release_file_is_json_for_other_tools(release: Release) -> None:
    content = json.loads((release.folder / RELEASE_FILE).read_text())
    assert content["compositions"][COMPOSITION]["judges"]["0"]["kind"] == "two_towers"
    assert content["scoring"]["ties"] == "random" and content["schema_version"] == 3
