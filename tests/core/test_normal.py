"""Texts are compared as people see them; offsets are in the text as given."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compclip.core.reading.normal import INVISIBLE, normalize, tidy_id

# Ways to hide that a text says `red cup`, by what is counted, and what `red` is in the text as
# given.
HIDDEN = [
    ("a red\u200b cup", "invisible_characters", "red"),
    ("a r\u00aded cup", "invisible_characters", "r\u00aded"),
    ("a red \u200bcup", "invisible_characters", "red"),
    ("a red cup\ufeff", "invisible_characters", "red"),
    ("a red cup\u202c", "invisible_characters", "red"),
    ("a re\u2060d cup", "invisible_characters", "re\u2060d"),
    ("a r\u034fed cup", "invisible_characters", "r\u034fed"),
    ("a \u2068red\u2069 cup", "invisible_characters", "red"),
    ("a red\ufe0f cup", "invisible_characters", "red"),
    ("a re\U000e0064d cup", "invisible_characters", "re\U000e0064d"),
    ("a red\u3164cup", "invisible_characters", "red"),
    ("a red\u2800cup", "invisible_characters", "red"),
    ("a r\x08ed cup", "invisible_characters", "r\x08ed"),
    ("a &#114;ed cup", "entities", "&#114;ed"),
    ("a &#x72;ed cup", "entities", "&#x72;ed"),
    ("a r&shy;ed cup", "entities", "r&shy;ed"),
    ("a red&nbsp;cup", "entities", "red"),
    ("a red&amp;nbsp;cup", "entities", "red"),
    ("a red&#8203; cup", "entities", "red"),
    ("a red&nbsp cup", "entities", "red"),
    ("a &lt;b&gt;red&lt;/b&gt; cup", "markup", "red"),
    ("a *red* cup", "markup", "red"),
    ("a **red** cup", "markup", "red"),
    ("a _red_ cup", "markup", "red"),
    ("a red_cup", "markup", "red"),
    ("a `red` cup", "markup", "red"),
    ("a ~~red~~ cup", "markup", "red"),
    ("a ==red== cup", "markup", "red"),
    ("a ||red|| cup", "markup", "red"),
    ("a \\*red\\* cup", "markup", "red"),
    ("a #red #cup", "markup", "red"),
    ("a [red](http://a.b/c) cup", "markup", "red"),
    ("a ![red cup](a.png)", "markup", "red"),
    ("a {red} [cup]", "markup", "red"),
    ("a '''red''' cup", "markup", "red"),
    ("a <b>red</b> cup", "markup", "red"),
    ("a <SPAN style='color: red'>red</SPAN > cup", "markup", "red"),
    ("a red<br/>cup", "markup", "red"),
    ("a <adj>red</adj> <noun>cup</noun>", "markup", "red"),
    ("a red<!-- x --> cup", "markup", "red"),
    ("a [b]red[/b] [color=red]cup[/color]", "markup", "red"),
    ('a "red" cup', "quotation_marks", "red"),
    ("a 'red' cup", "quotation_marks", "red"),
    ("a \u2018red\u2019 cup", "quotation_marks", "red"),
    ("a \u201cred cup\u201d", "quotation_marks", "red"),
    ("a \u00abred\u00bb cup", "quotation_marks", "red"),
    ("a \uff52\uff45\uff44 \uff43\uff55\uff50", "compatibility_characters", "\uff52\uff45\uff44"),
    ("a red\u00a0cup", "compatibility_characters", "red"),
    ("a red\u3000cup", "compatibility_characters", "red"),
    (
        "a \U0001d42b\U0001d41e\U0001d41d cup",
        "compatibility_characters",
        "\U0001d42b\U0001d41e\U0001d41d",
    ),
    ("a \u24e1ed cup", "compatibility_characters", "\u24e1ed"),
    ("a r\u0336e\u0336d\u0336 cup", "compatibility_characters", "r\u0336e\u0336d\u0336"),
    ("a \uff0ared\uff0a cup", "markup", "red"),
    ("a \u2039red\u203a cup", "quotation_marks", "red"),
    ("a \u3010red\u3011 cup", "quotation_marks", "red"),
    ("a red\\ncup", "markup", "red"),
    ("a red[1] cup", "markup", "red"),
    ("a red\ufffccup", "invisible_characters", "red"),
    ("a r\u0435d cup", "mixed_scripts", "r\u0435d"),
    ("a red \u0441up", "mixed_scripts", "red"),
    ("a red  cup", None, "red"),
    ("a red\tcup", None, "red"),
    ("a red\ncup", None, "red"),
    ("a red\u2028cup", None, "red"),
    ("a red\x0bcup", None, "red"),
    ("a red\x85cup", None, "red"),
    (" a red cup ", None, "red"),
]
AS_WRITTEN = [
    "a red cup",
    "its bill isn't red, it's blue-gray (or brown); 50% of the bird's wings: why?",
    "the birds' bill is red",
    "a bird 's bill",
    "black&copper, R&D, black&region",
    "a red | blue bill",
    "* a red bill",
    "a = b",
    "",
]


@pytest.mark.parametrize(("text", "kind", "red"), HIDDEN, ids=ascii)
def test_what_looks_like_a_red_cup_is_read_as_one(text: str, kind: str | None, red: str) -> None:
    read = normalize(text)
    assert read.text == "a red cup"
    assert kind in (read.kinds or [None])
    start, end = read.given(2, 5)
    assert text[start:end] == red


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_other_texts_are_read_as_they_are_written(text: str) -> None:
    read = normalize(text)
    assert read.text == text and not read.kinds
    assert read.given(0, 1) == (0, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red &amp; black", "red & black"),
        ("red &amp;amp; black", "red & black"),
        ("isn\u2019t", "isn't"),
        ("red\u2013billed \u2013 cup", "red-billed \u2013 cup"),
        ("o\ufb03ce", "office"),
        ("cafe\u0301", "caf\u00e9"),
        ("<a red cup>", "a red cup"),
        ("[a red cup]", "a red cup"),
        ("<i>a</i><p>b</p>c", "a b c"),
        ("\u200b \ufeff", ""),
        ("&unknown; &region;", "&unknown; &region;"),
    ],
)
def test_text_as_read(text: str, expected: str) -> None:
    assert normalize(text).text == expected


def test_a_word_of_two_scripts_is_counted_even_if_no_letter_looks_latin() -> None:
    assert normalize("a \u0433ed cup").kinds == ["mixed_scripts"]
    assert normalize("\u043a\u0440\u0430\u0441\u043d\u044b\u0439 cup").kinds == []


@given(
    st.text(
        st.sampled_from("red cup&*_<>b/[]()'\"#;\u200b\u0301\uff52\u00a0\u0435\ufb03|=~`\\\n"),
        max_size=40,
    )
)
def test_normalizing_keeps_the_order_and_the_bounds_of_characters(text: str) -> None:
    read = normalize(text)
    spans = [read.given(place, place + 1) for place in range(len(read.text))]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(text) for start, end in spans)


def test_all_default_ignorable_characters_are_removed() -> None:
    regex = pytest.importorskip("regex")
    ignorable = regex.findall(
        r"\p{Default_Ignorable_Code_Point}", "".join(map(chr, range(0x110000)))
    )
    assert len(ignorable) > 4000
    # Hangul fillers look like spaces.
    fillers = INVISIBLE.sub("", "".join(ignorable))
    assert fillers == "\u115f\u1160\u3164\uffa0"
    assert normalize(f"a{fillers}b").text == "a b"


@pytest.mark.parametrize(
    ("given_id", "expected"),
    [
        ("12\u200b", "12"),
        ("\ufeff12 ", "12"),
        ("cafe\u0301", "caf\u00e9"),
        ("./1", "1"),
        (".//./a/./b", "a/b"),
        ("a\u00a0b\u2028c", "a b c"),
        ("../1", "../1"),
        ("1.5", "1.5"),
        ("\uff11", "\uff11"),
    ],
)
def test_tidy_id(given_id: str, expected: str) -> None:
    assert tidy_id(given_id) == expected


@pytest.mark.parametrize(
    "unit", ["<a =", "&amp;", "*", " ", "[", "'", "_a", "<b", "\u0301", "= ", "](", "&", "a\u0435"]
)
def test_a_long_text_takes_time_in_proportion(unit: str) -> None:
    start = time.monotonic()
    normalize(unit * 20_000)
    assert time.monotonic() - start < 5
