"""The measurement of the splits: samples by hand, the swapped texts, the whole step on a small world."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.divergence.weighing import samples_of
from tests.split.split_worlds import COLORS, NOUNS, pairs_table, rank, world
from tests.split.stage import inputs, run_all
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import empty_table, read_json, read_table, write_table
from workflow_scripts.core.tables import CAPTIONS, DIVERGENCE, PAIRS, PROMPTS, SPLIT, SWAPPED
from workflow_scripts.divergence import measure_splits
from workflow_scripts.divergence.chernoff import divergence, divergences
from workflow_scripts.divergence.measure import measure
from workflow_scripts.divergence.measure_splits import by_pairs, distributions, swapped_occurrences
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.divergence.samples import collect
from workflow_scripts.divergence.steps import MeasureSplits
from workflow_scripts.divergence.subgraphs import find_subgraphs
from workflow_scripts.divergence.trees import plant
from workflow_scripts.pairs.engine import Extractor, decode_tree
from workflow_scripts.split.swap_adjectives import swap_adjectives
from workflow_scripts.text.lexicon import load_lexicon

TABLES = "captions pairs ranking splits swapped prompts"
SCHEMAS = {"captions": CAPTIONS, "pairs": PAIRS, "splits": SPLIT, "swapped": SWAPPED, "prompts": PROMPTS}


def said(*rows: str) -> pd.DataFrame:
    """``image adjective noun [relation]`` a row."""
    words = [row.split() for row in rows]
    return pairs_table([(i, 0, a, n, 0, 1, 2, 3, *(more or ["adjacent"])) for i, a, n, *more in words])


def test_an_image_is_its_ranked_words_and_pairs() -> None:
    occurrences = said("b red wing", "b red wing shared", "a blue wing disputed", "c red wing", "b red claw")
    ranking = rank(said("x red wing", "x blue wing", "x blue bill"))
    samples = pair_samples(occurrences, ranking, ["a", "b", "empty"])
    assert samples.atom_names == ["adjective:blue", "adjective:red", "noun:wing"]
    assert samples.atoms.toarray().tolist() == [[1, 0, 1], [0, 2, 2], [0, 0, 0]]
    assert samples.compound_names == ["blue_wing", "red_wing"]
    assert samples.compounds.toarray().tolist() == [[1, 0], [0, 2], [0, 0]]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_samples_are_the_counts_of_the_rows(seed: int) -> None:
    data = world(seed, images=8, captions=2)
    ids = data.images["image_id"].tolist()[::-1]
    samples = pair_samples(data.pairs, data.ranking, ids)
    ranked = data.pairs[pair_names(data.pairs).isin(pair_names(data.ranking))]
    for i, image in enumerate(ids):
        own = ranked[ranked["image_id"] == image]
        for adjective, noun in own[["adjective", "noun"]].itertuples(index=False):
            weight = samples.compounds.toarray()[i, samples.compound_names.index(f"{adjective}_{noun}")]
            assert weight == ((own["adjective"] == adjective) & (own["noun"] == noun)).sum()
        assert samples.compounds.toarray()[i].sum() == len(own)
        assert samples.atoms.toarray()[i].sum() == 2 * len(own)
    assert (samples.compounds.toarray().sum(axis=0) > 0).all() and (samples.atoms.toarray().sum(axis=0) > 0).all()


def swaps(**changes: list[dict]) -> pd.DataFrame:
    """Swapped captions, by image, whose changes are given."""
    rows = [(image, 0, "", "", change, "x_y") for image, change in changes.items()]
    return pd.DataFrame(rows, columns=list(SWAPPED.columns))


def change(noun: str, old: str, new: str, start: int) -> dict:
    end = start + len(old)
    return {"noun": noun, "original_adj": old, "new_adj": new, "start": start, "end": end,
            "new_start": start, "new_end": end}  # fmt: skip


def test_a_swapped_caption_has_the_new_pairs_and_the_others() -> None:
    pairs = pairs_table([
        ("a", 0, "red", "wing", 2, 5, 6, 10, "adjacent"),
        ("a", 0, "red", "bill", 2, 5, 15, 19, "shared"),
        ("a", 0, "red", "belly", 30, 33, 34, 39, "adjacent"),
        ("a", 1, "red", "wing", 2, 5, 6, 10, "adjacent"),
        ("b", 0, "gray", "wing", 2, 6, 7, 11, "adjacent"),
    ])  # fmt: skip
    swapped = swaps(a=[change("wing", "red", "blue", 2), change("tail", "red", "gray", 50)])
    found, lost = swapped_occurrences(pairs, swapped)
    rows = found[["image_id", "caption_id", "adjective", "noun"]].to_numpy().tolist()
    # Of caption 0 alone; who bears the changed word bears the new one; what stands elsewhere stays.
    assert rows == [["a", 0, "blue", "wing"], ["a", 0, "blue", "bill"], ["a", 0, "red", "belly"]]
    assert lost == 1
    nothing, lost = swapped_occurrences(pairs, empty_table(SWAPPED))
    assert nothing.empty and not lost


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_every_swap_is_found_in_the_occurrences(seed: int) -> None:
    data = world(seed, images=12, captions=2)
    heldout = [f"{a}_{n}" for a, n in data.ranking[["adjective", "noun"]].itertuples(index=False)][::2]
    swapped, _ = swap_adjectives(data.captions, data.pairs, heldout, COLORS, NOUNS, 0, "d", "color")
    found, lost = swapped_occurrences(data.pairs, swapped)
    assert lost == 0
    before = data.pairs.merge(swapped[["image_id", "caption_id"]], on=["image_id", "caption_id"])
    assert len(found) == len(before)
    for row in swapped.itertuples():
        own = found[(found["image_id"] == row.image_id) & (found["caption_id"] == row.caption_id)]
        there = set(own[["adjective", "noun"]].itertuples(index=False, name=None))
        assert {(c["new_adj"], c["noun"]) for c in row.changes} <= there


def test_the_largest_shares_are_shown() -> None:
    occurrences = said("a red wing", "a red wing", "a blue bill", "b red wing", "b gray bill", "b gray bill")
    rows = occurrences.assign(row=occurrences["image_id"].map({"a": 0, "b": 1}))[["row", "adjective", "noun"]]
    weighing = by_pairs(rows, rank(occurrences), 2)(collect([]), collect([]))
    side = measure_splits.Side("test_seen", "captions", occurrences)
    train, test = (weighing.totals(collect([[row]])) for row in (0, 1))
    atoms, compounds = distributions(weighing, train, test, side, "pairs")
    assert (compounds["kind"], compounds["names"]) == ("compounds", ["red_wing", "gray_bill", "blue_bill"])
    assert compounds["train"] == [0.666667, 0.0, 0.333333] and compounds["test"] == [0.333333, 0.666667, 0.0]
    assert atoms["names"][:3] == ["adjective:red", "noun:bill", "noun:wing"]
    assert sum(atoms["train"]) == pytest.approx(1, abs=1e-5)


def step(folder: Path, **more: Any) -> pd.DataFrame:
    files = {name: folder / f"{name}.parquet" for name in TABLES.split()}
    out = {"divergence": folder / "divergence.parquet", "summary": folder / "divergence.json"}
    fields = {"dataset": "d", "composition": "color", "settings": {"subgraphs": None}, **files, **out, **more}
    measure_splits.main(MeasureSplits(**fields))
    return read_table(folder / "divergence.parquet", DIVERGENCE)


def tables(folder: Path, names: str) -> list[pd.DataFrame]:
    return [read_table(folder / f"{name}.parquet", SCHEMAS[name]) for name in names.split()]


def parsing(folder: Path) -> dict[str, Any]:
    """The fields with which subgraphs are measured too."""
    files = {"adjectives": [folder / "color.yaml"], "nouns": folder / "nouns.yaml", "cache": folder / "cache"}
    return {"settings": {"subgraphs": {"nodes": 3, "branching": 2, "keep": 500}}, **files}


def sides_by_hand(folder: Path, test: pd.DataFrame) -> dict[str, float]:
    """Both divergences from dicts, by the definition. test: image_id, adjective, noun of the split's side."""
    pairs, splits = tables(folder, "pairs splits")
    train = pairs[pairs["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    result = {}
    for name, columns, alpha in (("atom", (["adjective"], ["noun"]), 0.5), ("compound", (["adjective", "noun"],), 0.1)):
        counts = [
            pd.concat([side[c].agg(tuple, axis=1).map(lambda v, k=c: (k[0], *v)) for c in columns]).value_counts()
            for side in (train, test)
        ]
        names = sorted({*counts[0].index, *counts[1].index})
        both = [np.array([count.get(n, 0) for n in names], float) for count in counts]
        result[f"{name}_divergence"] = round(divergence(*both, alpha), 6)
    return result


def test_the_step_measures_what_the_tables_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run_all(inputs(tmp_path))
    with caplog.at_level("INFO"):
        table = step(tmp_path).set_index(["split", "texts"])
    assert caplog.messages[0].endswith("texts: about 0.7 GB of memory")
    assert set(table.index) == {
        (s, t) for s in ("test_seen", "test_unseen", "test_swapped") for t in ("captions", "prompts")
    }
    pairs, splits, prompts, swapped = tables(tmp_path, "pairs splits prompts swapped")
    unseen = splits.loc[splits["split"] == "test_unseen", "image_id"]
    key = ["image_id", "caption_id"]
    expected = {
        "captions": pairs[pairs["image_id"].isin(unseen)],
        "prompts": pairs.merge(prompts.loc[prompts["split"] == "test_unseen", key].drop_duplicates(), on=key),
    }
    for texts, test in expected.items():
        row = table.loc["test_unseen", texts]
        found = sides_by_hand(tmp_path, test)
        assert found == {name: row[name] for name in found}
        assert row["test"] == test["image_id"].nunique() or texts == "captions"
    assert table.loc[("test_unseen", "captions"), "test"] == len(unseen)
    assert (table["train"] == (splits["split"] == "train").sum()).all()
    assert table.loc[("test_swapped", "captions"), "test"] == swapped["image_id"].nunique()
    # Held-out pairs are in no caption of train, so that what has them is farther away than what is drawn.
    for texts in ("captions", "prompts"):
        compound = table.xs(texts, level="texts")["compound_divergence"]
        assert compound["test_seen"] < min(compound["test_unseen"], compound["test_swapped"])
    summary = read_json(tmp_path / "divergence.json")
    assert {(d["definition"], d["split"], d["kind"]) for d in summary["distributions"]} == {
        ("pairs", split, kind) for split in compound.index for kind in ("atoms", "compounds")
    }
    assert summary["kept_compounds"] is None and summary["warnings"] == []
    first = (tmp_path / "divergence.parquet").read_bytes()
    step(tmp_path)
    assert (tmp_path / "divergence.parquet").read_bytes() == first
    other = step(tmp_path, seed=1).set_index(["split", "texts"])
    assert (other["compound_divergence"] == table["compound_divergence"]).all()
    assert (other["random_compound_mean"] != table["random_compound_mean"]).all()


def test_a_split_without_texts_is_said_and_not_measured(tmp_path: Path) -> None:
    run_all(inputs(tmp_path))
    write_table(empty_table(SWAPPED), tmp_path / "swapped.parquet", SWAPPED)
    table = step(tmp_path, **parsing(tmp_path))
    assert table.groupby(["definition", "split"]).size().to_dict() == {
        (definition, split): 2 for definition in ("pairs", "subgraphs") for split in ("test_seen", "test_unseen")
    }
    warnings = read_json(tmp_path / "divergence.json")["warnings"]
    assert [w.split(":")[0] for w in warnings] == [
        f"{definition}, test_swapped ({texts})"
        for definition in ("pairs", "subgraphs")
        for texts in ("captions", "prompts")
    ]


def test_subgraphs_are_measured_beside_the_pairs(tmp_path: Path) -> None:
    run_all(inputs(tmp_path))
    more = parsing(tmp_path)
    table = step(tmp_path, **more)
    assert table.groupby("definition").size().to_dict() == {"pairs": 6, "subgraphs": 6}
    pairs, finer = (table[table["definition"] == name].reset_index(drop=True) for name in ("pairs", "subgraphs"))
    assert (pairs[["train", "test"]] == finer[["train", "test"]]).all(axis=None)
    assert (finer["compounds"] == 500).all()
    # A row anew: an image's swapped texts, parsed apart.
    swapped, captions, splits = tables(tmp_path, "swapped captions splits")
    texts: dict[str, list[str]] = {}
    for image, text in captions[["image_id", "text"]].itertuples(index=False):
        if image in set(splits.loc[splits["split"] == "train", "image_id"]):
            texts.setdefault(image, []).append(text)
    n_train = len(texts)
    for image, text in swapped[["image_id", "swapped_text"]].itertuples(index=False):
        texts.setdefault(image, []).append(text)
    flat = [text for own in texts.values() for text in own]
    extractor = Extractor(
        "en_core_web_sm", [load_lexicon(tmp_path / "color.yaml")], load_lexicon(tmp_path / "nouns.yaml")
    )
    forest = plant([decode_tree(value) for value in extractor.parse(flat)])
    ends = np.cumsum([len(own) for own in texts.values()])
    places = [range(end - len(own), end) for end, own in zip(ends, texts.values(), strict=True)]
    samples = samples_of(find_subgraphs(forest, 3, 2), places, 500)
    atom, compound = measure(samples, range(n_train), range(n_train, len(places)))
    row = finer.set_index(["split", "texts"]).loc["test_swapped", "captions"]
    assert (row["atom_divergence"], row["compound_divergence"]) == (round(atom, 6), round(compound, 6))
    assert read_json(tmp_path / "divergence.json")["kept_compounds"] == 500
    # A cache changes nothing.
    first = (tmp_path / "divergence.parquet").read_bytes()
    step(tmp_path, **more)
    assert (tmp_path / "divergence.parquet").read_bytes() == first


def test_random_sides_have_as_many_captions_as_the_split() -> None:
    """Of a split that is chance itself, the measured divergence is one of the random ones, few captions or all."""
    draw = np.random.default_rng(5)
    images, captions, n_test = 300, 8, 60
    rows = images * captions
    adjectives = draw.choice(["red", "blue", "gray", "green", "brown"], 2 * rows)
    nouns = draw.choice(["wing", "bill", "belly", "tail", "head", "back"], 2 * rows)
    occurrences = pd.DataFrame({"row": np.repeat(np.arange(rows), 2), "adjective": adjectives, "noun": nouns})
    ranking = rank(occurrences.rename(columns={"row": "image_id"}).assign(caption_id=0, relation="adjacent"))
    weighing = by_pairs(occurrences, ranking, rows)(collect([]), collect([]))
    own = np.arange(rows).reshape(images, captions).tolist()
    alone = []
    for asked in (1, 2, captions):
        measured = []
        for _ in range(20):
            order = draw.permutation(images)
            train = [own[i] for i in order[n_test:]]
            test = [draw.choice(own[i], asked, replace=False).tolist() for i in order[:n_test]]
            measured.append(divergences(*(weighing.totals(collect(side)) for side in (train, test))))
        every, counts = collect(own), np.full(n_test, asked)
        random = measure_splits.random_sides(weighing, every, counts, 20, draw)
        error = np.sqrt(random.var(axis=0) / 20 + np.var(measured, axis=0) / 20)
        assert (abs(random.mean(axis=0) - np.mean(measured, axis=0)) < 4 * error).all()
        alone.append(random.mean(axis=0))
    # Fewer captions alone are farther away.
    assert (alone[0] > 1.5 * alone[1]).all() and (alone[1] > 1.5 * alone[2]).all()
