"""The page has every number with its interval, fetches and runs nothing, and escapes; the other
lists every image.
"""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from compclip.core import tables
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import empty_table, read_table, write_table
from compclip.plot.labels import SPLIT_NAMES, interval, percent
from compclip.report.measures import COMPARED
from compclip.report.rows import main_rows
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report.pages import Page, place_of, write_page
from workflow_scripts.layout import Layout

HOSTILE = "<script>alert(1)</script> & <b>"


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(results, tmp_path / "results"))


@pytest.fixture(scope="module")
def text(results: Path) -> str:
    return write_page(results)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_models_of_other_training_data_are_marked(copied: Path) -> None:
    page = Page(write_page(copied, training_data={"memorizer": "other"}))
    names = [row[0] for row in page.rows if row and row[0].startswith("memorizer ")]
    assert {"memorizer trained on other data"} < {*names}
    assert page.by_class("mark")


def test_only_artifacts_are_fetched_and_nothing_runs(page: Page, text: str, results: Path) -> None:
    """Links are relative to the page, whose folder contains what they name; the first figure is
    part of the page.
    """
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert sum((attrs.get("src") or "").startswith("data:image/") for _, attrs in page.tags) == 1
    for tag, attrs in page.tags:
        assert tag not in ("script", "link", "iframe", "object", "base", "form")
        assert not any(name.startswith("on") for name in attrs)
        assert "srcset" not in attrs and "data" not in attrs
        for link in filter(None, (attrs.get("src"), attrs.get("href"))):
            if link.startswith("#"):
                assert link[1:] in ids
            elif not link.startswith("data:image/"):
                assert (results / unquote(link.partition("#")[0])).is_file(), link
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style and "url(" not in style[1] and "@import" not in style[1]


def test_captions_are_escaped(copied: Path) -> None:
    # The hostile caption is the only swapped one, so that it must be among the examples.
    file = place_of(copied) / "swapped.parquet"
    prompts = read_table(place_of(copied) / "prompts.parquet", tables.PROMPTS)
    asked = prompts[prompts["split"] == "test_swapped"].head(1)[["image_id", "caption_id"]]
    swapped = read_table(file, tables.SWAPPED).merge(asked)
    write_table(
        swapped.assign(**{c: swapped[c] + HOSTILE for c in ("text", "swapped_text")}),
        file,
        tables.SWAPPED,
    )
    raw = write_page(copied)
    assert (
        Page(raw).text.count(HOSTILE) >= 2
        and "<script>" not in raw
        and "draws what &lt;b&gt;" in raw
    )


def test_every_number_has_its_interval(page: Page, results: Path) -> None:
    """Scores by both judges, their narrower intervals, and differences, as the tables have them."""
    rows = [row for row in page.rows if row[0] in GENERATORS]
    scores, comparisons = (
        pd.read_csv(results / f"{name}.csv") for name in ("scores", "comparisons")
    )
    main = pd.concat([main_rows(scores), main_rows(scores, oracle=True)])
    for row in main[main["measure"].isin(COMPARED)].itertuples():
        cell, head = (
            f"{percent(row.value)}{interval(row.new_pairs_low, row.new_pairs_high)}",
            list(SPLIT_NAMES).index(row.split),
        )
        assert any(
            shown[0] == row.generator and shown[head] == cell for shown in rows if len(shown) >= 4
        ), cell
    for row in comparisons[comparisons["kind"] == "generators"].itertuples():
        cell = f"{percent(row.difference)}{interval(row.new_pairs_low, row.new_pairs_high)}"
        assert any(shown[0] == f"{row.a} − {row.b}" and cell in shown for shown in page.rows), cell
    bias = read_json(place_of(results) / "bias" / "0.json")["images"]["real"]
    (line,) = [row[1:] for row in page.rows if row[0] == "0, real images"]
    for cell, name in zip(line, ("seen", "matched", "held_out", "difference"), strict=False):
        of = bias[name]
        value = of["value"] if name == "difference" else of["accuracy"]
        assert cell == f"{percent(value)}{interval(of['same_pairs_low'], of['same_pairs_high'])}"
    assert (
        "train_on: half" in page.text
        and "half of the images of each test split, which are not judged" in page.text
    )
    assert (
        read_json(place_of(results).parent / "judges" / "0" / "manifest.json")["judge_hash"]
        in page.text
    )
    lines = {row[0]: row[1:] for row in page.rows}
    captions = read_table(results / DATASET / "captions.parquet", tables.CAPTIONS)
    prompts = read_json(place_of(results) / "prompts.json")["splits"]["test_unseen"]
    assert lines["captions without a ranked pair"][1] == f"{len(captions):,}"
    skipped = lines["images of unseen without a file or used for training the judge"]
    assert skipped[:2] == [str(prompts["images_not_judged"]), str(prompts["images_in_split"])]


def test_verdicts_swaps_hits_divergences_and_figures(page: Page) -> None:
    """Before the verdicts are links and names; with each the first mention of a generator says what
    it does.
    """
    examples = page.text.split("Drawn by seed")[1]
    hits = [attrs for attrs in page.by_class("picture") if "hit" in (attrs["class"] or "").split()]
    assert len(hits) == page.text.count("✓ hit") + page.text.count("✓ right")
    assert (
        len(page.by_class("swapped")) > 12
        and len(page.by_class("unseen")) > 6
        and "real image" in examples
    )
    before, after = page.text.split("Does it compose?")[-1].split("Swapped prompts, as")
    assert before.index("photographs") < len(f"{DATASET} {COMPOSITION} photographs ")
    assert "faithful reference draws what <b>" in before
    assert "photographs the judges recognize " in after, "the small judge recognizes no pair"
    assert len([row for row in page.rows if row[0].startswith(("atoms:", "compounds:"))]) == 8
    figures = [attrs for tag, attrs in page.tags if tag == "img" and "svg" in (attrs["src"] or "")]
    assert all(attrs["alt"] for attrs in figures)


def test_missing_pictures_are_named(copied: Path) -> None:
    for name in ("faithful", "memorizer"):
        file = place_of(copied) / "generated" / name / "manifest.parquet"
        manifest = read_table(file, tables.MANIFEST)
        write_table(manifest.assign(path=None, status="missing"), file, tables.MANIFEST)
        for scores in (place_of(copied) / "scores" / "0" / name).glob("*.parquet"):
            write_table(read_table(scores, tables.SCORES).head(0), scores, tables.SCORES)
    page = Page(write_page(copied))
    made = [
        attrs for attrs in page.by_class("picture") if "real" not in (attrs["class"] or "").split()
    ]
    gaps = len(page.by_class("gap"))
    assert 0 < gaps < len(made) and gaps == len(
        re.findall("missing(?= |$)", page.text.split("What was skipped")[0])
    )


def test_the_number_of_examples_and_a_run_without_divergences(copied: Path, page: Page) -> None:
    for examples in (0, 1, 5):
        shown = Page(write_page(copied, examples=examples)).by_class("example")
        assert len(shown) == examples + examples // 2
    write_table(
        empty_table(tables.DIVERGENCE), place_of(copied) / "divergence.parquet", tables.DIVERGENCE
    )
    assert "Divergence was not measured" in Page(write_page(copied, examples=1)).text
    assert "Divergence was not measured" not in page.text


@pytest.mark.parametrize("configured", [["sd", "folder"], []])
def test_without_scores_the_page_shows_the_splits(copied: Path, configured: list[str]) -> None:
    """A run of captions alone has no judge, no generated images, no scores and no figures of
    them.
    """
    for name in ("generated", "scores", "bias", "../judges"):
        shutil.rmtree(place_of(copied) / name)
    for name in ("composed", "scores", "pairs", "loss"):
        (copied / "figures" / f"{DATASET}_{COMPOSITION}_{name}.svg").unlink()
    shutil.rmtree(copied / DATASET / "images")
    (copied / "scores.parquet").unlink()
    generators = {"generators": [{"name": name, "kind": name} for name in configured]}
    page = Page(write_page(copied, generators=[], judges=[], generate=generators))
    assert f"Compositional splits of {DATASET}" in page.text
    reason = (
        "No generators are configured (generate.generators), so the judge (</pre><script>) "
        "is ignored."
    )
    if configured:
        reason = (
            "has no images, so the judge (</pre><script>) and the generators (sd, folder) "
            "are ignored; to score"
        )
    assert reason in page.text
    for part in (
        "Ranking of",
        "Audit: 0 violations",
        "swapped captions, drawn by seed",
        "How far test is from train",
    ):
        assert part in page.text
    for part in ("R-precision", "Blind control", "Candidates", "Examples"):
        assert part not in page.text


def test_every_scored_image_is_listed_with_its_rank(results: Path) -> None:
    received = (results / "entries" / f"{COMPOSITION}.js").read_text()
    data = json.loads(received.removeprefix(f'received("{COMPOSITION}",').removesuffix(");\n"))
    layout = Layout(results, DATASET, COMPOSITION)
    assert data["generators"].keys() == set(GENERATORS)
    for name, columns in data["generators"].items():
        files = [layout.scores(name, "0") / f"{split}.parquet" for split in tables.TESTS]
        scored = {file.stem: read_table(file, tables.SCORES) for file in files if file.is_file()}
        assert len(columns["prompt"]) == sum(map(len, scored.values()))
        assert sum(columns["hits"]) == sum(table["hit"].sum() for table in scored.values())
        right = sum((table["adjective_first"] > 0.5).sum() for table in scored.values())
        assert sum(number == 1 for number in columns["right"]) == right > 0
        assert columns["right"].count(-1) == sum(
            (table["adjectives"] == 1).sum() for table in scored.values()
        )
        assert all((results / (columns["prefix"] + path)).is_file() for path in columns["path"])
        assert all(1 <= rank <= 100 for rank in columns["rank"])
    prompts = data["prompts"]
    for split, text in zip(prompts["split"], prompts["text"], strict=True):
        assert {kind for part in text for kind in part[1:]} == (
            {split} if split != "seen" else set()
        )
    page = Page(
        (results / "entries.html")
        .read_text()
        .replace("<script>", "<style>")
        .replace("</script>", "</style>")
    )
    assert [attrs["name"] for tag, attrs in page.tags if tag == "select"] == [
        "composition",
        "generator",
        "split",
        "pair",
        "hit",
        "right",
    ]
    assert not any(tag in ("link", "iframe") or attrs.get("src") for tag, attrs in page.tags)
