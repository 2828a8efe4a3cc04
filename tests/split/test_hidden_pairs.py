"""A held-out pair is found however it is written: no image with it trains, and the audit's reader
sees it by itself.
"""

import pandas as pd
import pytest

from compclip.core.artifacts.parquet import empty_table
from compclip.core.settings.arguments import as_captions, text_fault
from compclip.core.tables import PAIRS, SWAPPED
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.audit import audit
from compclip.split.make_splits import make_splits
from compclip.split.make_variants import make_variants
from compclip.split.reading import reader_of, word_pairs
from compclip.split.swap_adjectives import swap_adjectives
from compclip.text.lexicon import Lexicon
from tests.core.test_normal import HIDDEN

COLORS = Lexicon("color", {word: word for word in ("red", "blue", "green", "white", "orange")})
NOUNS = Lexicon("nouns", {"cup": "cup", "cups": "cup", "plate": "plate", "plates": "plate"})
# Control characters are refused by the library, and rows with them skipped in tables.
WRITTEN = [row for row in HIDDEN if not text_fault(row[0])]
TEXTS = [text for text, *_ in WRITTEN]


@pytest.fixture(scope="module")
def captions() -> pd.DataFrame:
    """An image for each way to write `red cup`, and ten for each other pair."""
    others = [f"a photo of a {color} {noun}" for color in COLORS.words for noun in ("cup", "plate")]
    plain = [text for text in others if text != "a photo of a red cup"] * 10
    ids = [f"h{n}" for n in range(len(TEXTS))] + [f"p{n}" for n in range(len(plain))]
    return pd.DataFrame({"image_id": ids, "text": [*TEXTS, *plain]})


@pytest.fixture(scope="module")
def pairs(captions: pd.DataFrame) -> pd.DataFrame:
    return extract_pairs(captions, [COLORS], NOUNS)


def test_pairs_have_offsets_in_the_text_as_given(
    captions: pd.DataFrame, pairs: pd.DataFrame
) -> None:
    of = pairs[pairs["adjective"] == "red"].set_index("image_id")
    reds = {f"h{n}": red for n, (_, _, red) in enumerate(WRITTEN)}
    texts = dict(zip(captions["image_id"], captions["text"], strict=True))
    found = {
        image: (row.noun, texts[image][row.adjective_start : row.adjective_end])
        for image, row in zip(of.index, of.itertuples(), strict=True)
        if image in reds
    }
    assert found == {image: ("cup", red) for image, red in reds.items()}


def test_nearly_all_ways_are_tried() -> None:
    assert len(WRITTEN) >= len(HIDDEN) - 3


def test_no_image_with_a_hidden_pair_trains(captions: pd.DataFrame, pairs: pd.DataFrame) -> None:
    ranking = rank_pairs(pairs, COLORS, NOUNS)
    splits, _ = make_splits(captions, pairs, ranking, ["red_cup"], COLORS, NOUNS, test_seen=4)
    hidden = splits[splits["image_id"].str.startswith("h")]
    assert hidden["split"].tolist() == ["test_unseen"] * len(TEXTS)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_the_audits_reader_sees_a_hidden_pair_by_itself(text: str) -> None:
    splits = pd.DataFrame({"image_id": ["0"], "split": ["train"]})
    result = audit(
        [text], empty_table(PAIRS), splits, empty_table(SWAPPED), ["red_cup"], COLORS, NOUNS
    )
    assert [violation["pair"] for violation in result["violations"]] == ["red_cup"]
    reader = reader_of(["red_cup"], COLORS.forms, NOUNS.forms, None)
    items, stated = reader.pairs(text)
    assert word_pairs(stated) == {("red", "cup")}


def test_captions_that_need_normalization_are_neither_swapped_nor_varied() -> None:
    texts = [
        "a *green* cup",
        "a gr\u00adeen cup",
        "a green\u200b cup",
        "a &#103;reen cup",
        "a green cup",
    ]
    captions = as_captions(texts)
    splits = pd.DataFrame({"image_id": captions["image_id"], "split": "test_seen"})
    pairs = extract_pairs(captions, [COLORS], NOUNS)
    swapped, summary = swap_adjectives(captions, pairs, splits, ["red_cup"], COLORS, NOUNS)
    assert swapped[["image_id", "swapped_text"]].values.tolist() == [["4", "a red cup"]]
    assert summary["excluded"] == {"not a plain word": 4}
    ranking = pd.DataFrame({"adjective": ["blue", "green"], "noun": ["cup", "cup"]})
    prompts = captions.assign(split="test_seen", pair="green_cup")
    variants, _ = make_variants(prompts, captions, pairs, ranking, COLORS, NOUNS)
    assert variants[["image_id", "text"]].values.tolist() == [["4", "a blue cup"]]


def test_spaces_and_apostrophes_do_not_prevent_a_swap() -> None:
    captions = pd.DataFrame({"image_id": ["0"], "text": ["it\u2019s  a green  cup"]})
    splits = pd.DataFrame({"image_id": ["0"], "split": ["test_seen"]})
    pairs = extract_pairs(captions, [COLORS], NOUNS)
    swapped, _ = swap_adjectives(captions, pairs, splits, ["orange_cup"], COLORS, NOUNS)
    assert swapped["swapped_text"].tolist() == ["it\u2019s  an orange  cup"]


def test_a_plural_in_any_form_has_the_noun_of_its_singular() -> None:
    texts = [
        "a red go\u200bose",
        "two red gee\u00adse",
        "a red go\u00adose and two red *geese*",
        "a red &#118;ase",
        "red va\u2060ses",
    ]
    found = extract_pairs(texts, [COLORS])
    assert list(found["noun"]) == ["goose", "goose", "goose", "goose", "vase", "vase"]


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("cup", "cups"),
        ("can", "cans"),
        ("orange", "oranges"),
        ("lens", "lenses"),
        ("shelf", "shelves"),
        ("calf", "calves"),
        ("spark", "sparks"),
        ("cactus", "cacti"),
        ("bus", "buses"),
        ("knife", "knives"),
    ],
)
def test_a_noun_that_occurs_only_as_a_plural_is_held_out_by_its_singular(
    noun: str, plural: str
) -> None:
    hidden = [
        f"a photo of red {plural}",
        f"two red {plural} on a table",
        f"the {plural} are red",
        f"red {plural}",
    ]
    others = [
        f"a {color} {thing}"
        for color in ("red", "blue", "green")
        for thing in ("plate", "house", "tree")
    ] * 12
    captions = as_captions([*hidden, *others])
    found = extract_pairs(captions, ["color"])
    splits, _ = make_splits(
        captions, found, rank_pairs(found, "color"), [f"red_{noun}"], "color", test_seen=4
    )
    split_of = dict(zip(splits["image_id"], splits["split"], strict=True))
    assert [split_of.get(image) for image in captions["image_id"][: len(hidden)]] == [
        "test_unseen"
    ] * len(hidden)


def test_denials_reach_a_hidden_pair() -> None:
    texts = ["no r\u00aded cup", "the cup isn\u2019t *red*", "a n\u200bo red_cup"]
    assert set(extract_pairs(texts, [COLORS], NOUNS)["relation"]) <= {"disputed"}
    reader = reader_of(["red_cup"], COLORS.forms, NOUNS.forms, None)
    assert not any(reader.pairs(text)[1] for text in texts)


def test_a_lexicon_with_unusual_characters_reads_texts_as_they_look() -> None:
    nouns = Lexicon("nouns", {"t_shirt": "shirt", "cafe\u0301": "cafe"})
    texts = ["a red t_shirt", "a red caf\u00e9", "a red cafe\u0301"]
    found = extract_pairs(texts, [COLORS], nouns)
    assert list(found["noun"]) == ["shirt", "cafe", "cafe"]
    reader = reader_of(["red_cafe"], COLORS.forms, nouns.forms, None)
    assert [word_pairs(reader.pairs(text)[1]) for text in texts] == [
        {("red", n)} for n in ("shirt", "cafe", "cafe")
    ]
