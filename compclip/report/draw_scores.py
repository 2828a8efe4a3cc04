"""The figures of what is composed, of scores, of held-out pairs, and of the judges' training."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

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
from compclip.report.comparisons import HELDOUT_SPLITS
from compclip.report.measures import COMPARED
from compclip.report.rows import Row, main_rows, of_measure, pivot
from compclip.report.verdicts import SEEN_SKILL, composed_of
from compclip.stats.composed import REGIONS


def draw_scores(scores: pd.DataFrame, reference: str | None, seed: int) -> Figure:
    """Draw both scores of each generator and split with 95 % intervals, the reference's scores, and
    chance.
    """
    main = main_rows(scores)
    rows = of_measure(main, "r_precision")
    measures = [
        measure
        for name, measure in COMPARED.items()
        if of_measure(main, name)["value"].notna().any()
    ]
    if not measures:
        return empty("Nothing was scored.")
    tables = [of_measure(main, measure.name) for measure in measures]
    shown = [
        in_percent(
            of,
            "value",
            "new_pairs_low",
            "new_pairs_high",
            group=of["generator"],
            row=of["split"],
            series=of["split"],
        )
        for of in tables
    ]
    figure, (panels,) = draw_rows([shown], SPLIT_LOOKS)
    panels[0].tick_params(labelleft=False)
    for heading in panels[0].texts:  # beside the axis, since there are no names of rows to its left
        heading.set(x=0.03, transform=panels[0].get_yaxis_transform())
    candidates = int(rows["candidates"].iloc[0])
    for axes, measure, of in zip(panels, measures, tables, strict=True):
        others = of["generator"] != reference
        # each generator's heading moves the rows below it down
        y = np.arange(len(of)) + (of["generator"] != of["generator"].shift()).cumsum()
        theirs = of["split"].map(of[~others].set_index("split")["value"])[others].dropna()
        if len(theirs):
            axes.plot(
                100 * theirs,
                y[theirs.index],
                "|",
                color="black",
                markersize=10,
                markeredgewidth=1.3,
                clip_on=False,
                label=f"reference: {reference}",
            )
        draw_line(axes, 100 * of_measure(main, f"{measure.name}_chance")["value"].mean(), "chance")
        axes.set_title(f"{measure.title}, %")
        axes.set(xlim=(0, 102), xticks=[0, 50, 100])
    counts = " to ".join(dict.fromkeys(f"{n:,}" for n in (rows["n"].min(), rows["n"].max())))
    return finish(
        figure,
        f"How often a judge ranks an image's caption first: R-precision: among {candidates} "
        "captions; adjective "
        "accuracy: among its copies with other adjectives. Lines: 95 % intervals; "
        f"n = {counts} images a row; seed {seed}.",
    )


def draw_composed(scores: pd.DataFrame, seed: int) -> Figure:
    """Draw what each generator composes of all held-out prompts, against how well it draws seen
    pairs.
    """
    table = pivot(main_rows(scores))
    shown: dict[str, tuple[Row, Row]] = {}
    for generator, rows in table.items():
        composed, seen = composed_of(rows), rows.get(SEEN_SKILL)
        if (
            composed is not None
            and seen is not None
            and not pd.isna(composed["value"])
            and not pd.isna(seen["value"])
        ):
            shown[generator] = seen, composed
    if not shown:
        return empty("No estimate of what is composed.")
    looks = looks_of(shown)
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    axes.set_title("composes, %")
    for edge in REGIONS:
        axes.axhline(100 * edge, color=GRAY, linewidth=0.8, linestyle=":")
    ends = [
        100 * composed[end]
        for _, composed in shown.values()
        for end in ("same_pairs_low", "same_pairs_high")
    ]
    axes.set_ylim(min(-12, min(ends) - 4), min(160, max(112, max(ends) + 4)))
    for generator, (seen, composed) in shown.items():
        label, color, mark = looks.get(generator, ("more", GRAY, "."))
        x, y = 100 * seen["value"], 100 * composed["value"]
        axes.vlines(
            x,
            100 * composed["new_pairs_low"],
            100 * composed["new_pairs_high"],
            color=color,
            linewidth=0.8,
        )
        axes.vlines(
            x,
            100 * composed["same_pairs_low"],
            100 * composed["same_pairs_high"],
            color=color,
            linewidth=2.4,
        )
        axes.hlines(
            y,
            100 * seen["same_pairs_low"],
            100 * seen["same_pairs_high"],
            color=color,
            linewidth=2.4,
        )
        axes.plot(x, y, mark, color=color, markersize=6, clip_on=False, label=label)
    axes.set_xlabel("draws seen pairs, %")
    axes.set_xlim(min(-5, axes.get_xlim()[0]), max(105, axes.get_xlim()[1]))
    return finish(
        figure,
        "Composes: the fraction of held-out prompts whose pair is drawn, relative to seen "
        "prompts; dotted: the regions"
        " of the verdicts. Draws seen pairs: between the usual pair (0) and the reference (100). "
        "Thick lines: 95 %"
        f" intervals for the same pairs and judges; thin: for new pairs; seed {seed}.",
    )


def draw_pairs(table: pd.DataFrame, seed: int) -> Figure:
    """Draw adjective accuracy (``table``: rows of ``pairs.csv``) by split and pair, the lowest mean
    on top.
    """
    known = table[table["split"].isin(HELDOUT_SPLITS)].dropna(subset="adjective_accuracy")
    if known.empty:
        return empty("No held-out pair has adjective accuracy.")
    lines = {}
    for split, rows in known.groupby("split", sort=False):
        mean, most = (
            rows.groupby("pair")[name].transform(how)
            for name, how in (("adjective_accuracy", "mean"), ("n", "max"))
        )
        rows = rows.assign(row=rows["pair"].map(pair_words) + most.map(" ({})".format), mean=mean)
        rows = rows.sort_values(["mean", "pair"], kind="stable")
        ends = [f"adjective_accuracy{end}" for end in ("", "_low", "_high")]
        lines[split] = [in_percent(rows, *ends, row=rows["row"], series=rows["generator"])]
    generators = table["generator"].unique()
    looks = looks_of(generators)
    figure, panels = draw_rows(list(lines.values()), looks)
    for axes, split in zip(panels[:, 0], lines, strict=True):
        axes.set_title(SPLIT_NAMES[split])
        axes.set_xlim(-2, 102)
    panels[-1, 0].set_xlabel("adjective accuracy, %")
    more = len(generators) - len(looks)
    return finish(
        figure,
        "How often the judges choose a prompt's own adjective for its image; in brackets: images "
        "made; lines: 95 %"
        f" intervals over the pair's images and the judges; seed {seed}"
        f"{f'; {more} more generators are in pairs.csv' if more > 0 else ''}.",
    )


def draw_loss(trainings: Sequence[pd.DataFrame], seed: int) -> Figure:
    """Draw each judge's loss by epoch, and how often it retrieves the captions of real test
    images.
    """
    training = trainings[0]
    watched = [column for column in training if column.startswith("retrieval")]
    if "loss" not in training:
        return empty("The judge was used without training (epochs: 0).")
    figure = Figure(figsize=(WIDTH, 1.5 + 1.5 * bool(watched)))
    panels = figure.subplots(1 + bool(watched), 1, sharex=True, squeeze=False)[:, 0]
    for one in trainings:
        panels[0].plot(one["epoch"], one["loss"], "o-", color=GRAY, markersize=3)
        for column in watched:
            label, color, mark = SPLIT_LOOKS[column.replace("retrieval", "test")]
            panels[1].plot(
                one["epoch"], 100 * one[column], f"{mark}-", color=color, markersize=4, label=label
            )
    panels[0].set(title="contrastive loss, mean of the epoch")
    panels[0].set_ylim(bottom=0)
    if watched:
        panels[1].set(title="test images whose caption is first of 100, %", ylim=(0, 100))
    panels[-1].set_xlabel("epoch")
    panels[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    steps = f"{int(training['step'].max()):,} steps in {len(training)} epochs"
    return finish(figure, f"n = {steps}; {len(trainings)} judges; seed {seed}")
