"""The page: one file with everything, which fetches nothing, runs no script and escapes all captions."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from tests.made_up import make_results, write_fid
from tests.report.pages import Page, write_page
from workflow_scripts.core import tables
from workflow_scripts.core.io import empty_table, read_table, write_table
from workflow_scripts.report.page_scores import protocol_line


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    """Results that a test may change."""
    return Path(shutil.copytree(results, tmp_path / "results"))


@pytest.fixture(scope="module")
def text(results: Path) -> str:
    return write_page(results)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_same_data_same_bytes(results: Path, text: str) -> None:
    assert write_page(results) == text


def test_only_artifacts_are_fetched_and_nothing_runs(page: Page, text: str, results: Path) -> None:
    """Links are relative to the page, whose folder contains what they name; the first figure is part of the page."""
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
                of_others = link.startswith("entries.html#") or link.endswith("_examples.pdf")
                assert of_others or (results / unquote(link)).is_file(), link
    style = re.search(r"<style>(.*?)</style>", text, re.S)
    assert style and "url(" not in style[1] and "@import" not in style[1]


def test_captions_are_escaped(copied: Path) -> None:
    # The hostile caption is the only swapped one, so that it must be among the examples.
    place = copied / "tiny" / "color"
    swapped = read_table(place / "swapped.parquet", tables.SWAPPED)
    hostile = swapped["text"].str.startswith("<script>")
    assert hostile.sum() == 1
    write_table(swapped[hostile], place / "swapped.parquet", tables.SWAPPED)
    raw = write_page(copied)
    page = Page(raw)
    assert "<script>alert(1)</script> a bird with red wing & <b>blue</b> belly" in page.text
    assert "<script>alert(1)</script> a bird with green wing & <b>blue</b> belly" in page.text
    assert "<script>" not in raw


def test_every_number_has_its_interval(page: Page, results: Path) -> None:
    table = pd.read_csv(results / "table.csv")
    shown = {row[0]: row[1:] for row in reversed(page.rows) if len(row) == 5}
    for row in table[(table["judge"] != "oracle") & (table["distractors"] == "original")].itertuples():
        cell = f"{100 * row.exact:.1f}[{100 * row.exact_low:.1f}, {100 * row.exact_high:.1f}]"
        assert shown[row.generator][tables.TESTS.index(row.split)] == cell


def test_training_and_choices_of_the_judge(page: Page) -> None:
    assert "train_on: half" in page.text and "half of the images of each test split, which are not judged" in page.text
    assert "Judge health 0.67: " in page.text and "makes the same choice for 95.0 % of 20 real images." in page.text
    [line] = [row[1:] for row in page.rows if row[0] == "0, real images"]
    assert line == ["70.0[60.0, 80.0]", "55.0[60.0, 80.0]", "25.0", "0.67", "90.0"]
    assert ["memorizer", "–", "–", "20.0"] in page.rows, "hubness"
    assert "0123456789abcdef" in page.text


def test_everything_skipped_is_counted(page: Page, results: Path) -> None:
    lines = {row[0]: row[1:] for row in page.rows}
    assert lines["images without file"] == ["1", "", "x"]
    assert "images in no split" not in lines
    assert lines["captions without a ranked pair"][:2] == ["60", "240"]
    assert lines["captions truncated by the judge"][:2] == ["3", "192"]
    assert lines["images of unseen without a file or used for training the judge"][:2] == ["6", "12"]
    of_all = lines["images of each of 3 generators, swapped, with too few eligible distractors"]
    assert of_all == ["7", "25", "photographs, faithful, memorizer"]
    lost = read_table(results / "tiny/color/generated/memorizer/manifest.parquet", tables.MANIFEST)
    for status in ("missing", "unreadable"):
        line = lines[f"images of memorizer that are {status}"]
        assert line[:2] == ["1", str(len(lost))]
        assert lost.loc[lost["status"] == status, "image_id"].item() in line[2]


def test_fraction_of_true_distractors(page: Page) -> None:
    assert "4.0 % of the distractors are true of the image too" in page.text


def test_a_published_protocol_is_noted(page: Page) -> None:
    assert "As published" not in page.text
    assert protocol_line({"ties": "own_first", "chunking": "even"}).startswith("As published: Ties count")
    assert "without the remainder" in protocol_line({"ties": "random", "chunking": "published"})


def test_fid_with_its_numbers_of_images(results: Path, page: Page) -> None:
    assert "Fréchet" not in page.text
    write_fid(results / "tiny" / "color" / "fid" / "memorizer.json")
    with_fid = Page(write_page(results, 1, fid=["memorizer"]))
    assert ["memorizer", "12.30", "–", "30.00", "31.50"] in with_fid.rows
    assert "seen: 10,000 generated and 54 real images, too few for 2,048 features: biased upwards" in with_fid.text


def test_audit_and_its_suspicions(page: Page) -> None:
    assert "Audit: 0 violations in 192 captions" in page.text
    assert "a green and red bird <i>wing</i>" in page.text


def test_swaps_are_marked_and_hits_named_without_color(page: Page) -> None:
    legend, listed, ranked = 1, len(page.by_class("swap")), 2
    strip = 3
    swapped = len(page.by_class("example")) - (len(page.by_class("unseen")) - legend - ranked)
    assert (
        len(page.by_class("swapped")) - legend - strip
        == len(page.by_class("seen")) - legend
        == swapped + listed
        > listed
        > 0
    )
    hits = [attrs for attrs in page.by_class("picture") if "hit" in (attrs["class"] or "")]
    assert len(hits) == page.text.count("✓ hit") + page.text.count("✓ right")


def test_the_page_names_what_contributes_most_to_the_error(page: Page) -> None:
    assert "76 % of the variance of R-precision is from held-out pairs: hold out more" in page.text
    assert "One judge cannot show what judges add; list judge.seeds." in page.text
    assert ["faithful", "unseen", "2", "12", "1", "4.0", "1.0", "–", "2.0", *["–"] * 4] in page.rows


def test_the_page_has_the_intervals_for_these_pairs_and_judges(page: Page) -> None:
    assert "Intervals for these pairs and these judges" in page.text
    assert ["faithful", "65.0[64.0, 67.0]", "55.0[54.0, 57.0]", "45.0[44.0, 47.0]"] in page.rows


def test_figures_of_words_have_alternative_texts(page: Page) -> None:
    figures = [attrs for tag, attrs in page.tags if tag == "img" and "svg" in (attrs["src"] or "")]
    assert len(figures) == 14 and all(attrs["alt"] for attrs in figures)
    assert sum((attrs["alt"] or "").startswith("Adjectives in each split (tiny, color)") for attrs in figures) == 1
    # White stays white on a dark page.
    assert len(page.by_class("true-colors")) == 1


def test_missing_pictures_are_named(copied: Path) -> None:
    broken = copied / "tiny" / "color" / "generated" / "faithful" / "images"
    for file in broken.rglob("*.png"):
        file.write_bytes(b"no picture")
    page = Page(write_page(copied))
    made = [attrs for attrs in page.by_class("picture") if "real" not in (attrs["class"] or "").split()]
    gaps = len(page.by_class("gap")) - page.text.count("no file")
    assert 0 < gaps < len(made)
    assert gaps == len(re.findall(r"(?:missing|unreadable)(?= |$)", page.text.split("What was skipped")[0]))


def test_verdicts_come_first_and_few_pairs_are_named(page: Page) -> None:
    """Before them are links and names; with each the first mention of a generator says what it does."""
    before, after = page.text.split("Does it compose?")[-1].split("Swapped prompts, as")
    assert before.index("photographs") < len("tiny color photographs")
    assert "photographs inconclusive faithful reference draws what <b> memorizer memorizes Few pairs: unseen" in before
    assert "unseen tests 2 and swapped tests 2 held-out pairs, fewer than 10" in before
    assert "photographs no fall can be compared with that of faithful" in after
    assert "faithful loses 10.0 [5.0, 14.0] points on held-out pairs (unseen), 10.0" in after
    assert "memorizer loses 10.0 [5.0, 14.0] points more than faithful" in after
    primary = next(row for row in page.rows if row[2:3] == ["memorizer − faithful, falls"])
    assert primary == ["R-precision", "unseen", "memorizer − faithful, falls", "−10.0[−14.0, −5.0]", "0.0200", "12"]


@pytest.mark.parametrize("examples", [0, 1, 5])
def test_number_of_examples(results: Path, examples: int) -> None:
    assert len(Page(write_page(results, examples)).by_class("example")) == examples + examples // 2


def test_images_without_class_are_noted(tmp_path: Path, text: str) -> None:
    without = write_page(make_results(tmp_path / "results", classes=False), examples=1)
    assert "The images have no class: each such image is its own class, and distractors may be true" in without
    assert "have no class" not in text


def test_divergence_section(page: Page, text: str) -> None:
    rows = [row for row in page.rows if row[0].startswith(("atoms:", "compounds:"))]
    prompts, captions = rows[:4], rows[4:]
    random = "0.030 ± 0.004"
    assert prompts == [
        ["atoms: adjectives and nouns", *["0.010< 0.001"] * 3],
        ["compounds: pairs", *[f"{d}{random}" for d in ("0.100", "0.400", "0.700")]],
        ["atoms: words", *["0.010< 0.001"] * 3],
        ["compounds: subgraphs", *[f"{d}{random}" for d in ("0.200", "0.500", "0.900")]],
    ]
    assert captions[1] == ["compounds: pairs", *[f"{d}{random}" for d in ("0.050", "0.200", "0.350")]]
    # Once, not in each row of the table of scores.
    assert "divergence" not in text.split("All scores")[1].split("</details>")[0]
    assert "Divergence while the division grew" not in text
    assert "3 <b> are cut." in page.text


def test_a_division_by_divergence_is_shown(copied: Path) -> None:
    file = copied / "tiny" / "color" / "splits.parquet"
    splits = read_table(file, tables.SPLIT)
    write_table(splits[splits["image_id"] != splits["image_id"].iloc[0]], file, tables.SPLIT)
    page = Page(write_page(copied, 1, method="divergence"))
    assert any((attrs.get("alt") or "").startswith("Divergence while the division grew") for _, attrs in page.tags)
    assert "wanted › compound" in page.text
    assert {row[0]: row[1:3] for row in page.rows}["images in no split"] == ["1", "60"]


def test_without_divergences(copied: Path) -> None:
    file = copied / "tiny" / "color" / "divergence.parquet"
    rows = read_table(file, tables.DIVERGENCE)
    one = rows[(rows["definition"] == "pairs") & (rows["split"] == "test_seen")]
    for left, figures in (rows, 4), (one, 0), (empty_table(tables.DIVERGENCE), 0):
        write_table(left, file, tables.DIVERGENCE)
        page = Page(write_page(copied, 1))
        alternatives = [attrs.get("alt") or "" for _, attrs in page.tags]
        assert sum(text.startswith("Parts of") for text in alternatives) == figures
        assert ("Divergence was not measured" in page.text) == left.empty


def test_splits_show_what_they_can_measure(page: Page) -> None:
    """Ranking, held-out pairs, expected intervals with warnings, and swapped captions are on every page."""
    rows = {row[0]: row[1:] for row in page.rows if len(row) == 6}
    assert [rows[split][3:] for split in ("train", "seen", "unseen", "swapped")] == [
        ["–", "–"], ["–", "± 20.0"], ["2", "± 20.0"], ["2", "± 20.0"]
    ]  # fmt: skip
    assert "Swapped: few pairs (2), ± 20.0 points: set <b>." in page.text
    assert "Not ranked, but held out as listed: white bill" in page.text and "green wing 30" in page.text
    ranking = [row for row in page.rows if len(row) == 4 and row[0].isdigit()]
    assert [int(row[0]) for row in ranking] == list(range(1, len(ranking) + 1)) and ranking[0][1]


@pytest.mark.parametrize("configured", [["sd", "folder"], []])
def test_without_scores_the_page_shows_the_splits(results: Path, tmp_path: Path, configured: list[str]) -> None:
    """A run of captions alone has no judge, no generated images, no scores and no figures of them."""
    copied = Path(shutil.copytree(results, tmp_path / "results"))
    for name in ("generated", "scores", "judges", "health"):
        shutil.rmtree(copied / "tiny" / "color" / name)
    for name in ("scores", "gaps", "drops", "comparisons", "pairs", "by_judge", "health", "loss"):
        (copied / "figures" / f"tiny_color_{name}.svg").unlink()
    shutil.rmtree(copied / "tiny" / "images")
    (copied / "table.csv").unlink()
    raw = write_page(copied, generators=(), configured=configured)
    page = Page(raw)
    assert "Compositional splits of tiny" in page.text
    reason = "No generators are configured (generate.generators), so the judge (</pre><script>) is ignored."
    if configured:
        reason = "has no images, so the judge (</pre><script>) and the generators (sd, folder) are ignored; to score"
    assert reason in page.text
    for text in ("Ranking of", "Audit: 0 violations", "swapped captions, drawn by seed", "How far test is from train"):
        assert text in page.text
    # Of each image one.
    assert len(page.by_class("swap")) == 12 and "<details open><summary>12 of 27 swapped captions" in raw
    for text in ("R-precision", "Blind control", "Candidates", "Examples"):
        assert text not in page.text
