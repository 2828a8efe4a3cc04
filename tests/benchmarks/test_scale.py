"""What the scale test measures with: its captions, its images, its exponents."""

import re
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from benchmarks import scale
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.tables import CAPTIONS, IMAGES, MANIFEST, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED


def archive(path: Path) -> Path:
    """Reed's captions of two birds."""
    with zipfile.ZipFile(path, "w") as file:
        for bird in range(2):
            texts = [f"bird {bird} has {color} wings" for color in ("red", "blue", "tan")]
            file.writestr(f"text/00{bird + 1}.Kind/Kind_{bird}.txt", "\n".join(texts))
    return path


def test_captions_are_distinct_and_as_many_as_asked(tmp_path: Path) -> None:
    scale.make_captions(333, None, tmp_path)
    captions, images = (
        read_table(tmp_path / "captions.parquet", CAPTIONS),
        read_table(tmp_path / "images.parquet", IMAGES),
    )
    assert len(captions) == captions["text"].nunique() == 333
    assert set(images["image_id"]) == set(captions["image_id"])
    scale.make_captions(333, None, tmp_path / "again")
    assert captions.equals(read_table(tmp_path / "again" / "captions.parquet", CAPTIONS))


def test_real_captions_are_joined_by_bird(tmp_path: Path) -> None:
    joined = list(scale.joined_captions(archive(tmp_path / "captions.zip")))[:2]
    assert joined[0] == [
        "bird 0 has red wings. bird 0 has blue wings.",
        "bird 0 has blue wings. bird 0 has tan wings.",
        "bird 0 has tan wings. bird 0 has red wings.",
    ]
    scale.make_captions(40, tmp_path / "captions.zip", tmp_path)
    texts = read_table(tmp_path / "captions.parquet", CAPTIONS)["text"]
    assert texts.str.contains(". bird 0", regex=False).any() and texts.nunique() == 40
    with pytest.raises(UserError, match="too few captions"):
        scale.make_captions(4000, tmp_path / "captions.zip", tmp_path)


def test_images_are_all_that_scoring_reads(tmp_path: Path) -> None:
    assert scale.make_images(3, 2, tmp_path) == 3 * 3 * scale.EACH * 2
    place = tmp_path / scale.DATASET / scale.COMPOSITION
    found = {
        name: read_table(place / f"{name}.parquet", schema)
        for name, schema in (("prompts", PROMPTS), ("manifest", MANIFEST), ("splits", SPLIT), ("swapped", SWAPPED))
    }
    assert found["prompts"].groupby("split").size().to_dict() == dict.fromkeys(scale.TESTS, 60)
    assert found["splits"].groupby("split").size().to_dict() == {"test_seen": 3, "test_unseen": 3}
    contents = {(tmp_path / path).read_bytes() for path in found["manifest"]["path"]}
    assert len(contents) == len(found["prompts"])


@pytest.mark.slow
def test_scoring_and_the_table_are_measured(tmp_path: Path) -> None:
    """With made-up embeddings in the cache, which the steps find."""
    rows = list(scale.image_steps(20, 2, tmp_path))
    assert [(row["step"], row["images"], row["pool"]) for row in rows] == [
        ("score_images", 1200, 200), ("make_table", 1200, 200),
    ]  # fmt: skip
    (cache,) = tmp_path.rglob("cache/embeddings/*.sqlite")
    with closing(sqlite3.connect(cache)) as db:
        # Of each image and distinct caption one: nothing was encoded.
        (kept,) = db.execute("SELECT count(*) FROM entries").fetchone()
    tables = [pd.read_parquet(cache.parents[2] / f"{name}.parquet") for name in ("prompts", "captions", "variants")]
    assert kept == 1200 + pd.concat(tables)["text"].nunique()


def test_growth_is_the_exponent_between_two_sizes() -> None:
    rows = [
        {"step": "audit", "captions": n, "seconds": 0, "processor": time, "memory": memory}
        for n, time, memory in ((400, 80.0, 300), (100, 5.0, 300), (1600, 320.0, 1200))
    ]
    found = scale.grown([*rows, {**rows[0], "step": "other"}], "captions")
    assert [row["captions"] for row in found] == [100, 400, 1600, 400]
    assert [row.get("growth") for row in found] == [
        None, {"processor": 2.0, "memory": 0.0}, {"processor": 1.0, "memory": 1.0}, None,
    ]  # fmt: skip
    assert scale.grown(found, "captions") == found


def test_a_step_is_measured_and_its_failure_reported(tmp_path: Path) -> None:
    numbers = dict.fromkeys([name for name in PAIRS.columns if name.endswith(("_start", "_end", "caption_id"))], 1)
    pairs = {"image_id": list("abcdefghij"), "adjective": "red", "noun": "bill", "relation": "adjacent", **numbers}
    write_table(pd.DataFrame(pairs), tmp_path / "pairs.parquet", PAIRS)
    lexicon = str(ROOT / "lexicons" / "adjectives" / "color.yaml")
    figures = scale.measure("pairs.rank_pairs", tmp_path, adjectives=lexicon, nouns=None)
    assert len(read_table(tmp_path / "ranking.parquet", RANKING)) == 1
    assert figures["memory"] > 20 and 0 < figures["processor"] < 60 and figures["seconds"] > 0
    with pytest.raises(UserError, match="pairs.rank_pairs failed"):
        scale.measure("pairs.rank_pairs", tmp_path / "nowhere", adjectives=lexicon, nouns=None)


def test_every_step_of_the_default_run_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [re.split(r"(?m)^ *rule ", file.read_text())[1:] for file in (ROOT / "rules").glob("*.smk")]
    of_step = [rule for of_file in rules for rule in of_file if "**step(" in rule]
    assert len(of_step) > 30 and all("benchmark:" in rule for rule in of_step)

    def run(command: list[str], **_: object) -> SimpleNamespace:
        assert "dataset={sketch: {images: 70}}" in command
        for number in (1, 2):  # jobs of a rule
            file = tmp_path / f"results/logs/pairs/{number}/rank_pairs.benchmark.tsv"
            file.parent.mkdir(parents=True)
            values = {"rule_name": "rank_pairs", "s": number, "cpu_time": 2 * number, "max_rss": 100 * number}
            pd.DataFrame([values | {"threads": 1, "resources": "{}"}]).to_csv(file, sep="\t", index=False)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(scale.subprocess, "run", run)
    expected = {"step": "rank_pairs", "images": 70, "seconds": 3.0, "processor": 6.0, "memory": 210}
    assert scale.run_part("run", 70, None, tmp_path) == [expected]
    monkeypatch.setattr(scale.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    with pytest.raises(UserError, match="70 images failed"):
        scale.run_part("run", 70, None, tmp_path)
