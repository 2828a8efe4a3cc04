"""The figures of what is composed, of scores, of held-out pairs, and of the judges' training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compclip.core.tables import HELD_OUT_SPLITS
from compclip.plot.drawing import (
    GRAY,
    WIDTH,
    draw_line,
    draw_rows,
    empty,
    finish,
    in_percent,
    looks_of,
)
from compclip.plot.labels import SPLIT_LOOKS, SPLIT_NAMES, pair_words
from compclip.report.measures import COMPARED
from compclip.report.rows import Row, main_rows, pivot, select_measure
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.stats.composed import REGIONS


def draw_scores(scores: pd.DataFrame, reference: str | None, seed: int) -> Figure:
    """Draw both scores of each generator and split with 95 % intervals, the reference's scores, and
    chance.
    """
    main = main_rows(scores)
    tables = {name: select_measure(main, name) for name in COMPARED}
    tables = {name: table for name, table in tables.items() if table["value"].notna().any()}
    if not tables:
        return empty("Nothing was scored.")
    columns = [
        in_percent(
            table,
            "value",
            "new_pairs_low",
            "new_pairs_high",
            group=table["generator"],
            row=table["split"],
            series=table["split"],
        )
        for table in tables.values()
    ]
    figure, (panels,) = draw_rows([columns], SPLIT_LOOKS)
    panels[0].tick_params(labelleft=False)
    # Generators' names are beside the axis, since there are no names of rows to its left.
    for heading in panels[0].texts:
        heading.set(x=0.03, transform=panels[0].get_yaxis_transform())
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        if reference is not None:
            _mark_reference(axes, table, reference)
        # One line, although prompts have different numbers of adjectives.
        chance = select_measure(main, f"{name}_chance")["value"].mean()
        draw_line(axes, 100 * chance, "chance")
        axes.set_title(f"{COMPARED[name].title}, %")
        axes.set(xlim=(0, 102), xticks=[0, 50, 100])
    r_precision = select_measure(main, "r_precision")
    candidates = int(r_precision["candidates"].iloc[0])
    numbers = (r_precision["n"].min(), r_precision["n"].max())
    counts = " to ".join(dict.fromkeys(f"{n:,}" for n in numbers))
    return finish(
        figure,
        f"How often a judge ranks an image's caption first: R-precision: among {candidates} "
        "captions; adjective "
        "accuracy: among its variants with other adjectives. Lines: 95 % intervals for new pairs; "
        f"n = {counts} images a row; seed {seed}.",
    )


def _mark_reference(axes: Axes, table: pd.DataFrame, reference: str) -> None:
    """Mark the reference's score in the row of each other generator on the same split."""
    # Its own rows need no mark.
    is_other = table["generator"] != reference
    # Each generator's heading moves the rows below it down by one.
    headings = (table["generator"] != table["generator"].shift()).cumsum()
    y = np.arange(len(table)) + headings
    reference_scores = table[~is_other].set_index("split")["value"]
    values = table["split"].map(reference_scores)[is_other].dropna()
    if len(values):
        axes.plot(
            100 * values,
            y[values.index],
            "|",
            color="black",
            markersize=10,
            markeredgewidth=1.3,
            clip_on=False,
            label=f"reference: {reference}",
        )


@dataclass(frozen=True)
class _Skill:
    """What a generator draws of seen pairs and composes of held-out ones: rows of
    ``scores.parquet``.
    """

    seen: Row
    composed: Row

    @property
    def is_estimated(self) -> bool:
        return not (pd.isna(self.composed["value"]) or pd.isna(self.seen["value"]))


def _skills(scores: pd.DataFrame) -> dict[str, _Skill]:
    """Return the skill of each generator that has an estimate of both."""
    skills = {}
    for generator, rows in pivot(main_rows(scores)).items():
        composed = composed_of(rows)
        seen = rows.get(SEEN_SKILL)
        if composed is None or seen is None:
            continue
        skill = _Skill(seen, composed)
        if skill.is_estimated:
            skills[generator] = skill
    return skills


def draw_composed(scores: pd.DataFrame, seed: int) -> Figure:
    """Draw what each generator composes of all held-out prompts, against how well it draws seen
    pairs.
    """
    skills = _skills(scores)
    if not skills:
        return empty("No estimate of what is composed.")
    # There are fewer looks than a run may have generators; the others are gray.
    looks = looks_of(skills)
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    axes.set_title("composes, %")
    for edge in REGIONS:
        # The regions that verdicts name.
        axes.axhline(100 * edge, color=GRAY, linewidth=0.8, linestyle=":")
    ends = [
        100 * skill.composed[end]
        for skill in skills.values()
        for end in ("same_pairs_low", "same_pairs_high")
    ]
    # 0 and 100 % are always in view.
    axes.set_ylim(min(-12, min(ends) - 4), min(160, max(112, max(ends) + 4)))
    for generator, skill in skills.items():
        _draw_skill(axes, skill, looks.get(generator, ("more", GRAY, ".")))
    axes.set_xlabel("draws seen pairs, %")
    left, right = axes.get_xlim()
    axes.set_xlim(min(-5, left), max(105, right))
    return finish(
        figure,
        "Composes: the fraction of held-out prompts whose pair is drawn, relative to seen "
        "prompts; dotted: the regions"
        " of the verdicts. Draws seen pairs: between the usual pair (0) and the reference (100). "
        "Thick lines: 95 %"
        f" intervals for the same pairs and judges; thin: for new pairs; seed {seed}.",
    )


def _draw_skill(axes: Axes, skill: _Skill, look: tuple[str, str, str]) -> None:
    """Draw a generator's point and intervals; ``look``: its label, color and mark."""
    label, color, mark = look
    # In percent.
    x = 100 * skill.seen["value"]
    y = 100 * skill.composed["value"]
    # The interval for new pairs is thin, that for the same pairs and judges thick.
    for pairs, width in (("new_pairs", 0.8), ("same_pairs", 2.4)):
        low = 100 * skill.composed[f"{pairs}_low"]
        high = 100 * skill.composed[f"{pairs}_high"]
        axes.vlines(x, low, high, color=color, linewidth=width)
    low = 100 * skill.seen["same_pairs_low"]
    high = 100 * skill.seen["same_pairs_high"]
    axes.hlines(y, low, high, color=color, linewidth=2.4)
    axes.plot(x, y, mark, color=color, markersize=6, clip_on=False, label=label)


def draw_pairs(table: pd.DataFrame, seed: int) -> Figure:
    """Draw adjective accuracy (``table``: rows of ``pairs.csv``) by split and pair, the lowest mean
    on top.
    """
    held_out = table[table["split"].isin(HELD_OUT_SPLITS)].dropna(subset="adjective_accuracy")
    if held_out.empty:
        return empty("No held-out pair has adjective accuracy.")
    generators = table["generator"].unique()
    looks = looks_of(generators)
    by_split = {split: [_pair_lines(rows)] for split, rows in held_out.groupby("split", sort=False)}
    figure, panels = draw_rows(list(by_split.values()), looks)
    for axes, split in zip(panels[:, 0], by_split, strict=True):
        axes.set_title(SPLIT_NAMES[split])
        axes.set_xlim(-2, 102)
    panels[-1, 0].set_xlabel("adjective accuracy, %")
    note = (
        "How often the judges choose a prompt's own adjective for its image; in brackets: images "
        "made; lines: 95 %"
        f" intervals over the pair's images and the judges; seed {seed}"
    )
    # Generators without a look of their own are not drawn.
    unnamed = len(generators) - len(looks)
    if unnamed > 0:
        note += f"; {unnamed} more generators are in pairs.csv"
    return finish(figure, f"{note}.")


def _pair_lines(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of one split's pairs, sorted by their mean over generators."""
    by_pair = rows.groupby("pair")
    images = by_pair["n"].transform("max").map(" ({})".format)
    names = rows["pair"].map(pair_words) + images
    # A pair's place is the same for all generators.
    mean = by_pair["adjective_accuracy"].transform("mean")
    rows = rows.assign(row=names, mean=mean).sort_values(["mean", "pair"], kind="stable")
    ends = [f"adjective_accuracy{end}" for end in ("", "_low", "_high")]
    return in_percent(rows, *ends, row=rows["row"], series=rows["generator"])


def draw_loss(trainings: Sequence[pd.DataFrame], seed: int) -> Figure:
    """Draw each judge's loss by epoch, and how often it retrieves the captions of real test
    images.
    """
    training = trainings[0]
    if "loss" not in training:
        return empty("The judge was used without training (epochs: 0).")
    # Named after the test splits.
    retrievals = [column for column in training if column.startswith("retrieval")]
    rows = 2 if retrievals else 1
    figure = Figure(figsize=(WIDTH, 1.5 * rows))
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for judge_log in trainings:
        panels[0].plot(judge_log["epoch"], judge_log["loss"], "o-", color=GRAY, markersize=3)
        for column in retrievals:
            label, color, mark = SPLIT_LOOKS[column.replace("retrieval", "test")]
            panels[1].plot(
                judge_log["epoch"],
                100 * judge_log[column],
                f"{mark}-",
                color=color,
                markersize=4,
                label=label,
            )
    panels[0].set(title="contrastive loss, mean of the epoch")
    # From 0, so that a small decrease does not look like a large one.
    panels[0].set_ylim(bottom=0)
    if retrievals:
        panels[1].set(title="test images whose caption is first of 100, %", ylim=(0, 100))
    panels[-1].set_xlabel("epoch")
    # There are no half epochs.
    panels[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    last_step = int(training["step"].max())
    steps = f"{last_step:,} steps in {len(training)} epochs"
    return finish(figure, f"n = {steps}; {len(trainings)} judges; seed {seed}")
