"""The step: rows, counts, bad input, and results that do not depend on batches, processes or the
cache.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workflow_scripts.inputs
from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import empty_table, read_table, write_table
from compclip.core.errors import UserError
from compclip.core.tables import CAPTION_KEY, CAPTIONS, PAIRS
from compclip.pairs import extract_pairs as library
from compclip.pairs.engine import Extractor, decode_occurrences
from compclip.pairs.noun_forms import NounForms, caption_words
from compclip.text import parsing
from compclip.text.language import load_language
from compclip.text.lexicon import COMMON_COMPOUNDS, LEXICONS, Lexicon, find_lexicon
from tests.pairs.conftest import MODEL
from tests.scripts import job
from tests.split.worlds import captions_table
from workflow_scripts.job import Job
from workflow_scripts.pairs import extract_pairs, parse_captions

WORDS = (
    "a the its this red black orange tan long pointed small spotted bird wing wings belly crown "
    "bill beak eye ring"
    " tail feathers and , . is are that with on of very it has headed tipped colored - Grey EYE"
).split()
TEXTS = [
    f"a {color} bird with a {color} {part} and wings that are {color}"
    for color in ("red", "blue", "green", "tan")
    for part in ("belly", "crown", "tail")
]


def captions(texts: list[str]) -> pd.DataFrame:
    return captions_table([(f"b/{n // 2}", n % 2, text) for n, text in enumerate(texts)])


BIRDS = LEXICONS / "nouns" / "birds.yaml"
# Singulars and their plurals, a pair a line; words of a noun are joined by `_`.
PLURALS = [
    [word.replace("_", " ") for word in line.split()]
    for line in (Path(__file__).parent / "plurals.txt").read_text(encoding="utf-8").splitlines()
]


def step(
    folder: Path,
    processes: int = 1,
    cache: str = "cache",
    shards: Sequence[Path] = (),
    nouns: Path | None = BIRDS,
) -> Job:
    lexicons = [LEXICONS / "adjectives" / f"{name}.yaml" for name in ("color", "shape")]
    return job(
        input={
            "captions": folder / "captions.parquet",
            "adjectives": lexicons,
            "nouns": nouns,
            "compounds": COMMON_COMPOUNDS,
            "shards": shards,
        },
        output={"pairs": folder / "pairs.parquet", "summary": folder / "pairs.json"},
        threads=processes,
        model=MODEL,
        cache=folder / cache,
    )


def run(
    folder: Path,
    table: pd.DataFrame,
    processes: int = 1,
    cache: str = "cache",
    nouns: Path | None = BIRDS,
) -> tuple[pd.DataFrame, dict]:
    write_table(table.sort_values(CAPTION_KEY), folder / "captions.parquet", CAPTIONS)
    extract_pairs.main(step(folder, processes, cache, nouns=nouns))
    return read_table(folder / "pairs.parquet", PAIRS), read_json(folder / "pairs.json")


def test_rows_and_summary_also_of_another_language_and_a_novel_refused(tmp_path, caplog):
    table, summary = run(
        tmp_path, captions(["a red bird", "its bill is long", "a red bird", " ", "flying away"])
    )
    rows = [tuple(row) for row in table.itertuples(index=False)]
    assert rows == [
        ("b/0", 0, "red", "bird", 2, 5, 6, 10, "adjacent"),
        ("b/0", 1, "long", "bill", 12, 16, 4, 8, "predicative"),
        ("b/1", 0, "red", "bird", 2, 5, 6, 10, "adjacent"),
    ]
    counts = ("captions", "distinct", "with_pairs", "without_pairs", "empty", "pairs")
    assert [summary[c] for c in counts] == [5, 4, 3, 1, 1, 3]
    assert summary["relations"] == {
        "adjacent": 2,
        "attributive": 0,
        "predicative": 1,
        "shared": 0,
        "disputed": 0,
    }
    assert "warning" not in summary
    table, summary = run(tmp_path, empty_table(CAPTIONS))
    assert table.empty and summary["captions"] == 0 and "warning" not in summary
    texts = [
        "ein kleiner Vogel mit rotem Kopf",
        "der Schnabel ist lang",
        "黄色い鳥",
        "птица с красной головой",
    ]
    with caplog.at_level(logging.WARNING, logger="compclip"):
        _, summary = run(tmp_path, captions(texts))
    assert summary["captions"] == 4 and summary["without_pairs"] >= 3
    assert "most captions have no pair" in caplog.text and "most captions" in summary["warning"]
    (tmp_path / "novel").mkdir()
    with pytest.raises(UserError, match=r"b/0, caption 1: 27,\d+ characters, more than .*CAPTION"):
        run(tmp_path / "novel", captions(["a red bird", "red bird " * 3000]))
    assert not (tmp_path / "novel" / "pairs.parquet").exists()


def test_unknown_models_keys_of_lexicons_and_any_noun_without_one(extractor, adjectives, nouns):
    said = "spaCy pipeline 'xx_no_model' is not installed; run python -m spacy download"
    with pytest.raises(UserError, match=f"^--model: {said}"):
        load_language("xx_no_model")
    with pytest.raises(UserError, match=rf"^pairs\.model: {said}"):
        Extractor("xx_no_model", [], None)
    other = Extractor(MODEL, adjectives[:1], nouns)
    assert (
        other.keys(["a"])
        != extractor.keys(["a"])
        == Extractor(MODEL, adjectives, nouns).keys(["a"])
    )
    with pytest.raises(UserError, match="duplicate entry 'belly'"):
        Extractor(MODEL, [Lexicon("odd", {"belly": "red"})], nouns)
    anything = Extractor(MODEL, adjectives, None)
    found = decode_occurrences(anything.parse(["a red fire truck, people and two small wolves"])[0])
    assert {(o.adjective, o.noun) for o in found} == {("red", "fire truck"), ("small", "wolf")}


def test_same_bytes_for_any_processes_batches_and_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(parsing, "CHUNK", 5)
    results = set()
    for name, processes, batch in (("cold", 1, 4096), ("cold", 1, 4096), ("other", 2, 3)):
        monkeypatch.setattr(parsing, "LOOKUP_BATCH", batch)
        run(tmp_path, captions(TEXTS * 2), processes, cache=name)
        results.add(
            (tmp_path / "pairs.parquet").read_bytes() + (tmp_path / "pairs.json").read_bytes()
        )
    assert len(results) == 1


def shards_of(folder: Path, shards: int, nouns: Path | None) -> list[Path]:
    """The shards of the captions that ``run`` wrote, each made alone."""
    files = [folder / f"{shard}-of-{shards}.parquet" for shard in range(1, shards + 1)]
    for shard, found in enumerate(files, 1):
        number = SimpleNamespace(shard=str(shard), shards=str(shards))
        made = replace(
            step(folder, nouns=nouns), output=SimpleNamespace(pairs=found), wildcards=number
        )
        parse_captions.main(made)
    return files


@pytest.mark.parametrize("nouns", [BIRDS, None], ids=["lexicon", "any_noun"])
def test_the_number_of_shards_does_not_matter(tmp_path, adjectives, monkeypatch, nouns):
    """Captions repeat in other shards, one is blank; some shards have no pairs, or no captions.

    Only some shards have a singular: without a lexicon, all have its plural's noun.
    """
    extractor = Extractor(MODEL, adjectives, nouns and find_lexicon("birds", "nouns"))
    monkeypatch.setattr(parse_captions, "Extractor", lambda *_, **__: extractor)
    monkeypatch.setattr(parsing, "LOOKUP_BATCH", 4)
    plurals = [f"two {color} vases" for color in ("red", "blue", "green", "tan")]
    texts = [*TEXTS, " ", *["flying"] * 11, *TEXTS[3:9], "its bill is long", *plurals, "a red vase"]
    table, _ = run(tmp_path, captions(texts), nouns=nouns)
    assert nouns or {noun for noun in table["noun"] if noun.startswith("vas")} == {"vase"}
    outputs = [tmp_path / "pairs.parquet", tmp_path / "pairs.json"]
    whole = [path.read_bytes() for path in outputs]
    for shards, rows in ((1, 7), (3, 1000), (10, 3)):
        monkeypatch.setattr(workflow_scripts.inputs, "BLOCK", rows)
        extract_pairs.main(step(tmp_path, shards=shards_of(tmp_path, shards, nouns), nouns=nouns))
        assert [path.read_bytes() for path in outputs] == whole


@pytest.fixture(scope="module")
def any_noun(adjectives) -> Extractor:
    return Extractor(MODEL, adjectives, None)


def test_singular_and_plural_are_one_noun(any_noun):
    """In a table that has both; the tagger does not matter."""
    wrong = []
    for singular, plural in PLURALS:
        noun_forms = NounForms(any_noun.vocabulary, caption_words([singular, plural]))
        if {noun_forms.noun(form, form) for form in (singular, plural)} != {singular}:
            wrong.append((singular, plural))
    assert len(PLURALS) > 250 and wrong == []


@pytest.mark.parametrize(
    ("words", "nouns"),
    [
        ("news new", "news new"),
        ("bass bas", "bass ba"),
        ("clothes cloth", "clothes cloth"),
        ("axis axe axes", "axis axe axe"),
        ("lens len", "lens len"),
        ("shorts short", "shorts short"),
        ("cape capes cap caps", "cape cape cap cap"),
        ("toes to", "toe to"),
        ("leaves leave", "leaf leave"),
        ("gas ga bus bu", "gas ga bus bu"),
        ("data opera cola", "data opera cola"),
        ("stamens stamina", "stamen stamina"),
        ("scissors pants sunglasses", "scissors pants sunglasses"),
        ("people persons", "person person"),
        ("wings teeth eyes", "wing tooth eye"),
        ("tamens ramen reds", "tamen ramen reds"),
        ("vases cookies hoodies", "vase cookie hoodie"),
        ("hibiscus glass lotus moss", "hibiscus glass lotus moss"),
        ("skis menus tennis iris", "ski menu tennis iris"),
    ],
)
def test_other_nouns_are_not_merged_and_a_missing_singular_is_not_invented(any_noun, words, nouns):
    noun_forms = NounForms(any_noun.vocabulary, caption_words([words]))
    assert [noun_forms.noun(word, word) for word in words.split()] == nouns.split()


def test_a_pair_is_one_pair_in_all_forms_of_its_noun():
    forms = [
        form
        for pair in ("goose geese", "person people", "vase vases", "kiwi kiwis")
        for form in pair.split()
    ]
    texts = [f"a photo of the white {form} near a wall" for form in forms]
    table = library.extract_pairs(texts, ["color"])
    nouns = [*table.loc[table["adjective"] == "white"].groupby("image_id")["noun"].agg("first")]
    assert nouns == [noun for noun in ("goose", "person", "vase", "kiwi") for _ in range(2)]


def test_an_unlisted_plural_is_the_listed_noun():
    nouns = Lexicon("things", {"vase": "vase", "mug": "cup", "cup": "cup", "goose": "goose"})
    texts = ["two blue vases", "three blue geese", "some blue mugs", "two blue cookies"]
    table = library.extract_pairs(texts, ["color"], nouns)
    assert [*table["noun"]][:3] == ["vase", "goose", "cup"]


@settings(max_examples=80)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text(max_size=40))
def test_offsets_are_the_words_own(find, adjectives, nouns, text):
    forms = {**adjectives[0].forms, **adjectives[1].forms, **nouns.forms}
    for o in find(text):
        words = (
            (o.adjective, o.adjective_start, o.adjective_end),
            (o.noun, o.noun_start, o.noun_end),
        )
        for canonical, start, end in words:
            assert 0 <= start < end <= len(text)
            surface = " ".join(text[start:end].lower().split())
            assert forms.get(surface, canonical) == canonical
            assert forms.get(canonical, canonical) == canonical
        assert o.adjective_end <= o.noun_start or o.noun_end <= o.adjective_start
