"""Mix a finished run's scores into generators whose fraction composed is known, and write what is said of them.

A mixture has, for each prompt, the scores of one generator of the run, or all hits (``PERFECT``). Its truth on a split
is the mean, over prompts, of what these generators compose: the reference and ``PERFECT`` 1, habit 0, others their own
estimate, since the fraction composed is linear in scores. A word is wrong if the truth is more than ``TOLERANCE``
outside of its regions, both over all prompts and over those whose pair the judges read on other images: of the other
pairs they can tell little.
"""

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from tqdm import tqdm

from compclip.core import cli
from compclip.core.cli import Command
from compclip.core.code import ROOT
from compclip.core.seeds import rng
from compclip.core.tables import CAPTIONS, DIVERGENCE, MEASUREMENTS, TESTS
from compclip.io import empty_table, read_table, write_text
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.composed import all_fractions
from compclip.report.make_table import measurements
from compclip.report.rows import of_measure
from compclip.report.table import Scored
from compclip.report.verdicts import verdicts
from compclip.score.entries import ENTRY
from compclip.split.pools import class_names
from compclip.stats.composed import REGIONS, word
from workflow_scripts.layout import Layout
from workflow_scripts.report.make_table import read_all_scores
from workflow_scripts.score.section import read_health
from workflow_scripts.workflow.config import Config, read_config

DOCUMENT = ROOT / "docs" / "measurement.md"
MIXTURES_BEGIN, MIXTURES_END = "<!-- measured by `make mixtures` -->", "<!-- end of mixtures -->"
REFERENCE, HABIT, BLIND, UNBOUND = "faithful", "memorizer", "blind", "unbound"
PERFECT = "perfect"  # of whose images the judges misread none
SCORE_COLUMNS = dict.fromkeys(["hit", "expected_top1", "adjective_first", "adjusted_first"], float)
FRACTIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
TOLERANCE = 0.02
EDGES = (-np.inf, *REGIONS, np.inf)
# The lowest and the highest fraction of each word, and of two as in "hardly to half".
SPANS = {word(low, high): (low, high) for low, high in combinations(EDGES, 2)}
# From the entries of a split and its name to the generator that draws each.
Choice = Callable[[pd.DataFrame, str], np.ndarray]


class Mixtures(Command):
    """Mix the generators of a finished default run; write what is said of the mixtures into docs/measurement.md."""

    config: Path = Field(Path("config.yaml"), description="config of the finished run, with drawn birds")
    draws: int = Field(20, ge=1, description="seeds of each mixture")


def by_prompt(fraction: float, first: str, other: str, random: np.random.Generator) -> Choice:
    """Let ``first`` draw a fraction of the prompts."""
    return lambda entries, split: np.where(random.random(len(entries)) < fraction, first, other)


def with_composed(composed: set[str]) -> Choice:
    """Let the reference draw the prompts of these held-out pairs and of seen, habit all others."""
    return lambda entries, split: np.where(
        entries["pair"].isin(list(composed)) | (split == "test_seen"), REFERENCE, HABIT
    )


def on_seen(choice: Choice, other: str) -> Choice:
    """Keep the choice on seen prompts; let ``other`` draw all others."""
    return lambda entries, split: choice(entries, split) if split == "test_seen" else np.full(len(entries), other)


def mixtures(pairs: list[str], unreadable: set[str], random: np.random.Generator) -> Iterator[tuple[str, Choice]]:
    """Yield the name and the choice of each mixture."""
    for fraction in FRACTIONS:
        yield f"{fraction:.0%} of prompts composed", by_prompt(fraction, REFERENCE, HABIT, random)
    for number in range(0, len(pairs) + 1, max(1, len(pairs) // 4)):
        yield f"{number} of {len(pairs)} pairs composed", with_composed(set(random.permutation(pairs)[:number]))
    yield "all but unreadable pairs composed", with_composed(set(pairs) - unreadable)
    for fraction in (0.1, 0.5):
        yield f"{fraction:.0%} of prompts ignored", by_prompt(fraction, BLIND, REFERENCE, random)
    yield "50% of prompts with unbound adjectives", by_prompt(0.5, UNBOUND, REFERENCE, random)
    yield "memorizes; 90% with unbound adjectives", by_prompt(0.9, UNBOUND, HABIT, random)
    better = by_prompt(0.5, PERFECT, REFERENCE, random)
    yield "better than the reference on all splits", better
    yield "better on seen, equal on held-out", on_seen(better, REFERENCE)
    yield "memorizes; better on seen", on_seen(better, HABIT)


def mixed(scores: dict[tuple[str, str], Scored], split: str, drawn_by: np.ndarray, name: str) -> Scored:
    """Return the reference's score of a split with the entries of these generators, by each judge."""
    base, tables = scores[REFERENCE, split], []
    for judge, table in enumerate(base.by_judge):
        table, entries = table.astype(SCORE_COLUMNS), pd.MultiIndex.from_frame(table[ENTRY])
        table.loc[drawn_by == PERFECT, [*SCORE_COLUMNS]] = 1.0
        for generator in set(drawn_by) - {REFERENCE, PERFECT}:
            of = scores[generator, split].by_judge[judge].astype(SCORE_COLUMNS).set_index(ENTRY)[[*SCORE_COLUMNS]]
            chosen = drawn_by == generator
            table.loc[chosen, [*SCORE_COLUMNS]] = of.loc[entries[chosen]].to_numpy()
        tables.append(table)
    return replace(base, summary={**base.summary, "generator": name}, entries=tables[0], by_judge=tuple(tables))


def table_lines(layout: Layout, config: Config, draws: int) -> Iterator[str]:
    """Yield a row of the table for each mixture: truth and means over draws, and which word was given how often."""
    classes = class_names(read_table(layout.data / "captions.parquet", CAPTIONS, ["image_id", "class_id"]))
    health = read_health(layout, config.judges, config.score.health)
    of_run = SimpleNamespace(generators=[REFERENCE, HABIT, BLIND, UNBOUND], judges=config.judges, oracle=[])
    scores = {(of.generator, of.split): of for of in read_all_scores(layout, of_run, classes) if of.main}
    anchors = config.anchors, of_run.generators
    known = {
        split: of.by_measure["fraction_composed"] for split, of in all_fractions([*scores.values()], *anchors).items()
    }
    estimates = {split: {name: of.value for name, of in by_name.items()} for split, by_name in known.items()}
    composes = {split: {**of, PERFECT: 1.0} for split, of in estimates.items()}
    pairs = sorted(set(scores[REFERENCE, "test_unseen"].entries["pair"]))
    unreadable = {*health.unreadable}
    readable = {split: ~scores[REFERENCE, split].entries["pair"].isin(unreadable).to_numpy() for split in TESTS}
    found: dict[str, list[dict[str, Any]]] = {}
    for draw in tqdm(range(draws), unit="draw", desc=layout.composition):
        for name, choice in mixtures(pairs, unreadable, rng(0, "mixtures", layout.composition, draw)):
            drawn_by = {split: choice(scores[REFERENCE, split].entries, split) for split in TESTS}
            judged = [mixed(scores, split, drawn_by[split], "mixture") for split in TESTS]
            judged += [scores[part, split] for part in (REFERENCE, HABIT) for split in TESTS]
            rows = measurements(judged, empty_table(DIVERGENCE), {}, {}, REFERENCE, all_fractions(judged, *anchors), 2)
            table = pd.DataFrame(rows, columns=[*MEASUREMENTS.columns])
            given = next(of.word for of in verdicts(table, config.anchors, True) if of.generator == "mixture")
            values = of_measure(table[table["generator"] == "mixture"], "fraction_composed").set_index("split")["value"]
            skills = {split: np.array([composes[split][of] for of in drawn_by[split]]) for split in HELDOUT_SPLITS}
            truths = {split: (of.mean(), of[readable[split]].mean()) for split, of in skills.items()}
            low, high = SPANS.get(given, (-np.inf, np.inf))
            wrong = any(max(of) < low - TOLERANCE or min(of) > high + TOLERANCE for of in truths.values())
            found.setdefault(name, []).append({"word": given, "wrong": wrong, **values, "truth": truths})
    for name, of_draws in found.items():
        means = [100 * np.mean([of["truth"][split] for of in of_draws], axis=0) for split in HELDOUT_SPLITS]
        truth = ["/".join(f"{of:.0f}" for of in both) for both in means]
        estimate = [f"{100 * np.mean([of[split] for of in of_draws]):.1f}" for split in HELDOUT_SPLITS]
        words = ", ".join(f"{word} {count}" for word, count in Counter(of["word"] for of in of_draws).most_common())
        count = sum(of["wrong"] for of in of_draws)
        yield f"| {name} | {', '.join(truth)} | {', '.join(estimate)} | {words} | {count} |"


def main(command: Mixtures) -> None:
    config = read_config(command.config)
    when = f"`make mixtures`, {command.draws} draws of each mixture, {os.cpu_count()} cores of {platform.machine()}"
    lines = [f"{when}, {datetime.now(UTC):%Y-%m-%d}."]
    for composition in config.compositions:
        heads = f"{composition}: mixture | truth, % of all/readable (unseen, swapped) | estimate, % | words | wrong"
        lines += ["", f"| {heads} |", "|:--|--:|--:|:--|--:|"]
        lines += table_lines(Layout(Path(config.results), config.dataset.source, composition), config, command.draws)
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(MIXTURES_BEGIN)[0], text.split(MIXTURES_END)[1]
    write_text(before + "\n".join([MIXTURES_BEGIN, "", *lines, "", MIXTURES_END]) + after, DOCUMENT)
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
