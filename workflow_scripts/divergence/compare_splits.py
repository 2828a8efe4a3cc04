"""Compare two splits of the same captions: how far apart their trains are, and what they have in common."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.heldout import read_heldout, split_pair
from workflow_scripts.core.io import read_table
from workflow_scripts.core.published import read_split
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Input, Seed, Step
from workflow_scripts.core.tables import PAIRS, RANKING, SPLIT, SPLITS
from workflow_scripts.divergence.measure import KINDS, mean_and_deviation, measure
from workflow_scripts.divergence.pair_samples import pair_samples
from workflow_scripts.divergence.samples import Samples
from workflow_scripts.text.lexicon import fold, load_lexicon

NEITHER = "none"  # the split of an image that a split does not divide


class CompareSplits(Step):
    """Compare two splits of the same captions: a drawn one with a published one, or two draws.

    A split is a composition's folder in the results (splits.parquet and heldout.json are read) or a published
    split.pkl. Prints D_A and D_C of the pairs between the two trains (0: equal distributions, 1: nothing in common),
    beside those of random trains of the same sizes with as many common images; the number of images by both splits;
    and the held-out pairs that are common.
    """

    first: Path = Field(description="a composition's folder or a split.pkl; its train is P of the divergences")
    second: Path = Field(description="likewise; its train is Q")
    pairs: Input = Field(description="pairs.parquet of the captions")
    ranking: Input = Field(description="ranking.parquet, whose pairs count")
    adjectives: Input | None = Field(None, description="adjective lexicon (YAML), which a split.pkl needs")
    nouns: Input | None = Field(None, description="noun lexicon (YAML), for a split.pkl; without it any noun counts")
    shuffles: int = Field(10, ge=1, description="random trains to compare with")
    seed: Seed
    as_json: bool = Field(False, alias="json", description="print JSON")


@dataclass(frozen=True)
class Division:
    """A split: each image's part, and the held-out pairs."""

    parts: pd.Series
    pairs: set[str]

    @property
    def train(self) -> set[str]:
        return set(self.parts.index[self.parts == "train"])


def read_division(path: Path, adjectives: Path | None, nouns: Path | None) -> Division:
    """Read a composition's folder or a split.pkl, whose pairs are folded to the lexicons' words where they list them.

    An image in two lists of a split.pkl is in the last of train, test_seen and test_unseen.
    """
    if path.is_dir():
        table = read_table(path / "splits.parquet", SPLIT)
        return Division(table.set_index("image_id")["split"], set(read_heldout(path / "heldout.json")))
    if adjectives is None:
        raise UserError(f"{path}: a published split; give --adjectives, the composition's lexicon, to read its pairs")
    published = read_split(path)
    forms = load_lexicon(adjectives).forms, load_lexicon(nouns).forms if nouns else None
    parts = {image: split for split in SPLITS for image in published.images[split]}
    return Division(pd.Series(parts, dtype="str"), {fold(*split_pair(p), *forms) or p for p in published.pairs})


def random_trains(samples: Samples, sizes: tuple[int, int, int], shuffles: int, seed: int) -> np.ndarray:
    """Return (shuffles, 2): D_A and D_C of random trains; ``sizes``: images of both, and common ones."""
    first, second, common = sizes
    generator = rng(seed, "compare_splits")
    orders = (generator.permutation(len(samples)) for _ in range(shuffles))
    return np.array([measure(samples, order[:first], order[first - common :][:second]) for order in orders])


def compare(one: Division, other: Division, pairs: pd.DataFrame, ranking: pd.DataFrame, step: CompareSplits) -> Any:
    images = sorted({*one.parts.index, *other.parts.index})
    samples = pair_samples(pairs, ranking, images)
    place = {image: row for row, image in enumerate(images)}

    def rows(ids: Iterable[str]) -> list[int]:
        return sorted(place[image] for image in ids)

    common = one.train & other.train
    atom, compound = measure(samples, rows(one.train), rows(other.train))
    sizes = len(one.train), len(other.train), len(common)
    parts = [division.parts.reindex(images).fillna(NEITHER) for division in (one, other)]
    table = pd.crosstab(parts[0].rename("first"), parts[1].rename("second"))
    order = [*SPLITS, NEITHER]
    return {
        "atom_divergence": atom,
        "compound_divergence": compound,
        "compound_divergence_reversed": measure(samples, rows(other.train), rows(one.train))[1],
        **mean_and_deviation(random_trains(samples, sizes, step.shuffles, step.seed)),
        "shuffles": step.shuffles,
        "images": table.reindex(index=order, columns=order, fill_value=0).to_dict("index"),
        "heldout": {"first": len(one.pairs), "second": len(other.pairs), "common": sorted(one.pairs & other.pairs)},
    }


def readable(values: dict[str, Any]) -> str:
    random = {kind: f"{values[f'random_{kind}_mean']:.4f} ± {values[f'random_{kind}_std']:.4f}" for kind in KINDS}
    heldout, table = values["heldout"], pd.DataFrame(values["images"]).T
    common = ", ".join(heldout["common"]) or "none"
    return "\n".join(
        [
            f"D_A between the trains  {values['atom_divergence']:.4f} (random {random['atom']})",
            f"D_C between the trains  {values['compound_divergence']:.4f}, from the second"
            f" {values['compound_divergence_reversed']:.4f} (random {random['compound']})",
            f"held-out pairs          {heldout['first']} and {heldout['second']}, common: {len(heldout['common'])}"
            f" ({common})",
            "images                  rows: first split; columns: second",
            table.assign(all=table.sum(axis=1)).to_string(),
        ]
    )


def main(step: CompareSplits) -> None:
    one, other = (read_division(path, step.adjectives, step.nouns) for path in (step.first, step.second))
    pairs = read_table(step.pairs, PAIRS, ["image_id", "adjective", "noun"])
    for path, division in ((step.first, one), (step.second, other)):
        if division.train.isdisjoint(pairs["image_id"]):
            raise UserError(f"{path}: none of its train images is in {step.pairs}; give the pairs of the same captions")
    values = compare(one, other, pairs, read_table(step.ranking, RANKING), step)
    print(json.dumps(values, indent=2, ensure_ascii=False) if step.as_json else readable(values))


if __name__ == "__main__":
    cli.run(main)
