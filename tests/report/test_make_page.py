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
from compclip.report.skipped import in_pairs
from tests.project import COMPOSITION, DATASET, GENERATORS
from tests.report.pages import Page, place_of, write_page
from tests.split.worlds import said
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
    """Links are relative to the page, whose folder contains what they name."""
    ids = {attrs.get("id") for _, attrs in page.tags}
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


def pairs_of(text: str) -> list[str]:
    """Return the gallery's part of each pair."""
    (gallery,) = re.findall(r'<div class="gallery">(.*?)</details>\s*</div>', text, re.DOTALL)
    return gallery.split("<details")[1:]


def test_the_page_alone_shows_the_first_figure(text: str) -> None:
    assert text.count('src="data:image/svg') == 1


def test_the_page_alone_shows_the_first_pair(text: str) -> None:
    first, *others = pairs_of(text)
    assert first.count("<img") == first.count('src="data:image/jpeg') > 0
    assert "data:image" not in "".join(others)


def test_an_image_that_is_gone_is_not_embedded(copied: Path, text: str) -> None:
    generated = place_of(copied) / "generated"
    shutil.rmtree(generated / "faithful" / "images")
    first, *_ = pairs_of(write_page(copied))
    before = pairs_of(text)[0]
    assert 0 < first.count("data:image/jpeg") < before.count("data:image/jpeg")
    assert first.count("<img") == before.count("<img")


def test_the_same_results_give_the_same_bytes(copied: Path, text: str) -> None:
    assert write_page(copied) == text


def test_captions_are_escaped(copied: Path) -> None:
    # The hostile caption is the only swapped one, so that it must be listed.
    file = place_of(copied) / "swapped.parquet"
    prompts = read_table(place_of(copied) / "prompts.parquet", tables.PROMPTS)
    asked = prompts[prompts["split"] == "test_swapped"].head(1)[["image_id", "caption_id"]]
    swapped = read_table(file, tables.SWAPPED).merge(asked)
    write_table(
        swapped.assign(**{c: swapped[c] + HOSTILE for c in ("text", "swapped_text")}),
        file,
        tables.SWAPPED,
    )
    hostile = prompts.assign(text=prompts["text"] + HOSTILE)
    write_table(hostile, place_of(copied) / "prompts.parquet", tables.PROMPTS)
    raw = write_page(copied)
    assert pairs_of(raw)[0].count("&lt;script&gt;") >= 2, "in texts and alternative texts"
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


def test_the_page_starts_with_the_verdicts(page: Page) -> None:
    """Before the verdicts are links and names; with each the first mention of a generator says what
    it does.
    """
    before, after = page.text.split("Does it compose?")[-1].split("Gallery:")
    assert before.index("photographs") < len(f"{DATASET} {COMPOSITION} photographs ")
    assert "faithful reference draws what <b>" in before
    assert "photographs the judges recognize " in after, "the small judge recognizes no pair"


def test_frames_agree_with_marks(page: Page) -> None:
    for kind, sign in (("hit", "✓"), ("miss", "✗")):
        frames = [attrs for attrs in page.by_class("picture") if attrs in page.by_class(kind)]
        assert len(frames) == len(re.findall(f"{sign} \\d of 1 judge", page.text))


def test_each_held_out_split_has_marks(page: Page) -> None:
    assert len(page.by_class("swapped")) > 6
    assert len(page.by_class("unseen")) > 6


def test_divergences_are_listed(page: Page) -> None:
    assert len([row for row in page.rows if row[0].startswith(("atoms:", "compounds:"))]) == 8


def test_figures_have_alternative_texts(page: Page) -> None:
    figures = [attrs for tag, attrs in page.tags if tag == "img" and "svg" in (attrs["src"] or "")]
    assert all(attrs["alt"] for attrs in figures)


@pytest.mark.parametrize("judges, says", [(1, "Below each image: whether the judge"), (3, "how")])
def test_the_gallery_says_of_how_many_judges_its_marks_are(
    copied: Path, judges: int, says: str
) -> None:
    names = [str(judge) for judge in range(judges)]
    for name in names[1:]:
        shutil.copytree(place_of(copied) / "scores" / "0", place_of(copied) / "scores" / name)
        shutil.copy(
            place_of(copied) / "bias" / "0.json", place_of(copied) / "bias" / f"{name}.json"
        )
        folder = place_of(copied).parent / "judges"
        shutil.copytree(folder / "0", folder / name)
    page = Page(write_page(copied, judges=names))
    assert says in page.text
    assert ("how many of the 3 judges choose" in page.text) == (judges == 3)
    assert f"of {judges} judge" in page.text


def test_recognized_pairs_are_first(copied: Path) -> None:
    """Pairs with an estimate in pairs.csv are recognized."""
    table = pd.read_csv(copied / "pairs.csv")
    last = pairs_of(write_page(copied))[-1]
    (name,) = re.findall("<bdi>(.*?)</bdi>", last)
    drawn = table["drawn"].where(table["pair"] != name.replace(" ", "_"), 0.5)
    table.assign(drawn=drawn).to_csv(copied / "pairs.csv", index=False)
    first, second, *_ = pairs_of(write_page(copied))
    assert f"<bdi>{name}</bdi>" in first and "not recognized" not in first
    assert "not recognized" in second


def test_missing_pictures_are_named(copied: Path) -> None:
    for name in ("faithful", "memorizer"):
        file = place_of(copied) / "generated" / name / "manifest.parquet"
        manifest = read_table(file, tables.MANIFEST)
        write_table(manifest.assign(path=None, status="missing"), file, tables.MANIFEST)
        for scores in (place_of(copied) / "scores" / "0" / name).glob("*.parquet"):
            write_table(read_table(scores, tables.SCORES).head(0), scores, tables.SCORES)
    page = Page(write_page(copied))
    gaps = len(page.by_class("gap"))
    assert 0 < gaps < len(page.by_class("picture"))
    assert gaps == len(re.findall("missing(?= |$)", page.text.split("What was skipped")[0]))


def test_a_single_generator_has_a_page(copied: Path) -> None:
    """Photographs, without anchors: there are no images of swapped captions."""
    anchors = dict.fromkeys(tables.TESTS, (None, None))
    text = write_page(copied, generators=["photographs"], anchors=anchors, reference=None)
    for pair in pairs_of(text):
        assert "swapped, drawn" not in pair
        assert pair.count("<figure") == pair.count("<b>photographs</b>") > 0


@pytest.mark.parametrize("examples", [1, 5])
def test_the_gallery_has_the_number_of_pairs_asked_for(copied: Path, examples: int) -> None:
    assert len(pairs_of(write_page(copied, examples=examples))) == examples


def test_without_examples_there_is_no_gallery(copied: Path) -> None:
    assert "gallery" not in re.sub(
        "<style>.*?</style>", "", write_page(copied, examples=0), flags=re.S
    )


def test_unmeasured_divergence_is_named(copied: Path, page: Page) -> None:
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
    for part in ("R-precision", "Blind control", "Candidates", "Gallery"):
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
    for split, pair, text in zip(prompts["split"], prompts["pair"], prompts["text"], strict=True):
        assert {kind for part in text for kind in part[1:]} == ({split} if pair else set())
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


def test_counts_pairs_that_disputes_keep_from_the_ranking() -> None:
    rows = ["a red wing", "b red wing", "a blue bill", "b blue bill", "a red bill"]
    pairs = said(*rows, "b red bill disputed", "a blue wing")
    ranking = pd.DataFrame(
        {"adjective": ["red", "blue"], "noun": ["wing", "bill"], "count": [2, 2]}
    )
    line = list(in_pairs(2, pairs, ranking))[-1]
    # red_bill; blue_wing is rare.
    assert (line.count, line.total) == (1, 3)
