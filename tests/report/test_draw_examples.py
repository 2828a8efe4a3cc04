"""Pages for print: every word of a caption is in its lines, marks are kept, and bytes are the same each time."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.made_up import make_results
from workflow_scripts.core import tables
from workflow_scripts.core.io import read_table, write_table
from workflow_scripts.core.layout import Layout
from workflow_scripts.plot.drawing import style
from workflow_scripts.plot.examples import Caption, Example, Picture, read_examples
from workflow_scripts.report import draw_examples
from workflow_scripts.report.draw_examples import HALF, TEXT, fit, of_both, pages, read_picture, shorten, width, wrap
from workflow_scripts.report.steps import DrawExamples

TINY = Layout(Path("results"), "tiny", "color")
GENERATORS = ["photographs", "faithful", "memorizer"]
segments = st.lists(st.tuples(st.text("ab, $\\é_\n", max_size=30), st.sampled_from(["", "seen"])), max_size=6)


def draw(results: Path, examples: int = 1, generators: list[str] = GENERATORS) -> bytes:
    document = results / "figures" / "tiny_color_examples.pdf"
    draw_examples.main(
        DrawExamples(
            results=results, dataset="tiny", composition="color", generators=generators, judge="0", examples=examples,
            seed=0, document=document,
        )
    )  # fmt: skip
    return document.read_bytes()


def number_of_pages(pdf: bytes) -> int:
    return int(re.search(rb"/Type /Pages[^>]*?/Count (\d+)", pdf, re.S)[1])


@given(segments)
def test_lines_contain_every_word_and_its_mark(caption: list[tuple[str, str]]) -> None:
    lines = wrap(caption, 0.8)
    assert all(sum(width(text, TEXT, bool(kind)) for text, kind in line) <= 0.8 for line in lines)
    letters = [(letter, kind) for text, kind in caption for letter in text if not letter.isspace()]
    assert [(letter, kind) for line in lines for text, kind in line for letter in text if letter != " "] == letters


def test_lines_break_at_spaces_and_marks_hold_together() -> None:
    lines = wrap([("this bird has a ", ""), ("red wing", "seen"), (", and a bill", "")], HALF)
    assert lines == [[("this bird has a ", ""), ("red wing", "seen"), (", and a bill", "")]]
    lines = wrap([("aa bb cc", "")], width("aa bb", TEXT))
    assert ["".join(text for text, _ in line) for line in lines] == ["aa bb", "cc"]


def test_a_long_caption_is_truncated_around_its_mark() -> None:
    words = [(f"word{n} ", "") for n in range(200)]
    words[100] = ("marked", "seen")
    lines = fit(words, 1, 5)
    assert len(lines) == 5 and ("marked", "seen") in lines[2]
    assert lines[0][0] == ("… ", "") and lines[-1][-1] == (" …", "")
    assert all(sum(width(text, TEXT, bool(kind)) for text, kind in line) <= 1 for line in lines)
    assert fit(words[:4], 1, 5) == wrap(words[:4], 1)


def test_long_names_are_shortened() -> None:
    assert shorten("short", 1, TEXT) == "short"
    shown = shorten("a_generator_with_a_very_long_name", 0.8, TEXT)
    assert width(shown, TEXT) <= 0.8 and shown.startswith("a_g") and shown.endswith("name") and "…" in shown


def test_same_data_same_bytes_without_date_or_place(results: Path) -> None:
    first = draw(results, 2)
    assert draw(results, 2) == first
    assert b"CreationDate" not in first and str(results).encode() not in first
    # Text is there as text, so that a page can be searched and read aloud.
    assert b"/ToUnicode" in first


@pytest.mark.parametrize(("examples", "expected"), [(0, 1), (6, 1), (7, 2)])
def test_six_to_a_page(results: Path, examples: int, expected: int) -> None:
    assert number_of_pages(draw(results, examples)) == expected


def test_generators_of_seen_and_swapped_are_shown(results: Path) -> None:
    found, _ = read_examples(Layout(results, "tiny", "color"), GENERATORS, "0", 6, 0)
    assert of_both(found) == ["faithful", "memorizer"]
    assert [p.title for p in found[0].captions[0].pictures] == [*of_both(found), "photographs"]
    with style():
        page = pages(found, Layout(results, "tiny", "color"), 0)[0]
    words = " ".join(text.get_text() for text in page.texts)
    assert "faithful" in words and "photographs" not in words
    assert words.count("green") + words.count("white") >= len(found)


def test_many_generators_take_more_pages() -> None:
    names = [f"g{number:02}" for number in range(14)]
    caption = Caption("c", [("a red bird", "")], [Picture(name, None) for name in names])
    examples = [Example("1", "red bird", Picture("real image", None), [caption, caption])] * 7
    with style():
        drawn = pages(examples, TINY, 0)
    words = [[text.get_text() for text in page.texts] for page in drawn]
    assert [[name for name in names if name in page] for page in words] == [
        *[names[:6]] * 2, *[names[6:12]] * 2, *[names[12:]] * 2
    ]  # fmt: skip
    assert "tiny, color: seen and swapped, page 6 of 6" in words[5]
    assert "(2 of 14 generators)" in " ".join(words[5])


def test_empty_pages(tmp_path: Path) -> None:
    results = make_results(tmp_path / "results")
    assert number_of_pages(draw(results, generators=["photographs"])) == 1
    place = results / "tiny" / "color"
    swapped = read_table(place / "swapped.parquet", tables.SWAPPED)
    write_table(swapped.head(0), place / "swapped.parquet", tables.SWAPPED)
    assert number_of_pages(draw(results)) == 1
    with style():
        assert "No caption was swapped." in [text.get_text() for text in pages([], TINY, 0)[0].texts]


def test_a_missing_picture_leaves_a_gap(results: Path) -> None:
    missing = Picture("model", None, "missing")
    sides = [Caption(name, [("a red wing", "")], [missing]) for name in ("seen", "swapped")]
    with style():
        page = pages([Example("x", "red wing", Picture("real image", None, "no file"), sides)], TINY, 0)[0]
    assert [text.get_text() for text in page.texts].count("missing") == 2 and not page.axes


def test_pictures_are_small_and_none_for_what_cannot_be_read(tmp_path: Path) -> None:
    Image.new("RGB", (1200, 900)).save(tmp_path / "large.png")
    assert read_picture(tmp_path / "large.png").shape == (132, 176, 3)
    (tmp_path / "broken.png").write_bytes((tmp_path / "large.png").read_bytes()[:500])
    assert read_picture(tmp_path / "broken.png") is None
    assert read_picture(tmp_path / "absent.png") is None
