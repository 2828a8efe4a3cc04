"""Run the default config with several seeds and check the measurement; the result is ``docs/seeds.md``.

The generators of sketches have known skill, so each row of the table has a value that it should reach.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from pathlib import Path

import pandas as pd
from pydantic import Field

from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_json, write_text
from workflow_scripts.core.step import Step
from workflow_scripts.workflow.config import read_config

DOCUMENT = ROOT / "docs" / "seeds.md"
# The smallest acceptable mean, over the seeds, of faithful minus memorizer on unseen and swapped captions.
LEAST_GAP = {"color": 0.15, "shape": 0.08}


def exact(table: pd.DataFrame, generator: str, split: str, judge: str = "trained") -> pd.Series:
    """Return the row of the main score (all prompts with a pair, original distractors)."""
    of_judge = table["judge"] == "oracle" if judge == "oracle" else table["judge"] != "oracle"
    rows = table[of_judge & (table["generator"] == generator) & (table["split"] == split)]
    rows = rows[(rows["prompts"] != "swapped") | (split == "test_swapped")]
    rows = rows[rows["distractors"] == "original"]
    if len(rows) != 1:
        raise UserError(f"table.csv: {len(rows)} rows for {generator} on {split} by the {judge} judge, not one")
    return rows.iloc[0]


def difference(comparisons: pd.DataFrame, a: str, b: str, split: str) -> pd.Series:
    rows = comparisons[(comparisons["a"] == a) & (comparisons["b"] == b) & (comparisons["split"] == split)]
    if len(rows) != 1:
        raise UserError(f"comparisons.csv: {len(rows)} rows for {a} against {b} on {split}, not one")
    return rows.iloc[0]


def figures(folder: Path, dataset: str, composition: str) -> dict[str, tuple[str, bool]]:
    """Return the checks of one run: for each name its value as text, and whether it holds."""
    table = pd.read_csv(folder / "table.csv")
    table = table[(table["dataset"] == dataset) & (table["composition"] == composition)]
    comparisons = pd.read_csv(folder / "comparisons.csv")
    comparisons = comparisons[(comparisons["dataset"] == dataset) & (comparisons["composition"] == composition)]
    splits = pd.read_parquet(folder / dataset / composition / "splits.parquet")
    [file] = (folder / dataset / composition / "health").iterdir()
    health = read_json(file)["ratio"]
    train = float((splits["split"] == "train").mean())
    oracle = exact(table, "photographs", "test_seen", "oracle")["exact"]
    real = exact(table, "photographs", "test_seen")["exact"]
    result = {
        "fraction of the images in train, at least 0.50": (f"{train:.2f}", train >= 0.5),
        "oracle, real images of test_seen, at least 0.80": (f"{oracle:.3f}", oracle >= 0.8),
        "judge, the same images, at least 0.50": (f"{real:.3f}", real >= 0.5),
        "judge / oracle, at least 0.60": (f"{real / oracle:.2f}", real / oracle >= 0.6),
        "health of the judge, at least 0.75": (f"{health:.2f}", health >= 0.75),
    }
    for split in ("test_unseen", "test_swapped"):
        gap = difference(comparisons, "faithful", "memorizer", split)
        text = f"{gap['difference']:.3f} [{gap['low']:.3f}, {gap['high']:.3f}]"
        result[f"faithful - memorizer, {split}, interval above 0"] = (text, gap["low"] > 0)
    same = difference(comparisons, "faithful", "memorizer", "test_seen")["difference"]
    result["faithful - memorizer, test_seen, within 0.02"] = (f"{same:.3f}", abs(same) <= 0.02)
    for split in ("test_seen", "test_unseen", "test_swapped"):
        faithful, unbound, blind = (exact(table, name, split)["exact"] for name in ("faithful", "unbound", "blind"))
        result[f"unbound / faithful, {split}, at most 0.50"] = (f"{unbound / faithful:.2f}", unbound <= faithful / 2)
        result[f"blind, {split}, near 0.01 (at most 0.03)"] = (f"{blind:.3f}", blind <= 0.03)
    return result


class Seeds(Step):
    """Run the default config with several seeds and write docs/seeds.md."""

    seeds: list[int] = Field([0, 1, 2], description="seeds to run")
    cores: int = Field(os.cpu_count() or 1, ge=1, description="cores that Snakemake may use")


def main(step: Seeds) -> None:
    os.chdir(ROOT)
    settings = read_config(ROOT / "config.yaml")
    dataset = settings.dataset.name or settings.dataset.source
    results = Path(settings.results)
    # The config's own seed is the default run.
    folders = {seed: results if seed == settings.seed else results / "seeds" / str(seed) for seed in step.seeds}
    for seed, folder in folders.items():
        cli.log.info("seed %d, into %s", seed, folder)
        command = ["snakemake", "--cores", str(step.cores), "--quiet", "rules"]
        subprocess.run([*command, "--config", f"seed={seed}", f"results={folder}"], check=True)
    lines = [
        "# The default run over several seeds",
        "",
        f"`make seeds` on {datetime.date.today()}, {step.cores} cores, {platform.machine()}, {platform.system()}. "
        "Exact R-precision of 100 candidates; intervals are 95 %, paired, over images. Bold: requirement not met.",
        "",
    ]
    for composition in settings.compositions:
        runs = [figures(folder, dataset, composition) for folder in folders.values()]
        lines += [f"## {composition}", "", "| | " + " | ".join(f"seed {seed}" for seed in folders) + " |"]
        lines += ["|---" * (len(folders) + 1) + "|"]
        for name in runs[0]:
            cells = (text if holds else f"**{text}**" for text, holds in (run[name] for run in runs))
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
        for split in ("test_unseen", "test_swapped"):
            name = f"faithful - memorizer, {split}, interval above 0"
            mean = sum(float(run[name][0].split()[0]) for run in runs) / len(runs)
            verdict = "met" if mean >= LEAST_GAP[composition] else "**not met**"
            lines.append(
                f"Mean gap on {split}: {mean:.3f} (at least {LEAST_GAP[composition]:.2f} required: {verdict})."
            )
            lines.append("")
    write_text("\n".join(lines), DOCUMENT)
    print(DOCUMENT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    cli.run(main)
