"""A drafted lexicon loads, and folds what it was drafted from."""

from pathlib import Path

import pandas as pd
import pytest

from compclip.core.errors import UserError
from compclip.core.tables import CAPTIONS, PAIRS
from compclip.io import write_table
from compclip.pairs.draft_nouns import DraftNouns, draft, main
from compclip.text.lexicon import load_lexicon


def tables(rows: list[tuple[str, str, str, str]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(text, adjective, the noun's form in the text, its word) to captions and pairs."""
    captions = [(str(i), 0, text) for i, (text, *_) in enumerate(rows)]
    pairs = [
        (str(i), 0, adjective, noun, 0, 1, text.index(form), text.index(form) + len(form), "adjacent")
        for i, (text, adjective, form, noun) in enumerate(rows)
    ]
    names = ["image_id", "caption_id", "text"]
    return pd.DataFrame(captions, columns=names), pd.DataFrame(pairs, columns=list(PAIRS.columns))


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
    drafted = {"water slide": ["water slides"], "bench": ["benches"], "slide": ["slides"], "t-shirt": ["t-shirts"]}
    drafted["shorts"] = []
    assert draft(captions, pairs, most=9) == drafted
    assert draft(captions, pairs.assign(relation="disputed"), most=9) == {}


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    captions, pairs = tables([("red wing", "red", "wing", "wing")])
    paths = {name: tmp_path / f"{name}.parquet" for name in ("captions", "pairs")}
    captions.insert(2, "class_id", pd.Series([None], dtype="str"))
    write_table(captions, paths["captions"], CAPTIONS)
    write_table(pairs, paths["pairs"], PAIRS)
    step = DraftNouns(**paths, output=tmp_path / "mine.yaml")
    main(step)
    assert load_lexicon(step.output).forms == {"wing": "wing", "wings": "wing"}
    with pytest.raises(UserError, match="mine.yaml: output file already exists; choose another path"):
        main(step)
