"""Compare the expected widths of ``split.widths`` with a finished run: two generators that differ on unseen pairs.

Prints a row of docs/widths.md for each composition and split. Variances are those of clusters (Taylor linearization):
over held-out pairs, and over images alone.
"""

import math
from pathlib import Path

import pandas as pd
from pydantic import Field

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.tables import SCORES
from compclip.io import read_json, read_table
from workflow_scripts.layout import Layout


class Widths(Command):
    """Compare expected and measured standard errors of the difference between two generators."""

    results: Path = Field(Path("results"), description="folder of a finished run")
    dataset: str = Field("sketch", description="name of the data set")
    compositions: list[str] = Field(["color", "shape"], description="names of the compositions")
    judge: str = Field("0", description="name of the judge")
    generators: tuple[str, str] = Field(("faithful", "memorizer"), description="names of two generators")


def cluster_variance(entries: pd.DataFrame, cluster: str) -> float:
    """Return the variance of the mean of ``y`` over clusters."""
    deviations = (entries["y"] - entries["y"].mean()).groupby(entries[cluster]).sum() / len(entries)
    return float(len(deviations) / (len(deviations) - 1) * (deviations**2).sum())


def row(layout: Layout, split: str, judge: str, generators: tuple[str, str]) -> str:
    """Return a row of the table: sizes, measured standard errors and what follows from them, expected half width."""
    key = ["image_id", "caption_id", "draw"]
    a, b = (read_table(layout.scores(name, judge) / f"{split}.parquet", SCORES) for name in generators)
    entries = a.merge(b, on=key, suffixes=("", "_b"))
    entries["y"] = entries["expected_top1"] - entries["expected_top1_b"]
    n, images = len(entries), entries["image_id"].nunique()
    over_pairs, over_images = cluster_variance(entries, "pair"), cluster_variance(entries, "image_id")
    expected = read_json(layout.place / "widths.json")["splits"][split]
    sd = math.sqrt(max(0, over_pairs - over_images) * expected["effective_pairs"])
    correlation = (over_images * n / entries["y"].var() - 1) / (n / images - 1)
    cells = [
        f"{layout.composition}, {split}", f"{n:,}", f"{images:,}", f"{expected['pairs']}",
        f"{expected['effective_pairs']:.1f}", f"{math.sqrt(over_images):.3f}", f"{math.sqrt(over_pairs):.3f}",
        f"{sd:.3f}", f"{correlation:.2f}", f"{expected['half_width']:.3f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(command: Widths) -> None:
    for composition in command.compositions:
        for split in ("test_unseen", "test_swapped"):
            print(row(Layout(command.results, command.dataset, composition), split, command.judge, command.generators))


if __name__ == "__main__":
    cli.run(main)
