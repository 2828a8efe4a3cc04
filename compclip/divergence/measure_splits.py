"""Measure how far each test split is from train (DBCA; Keysers et al. 2020)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from compclip.core.artifacts.parquet import empty_table
from compclip.core.artifacts.rounding import DECIMALS
from compclip.core.errors import UserError
from compclip.core.log import log
from compclip.core.seeds import rng
from compclip.core.tables import CAPTION_KEY, DIVERGENCE, TESTS
from compclip.divergence.chernoff import Totals, divergences
from compclip.divergence.config import DivergenceConfig
from compclip.divergence.pair_samples import pair_samples, swapped_occurrences
from compclip.divergence.samples import Bags, Weighing, collect_bags, join
from compclip.divergence.subgraphs import MAX_OCCURRENCES, Forest, FoundSubgraphs, find_subgraphs
from compclip.pairs.engine import Extractor, decode_tree
from compclip.pairs.tree import Tree
from compclip.text.parsing import parse_texts

# Number of atoms, and of compounds, in a figure.
MOST_SHOWN = 30
# Weighs samples, given a pool.
Definition = Callable[[Bags], Weighing]


class SplitTexts(NamedTuple):
    """The captions of a test split: columns image_id, caption_id, row (of the table of all
    texts).
    """

    split: str
    texts: str  # "captions" or "prompts"
    captions: pd.DataFrame


@dataclass(frozen=True)
class SplitTables:
    """The tables of ``core.tables`` that ``measure_splits`` takes."""

    captions: pd.DataFrame
    pairs: pd.DataFrame
    ranking: pd.DataFrame
    splits: pd.DataFrame
    swapped: pd.DataFrame
    prompts: pd.DataFrame

    def images(self, split: str) -> pd.Series:
        return self.splits.loc[self.splits["split"] == split, "image_id"]


def texts_of_tests(
    tables: SplitTables, captions: pd.DataFrame, swapped: pd.DataFrame
) -> Iterator[SplitTexts]:
    """Yield each test split, first with all its captions, then with those that are prompted for."""
    prompted = tables.prompts[[*CAPTION_KEY, "split"]].drop_duplicates()
    for split in TESTS:
        split_captions = swapped
        if split != "test_swapped":
            split_captions = captions[captions["image_id"].isin(tables.images(split))]
        split_captions = split_captions.sort_values(CAPTION_KEY, ignore_index=True)
        yield SplitTexts(split, "captions", split_captions)
        keys = prompted.loc[prompted["split"] == split, CAPTION_KEY]
        yield SplitTexts(split, "prompts", split_captions.merge(keys, on=CAPTION_KEY))


def samples_of(captions: pd.DataFrame) -> Bags:
    """Return the rows of each image's captions; ``captions`` are sorted by image."""
    sizes = captions.groupby("image_id", sort=False).size()
    begins = np.concatenate(([0], sizes.cumsum())).astype(np.int64)
    return Bags(begins, captions["row"].to_numpy(np.int64))


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
    n_train = len(images) - len(counts)
    # One sum, so that train has exactly 0 of items that only test has: to the power 0.1, even 1e-17
    # would count.
    whole = weighing.totals(captions)
    result = np.ones((shuffles, 2))
    for shuffle in range(shuffles):
        order = generator.permutation(len(images))
        test_images = [images[i] for i in order[n_train:]]
        sizes = [len(rows) for rows in test_images]
        test = weighing.totals(collect_bags(test_images))
        train = Totals(whole.atoms - test.atoms, whole.compounds - test.compounds)
        sampled_sizes = np.minimum(generator.permutation(counts), sizes)
        # Where all captions are prompted for, the totals are those of the whole images.
        if sampled_sizes.sum() < sum(sizes):
            sampled = [
                generator.choice(rows, size, replace=False)
                for rows, size in zip(test_images, sampled_sizes, strict=True)
            ]
            test = weighing.totals(collect_bags(sampled))
        with suppress(UserError):
            result[shuffle] = divergences(train, test)
    return result


def measures(train: Totals, test: Totals, random: np.ndarray) -> dict[str, Any]:
    """Return the measures of a row of ``tables.DIVERGENCE``, rounded.

    Args:
        random: (shuffles, 2), of ``random_sides``.
    """
    atom, compound = divergences(train, test)
    values = {
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
        for name, value in values.items()
    }


def distributions(
    weighing: Weighing, train: Totals, test: Totals, split: str, definition: str
) -> list[dict[str, Any]]:
    """Return the fractions, in train and in the split, of the atoms and compounds most frequent in
    both together.
    """
    kinds = {"atoms": weighing.atom_name, "compounds": weighing.compound_name}
    result = []
    for (kind, name_of), train_weights, test_weights in zip(
        kinds.items(), train, test, strict=True
    ):
        train_fractions = train_weights / train_weights.sum()
        test_fractions = test_weights / test_weights.sum()
        columns = _most_frequent(train_fractions + test_fractions, name_of)
        shown_train = np.round(train_fractions[columns], DECIMALS)
        shown_test = np.round(test_fractions[columns], DECIMALS)
        result.append(
            {
                "definition": definition,
                "split": split,
                "kind": kind,
                "names": [name_of(column) for column in columns],
                "train": shown_train.tolist(),
                "test": shown_test.tolist(),
            }
        )
    return result


def _most_frequent(frequencies: np.ndarray, name_of: Callable[[int], str]) -> list[int]:
    """Return the columns of the most frequent items, ties by name."""
    # Rounded, so that ties do not depend on the order of a sum.
    rank = -np.round(frequencies, 9)
    nonzero = int(np.count_nonzero(frequencies))
    count = min(MOST_SHOWN, nonzero)
    last_rank = np.partition(rank, count - 1)[count - 1]
    # Only candidates for the figure are named, because naming a subgraph is slow.
    candidates = np.flatnonzero(rank <= last_rank).tolist()
    ranked = sorted(candidates, key=lambda column: (rank[column], name_of(column)))
    return ranked[:count]


def by_pairs(occurrences: pd.DataFrame, ranking: pd.DataFrame, rows: int) -> Definition:
    """Return the weighing by ``pairs``, whose counts do not depend on the pool; ``rows``: number of
    texts.
    """
    texts = pair_samples(occurrences.rename(columns={"row": "image_id"}), ranking, range(rows))
    weighing = Weighing(
        atom_name=texts.atom_names.__getitem__,
        compound_name=texts.compound_names.__getitem__,
        totals=lambda samples: texts.totals(samples.items),
    )
    return lambda pool: weighing


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
    parses = parse_texts(extractor, distinct.tolist(), processes, cache, "texts")
    no_words = Tree([], [], [])
    trees = [no_words if parse is None else decode_tree(parse) for parse in parses]
    subgraphs = find_subgraphs(Forest(trees), nodes)
    return SearchedTexts(pd.Index(distinct), subgraphs)


def by_subgraphs(
    texts: pd.Series, searched: SearchedTexts, keep: int, warnings: list[str]
) -> Definition:
    """Return the weighing by ``subgraphs``; ``texts`` are the texts of all rows."""
    subgraphs = searched.subgraphs
    text_of_row = searched.texts.get_indexer(texts)
    skipped = np.count_nonzero(subgraphs.skipped[np.unique(text_of_row)])
    if skipped:
        warnings.append(
            f"{skipped} texts have more than {MAX_OCCURRENCES} subgraphs, which are skipped"
        )

    def of_forest(samples: Bags) -> Bags:
        return Bags(samples.begins, text_of_row[samples.items])

    def weigh(pool: Bags) -> Weighing:
        weighing = subgraphs.weigh(of_forest(pool), keep)
        return replace(weighing, totals=lambda samples: weighing.totals(of_forest(samples)))

    return weigh


@dataclass(frozen=True)
class _Measurement:
    """A run's measurement of test splits, by any definition, and what it has found so far."""

    captions: pd.DataFrame  # of all images, with their rows
    train: Bags
    stream: Callable[..., np.random.Generator]  # by definition, split and texts
    shuffles: int
    log_name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    distributions: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def measure(self, definition: str, weigh: Definition, tests: Sequence[SplitTexts]) -> None:
        """Add the rows of all test splits, and a warning for those that cannot be measured."""
        for test in tests:
            name = f"{definition}, {test.split} ({test.texts})"
            try:
                row = self._measure_split(definition, weigh, test)
            except UserError as error:
                # a split without swaps, or without words that count
                self.warnings.append(f"{name}: {error}")
                continue
            self.rows.append(row)
            log.info(
                "%s: %s: atom divergence %.3f, compound divergence %.3f",
                self.log_name,
                name,
                row["atom_divergence"],
                row["compound_divergence"],
            )

    def _measure_split(
        self, definition: str, weigh: Definition, test: SplitTexts
    ) -> dict[str, Any]:
        test_samples = samples_of(test.captions)
        weighing = weigh(join(self.train, test_samples))
        train_totals = weighing.totals(self.train)
        test_totals = weighing.totals(test_samples)
        # Random divisions draw from all captions of the test images, prompted for or not.
        is_test = self.captions["image_id"].isin(test.captions["image_id"])
        all_samples = join(self.train, samples_of(self.captions[is_test]))
        counts = np.diff(test_samples.begins)
        generator = self.stream(definition, test.split, test.texts)
        random = random_sides(weighing, all_samples, counts, self.shuffles, generator)
        row = {
            "definition": definition,
            "split": test.split,
            "texts": test.texts,
            "train": len(self.train),
            "test": len(test_samples),
            **measures(train_totals, test_totals, random),
        }
        if test.texts == "captions":
            self.distributions.extend(
                distributions(weighing, train_totals, test_totals, test.split, definition)
            )
        return row


def measure_splits(
    tables: SplitTables,
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
        searched: all captions and swapped captions, for ``subgraphs``; None: pairs only.
        dataset, composition: their names seed the random divisions.

    Returns:
        The table DIVERGENCE, and a summary of the most frequent atoms and compounds and of
        warnings.
    """
    # rows of all texts: sorted captions, then sorted swapped captions
    captions = tables.captions.sort_values(CAPTION_KEY, ignore_index=True)
    captions["row"] = np.arange(len(captions))
    swapped = tables.swapped.sort_values(CAPTION_KEY, ignore_index=True)
    swapped["row"] = len(captions) + np.arange(len(swapped))
    tests = list(texts_of_tests(tables, captions, swapped))
    train = samples_of(captions[captions["image_id"].isin(tables.images("train"))])
    stream = partial(rng, seed, "measure_splits", dataset, composition)
    log_name = f"{dataset}/{composition}"
    measurement = _Measurement(captions, train, stream, settings.shuffles, log_name)

    changed, n_lost = swapped_occurrences(tables.pairs, swapped)
    if n_lost:
        measurement.warnings.append(
            f"{n_lost} changes of swapped captions are of no pair that was found"
        )
    occurrences = pd.concat(
        [tables.pairs.merge(captions, on=CAPTION_KEY), changed.merge(swapped, on=CAPTION_KEY)],
        ignore_index=True,
    )[["row", "adjective", "noun"]]
    texts = pd.concat([captions["text"], swapped["swapped_text"]], ignore_index=True)
    measurement.measure("pairs", by_pairs(occurrences, tables.ranking, len(texts)), tests)
    # None in the summary, if subgraphs are not measured.
    keep = None
    if settings.subgraphs and searched:
        keep = settings.subgraphs.keep
        weigh = by_subgraphs(texts, searched, keep, measurement.warnings)
        measurement.measure("subgraphs", weigh, tests)
    for warning in measurement.warnings:
        log.warning("warning: %s: %s", log_name, warning)
    table = pd.DataFrame(measurement.rows) if measurement.rows else empty_table(DIVERGENCE)
    return table, {
        "distributions": measurement.distributions,
        "kept_compounds": keep,
        "warnings": measurement.warnings,
    }
