"""The page of judged images: every scored image is listed once, with what the scores say of it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report.pages import Page
from workflow_scripts.core import tables
from workflow_scripts.core.io import read_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.report import list_entries
from workflow_scripts.report.steps import ListEntries


class Embedder:
    """Every image is nearest to the captions that are longest."""

    def images(self, items: Sequence[Any]) -> np.ndarray:
        return np.ones((len(items), 1), np.float32)

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[len(text)] for text in texts], np.float32)


@contextmanager
def opened(*_: Any) -> Iterator[Embedder]:
    yield Embedder()


@pytest.fixture(scope="module")
def listed(results: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("entries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(list_entries, "open_embedder", opened)
        list_entries.main(
            ListEntries(
                results=results, dataset=DATASET, compositions=[COMPOSITION], generators=list(GENERATORS), judge="0",
                train_on="half", page=folder / "entries.html", data=folder / "entries",
            )
        )  # fmt: skip
    text = (folder / "entries" / f"{COMPOSITION}.js").read_text()
    return folder, json.loads(text.removeprefix(f'received("{COMPOSITION}",').removesuffix(");\n"))


def test_every_scored_image_is_listed_with_its_rank(listed: tuple[Path, dict[str, Any]], results: Path) -> None:
    layout, (_, data) = Layout(results, DATASET, COMPOSITION), listed
    for name, columns in data["generators"].items():
        files = [layout.scores(name, "0") / f"{split}.parquet" for split in tables.TESTS]
        scored = {file.stem: read_table(file, tables.SCORES) for file in files if file.is_file()}
        assert len(columns["prompt"]) == sum(map(len, scored.values())) == len(columns["nearest"])
        assert sum(columns["hit"]) == sum(table["hit"].sum() for table in scored.values())
        assert all((results / (columns["prefix"] + path)).is_file() for path in columns["path"])
        assert all(1 <= rank <= 100 for rank in columns["rank"])


def test_the_nearest_caption_is_of_another_class_and_changes_are_marked(listed: tuple[Path, dict[str, Any]]) -> None:
    _, data = listed
    prompts = data["prompts"]
    for columns in data["generators"].values():
        for prompt, nearest in zip(columns["prompt"], columns["nearest"], strict=True):
            assert "".join(part[0] for part in prompts["text"][prompt]) != data["texts"][nearest]
    for split, text in zip(prompts["split"], prompts["text"], strict=True):
        assert {kind for part in text for kind in part[1:]} == ({split} if split != "seen" else set())


def test_the_page_reads_only_its_data(listed: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = listed
    page = Page((folder / "entries.html").read_text().replace("<script>", "<style>").replace("</script>", "</style>"))
    assert [attrs["name"] for tag, attrs in page.tags if tag == "select"] == [
        "composition", "generator", "split", "pair", "hit"
    ]  # fmt: skip
    assert not any(tag in ("link", "iframe") or attrs.get("src") for tag, attrs in page.tags)


@pytest.mark.parametrize(
    ("holders", "nearest"), [(("b", "c"), "shared"), (("c", "b"), "shared"), (("b", "b"), "other")]
)
def test_a_caption_that_another_class_shares_may_be_the_nearest(holders: tuple[str, str], nearest: str) -> None:
    """The image is of the class of b; only a caption that all its holders have in common with that class is its own."""
    classes = pd.Series({"a": "x", "b": "x", "c": "y"})
    pool = pd.DataFrame({"image_id": [*holders, "c"], "text": ["shared", "shared", "other"]})
    vectors = {"shared": [1.0], "other": [0.5]}
    given = SimpleNamespace(entries=pd.DataFrame({"image_id": ["a"], "text": ["own"]}), pool=pool)
    shown = list_entries.nearest_wrong(given, classes, lambda texts: np.array([vectors[t] for t in texts]), np.eye(1))
    assert shown == [nearest]
