"""Selection and ranking, and drafts of noun lexicons, worked by hand."""

from pathlib import Path

import pandas as pd
import pytest

from compclip.core.artifacts.parquet import check_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import CAPTIONS, PAIRS, RANKING
from compclip.pairs import config
from compclip.pairs.draft_nouns import DraftNouns, draft, main
from compclip.pairs.rank_pairs import rank_pairs
from compclip.text.lexicon import Lexicon, load_lexicon
from tests.split.worlds import captions_table, pairs_table

COLORS = Lexicon("color", {"red": "red", "blue": "blue", "tan": "tan"})
PARTS = Lexicon("birds", {"wing": "wing", "wings": "wing", "bill": "bill", "eye": "eye"})


def Selection(**settings: int) -> config.Selection:  # noqa: N802
    return config.Selection(**{"min_count": 1, **settings})


def pairs(*rows: tuple[str, str, int]) -> pd.DataFrame:
    """``adjective noun``, the relation, how many times: two in each image."""
    records = []
    for adjective_noun, relation, times in rows:
        adjective, noun = adjective_noun.split()
        records += [(str(n // 2), adjective, noun, relation) for n in range(times)]
    return pd.DataFrame(records, columns=["image_id", "adjective", "noun", "relation"])


TABLE = pairs(
    ("red wing", "adjacent", 5),
    ("blue wing", "shared", 3),
    ("red bill", "predicative", 3),
    ("tan eye", "adjacent", 1),
    ("long bill", "adjacent", 9),
    ("red bird", "adjacent", 9),
    ("blue bill", "disputed", 8),
)


def test_ranking_by_hand_and_nothing_to_rank():
    ranking = rank_pairs(TABLE, COLORS, PARTS, Selection())
    # The disputed are skipped; red bird has no noun of the lexicon; 3 and 3 tie, blue wing before
    # red bill.
    assert ranking[["adjective", "noun", "count", "images", "rank"]].to_numpy().tolist() == [
        ["red", "wing", 5, 3, 1],
        ["blue", "wing", 3, 2, 2],
        ["red", "bill", 3, 2, 3],
        ["tan", "eye", 1, 1, 4],
    ]
    assert ranking["percentile"].tolist() == [12.5, 37.5, 62.5, 87.5]
    check_table(ranking, RANKING, "ranking")
    for table, adjectives, min_count, message in (
        (TABLE.head(0), COLORS, 1, "none of the 0 most frequent adjectives is in lexicon color"),
        (TABLE, Lexicon("shape", {"flat": "flat"}), 1, "in lexicon shape"),
        (
            TABLE,
            COLORS,
            9,
            "with a noun of lexicon birds occurs 9 times; lower pairs.selection.min_count",
        ),
    ):
        with pytest.raises(UserError, match=message):
            rank_pairs(table, adjectives, PARTS, Selection(min_count=min_count))


@pytest.mark.parametrize(
    ("settings", "nouns", "ranked"),
    [
        # Adjectives are selected before the lexicon is applied; without the disputed: red 17, long
        # 9, blue 3, tan 1.
        ({"adjectives": 3}, PARTS, "red wing, blue wing, red bill"),
        ({"adjectives": 2}, PARTS, "red wing, red bill"),
        # Nouns are those of the most frequent pairs; all pairs of selected words are ranked.
        ({"pairs": 1}, PARTS, "red wing, blue wing"),
        ({"min_count": 3}, PARTS, "red wing, blue wing, red bill"),
        ({}, None, "red bird, red wing, blue wing, red bill, tan eye"),
    ],
)
def test_selection(settings, nouns, ranked):
    ranking = rank_pairs(TABLE.sample(frac=1, random_state=1), COLORS, nouns, Selection(**settings))
    assert ", ".join(ranking["adjective"] + " " + ranking["noun"]) == ranked
    assert ranking["percentile"].iloc[0] == pytest.approx(50 / len(ranking))


def tables(rows: list[tuple[str, str, str, str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(text, adjective, the noun's form in the text, its word) to captions and pairs."""
    captions = [(str(i), 0, text) for i, (text, *_) in enumerate(rows)]
    pairs = [
        (
            str(i),
            0,
            adjective,
            noun,
            0,
            1,
            text.index(form),
            text.index(form) + len(form),
            "adjacent",
        )
        for i, (text, adjective, form, noun) in enumerate(rows)
    ]
    return captions_table(captions), pairs_table(pairs)


def test_forms_come_from_the_text_and_plurals_are_added() -> None:
    rows = [
        ("red Petals", "red", "Petals", "petal"),
        ("a red petal", "red", "petal", "petal"),
        *[("green leaves", "green", "leaves", "leaf")] * 2,
        ("he leaves red", "red", "leaves", "leave"),
        ("one odd thing", "odd", "thing", "thing"),
    ]
    lexicon = draft(*tables(rows), most=3)
    assert list(lexicon.items()) == [("leaf", ["leaves"]), ("petal", ["petals"]), ("leave", [])]
    rows = [
        ("a red water slide", "red", "water slide", "water slide"),
        ("a red slide", "red", "slide", "slide"),
        ("a red t-shirt", "red", "t-shirt", "t-shirt"),
        ("a red bench", "red", "bench", "bench"),
        ("red shorts", "red", "shorts", "shorts"),
        ("a black man", "black", "man", "man"),
        ("a black photo", "black", "photo", "photo"),
    ]
    captions, pairs = tables(rows)
    drafted = {
        "water slide": ["water slides"],
        "bench": ["benches"],
        "slide": ["slides"],
        "t-shirt": ["t-shirts"],
    }
    drafted["shorts"] = []
    assert draft(captions, pairs, most=9) == drafted
    assert draft(captions, pairs.assign(relation="disputed"), most=9) == {}


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    captions, pairs = tables([("red wing", "red", "wing", "wing")])
    paths = {name: tmp_path / f"{name}.parquet" for name in ("captions", "pairs")}
    write_table(captions, paths["captions"], CAPTIONS)
    write_table(pairs, paths["pairs"], PAIRS)
    step = DraftNouns(**paths, output=tmp_path / "mine.yaml")
    main(step)
    assert load_lexicon(step.output).forms == {"wing": "wing", "wings": "wing"}
    with pytest.raises(
        UserError, match="mine.yaml: output file already exists; choose another path"
    ):
        main(step)
