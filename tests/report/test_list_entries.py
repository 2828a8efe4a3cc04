"""The page of judged images: every scored image is listed once, with what the scores say of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from compclip.core import tables
from compclip.io import read_table
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report.pages import Page
from workflow_scripts.layout import Layout


@pytest.fixture(scope="module")
def data(results: Path) -> dict[str, Any]:
    text = (results / "entries" / f"{COMPOSITION}.js").read_text()
    return json.loads(text.removeprefix(f'received("{COMPOSITION}",').removesuffix(");\n"))


def test_every_scored_image_is_listed_with_its_rank_and_changes_marked(data: dict[str, Any], results: Path) -> None:
    layout = Layout(results, DATASET, COMPOSITION)
    assert data["generators"].keys() == set(GENERATORS)
    for name, columns in data["generators"].items():
        files = [layout.scores(name, "0") / f"{split}.parquet" for split in tables.TESTS]
        scored = {file.stem: read_table(file, tables.SCORES) for file in files if file.is_file()}
        assert len(columns["prompt"]) == sum(map(len, scored.values()))
        assert sum(columns["hits"]) == sum(table["hit"].sum() for table in scored.values())
        right = sum((table["adjective_first"] > 0.5).sum() for table in scored.values())
        assert sum(number == 1 for number in columns["right"]) == right > 0
        assert columns["right"].count(-1) == sum((table["adjectives"] == 1).sum() for table in scored.values())
        assert all((results / (columns["prefix"] + path)).is_file() for path in columns["path"])
        assert all(1 <= rank <= 100 for rank in columns["rank"])
    prompts = data["prompts"]
    for split, text in zip(prompts["split"], prompts["text"], strict=True):
        assert {kind for part in text for kind in part[1:]} == ({split} if split != "seen" else set())


def test_the_page_reads_only_its_data(results: Path) -> None:
    page = Page((results / "entries.html").read_text().replace("<script>", "<style>").replace("</script>", "</style>"))
    assert [attrs["name"] for tag, attrs in page.tags if tag == "select"] == [
        "composition", "generator", "split", "pair", "hit", "right"
    ]  # fmt: skip
    assert not any(tag in ("link", "iframe") or attrs.get("src") for tag, attrs in page.tags)
