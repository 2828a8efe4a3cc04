"""The measurement of the splits: samples by hand, the swapped texts, and the rows of a finished run
made anew.
"""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from compclip.core.artifacts.files import read_json
from compclip.core.artifacts.parquet import empty_table, read_table, write_table
from compclip.core.tables import CAPTIONS, DIVERGENCE, PAIRS, PROMPTS, SPLIT, SWAPPED
from compclip.divergence.chernoff import divergence, divergences
from compclip.divergence.measure_splits import by_pairs, distributions, random_sides
from compclip.divergence.pair_samples import pair_samples, swapped_occurrences
from compclip.divergence.samples import collect_bags
from compclip.divergence.subgraphs import Forest, find_subgraphs
from compclip.pairs.engine import Extractor, decode_tree
from compclip.text.lexicon import COMMON_COMPOUNDS, load_lexicon
from tests.project import Project
from tests.scripts import job
from tests.split.worlds import pairs_table, rank, said
from workflow_scripts.divergence import measure_splits

KEY = ["image_id", "caption_id"]
SCHEMAS = {
    "captions": CAPTIONS,
    "pairs": PAIRS,
    "splits": SPLIT,
    "swapped": SWAPPED,
    "prompts": PROMPTS,
}


def test_samples_and_the_largest_shares_by_hand() -> None:
    """An image is its ranked words and pairs; a swapped caption has the new pairs and the
    others.
    """
    occurrences = said(
        "b red wing", "b red wing shared", "a blue wing disputed", "c red wing", "b red claw"
    )
    ranking = rank(said("x red wing", "x blue wing", "x blue bill"))
    samples = pair_samples(occurrences, ranking, ["a", "b", "empty"])
    assert samples.atom_names == ["adjective:blue", "adjective:red", "noun:wing"]
    assert samples.atoms.toarray().tolist() == [[1, 0, 1], [0, 2, 2], [0, 0, 0]]
    assert samples.compound_names == ["blue_wing", "red_wing"]
    assert samples.compounds.toarray().tolist() == [[1, 0], [0, 2], [0, 0]]
    pairs = pairs_table(
        [
            ("a", 0, "red", "wing", 2, 5, 6, 10, "adjacent"),
            ("a", 0, "red", "bill", 2, 5, 15, 19, "shared"),
            ("a", 0, "red", "belly", 30, 33, 34, 39, "adjacent"),
            ("a", 1, "red", "wing", 2, 5, 6, 10, "adjacent"),
            ("b", 0, "gray", "wing", 2, 6, 7, 11, "adjacent"),
        ]
    )
    changes = [{"start": 2, "new_adj": "blue"}, {"start": 50, "new_adj": "gray"}]
    swapped = pd.DataFrame([("a", 0, "", "", changes, "x_y", True)], columns=list(SWAPPED.columns))
    found, lost = swapped_occurrences(pairs, swapped)
    # Of caption 0 alone: all nouns of the changed word get the new one.
    assert found[["adjective", "noun"]].values.tolist() == [
        ["blue", "wing"],
        ["blue", "bill"],
        ["red", "belly"],
    ]
    assert lost == 1
    nothing, lost = swapped_occurrences(pairs, empty_table(SWAPPED))
    assert nothing.empty and not lost
    occurrences = said(
        "a red wing", "a red wing", "a blue bill", "b red wing", "b gray bill", "b gray bill"
    )
    rows = occurrences.assign(row=occurrences["image_id"].map({"a": 0, "b": 1}))[
        ["row", "adjective", "noun"]
    ]
    weighing = by_pairs(rows, rank(occurrences), 2)(collect_bags([]))
    train, test = (weighing.totals(collect_bags([[row]])) for row in (0, 1))
    atoms, compounds = distributions(weighing, train, test, "test_seen", "pairs")
    assert (compounds["kind"], compounds["names"]) == (
        "compounds",
        ["red_wing", "gray_bill", "blue_bill"],
    )
    assert compounds["train"] == [0.666667, 0.0, 0.333333] and compounds["test"] == [
        0.333333,
        0.666667,
        0.0,
    ]
    assert atoms["names"][:3] == ["adjective:red", "noun:bill", "noun:wing"]
    assert sum(atoms["train"]) == pytest.approx(1, abs=1e-5)


def table(run: Project, name: str) -> pd.DataFrame:
    place = run.root / "results" / "sketch"
    return read_table(
        place / ("" if name in ("captions", "pairs") else "color") / f"{name}.parquet",
        SCHEMAS[name],
    )


def measured(folder: Path) -> pd.DataFrame:
    return read_table(folder / "divergence.parquet", DIVERGENCE).set_index(
        ["definition", "split", "texts"]
    )


def step(run: Project, folder: Path, seed: int = 0, **more: Path) -> pd.DataFrame:
    """MeasureSamples the finished run anew, with a copy of its cache."""
    place, lexicons = run.root / "results" / "sketch", run.root / "lexicons"
    if not (folder / "cache").exists():
        (folder / "cache" / "pairs").mkdir(parents=True)
        shutil.copy(
            run.root / ".cache" / "pairs" / "occurrences.sqlite", folder / "cache" / "pairs"
        )
    files = {
        name: place / "color" / f"{name}.parquet"
        for name in ("ranking", "splits", "swapped", "prompts")
    }
    files |= {"pairs": place / "pairs.parquet"} | more
    single = {"captions": place / "captions.parquet", "nouns": lexicons / "nouns/birds.yaml"}
    measure_splits.main(
        job(
            input=single
            | {"compounds": COMMON_COMPOUNDS}
            | {name: [file] for name, file in files.items()},
            output={
                "divergence": [folder / "divergence.parquet"],
                "summary": [folder / "divergence.json"],
            },
            dataset="sketch",
            cache=folder / "cache",
            model="en_core_web_sm",
            seed=seed,
            compositions=["color"],
            lexicons=[[str(lexicons / f"adjectives/{name}.yaml") for name in ("color", "shape")]],
            settings={"shuffles": 2, "subgraphs": {"nodes": 3, "keep": 2000}},
        )
    )
    return measured(folder)


def sides_by_hand(pairs: pd.DataFrame, train: pd.Series, test: pd.DataFrame) -> dict[str, float]:
    """Both divergences from counts, by the definition. test: image_id, adjective, noun of the
    split's side.
    """
    result = {}
    for name, columns, alpha in (
        ("atom", (["adjective"], ["noun"]), 0.5),
        ("compound", (["adjective", "noun"],), 0.1),
    ):
        counts = [
            pd.concat(
                [side[c].agg(tuple, axis=1).map(lambda v, k=c: (k[0], *v)) for c in columns]
            ).value_counts()
            for side in (pairs[pairs["image_id"].isin(train)], test)
        ]
        names = sorted({*counts[0].index, *counts[1].index})
        both = [np.array([count.get(n, 0) for n in names], float) for count in counts]
        result[f"{name}_divergence"] = round(divergence(*both, alpha), 6)
    return result


def test_the_run_measures_what_its_tables_say(first_run: Project) -> None:
    place = first_run.root / "results" / "sketch" / "color"
    rows = measured(place)
    captions, pairs, splits, swapped, prompts = (table(first_run, name) for name in SCHEMAS)
    ranking = pd.read_parquet(place / "ranking.parquet")
    pairs = pairs.merge(ranking[["adjective", "noun"]], on=["adjective", "noun"])
    train = splits.loc[splits["split"] == "train", "image_id"]
    for split in ("test_seen", "test_unseen"):
        images = splits.loc[splits["split"] == split, "image_id"]
        asked = prompts.loc[prompts["split"] == split, KEY].drop_duplicates()
        for texts, test in {
            "captions": pairs[pairs["image_id"].isin(images)],
            "prompts": pairs.merge(asked),
        }.items():
            row = rows.loc["pairs", split, texts]
            by_hand = sides_by_hand(pairs, train, test)
            assert by_hand == {name: row[name] for name in by_hand}
        assert rows.loc[("pairs", split, "captions"), "test"] == len(images)
        assert rows.loc[("pairs", split, "prompts"), "test"] == asked["image_id"].nunique()
    assert (rows["train"] == len(train)).all()
    for definition in ("pairs", "subgraphs"):
        assert (
            rows.loc[(definition, "test_swapped", "captions"), "test"]
            == swapped["image_id"].nunique()
        )
    # Held-out pairs are in no caption of train, so that what has them is farther away than what is
    # drawn.
    compound = rows.loc["pairs"].xs("captions", level="texts")["compound_divergence"]
    assert compound["test_seen"] < min(compound["test_unseen"], compound["test_swapped"])
    # Subgraphs of an image's swapped texts anew, parsed apart.
    texts = pd.concat(
        [captions[captions["image_id"].isin(train)], swapped.assign(text=swapped["swapped_text"])]
    )
    names = ("adjectives/color", "adjectives/shape", "nouns/birds")
    *adjectives, nouns = (
        load_lexicon(first_run.root / "lexicons" / f"{name}.yaml") for name in names
    )
    extractor = Extractor("en_core_web_sm", adjectives, nouns)
    distinct, row_of = np.unique(texts["text"], return_inverse=True)
    found = find_subgraphs(
        Forest([decode_tree(value) for value in extractor.parse(distinct.tolist())]), 3, 2
    )
    groups = (
        pd.Series(row_of, index=texts["image_id"].to_numpy()).groupby(level=0, sort=False).agg(list)
    )
    weighing = found.weigh(collect_bags(groups.tolist()), 2000)
    sides = [
        weighing.totals(collect_bags(groups[groups.index.isin(train) == side].tolist()))
        for side in (True, False)
    ]
    row = rows.loc["subgraphs", "test_swapped", "captions"]
    atom, compound = divergences(*sides)
    assert (row["atom_divergence"], row["compound_divergence"]) == (
        round(atom, 6),
        round(compound, 6),
    )
    assert row["compounds"] == 2000 == read_json(place / "divergence.json")["kept_compounds"]


def test_the_step_repeats_and_notes_what_has_no_text(first_run: Project, tmp_path: Path) -> None:
    place = first_run.root / "results" / "sketch" / "color"
    before = step(first_run, tmp_path)
    for name in ("divergence.parquet", "divergence.json"):
        assert (tmp_path / name).read_bytes() == (place / name).read_bytes()
    empty = tmp_path / "swapped.parquet"
    write_table(empty_table(SWAPPED), empty, SWAPPED)
    other = step(first_run, tmp_path, seed=1, swapped=empty)
    assert "test_swapped" not in other.index.get_level_values("split") and len(other) == 8
    warnings = read_json(tmp_path / "divergence.json")["warnings"]
    assert [w.split(":")[0] for w in warnings] == [
        f"{definition}, test_swapped ({texts})"
        for definition in ("pairs", "subgraphs")
        for texts in ("captions", "prompts")
    ]
    both = before.loc[other.index]
    assert (other["compound_divergence"] == both["compound_divergence"]).all()
    assert (other["random_compound_mean"] != both["random_compound_mean"]).any()


def test_random_sides_have_as_many_captions_as_the_split() -> None:
    """Of a split that is chance itself, the measured divergence is one of the random ones, few
    captions or all.
    """
    draw = np.random.default_rng(5)
    images, captions, n_test = 300, 8, 60
    rows = images * captions
    adjectives = draw.choice(["red", "blue", "gray", "green", "brown"], 2 * rows)
    nouns = draw.choice(["wing", "bill", "belly", "tail", "head", "back"], 2 * rows)
    occurrences = pd.DataFrame(
        {"row": np.repeat(np.arange(rows), 2), "adjective": adjectives, "noun": nouns}
    )
    ranking = rank(
        occurrences.rename(columns={"row": "image_id"}).assign(caption_id=0, relation="adjacent")
    )
    weighing = by_pairs(occurrences, ranking, rows)(collect_bags([]))
    own = np.arange(rows).reshape(images, captions).tolist()
    alone = []
    for asked in (1, 2, captions):
        measured = []
        for _ in range(20):
            order = draw.permutation(images)
            train = [own[i] for i in order[n_test:]]
            test = [draw.choice(own[i], asked, replace=False).tolist() for i in order[:n_test]]
            measured.append(
                divergences(*(weighing.totals(collect_bags(side)) for side in (train, test)))
            )
        every, counts = collect_bags(own), np.full(n_test, asked)
        random = random_sides(weighing, every, counts, 20, draw)
        error = np.sqrt(random.var(axis=0) / 20 + np.var(measured, axis=0) / 20)
        assert (abs(random.mean(axis=0) - np.mean(measured, axis=0)) < 4 * error).all()
        alone.append(random.mean(axis=0))
    # Fewer captions alone are farther away.
    assert (alone[0] > 1.5 * alone[1]).all() and (alone[1] > 1.5 * alone[2]).all()
