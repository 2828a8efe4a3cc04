"""Measure how far each test split is from train: atom and compound divergence (DBCA; Keysers et al. 2020).

A sample is an image with its captions (in test_swapped, its swapped captions), by two definitions: ``pairs``, and,
finer, ``subgraphs`` of the dependency parse. With texts ``captions`` all captions of a split's images count, with
``prompts`` just those prompted for; of train always all. Beside each stand random divisions of the same images at the
same sizes, in which test's images have as many of their own captions as they have in the split: fewer words alone
make a divergence.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, read_table, write_json, write_table
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import (
    CAPTIONS,
    DIVERGENCE,
    PAIRS,
    PROMPTS,
    RANKING,
    SPLIT,
    SWAPPED,
    TESTS,
)
from workflow_scripts.divergence.measure import DIGITS, measure, totals
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.divergence.samples import Samples, count_matrix, stack
from workflow_scripts.divergence.subgraphs import find_subgraphs
from workflow_scripts.divergence.trees import read_forest
from workflow_scripts.pairs.engine import Extractor
from workflow_scripts.text.lexicon import load_lexicon

KEY = ["image_id", "caption_id"]
SHOWN = 30  # atoms, and compounds, in a figure


# Samples by their captions: rows of the table of all texts.
Parts = Sequence[Sequence[int]]
Weigh = Callable[[Parts], Samples]


class Side(NamedTuple):
    """What a split says: columns image_id, caption_id, text, row (of the table of all texts), a row a caption."""

    split: str
    texts: str
    said: pd.DataFrame


def test_sides(
    captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame
) -> Iterator[Side]:
    """Each split with all it says, then with what is prompted for.

    captions, swapped: columns image_id, caption_id, text, row. splits, prompts: columns of the tables so named.
    """
    asked = prompts[[*KEY, "split"]].drop_duplicates()
    for split in TESTS:
        said = swapped
        if split != "test_swapped":
            said = captions[captions["image_id"].isin(splits.loc[splits["split"] == split, "image_id"])]
        said = said.sort_values(KEY, ignore_index=True)
        yield Side(split, "captions", said)
        yield Side(split, "prompts", said.merge(asked[asked["split"] == split][KEY], on=KEY))


def parts_of(said: pd.DataFrame) -> list[list[int]]:
    """The rows of each image, images in order."""
    return said.groupby("image_id")["row"].agg(list).tolist()


def swapped_occurrences(pairs: pd.DataFrame, swapped: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The occurrences of the swapped captions: those of the originals, with the changes applied where they stand.

    pairs, swapped: columns of ``tables.PAIRS`` and ``tables.SWAPPED``. Returns ``(image_id, caption_id, adjective,
    noun; how many changes are of no occurrence)``: a published swap may change what is no pair here.
    """
    changes = [
        (row.image_id, row.caption_id, change["start"], change["new_adj"])
        for row in swapped.itertuples()
        for change in row.changes
    ]
    place = [*KEY, "adjective_start"]
    table = pd.DataFrame(changes, columns=[*place, "new"]).drop_duplicates(place)
    table = table.astype({"caption_id": "int64", "adjective_start": "int64"})
    inside = pairs.merge(swapped[KEY], on=KEY)
    found = inside.merge(table, on=place, how="left")
    lost = len(table) - len(table.merge(inside[place].drop_duplicates(), on=place))
    found["adjective"] = found["new"].fillna(found["adjective"])
    return found[[*KEY, "adjective", "noun"]], lost


def random_sides(
    weigh: Weigh, captions: Parts, counts: Sequence[int], shuffles: int, generator: np.random.Generator
) -> np.ndarray:
    """(shuffles, 2): D_A and D_C of random divisions of images.

    captions: the rows of each image's captions. counts: how many captions each image of test has; a random test image
    has so many of its own, or all it has. A side without atoms or compounds has the divergence 1.
    """
    whole = weigh(captions)
    sizes = np.array([len(rows) for rows in captions])
    n_train = len(captions) - len(counts)
    result = np.ones((shuffles, 2))
    for shuffle in range(shuffles):
        order = generator.permutation(len(captions))
        chosen, wanted = order[n_train:], generator.permutation(np.asarray(counts))
        test = whole.take(chosen)
        if (wanted < sizes[chosen]).any():
            test = weigh(
                [
                    generator.choice(captions[image], min(n, sizes[image]), replace=False).tolist()
                    for image, n in zip(chosen, wanted, strict=True)
                ]
            )
        both = stack([whole.take(order[:n_train]), test])
        with suppress(UserError):
            result[shuffle] = measure(both, np.arange(n_train), np.arange(n_train, len(both)))
    return result


def row_of(samples: Samples, side: Side, definition: str, n_train: int, random: np.ndarray) -> dict[str, Any]:
    """A row of ``tables.DIVERGENCE``; train's samples are the first ``n_train``, the split's the rest."""
    atom, compound = measure(samples, np.arange(n_train), np.arange(n_train, len(samples)))
    row = {
        "definition": definition,
        "split": side.split,
        "texts": side.texts,
        "train": n_train,
        "test": len(samples) - n_train,
        "atoms": len(samples.atom_names),
        "compounds": len(samples.compound_names),
        "atom_divergence": atom,
        "compound_divergence": compound,
        "random_atom_mean": random[:, 0].mean(),
        "random_atom_std": random[:, 0].std(),
        "random_compound_mean": random[:, 1].mean(),
        "random_compound_std": random[:, 1].std(),
        "shuffles": len(random),
    }
    return {name: round(float(value), DIGITS) if isinstance(value, float) else value for name, value in row.items()}


def distributions(samples: Samples, side: Side, definition: str, n_train: int) -> list[dict[str, Any]]:
    """Of the atoms and of the compounds with the largest shares (train's and the split's together), both shares."""
    result = []
    for kind, weights, names in (
        ("atoms", samples.atoms, samples.atom_names),
        ("compounds", samples.compounds, samples.compound_names),
    ):
        train = totals(weights, np.arange(n_train))
        test = totals(weights, np.arange(n_train, len(samples)))
        train, test = train / train.sum(), test / test.sum()
        # Names are sorted, so that ties are by name.
        first = np.argsort(-np.round(train + test, 9), kind="stable")[:SHOWN]
        result.append(
            {
                "definition": definition,
                "split": side.split,
                "kind": kind,
                "names": [names[i] for i in first],
                "train": np.round(train[first], DIGITS).tolist(),
                "test": np.round(test[first], DIGITS).tolist(),
            }
        )
    return result


def by_pairs(occurrences: pd.DataFrame, ranking: pd.DataFrame, rows: int) -> Callable[[Parts], Weigh]:
    """What weighs samples by the definition ``pairs``; occurrences: row, adjective, noun. No pool changes a count."""
    said = occurrences.rename(columns={"row": "image_id"})
    each = pair_samples(said, ranking, range(rows))

    def weigh(parts: Parts) -> Samples:
        sample = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        row = np.fromiter((row for part in parts for row in part), np.int64)
        held = count_matrix(sample, row, (len(parts), rows))
        compounds = csr_array(held @ each.compounds)
        return Samples(csr_array(held @ each.atoms), compounds, each.atom_names, each.compound_names)

    return lambda _: weigh


def by_subgraphs(texts: Sequence[str], options: argparse.Namespace, warnings: list[str]) -> Callable[[Parts], Weigh]:
    """What, given a pool, weighs samples by the definition ``subgraphs``; texts: of all rows.

    Every text is parsed and searched once.
    """
    nodes, branching, keep = options.subgraphs
    place, distinct = pd.factorize(np.asarray(texts, dtype=object))
    nouns = load_lexicon(options.nouns) if options.nouns else None
    extractor = Extractor(options.model, [load_lexicon(path) for path in options.adjectives], nouns)
    log.info("%d distinct texts; new ones are parsed by %d processes", len(distinct), options.processes)
    with Cache(options.cache / "pairs" / "occurrences.sqlite") as cache:
        forest = read_forest(extractor, cache, distinct.tolist(), options.processes)
    found = find_subgraphs(forest, nodes, branching)
    if found.cut:
        warnings.append(f"{found.cut} large subgraphs of {found.cut_texts} texts, which have too many, are left out")

    def of_pool(pool: Parts) -> Weigh:
        weighing = found.weigh([place[part] for part in pool], keep)
        return lambda parts: weighing.samples([place[part] for part in parts])

    return of_pool


def main(options: argparse.Namespace) -> None:
    where = f"{options.dataset}/{options.composition}"
    captions = read_table(options.captions, CAPTIONS, [*KEY, "text"]).sort_values(KEY, ignore_index=True)
    pairs = read_table(options.pairs, PAIRS, [*KEY, "adjective", "noun", "adjective_start"])
    splits = read_table(options.splits, SPLIT)
    swapped = read_table(options.swapped, SWAPPED)
    changed, lost = swapped_occurrences(pairs, swapped)
    captions["row"] = np.arange(len(captions))
    said_swapped = swapped[[*KEY, "swapped_text"]].rename(columns={"swapped_text": "text"})
    said_swapped["row"] = len(captions) + np.arange(len(said_swapped))
    sides = list(test_sides(captions, splits, said_swapped, read_table(options.prompts, PROMPTS, [*KEY, "split"])))
    train = parts_of(captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])])
    warnings = [f"{lost} changes of swapped captions are of no pair that was found"] if lost else []
    occurrences = pd.concat([pairs.merge(captions, on=KEY), changed.merge(said_swapped, on=KEY)])
    texts = [*captions["text"], *said_swapped["text"]]
    ranking = read_table(options.ranking, RANKING)
    definitions = {"pairs": by_pairs(occurrences[["row", "adjective", "noun"]], ranking, len(texts))}
    if options.subgraphs:
        definitions["subgraphs"] = by_subgraphs(texts, options, warnings)
    rows: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for definition, of_pool in definitions.items():
        for side in sides:
            name = f"{definition}, {side.split} ({side.texts})"
            generator = rng(
                options.seed, "measure_splits", options.dataset, options.composition, definition, side.split, side.texts
            )
            test = parts_of(side.said)
            own = parts_of(captions[captions["image_id"].isin(side.said["image_id"])])
            try:
                weigh = of_pool([*train, *test])
                samples = weigh([*train, *test]).trimmed()
                random = random_sides(weigh, [*train, *own], [len(part) for part in test], options.shuffles, generator)
                row = row_of(samples, side, definition, len(train), random)
            except UserError as error:
                # A split without swaps, or without a word that counts.
                warnings.append(f"{name}: {error}")
                continue
            rows.append(row)
            if side.texts == "captions":
                shown += distributions(samples, side, definition, len(train))
            log.info(
                "%s: %s: atom divergence %.3f (random %.3f), compound divergence %.3f (random %.3f)",
                *(where, name, row["atom_divergence"], row["random_atom_mean"]),
                *(row["compound_divergence"], row["random_compound_mean"]),
            )
    for warning in warnings:
        log.warning("warning: %s: %s", where, warning)
    write_table(pd.DataFrame(rows) if rows else empty_table(DIVERGENCE), options.output, DIVERGENCE)
    kept = options.subgraphs[2] if options.subgraphs else None
    write_json({"distributions": shown, "kept_compounds": kept, "warnings": warnings}, options.summary)


def arguments() -> argparse.ArgumentParser:
    result = cli.parser(__doc__)
    for name in ("captions", "pairs", "ranking", "splits", "swapped", "prompts"):
        result.add_argument(f"--{name}", type=Path, required=True)
    result.add_argument(
        "--subgraphs",
        type=int,
        nargs=3,
        metavar=("NODES", "BRANCHING", "KEEP"),
        help="measure subgraphs too: their nodes, children of a node, and compounds kept, at most",
    )
    result.add_argument("--adjectives", type=Path, nargs="+", default=[], help="with --subgraphs, adjective lexicons")
    result.add_argument("--nouns", type=Path, nargs="?", help="with --subgraphs, the noun lexicon, where there is one")
    result.add_argument("--model", help="with --subgraphs, spaCy pipeline")
    result.add_argument("--processes", type=int, default=1, help="that parse at once; the result is the same")
    result.add_argument("--cache", type=Path, help="with --subgraphs, folder of what is kept between runs")
    result.add_argument("--shuffles", type=int, default=10, help="random divisions to compare with (default: 10)")
    result.add_argument("--seed", type=int, default=0)
    result.add_argument("--dataset", required=True)
    result.add_argument("--composition", required=True)
    result.add_argument("--output", type=Path, required=True, help="divergence.parquet")
    result.add_argument("--summary", type=Path, required=True, help="divergence.json: distributions, warnings")
    return result


if __name__ == "__main__":
    cli.run(main, arguments())
