"""Measure how far each test split is from train (DBCA; Keysers et al. 2020)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.rounding import DECIMALS
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, DIVERGENCE, TESTS
from compclip.divergence.chernoff import Totals, divergences
from compclip.divergence.config import DivergenceConfig
from compclip.divergence.pair_samples import pair_samples, swapped_occurrences
from compclip.divergence.samples import Bags, Weighing, collect_bags, join
from compclip.divergence.subgraphs import MAX_OCCURRENCES, Forest, FoundSubgraphs, find_subgraphs
from compclip.io import empty_table
from compclip.pairs.engine import Extractor, decode_tree
from compclip.pairs.tree import Tree
from compclip.text.parsing import parse_texts

# Number of atoms, and of compounds, in a figure.
MOST_SHOWN = 30
# Weighs samples, given a pool.
Definition = Callable[[Bags], Weighing]


class Side(NamedTuple):
    """The captions of a split: columns image_id, caption_id, row (of the table of all texts)."""

    split: str
    texts: str
    captions: pd.DataFrame


def test_sides(
    captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame
) -> Iterator[Side]:
    """Yield each test split, first with all its captions, then with those that are prompted for."""
    asked = prompts[[*CAPTION_KEY, "split"]].drop_duplicates()
    for split in TESTS:
        of_split = swapped
        if split != "test_swapped":
            of_split = captions[
                captions["image_id"].isin(splits.loc[splits["split"] == split, "image_id"])
            ]
        of_split = of_split.sort_values(CAPTION_KEY, ignore_index=True)
        yield Side(split, "captions", of_split)
        yield Side(
            split,
            "prompts",
            of_split.merge(asked[asked["split"] == split][CAPTION_KEY], on=CAPTION_KEY),
        )


def samples_of(captions: pd.DataFrame) -> Bags:
    """Return the rows of each image's captions; ``captions`` are sorted by image."""
    sizes = captions.groupby("image_id", sort=False).size()
    return Bags(
        np.concatenate(([0], sizes.cumsum())).astype(np.int64), captions["row"].to_numpy(np.int64)
    )


def random_sides(
    weighing: Weighing,
    captions: Bags,
    counts: np.ndarray,
    shuffles: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return (shuffles, 2): D_A and D_C of random divisions of images; 1 if a side has no atoms or
    no compounds.

    Args:
        captions: of all images of train and test.
        counts: number of captions of each test image; a random test image has as many of its own,
            or all of them.
    """
    images = np.split(captions.items, captions.begins[1:-1])
    # One sum, so that train has exactly 0 of items that only test has: to the power 0.1, even 1e-17
    # would count.
    whole = weighing.totals(captions)
    result = np.ones((shuffles, 2))
    for shuffle in range(shuffles):
        order = generator.permutation(len(images))
        chosen = [images[i] for i in order[len(images) - len(counts) :]]
        unused = test = weighing.totals(collect_bags(chosen))
        numbers = np.minimum(generator.permutation(counts), [len(rows) for rows in chosen])
        if numbers.sum() < sum(map(len, chosen)):
            drawn = [
                generator.choice(rows, n, replace=False)
                for rows, n in zip(chosen, numbers, strict=True)
            ]
            test = weighing.totals(collect_bags(drawn))
        train = Totals(*(np.subtract(*both) for both in zip(whole, unused, strict=True)))
        with suppress(UserError):
            result[shuffle] = divergences(train, test)
    return result


def row_of(
    train: Totals,
    test: Totals,
    side: Side,
    definition: str,
    n_train: int,
    n_test: int,
    random: np.ndarray,
) -> dict[str, Any]:
    """Return a row of ``tables.DIVERGENCE``."""
    atom, compound = divergences(train, test)
    row = {
        "definition": definition,
        "split": side.split,
        "texts": side.texts,
        "train": n_train,
        "test": n_test,
        "atoms": np.count_nonzero(train.atoms + test.atoms),
        "compounds": np.count_nonzero(train.compounds + test.compounds),
        "atom_divergence": atom,
        "compound_divergence": compound,
        "random_atom_mean": random[:, 0].mean(),
        "random_atom_std": random[:, 0].std(),
        "random_compound_mean": random[:, 1].mean(),
        "random_compound_std": random[:, 1].std(),
        "shuffles": len(random),
    }
    return {
        name: round(float(value), DECIMALS) if isinstance(value, float) else value
        for name, value in row.items()
    }


def distributions(
    weighing: Weighing, train: Totals, test: Totals, side: Side, definition: str
) -> list[dict[str, Any]]:
    """Return the fractions, in train and in the split, of the atoms and compounds most frequent in
    both together.
    """
    result = []
    name_of = {"atoms": weighing.atom_name, "compounds": weighing.compound_name}
    for (kind, name), of_train, of_test in zip(name_of.items(), train, test, strict=True):
        both = of_train / of_train.sum(), of_test / of_test.sum()
        order = -np.round(both[0] + both[1], 9)
        count = min(MOST_SHOWN, int(np.count_nonzero(both[0] + both[1])))
        # Only candidates for the figure are named; ties are ordered by name.
        candidates = np.flatnonzero(order <= np.partition(order, count - 1)[count - 1]).tolist()
        _, names, first = zip(
            *sorted((order[row], name(row), row) for row in candidates)[:count], strict=True
        )
        head = {"definition": definition, "split": side.split, "kind": kind, "names": list(names)}
        of_train, of_test = (np.round(of[list(first)], DECIMALS).tolist() for of in both)
        result.append({**head, "train": of_train, "test": of_test})
    return result


def by_pairs(occurrences: pd.DataFrame, ranking: pd.DataFrame, rows: int) -> Definition:
    """Return the weighing by ``pairs``, whose counts do not depend on the pool; ``rows``: number of
    texts.
    """
    texts = pair_samples(occurrences.rename(columns={"row": "image_id"}), ranking, range(rows))
    names = texts.atom_names.__getitem__, texts.compound_names.__getitem__
    return lambda pool: Weighing(*names, lambda samples: texts.totals(samples.items))


class SearchedTexts(NamedTuple):
    """The subgraphs of distinct texts."""

    texts: pd.Index
    subgraphs: FoundSubgraphs


def search_texts(
    texts: pd.Series,
    extractor: Extractor,
    nodes: int,
    processes: int = 1,
    cache: str | Path = ":memory:",
) -> SearchedTexts:
    """Find the subgraphs of each distinct text; with ``cache``, a file of parses, a killed call can
    resume.
    """
    distinct = texts.unique()
    values = parse_texts(extractor, distinct.tolist(), processes, cache, "texts")
    forest = Forest([Tree([], [], []) if value is None else decode_tree(value) for value in values])
    return SearchedTexts(pd.Index(distinct), find_subgraphs(forest, nodes))


def by_subgraphs(
    texts: pd.Series, searched: SearchedTexts, keep: int, warnings: list[str]
) -> Definition:
    """Return the weighing by ``subgraphs``; ``texts`` are the texts of all rows."""
    place, subgraphs = searched.texts.get_indexer(texts), searched.subgraphs
    if skipped := np.count_nonzero(subgraphs.skipped[np.unique(place)]):
        warnings.append(
            f"{skipped} texts have more than {MAX_OCCURRENCES} subgraphs, which are skipped"
        )

    def of_forest(samples: Bags) -> Bags:
        return Bags(samples.begins, place[samples.items])

    def weigh(pool: Bags) -> Weighing:
        weighing = subgraphs.weigh(of_forest(pool), keep)
        return replace(weighing, totals=lambda samples: weighing.totals(of_forest(samples)))

    return weigh


def measure_splits(
    captions: pd.DataFrame,
    pairs: pd.DataFrame,
    ranking: pd.DataFrame,
    splits: pd.DataFrame,
    swapped: pd.DataFrame,
    prompts: pd.DataFrame,
    settings: DivergenceConfig,
    *,
    searched: SearchedTexts | None = None,
    dataset: str = "",
    composition: str = "",
    seed: int = 0,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Measure the atom and compound divergence of each test split from train.

    A sample is an image with its captions (in test_swapped, its swapped captions). There are two
    definitions of atoms and compounds: ``pairs`` and, finer, ``subgraphs`` of the dependency parse.
    Texts ``captions`` are all captions of a split's images, ``prompts`` only those that are
    prompted for; train always has all captions. Random divisions of the same images at the same
    sizes are measured, too. Their test images have as many of their own captions as in the split,
    since fewer words alone increase a divergence.

    Args:
        captions, pairs, ranking, splits, swapped, prompts: tables of ``core.tables``.
        searched: all captions and swapped captions, for ``subgraphs``; None: pairs only.
        dataset, composition: their names seed the random divisions.

    Returns:
        The table DIVERGENCE, and a summary of the most frequent atoms and compounds and of
        warnings.
    """
    where = f"{dataset}/{composition}"
    # rows of all texts: sorted captions, then sorted swapped captions
    captions = captions.sort_values(CAPTION_KEY, ignore_index=True)
    swapped = swapped.sort_values(CAPTION_KEY, ignore_index=True)
    captions["row"], swapped["row"] = (
        np.arange(len(captions)),
        len(captions) + np.arange(len(swapped)),
    )
    sides = list(test_sides(captions, splits, swapped, prompts))
    train = samples_of(
        captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])]
    )
    warnings: list[str] = []
    rows: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []

    def measure(definition: str, weigh: Definition) -> None:
        for side in sides:
            name = f"{definition}, {side.split} ({side.texts})"
            test = samples_of(side.captions)
            whole_test = samples_of(captions[captions["image_id"].isin(side.captions["image_id"])])
            weighing = weigh(join(train, test))
            try:
                of_train, of_test = map(weighing.totals, (train, test))
                generator = rng(
                    seed, "measure_splits", dataset, composition, definition, side.split, side.texts
                )
                counts = np.diff(test.begins)
                random = random_sides(
                    weighing, join(train, whole_test), counts, settings.shuffles, generator
                )
                row = row_of(of_train, of_test, side, definition, len(train), len(test), random)
            except UserError as error:
                # a split without swaps, or without words that count
                warnings.append(f"{name}: {error}")
                continue
            rows.append(row)
            if side.texts == "captions":
                shown.extend(distributions(weighing, of_train, of_test, side, definition))
            reached = row["atom_divergence"], row["compound_divergence"]
            log.info(
                "%s: %s: atom divergence %.3f, compound divergence %.3f", where, name, *reached
            )

    changed, lost = swapped_occurrences(pairs, swapped)
    if lost:
        warnings.append(f"{lost} changes of swapped captions are of no pair that was found")
    rows_of = [
        occurrences.merge(of, on=CAPTION_KEY)
        for occurrences, of in ((pairs, captions), (changed, swapped))
    ]
    occurrences = pd.concat(
        [table[["row", "adjective", "noun"]] for table in rows_of], ignore_index=True
    )
    texts = pd.concat([captions["text"], swapped["swapped_text"]], ignore_index=True)
    measure("pairs", by_pairs(occurrences, ranking, len(texts)))
    kept = None
    if settings.subgraphs and searched:
        kept = settings.subgraphs.keep
        measure("subgraphs", by_subgraphs(texts, searched, kept, warnings))
    for warning in warnings:
        log.warning("warning: %s: %s", where, warning)
    table = pd.DataFrame(rows) if rows else empty_table(DIVERGENCE)
    return table, {"distributions": shown, "kept_compounds": kept, "warnings": warnings}
