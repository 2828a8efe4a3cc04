"""Measure how far each test split is from train (DBCA; Keysers et al. 2020)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workflow_scripts.core import cli
from workflow_scripts.core.cache import Cache
from workflow_scripts.core.cli import log
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import pair_names
from workflow_scripts.core.io import empty_table, read_blocks, read_table, room_for, write_json, write_table
from workflow_scripts.core.rounding import DECIMALS
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.tables import CAPTIONS, DIVERGENCE, PAIRS, PROMPTS, RANKING, SPLIT, SWAPPED, TESTS
from workflow_scripts.divergence.chernoff import Totals, divergences
from workflow_scripts.divergence.config import Subgraphs
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.divergence.samples import Bags, collect, join
from workflow_scripts.divergence.steps import MeasureSplits
from workflow_scripts.divergence.subgraphs import find_subgraphs
from workflow_scripts.divergence.trees import read_forest
from workflow_scripts.pairs.engine import Extractor
from workflow_scripts.text.lexicon import load_lexicon

CAPTION = ["image_id", "caption_id"]
# Atoms, and compounds, in a figure.
SHOWN = 30
# Memory of the whole step, in bytes, without texts and for each text (docs/scale.md).
MEMORY, MEMORY_PER_TEXT = 6.5e8, 500


@dataclass(frozen=True)
class Weighing:
    """The names of atoms and compounds, and what sums their weights over samples."""

    atom_names: Sequence[str]
    compound_names: Sequence[str]
    totals: Callable[[Bags], Totals]


# Weighs samples by a pool, and further samples, whose texts do not count in P(G'|G).
Definition = Callable[[Bags, Bags], Weighing]


class Side(NamedTuple):
    """The captions of a split: columns image_id, caption_id, row (of the table of all texts)."""

    split: str
    texts: str
    captions: pd.DataFrame


def test_sides(
    captions: pd.DataFrame, splits: pd.DataFrame, swapped: pd.DataFrame, prompts: pd.DataFrame
) -> Iterator[Side]:
    """Yield each test split with all its captions, then with those prompted for."""
    asked = prompts[[*CAPTION, "split"]].drop_duplicates()
    for split in TESTS:
        of_split = swapped
        if split != "test_swapped":
            of_split = captions[captions["image_id"].isin(splits.loc[splits["split"] == split, "image_id"])]
        of_split = of_split.sort_values(CAPTION, ignore_index=True)
        yield Side(split, "captions", of_split)
        yield Side(split, "prompts", of_split.merge(asked[asked["split"] == split][CAPTION], on=CAPTION))


def samples_of(captions: pd.DataFrame) -> Bags:
    """Return the rows of each image's captions, which are sorted by image."""
    sizes = captions.groupby("image_id", sort=False).size()
    return Bags(np.concatenate(([0], sizes.cumsum())).astype(np.int64), captions["row"].to_numpy(np.int64))


def swapped_occurrences(pairs: pd.DataFrame, swapped: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return image_id, caption_id, adjective, noun of the originals' occurrences with the changes applied.

    Also returns the number of changes of no occurrence: a published swap may change what is not a pair here.
    """
    changes = [
        (row.image_id, row.caption_id, change["start"], change["new_adj"])
        for row in swapped.itertuples()
        for change in row.changes
    ]
    place = [*CAPTION, "adjective_start"]
    table = pd.DataFrame(changes, columns=[*place, "new"]).drop_duplicates(place)
    table = table.astype({"caption_id": "int64", "adjective_start": "int64"})
    inside = pairs.merge(swapped[CAPTION], on=CAPTION)
    occurrences = inside.merge(table, on=place, how="left")
    lost = len(table) - len(table.merge(inside[place].drop_duplicates(), on=place))
    occurrences["adjective"] = occurrences["new"].fillna(occurrences["adjective"])
    return occurrences[[*CAPTION, "adjective", "noun"]], lost


def ranked_occurrences(
    step: MeasureSplits, images: Sequence[str], captions: int, ranking: pd.DataFrame, warnings: list[str]
) -> pd.DataFrame:
    """Return row, adjective, noun of the occurrences of ranked pairs; ``captions``: number of those not swapped."""
    words = {name: pd.CategoricalDtype(ranking[name].unique()) for name in ("adjective", "noun")}
    place = [*CAPTION, *words, "adjective_start"]
    tables = {step.captions: CAPTIONS.select(CAPTION), step.pairs: PAIRS.select(place), step.swapped: SWAPPED}
    parts, lost, begins = list[pd.DataFrame](), 0, [0, captions]
    for texts, pairs, swapped in read_blocks(images, tables):
        changed, n = swapped_occurrences(pairs, swapped)
        lost += n
        for side, (occurrences, table) in enumerate(((pairs, texts), (changed, swapped))):
            rows = table[CAPTION].sort_values(CAPTION, ignore_index=True)
            rows["row"] = begins[side] + np.arange(len(rows))
            begins[side] += len(rows)
            ranked = occurrences[pair_names(occurrences).isin(pair_names(ranking))]
            parts.append(ranked.merge(rows, on=CAPTION)[["row", *words]].astype(words))
    if lost:
        warnings.append(f"{lost} changes of swapped captions are of no pair that was found")
    return pd.concat(parts, ignore_index=True)


def random_sides(
    weighing: Weighing,
    captions: Bags,
    counts: np.ndarray,
    shuffles: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return (shuffles, 2): D_A and D_C of random divisions of images; 1 if a side has no atoms or no compounds.

    Args:
        captions: of all images of train and test.
        counts: captions of each test image; a random test image has as many of its own, or all of them.
    """
    sizes = np.diff(captions.begins)
    # One sum, so that what only test has leaves exactly 0 for train: to the power 0.1, even 1e-17 would count.
    whole = weighing.totals(captions)
    n_train = len(captions) - len(counts)
    result = np.ones((shuffles, 2))
    for shuffle in range(shuffles):
        order = generator.permutation(len(captions))
        chosen, wanted = order[n_train:], generator.permutation(counts)
        test_captions = captions.take(chosen)
        unused = test = weighing.totals(test_captions)
        if (wanted < sizes[chosen]).any():
            numbers = np.minimum(wanted, sizes[chosen])
            own = np.split(test_captions.items, test_captions.begins[1:-1])
            drawn = [generator.choice(rows, n, replace=False) for rows, n in zip(own, numbers, strict=True)]
            test = weighing.totals(collect(drawn))
        train = Totals(*(np.subtract(*both) for both in zip(whole, unused, strict=True)))
        with suppress(UserError):
            result[shuffle] = divergences(train, test)
    return result


def row_of(
    train: Totals, test: Totals, side: Side, definition: str, n_train: int, n_test: int, random: np.ndarray
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
    return {name: round(float(value), DECIMALS) if isinstance(value, float) else value for name, value in row.items()}


def distributions(weighing: Weighing, train: Totals, test: Totals, side: Side, definition: str) -> list[dict[str, Any]]:
    """Return the fractions in train and in the split of the most frequent atoms and compounds of both together."""
    result = []
    names_of = {"atoms": weighing.atom_names, "compounds": weighing.compound_names}
    for (kind, names), of_train, of_test in zip(names_of.items(), train, test, strict=True):
        both = of_train / of_train.sum(), of_test / of_test.sum()
        # Names are sorted, so that ties are by name.
        first = np.argsort(-np.round(both[0] + both[1], 9), kind="stable")[: min(SHOWN, np.count_nonzero(sum(both)))]
        shares = {
            name: np.round(of[first], DECIMALS).tolist() for name, of in zip(("train", "test"), both, strict=True)
        }
        head = {"definition": definition, "split": side.split, "kind": kind}
        result.append({**head, "names": [names[i] for i in first], **shares})
    return result


def by_pairs(occurrences: pd.DataFrame, ranking: pd.DataFrame, rows: int) -> Definition:
    """Return what weighs samples by ``pairs``, in which counts do not depend on the pool; ``rows``: number of texts."""
    groups = occurrences.groupby(["adjective", "noun"], sort=False, observed=True)
    distinct = groups.head(1)
    # Samples of one occurrence each: the parts of each pair.
    each = pair_samples(distinct.assign(image_id=range(len(distinct))), ranking, range(len(distinct)))
    places, pairs = occurrences["row"].to_numpy(), groups.ngroup().to_numpy(np.int32)

    def sums(samples: Bags) -> Totals:
        times = np.bincount(samples.items, minlength=rows)[places]
        of_pairs = np.bincount(pairs, times, len(distinct))
        return Totals(of_pairs @ each.atoms, of_pairs @ each.compounds)

    return lambda pool, more: Weighing(each.atom_names, each.compound_names, sums)


def read_texts(step: MeasureSplits, images: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of ``images``, which are sorted, in the order of their rows: in blocks, not held together."""
    for path, schema, name in ((step.captions, CAPTIONS, "text"), (step.swapped, SWAPPED, "swapped_text")):
        for (table,) in read_blocks(images, {path: schema.select([*CAPTION, name])}):
            yield table.sort_values(CAPTION)[name].tolist()


def by_subgraphs(step: MeasureSplits, images: Sequence[str], warnings: list[str]) -> Definition:
    """Return what weighs samples by ``subgraphs``; each distinct text is parsed and searched once."""
    settings = step.settings.subgraphs or Subgraphs()
    nouns = load_lexicon(step.nouns) if step.nouns else None
    adjectives, compounds = [load_lexicon(path) for path in step.adjectives], load_lexicon(step.compounds)
    extractor = Extractor(step.parsing.model, adjectives, nouns, compounds)
    # Of 128 bits; among ten million texts, two share the first 64 with probability 3e-6.
    keys = [np.frombuffer(b"".join(extractor.keys(block)), np.uint64)[::2] for block in read_texts(step, images)]
    place, distinct = pd.factorize(np.concatenate([np.empty(0, np.uint64), *keys]))
    is_new = np.diff(np.maximum.accumulate(place), prepend=-1) > 0
    del keys

    def new() -> Iterator[list[str]]:
        begin = 0
        for block in read_texts(step, images):
            yield list(compress(block, is_new[begin : begin + len(block)]))
            begin += len(block)

    log.info("%d distinct texts; new ones are parsed (processes: %d)", len(distinct), step.processes)
    scratch = step.cache / "divergence"
    with room_for(scratch):
        with Cache(step.cache / "pairs" / "occurrences.sqlite") as cache:
            forest = read_forest(extractor, cache, new, len(distinct), step.processes, scratch)
        del extractor
        subgraphs = find_subgraphs(forest, settings.nodes, settings.branching)
    if subgraphs.cut:
        warnings.append(
            f"{subgraphs.cut} large subgraphs of {subgraphs.cut_texts} texts, which have too many, are left out"
        )

    def forest_of(samples: Bags) -> Bags:
        return Bags(samples.begins, place[samples.items])

    def weigh(pool: Bags, more: Bags) -> Weighing:
        with room_for(scratch):
            found = subgraphs.weigh(forest_of(pool), settings.keep, forest_of(more))
        return Weighing(found.atom_names, found.compound_names, lambda samples: found.totals(forest_of(samples)))

    return weigh


def main(step: MeasureSplits) -> None:
    where = f"{step.dataset}/{step.composition}"
    # The rows of all texts: the captions sorted, then the swapped captions sorted.
    captions = read_table(step.captions, CAPTIONS, CAPTION).sort_values(CAPTION, ignore_index=True)
    captions["row"] = np.arange(len(captions))
    images = captions["image_id"].unique().tolist()
    swapped = read_table(step.swapped, SWAPPED, CAPTION).sort_values(CAPTION, ignore_index=True)
    swapped["row"] = len(captions) + np.arange(len(swapped))
    texts = len(captions) + len(swapped)
    log.info("%d texts: about %.1f GB of memory", texts, (MEMORY + MEMORY_PER_TEXT * texts) / 1e9)
    splits = read_table(step.splits, SPLIT)
    ranking = read_table(step.ranking, RANKING)
    prompts = read_table(step.prompts, PROMPTS, [*CAPTION, "split"])
    sides = list(test_sides(captions, splits, swapped, prompts))
    train = samples_of(captions[captions["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])])
    warnings: list[str] = []
    rows: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []

    def measure(definition: str, weigh: Definition) -> None:
        for side in sides:
            name = f"{definition}, {side.split} ({side.texts})"
            keys = (step.dataset, step.composition, definition, side.split, side.texts)
            test = samples_of(side.captions)
            whole_test = samples_of(captions[captions["image_id"].isin(side.captions["image_id"])])
            weighing = weigh(join(train, test), whole_test)
            try:
                of_train, of_test = map(weighing.totals, (train, test))
                counts, generator = np.diff(test.begins), rng(step.seed, "measure_splits", *keys)
                random = random_sides(weighing, join(train, whole_test), counts, step.settings.shuffles, generator)
                row = row_of(of_train, of_test, side, definition, len(train), len(test), random)
            except UserError as error:
                # A split without swaps, or without a word that counts.
                warnings.append(f"{name}: {error}")
                continue
            rows.append(row)
            if side.texts == "captions":
                shown.extend(distributions(weighing, of_train, of_test, side, definition))
            log.info(
                "%s: %s: atom divergence %.3f (random %.3f), compound divergence %.3f (random %.3f)",
                *(where, name, row["atom_divergence"], row["random_atom_mean"]),
                *(row["compound_divergence"], row["random_compound_mean"]),
            )

    # What one definition holds is freed before the next is made.
    measure("pairs", by_pairs(ranked_occurrences(step, images, len(captions), ranking, warnings), ranking, texts))
    if step.settings.subgraphs:
        measure("subgraphs", by_subgraphs(step, images, warnings))
    for warning in warnings:
        log.warning("warning: %s: %s", where, warning)
    write_table(pd.DataFrame(rows) if rows else empty_table(DIVERGENCE), step.divergence, DIVERGENCE)
    kept = step.settings.subgraphs.keep if step.settings.subgraphs else None
    write_json({"distributions": shown, "kept_compounds": kept, "warnings": warnings}, step.summary)


if __name__ == "__main__":
    cli.run(main)
