"""The stage's steps, also of captions of everyday photographs without a noun lexicon, and its
exports.
"""

import json
import pickle
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import compclip.split.export
import compclip.split.swap_adjectives
import workflow_scripts.inputs
from compclip.core.artifacts.files import read_json, write_json
from compclip.core.artifacts.parquet import empty_table, read_table
from compclip.core.tables import CAPTIONS, RANKING, SPLIT, SWAPPED
from compclip.pairs.config import Selection
from compclip.pairs.extract_pairs import extract_pairs
from compclip.pairs.rank_pairs import rank_pairs
from compclip.split.audit import audit
from compclip.split.export import export, split_dict
from compclip.split.make_splits import CONTESTED, make_splits
from compclip.split.swap_adjectives import swap_adjectives
from compclip.text.lexicon import COMMON_COMPOUNDS
from tests.everyday import PATTERNS
from tests.project import COMPOSITION, DATASET, artifact_digests
from tests.split.stage import inputs, run, run_all, write_tables
from tests.split.worlds import captions_table, images_table, pairs_table

COLOR = COMMON_COMPOUNDS.parents[1] / "adjectives" / "color.yaml"


def split_of(folder: Path, texts: pd.DataFrame) -> None:
    """Run the steps from captions to the audit in ``folder``."""
    images, pairs = images_table(sorted(set(texts["image_id"]))), extract_pairs(texts, ["color"])
    ranking = rank_pairs(pairs, "color", None, Selection(min_count=1))
    write_tables(folder, captions=texts, images=images, pairs=pairs, ranking=ranking)
    run("sample_heldout", folder, adjectives=None, nouns=None, pairs=None)
    for step in ("make_splits", "swap_adjectives", "audit"):
        run(step, folder, adjectives=COLOR, nouns=None)


def test_everyday_captions_work_the_first_time(tmp_path: Path) -> None:
    colors = permutations("red blue green white black yellow brown gray".split(), 2)
    texts = [
        text.format(a=a, b=b, c="brown") for (a, b), text in product(list(colors)[::3], PATTERNS)
    ]
    split_of(
        tmp_path, captions_table([(f"{number:03d}", 0, text) for number, text in enumerate(texts)])
    )
    counts = read_json(tmp_path / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 3
    assert read_json(tmp_path / "splits.json")["contested_captions"] == []
    nouns = set(read_table(tmp_path / "ranking.parquet", RANKING)["noun"])
    assert {"water slide", "t-shirt", "fire hydrant", "teddy bear", "stop sign"} <= nouns
    assert nouns.isdisjoint({"t", "shirt", "slide", "hydrant", "fire", "light", "stop"})


def test_an_image_on_which_surface_and_parse_disagree_is_in_no_split(tmp_path: Path) -> None:
    rows = [
        ("a", 0, "a green slide"),
        ("b", 0, "a green bench"),
        ("c", 0, "green water"),
        ("d", 0, "a green bench"),
    ]
    texts = captions_table([*rows, *((f"e{i}", 0, "a green bench") for i in range(12))])
    texts = pd.concat([texts, captions_table([("f", 0, "green water")])], ignore_index=True)
    # The extraction found another noun in c than the order of words does.
    nouns = ["slide", "bench", "slime", *["bench"] * 13, "water"]
    said = zip(texts["image_id"], nouns, strict=True)
    pairs = pairs_table(
        [(image, 0, "green", noun, 2, 7, 8, 13, "adjacent") for image, noun in said]
    )
    ranking = pairs[["adjective", "noun"]].drop_duplicates(ignore_index=True)
    ranking = ranking.assign(count=1, images=1, rank=1, percentile=50.0)
    write_tables(
        tmp_path, captions=texts, pairs=pairs, ranking=ranking, swapped=empty_table(SWAPPED)
    )
    write_json({"pairs": ["green_slide", "green_water"]}, tmp_path / "heldout.json")
    run("make_splits", tmp_path, adjectives=COLOR, nouns=None)
    assert "c" not in set(read_table(tmp_path / "splits.parquet", SPLIT)["image_id"])
    summary = read_json(tmp_path / "splits.json")
    assert [(r["image_id"], r["pair"], r["text"]) for r in summary["contested_captions"]] == [
        ("c", "green_water", "green water")
    ]
    assert summary["excluded"] == {CONTESTED: 1}
    run("audit", tmp_path, adjectives=COLOR, nouns=None)
    assert read_json(tmp_path / "audit.json")["counts"]["images_excluded"] == 1


# The tagger takes the first for an adjective, so that only word order finds it.
GEESE = {"adjective": "two white geese in a yard", "noun": "the white geese are near a wall"}


def geese(plural: str) -> pd.DataFrame:
    """Captions of colored things, among them white geese in singular and plural."""
    things = product(
        "white red blue green black yellow".split(),
        "goose cup plate chair".split(),
        "red blue".split(),
    )
    texts = [
        f"a photo of a {color} {noun} beside a {other} box" for color, noun, other in things
    ] * 3
    return captions_table(
        [(f"{number:03d}", 0, text) for number, text in enumerate(texts + [plural] * 5)]
    )


@pytest.mark.parametrize("tag", GEESE)
def test_a_pair_held_out_in_one_form_is_held_out_in_all(tag: str) -> None:
    captions = geese(GEESE[tag])
    pairs = extract_pairs(captions, ["color"])
    ranking = rank_pairs(pairs, "color", None, Selection(min_count=1))
    splits, _ = make_splits(captions, pairs, ranking, ["white_goose"], "color")
    is_plural = captions["text"] == GEESE[tag]
    is_held_out = captions["text"].str.contains("white goose") | (is_plural & (tag == "noun"))
    unseen = set(splits.loc[splits["split"] == "test_unseen", "image_id"])
    assert unseen == set(captions.loc[is_held_out, "image_id"])
    assert set(splits["image_id"]) == set(captions.loc[is_held_out | ~is_plural, "image_id"])
    excluded = captions.loc[~captions["image_id"].isin(splits["image_id"]), "image_id"].tolist()
    checked = audit(
        captions, pairs, splits, empty_table(SWAPPED), ["white_goose"], "color", excluded=excluded
    )
    assert checked["counts"]["violations"] == 0


@pytest.mark.parametrize(
    ("heldout", "hidden"), [("white_goose", "white geese"), ("white_geese", "white goose")]
)
def test_word_order_finds_a_form_that_the_extraction_takes_for_another_noun(
    heldout: str, hidden: str
) -> None:
    captions = geese(GEESE["noun"])
    pairs = extract_pairs(captions, ["color"])
    is_plural = captions["text"].str.contains("geese")
    pairs.loc[pairs["image_id"].isin(captions.loc[is_plural, "image_id"]), "noun"] = "geese"
    ranking = rank_pairs(pairs, "color", None, Selection(min_count=1))
    splits, summary = make_splits(captions, pairs, ranking, [heldout], "color")
    leaky = set(captions.loc[captions["text"].str.contains(hidden), "image_id"])
    assert {record["image_id"] for record in summary["contested_captions"]} == leaky
    assert leaky.isdisjoint(splits["image_id"])
    splits = pd.concat([splits, pd.DataFrame({"image_id": sorted(leaky), "split": "train"})])
    checked = audit(captions, pairs, splits, empty_table(SWAPPED), [heldout], "color")
    assert {row["image_id"] for row in checked["violations"]} == leaky


def test_shards_and_blocks_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dict(artifact_digests(run_all(inputs(tmp_path / "whole"))))
    for shards, rows in ((1, 20), (3, 1000), (10, 7), (100, 1)):  # 80 images: some shards are empty
        monkeypatch.setattr(workflow_scripts.inputs, "BLOCK", rows)
        monkeypatch.setattr(compclip.split.swap_adjectives, "BLOCK_ROWS", rows)
        folder = run_all(inputs(tmp_path / f"{shards}"), shards)
        assert {name: of for name, of in artifact_digests(folder) if "-of-" not in name} == whole


def test_only_few_captions_are_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compclip.split.export, "MOST_PICKLED", 239)
    names = {path.name for path in (run_all(inputs(tmp_path / "most")) / "export").iterdir()}
    assert {"split.pkl", "train.csv", "train.jsonl"} == {name for name in names if name[0] != "."}


@pytest.mark.parametrize(
    "division", [{}, {"train": 0.4, "test": 0.4, "compound": 0.1}], ids=["pairs", "divergence"]
)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, division: dict[str, Any]) -> None:
    one, two = (run_all(inputs(tmp_path / name), **division) for name in ("one", "two"))
    found = dict(artifact_digests(one))
    assert found == dict(artifact_digests(two))
    names = {
        "heldout.json",
        "splits.csv",
        "swapped.parquet",
        "prompts.jsonl",
        "audit.json",
        "export/split.pkl",
    }
    assert names <= found.keys()
    heldout, splits = read_json(one / "heldout.json"), read_table(one / "splits.parquet", SPLIT)
    counts = read_json(one / "audit.json")["counts"]
    assert counts["violations"] == 0 and counts["swapped"] > 0 and heldout["pairs"]
    assert counts["images_excluded"] == 80 - len(splits) and (len(splits) < 80) == bool(division)
    if division:
        assert heldout["source"] == "divergence" and counts["captions"]["train"] == 3 * 32


def test_published_formats(results: Path) -> None:
    place = results / DATASET / COMPOSITION
    names = [path.name for path in sorted((place / "export").glob("[!.]*"))]
    assert names == ["data.pkl", "split.pkl", "train.csv", "train.jsonl"]
    images = (
        read_table(place / "splits.parquet", SPLIT).groupby("split")["image_id"].agg(list).to_dict()
    )
    split, data = (
        pickle.loads((place / "export" / f"{name}.pkl").read_bytes()) for name in ("split", "data")
    )
    assert split == images | {"heldout_pairs": sorted(read_json(place / "heldout.json")["pairs"])}
    expected: dict[str, dict[int, dict]] = {}
    for row in read_table(place.parent / "captions.parquet", CAPTIONS).itertuples():
        expected.setdefault(row.image_id, {})[row.caption_id] = {"text": row.text}
    swapped = read_table(place / "swapped.parquet", SWAPPED)
    for row in swapped.itertuples():
        (made,) = (
            change for change in row.changes if f"{change['new_adj']}_{change['noun']}" == row.pair
        )
        made = {key: made[key] for key in ("noun", "original_adj", "new_adj")}
        expected[row.image_id][row.caption_id] |= {
            "swapped_text": row.swapped_text,
            "changes_made": made,
        }
    assert data == expected
    assert {type(key) for captions in data.values() for key in captions} == {int}


def test_exports_of_any_order_and_a_swap_that_states_another_pair_is_not_made(
    tmp_path: Path,
) -> None:
    captions = captions_table(
        [("b/1", 1, 'a "red" bill'), ("b/1", 0, "wings"), ("a/2", 0, "a tail")]
    )
    splits = pd.DataFrame({"image_id": ["b/1", "a/2"], "split": "train"})
    swapped = pd.DataFrame(columns=["image_id", "caption_id", "swapped_text", "changes", "pair"])
    export(tmp_path, captions, images_table(["b/1", "a/2"], ["d/1.png", None]), splits, swapped, [])
    assert [list(json.loads(line).values()) for line in (tmp_path / "train.jsonl").open()] == [
        ["a/2", 0, None, "a tail"],
        ["b/1", 0, "d/1.png", "wings"],
        ["b/1", 1, "d/1.png", 'a "red" bill'],
    ]
    header, _, *lines = (tmp_path / "train.csv").read_text().splitlines()
    assert (
        header == "image_id,caption_id,file_name,text"
    )  # as imagefolder of Hugging Face datasets names it
    assert lines == ["b/1,0,d/1.png,wings", 'b/1,1,d/1.png,"a ""red"" bill"']
    assert split_dict(splits, ["red_wing", "blue_bill"]) == {
        "train": ["a/2", "b/1"],
        "test_seen": [],
        "test_unseen": [],
        "heldout_pairs": ["blue_bill", "red_wing"],
    }
    # The extraction missed the slide in a.
    captions = captions_table([("a", 0, "a red bench and slide"), ("b", 0, "a gray slide")])
    places = (
        ("a", 0, "red", "bench", 2, 5, 6, 11, "adjacent"),
        ("b", 0, "gray", "slide", 2, 6, 7, 12, "adjacent"),
    )
    given = (
        captions,
        pairs_table([*places]),
        pd.DataFrame({"image_id": ["a", "b"], "split": ["test_seen", "train"]}),
    )
    assert len(swap_adjectives(*given, ["green_bench"], "color")[0]) == 1
    # A reader that knows slides sees that the swap would state another pair.
    made, summary = swap_adjectives(*given, ["green_bench", "blue_slide"], "color")
    assert made.empty and summary["excluded"] == {"order of words disagrees": 1}
