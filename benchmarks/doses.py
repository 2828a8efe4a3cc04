"""Train a text-to-image model that sees held-out pairs in known numbers of images, and measure what
it draws of them.

Each held-out pair of the config's run gets a dose (``benchmarks.dosing``): so many images of it are
added to the training list. One training sees all doses. The run's judges score the model's images,
and the fraction of prompts whose pair is drawn is estimated by pair, on the scale of the anchors,
and drawn against the number of training images, beside that of matched seen pairs. A finished or
killed part is not done again.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from benchmarks.dosing import check_doses, choose_doses, further_birds, write_birds
from benchmarks.laws import Style, coarse
from benchmarks.styles import World
from compclip.core.artifacts.files import (
    atomic_folder,
    json_lines,
    read_json,
    write_json,
    write_text,
)
from compclip.core.artifacts.heldout import pair_names, read_heldout
from compclip.core.artifacts.parquet import read_frame, read_table
from compclip.core.errors import require
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.settings.section import SeedNumber
from compclip.core.tables import CAPTIONS, SPLIT
from compclip.plot.drawing import GRAY, SERIES_COLORS, WIDTH, empty, finish, save, style
from compclip.plot.labels import interval, percent
from compclip.report.composed import CompositionScale, make_scale
from compclip.split.pools import class_names
from compclip.stats.composed import LEAST_DRAWN, Fraction, JudgeChoices, Scale
from workflow_scripts.layout import Layout
from workflow_scripts.report.make_table import read_all_scores
from workflow_scripts.workflow import run
from workflow_scripts.workflow.config import Config, read_config

LAW_IMAGES = 15  # of a pair, with which the known law draws it in 63 % of the prompts
BEGIN, END = "<!-- measured by `make doses` -->", "<!-- end of doses -->"
HELD_OUT, SEEN = "held-out pairs", "matched seen pairs"
# The color, mark and filling of each curve.
LOOKS = {
    HELD_OUT: (SERIES_COLORS[1], "o", SERIES_COLORS[1]),
    SEEN: (SERIES_COLORS[0], "s", "white"),
}


class Doses(Command):
    """Give held-out pairs back in known doses, train a model, draw, score; write the curve into
    docs/learned.md.
    """

    config: Path = Field(
        Path("presets/doses.yaml"),
        description="a config of drawn birds with one diffusers generator",
    )
    cores: int = Field(
        os.cpu_count() or 1,
        ge=1,
        le=1_000_000,
        description="cores of the workflow and the training",
    )
    doses: list[int] = Field(
        [0, 1, 3, 10, 30, 100], min_length=1, description="images of a held-out pair in training"
    )
    seed: SeedNumber = Field(0, description="of the choice of doses and of the training")
    size: int = Field(
        32, ge=8, le=512, description="width and height of the model's pictures in pixels"
    )
    channels: list[int] = Field(
        [64, 128, 256], min_length=2, description="of each level of the network; multiples of 32"
    )
    steps: int = Field(20_000, ge=1, le=100_000_000, description="of the training")
    batch: int = Field(64, ge=1, le=100_000, description="images of a step")
    lr: float = Field(5e-4, gt=0, le=1, description="the highest learning rate")
    every: int = Field(
        500, ge=1, le=100_000_000, description="steps from one checkpoint to the next"
    )
    law: bool = Field(
        False,
        description="draw by a known law instead of training, and print what the curve says of it",
    )
    docs: Path = Field(
        ROOT / "docs", description="folder of learned.md, pictures/ and results/, which are written"
    )

    @property
    def training(self) -> dict[str, Any]:
        """Return the options of the training that decide its result."""
        return self.model_dump(include={"seed", "size", "channels", "steps", "batch", "lr"})


@dataclass(frozen=True)
class Place:
    """The run's artifacts, and the folders of the training."""

    config: Config
    layout: Layout
    generator: str  # the name of the model's generator
    model: Path

    @property
    def data(self) -> Path:
        """Return the folder of the training list and the images of the doses."""
        return self.model.parent / "training"


def place_of(config: Config, where: Path) -> Place:
    """Return the places of a config's run; raise UserError if it is not of the kind that doses
    need.
    """
    require(
        config.dataset.source == "sketch",
        where,
        "doses need drawn birds",
        "set dataset.source to sketch",
    )
    require(len(config.compositions) == 1, where, "several compositions", "name one composition")
    models = [
        generator for generator in config.generate.generators if generator.kind == "diffusers"
    ]
    require(len(models) == 1, where, f"{len(models)} generators of kind diffusers", "name one")
    remedy = "set its training_data to other, because the model sees held-out pairs"
    require(
        models[0].trained_on != "split",
        where,
        f"training_data of {models[0].name} is split",
        remedy,
    )
    dataset = config.dataset.name or config.dataset.source
    layout = Layout(ROOT / config.results, dataset, config.compositions[0], config.judge.shared)
    return Place(config, layout, models[0].name, ROOT / models[0].options["model"])


def run_workflow(command: Doses, *targets: str) -> None:
    """Do what `make run` does, for some targets or for all."""
    run.main(run.Run(config=command.config, cores=command.cores, snakemake=[*targets]))


def write_training_list(command: Doses, place: Place) -> None:
    """Write the training list with the images of the doses, doses.json and settings.json, unless
    they are there.

    Raises:
        UserError: they are of other settings, or the audit counts other doses in the list.
    """
    export = place.layout.folder / "export" / "train.jsonl"
    settings = {
        "doses": command.doses,
        **command.training,
        "captions": hashlib.sha256(export.read_bytes()).hexdigest(),
    }
    if place.data.is_dir():
        same = read_json(place.data / "settings.json") == settings
        remedy = f"remove {place.model.parent} or set another folder of the model in the config"
        require(same, place.data, "made with other settings or from other captions", remedy)
        return
    source: Any = getattr(place.config.dataset, place.config.dataset.source)
    world = place.config.seeds.world
    assert world is not None, "seeds are complete"
    doses = choose_doses(
        read_heldout(place.layout.folder / "heldout.json"), command.doses, command.seed
    )
    place.data.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(place.data) as folder:
        birds = further_birds(source, world, doses, place.layout.composition)
        added = write_birds(birds, source.size, folder / "images")
        images = os.path.relpath(place.data / "images", place.layout.results)
        added["file_name"] = f"{images}/" + added["file_name"]
        captions = pd.read_json(export, lines=True, dtype={"image_id": str})
        captions = pd.concat([captions, added], ignore_index=True)
        check_doses(captions, doses, place.layout.composition, place.config.pairs.nouns)
        write_text(json_lines(captions), folder / "train.jsonl")
        write_json(doses, folder / "doses.json")
        write_json(settings, folder / "settings.json")
    cli.log.info(
        "%d images of %d held-out pairs added to the training list",
        added["image_id"].nunique(),
        len(doses),
    )


def train(command: Doses, place: Place) -> None:
    """Train the model, unless it is trained; a killed training resumes."""
    if (place.model / "model_index.json").is_file():
        return
    options: dict[str, Any] = {
        "captions": place.data / "train.jsonl",
        "images": place.layout.results,
    }
    options |= {
        "output": place.model,
        "every": command.every,
        "threads": command.cores,
    } | command.training
    words = [sys.executable, "-m", "examples.diffusion.train"]
    for name, value in options.items():
        values = value if isinstance(value, list) else [value]
        words += [f"--{name}", *map(str, values)]
    done = subprocess.run(words, cwd=ROOT)
    require(
        done.returncode == 0,
        place.model,
        f"the training ended with {done.returncode}",
        "see its lines above",
    )


def images_of_pairs(place: Place) -> dict[str, int]:
    """Return the number of training images whose captions state each seen pair."""
    splits = read_table(place.layout.folder / "splits.parquet", SPLIT)
    facts = read_frame(place.layout.data / "facts.parquet", ["image_id", "part", "kind", "value"])
    is_train = facts["image_id"].isin(splits.loc[splits["split"] == "train", "image_id"])
    facts = facts[is_train & (facts["kind"] == place.layout.composition)]
    names = pair_names(facts.rename(columns={"value": "adjective", "part": "noun"}))
    return facts.groupby(names)["image_id"].nunique().to_dict()


def read_scale(place: Place) -> tuple[CompositionScale, JudgeChoices]:
    """Return the run's scale, and what the judges choose for the model's images."""
    config = place.config
    names = [generator.name for generator in config.generate.generators]
    params = SimpleNamespace(generators=names, judges=config.members, oracle_generators=[])
    classes = class_names(
        read_table(place.layout.data / "captions.parquet", CAPTIONS, ["image_id", "class_id"])
    )
    found = make_scale([*read_all_scores(place.layout, params, classes)], config.anchors)
    remedy = "add faithful, memorizer and usual to generate.generators"
    if found is None:
        raise cli.UserError(f"{place.layout.results}: no anchors; {remedy}")
    return found, found.choices(found.scores_of(place.generator))


def curve_of(
    scale: Scale,
    choices: JudgeChoices,
    doses: Mapping[str, int],
    images: Mapping[str, int],
    levels: Sequence[int],
) -> pd.DataFrame:
    """Return what a generator draws by the number of training images of a pair, on the scale of the
    run.

    Args:
        scale: of the run.
        choices: of the judges for the generator's images.
        doses: of each held-out pair.
        images: the number of training images of each seen pair.
        levels: the doses. A seen pair belongs to the highest one that is at most its number of
            images.

    Returns:
        Columns curve, level, pair (null: the mean over the prompts of the level), images (of a
        mean: the geometric mean over pairs), pairs, prompts, drawn, and its 95 % interval for the
        same pairs and judges, low and high.
    """
    names = scale.prompts["pair"]
    level_of = np.sort(levels)
    recognized = scale.is_recognized
    tables = []
    for curve, rows, counts in (
        (HELD_OUT, scale.is_held_out, doses),
        (SEEN, scale.is_seen, images),
    ):
        seen = names.map(counts).fillna(0).to_numpy(int)
        place = np.searchsorted(level_of, seen, side="right") - 1
        for number, level in enumerate(level_of):
            chosen = rows & recognized & (place == number)
            if not chosen.any():
                continue
            by_pair = scale.draws_by_pair(choices, chosen)
            center = np.expm1(np.mean([np.log1p(counts[pair]) for pair in by_pair]))
            rows_of_level = [curve_row(scale.draws(choices, chosen), round(float(center), 1), None)]
            rows_of_level += [
                curve_row(fraction, counts[pair], pair) for pair, fraction in by_pair.items()
            ]
            tables.append(pd.DataFrame(rows_of_level).assign(curve=curve, level=level))
    columns = ["curve", "level", "pair", "images", "pairs", "prompts", "drawn", "low", "high"]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
    return table[columns]


def curve_row(fraction: Fraction, images: float, pair: str | None) -> dict[str, Any]:
    """Return a row of the curve, of one pair or of a level."""
    counts = {
        "pair": pair,
        "images": images,
        "pairs": fraction.n_pairs,
        "prompts": fraction.n_prompts,
    }
    return counts | {
        "drawn": fraction.value,
        "low": fraction.same_pairs_low,
        "high": fraction.same_pairs_high,
    }


def draw_curve(curve: pd.DataFrame, seen: Fraction | None, note: str) -> Figure:
    """Draw both curves: small marks are pairs, large ones are means of a level with intervals."""
    if seen is None or curve.empty:
        return empty(conclusion(seen))
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    axes.set_title("draws the pair, %")
    axes.axhline(0, color=GRAY, linewidth=0.8)
    axes.axhline(100 * seen.value, color=LOOKS[SEEN][0], linewidth=1.2, linestyle=":")
    for name, table in curve.groupby("curve", sort=False):
        _draw_marks(axes, table, str(name))
    levels = sorted({*curve["level"]})
    axes.set_xscale("symlog", linthresh=1, linscale=0.5)
    axes.set_xticks(levels, [f"{level:g}" for level in levels])
    axes.minorticks_off()
    axes.set_xlim(left=-0.3)
    axes.set_xlabel("training images of the pair")
    return finish(figure, note)


def _draw_marks(axes: Axes, table: pd.DataFrame, name: str) -> None:
    color, mark, face = LOOKS[name]
    of_pair = table["pair"].notna()
    pairs, means = table[of_pair], table[~of_pair].sort_values("images")
    axes.plot(
        pairs["images"], 100 * pairs["drawn"], mark, color=color, mfc=face, markersize=3, alpha=0.5
    )
    axes.vlines(
        means["images"], 100 * means["low"], 100 * means["high"], color=color, linewidth=2.0
    )
    axes.plot(means["images"], 100 * means["drawn"], "-", color=color, linewidth=1.0)
    axes.plot(
        means["images"], 100 * means["drawn"], mark, color=color, mfc=face, markersize=6, label=name
    )


def about_training(command: Doses) -> str:
    """Return the sizes of the picture, of the network and of the training."""
    channels = ", ".join(map(str, command.channels))
    return (
        f"pictures of {command.size} x {command.size} pixels, {channels} channels, "
        f"{command.steps:,} steps of"
        f" {command.batch} images, seed {command.seed}"
    )


def conclusion(seen: Fraction | None) -> str:
    """Return s, and whether the curve means something."""
    if seen is None:
        return "The judges recognize no matched seen pair, so there is no s."
    value = f"s = {percent(seen.value)} % {interval(seen.same_pairs_low, seen.same_pairs_high)}"
    if seen.same_pairs_low is None or seen.same_pairs_low <= LEAST_DRAWN:
        least = f"{100 * LEAST_DRAWN:.0f} %"
        return (
            f"{value}: not above {least}, so the curve does not tell what images of a held-out "
            "pair add."
        )
    return f"{value}: the model draws matched seen pairs."


def lines_of(curve: pd.DataFrame, seen: Fraction | None, command: Doses) -> list[str]:
    """Return the measured part of docs/learned.md."""
    lines = [
        f"`make doses`, {datetime.now(UTC):%Y-%m-%d}: {about_training(command)}. "
        f"{conclusion(seen)}",
        "",
    ]
    lines += [
        "![Fraction of images that show the pair, by the pair's images in "
        "training](pictures/doses.svg)",
        "",
    ]
    lines += [
        "| training images | held-out pairs | drawn, % | matched seen pairs | drawn, % |",
        "|--:|--:|---|--:|---|",
    ]
    means = curve[curve["pair"].isna()].set_index(["level", "curve"]).to_dict("index")
    for level in sorted({level for level, _ in means}):
        cells = [f"{level:g}"]
        for name in LOOKS:
            row = means.get((level, name))
            ends = f" {interval(row['low'], row['high'])}" if row else ""
            cells += [str(row["pairs"]), f"{percent(row['drawn'])}{ends}"] if row else ["–", "–"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def write_documents(curve: pd.DataFrame, seen: Fraction | None, command: Doses) -> None:
    """Write the figure, the numbers, and the measured part of learned.md."""
    for name in ("pictures", "results"):
        (command.docs / name).mkdir(exist_ok=True)
    note = (
        "Draws the pair: between the usual pair (0) and the reference (100). Small marks: pairs; "
        "large: means over the"
        " prompts of a dose, or of seen pairs with at least so many images, with 95 % intervals "
        "for the same pairs and"
        f" judges; dotted: s, all matched seen pairs; {about_training(command)}."
    )
    title = "What a model draws of pairs that it saw in few images"
    with style():
        save(
            draw_curve(curve, seen, note),
            command.docs / "pictures" / "doses.svg",
            title,
            conclusion(seen),
        )
    write_text(
        curve.round(6).to_csv(index=False, lineterminator="\n"),
        command.docs / "results" / "doses.csv",
    )
    document = command.docs / "learned.md"
    text = document.read_text(encoding="utf-8")
    require(
        BEGIN in text and END in text,
        document,
        "the marks of the doses are missing",
        f"add {BEGIN} and {END}",
    )
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    lines = [BEGIN, "", *lines_of(curve, seen, command), "", END]
    write_text(before + "\n".join(lines) + after, document)


def drawn_by_law(images: np.ndarray) -> np.ndarray:
    """Return the fraction of images that show a pair of so many training images, by the known
    law.
    """
    return np.asarray(1 - np.exp(-images / LAW_IMAGES))


def check_law(command: Doses, place: Place) -> Iterator[str]:
    """Yield lines on a generator that draws by a known law, in pictures of ``size``: estimates and
    truth.

    It draws what is asked, or the usual pair. What is asked of every prompt gives the highest s at
    this size.
    """
    layout, judges = place.layout, place.config.members
    targets = [
        layout.folder / "export",
        layout.folder / "variants.parquet",
        *map(layout.judge, judges),
    ]
    run_workflow(command, *(os.path.relpath(target, ROOT) for target in targets))
    world = World(layout, judges, command.seed)
    count = len(world.prompts)
    asked, usual = np.full(count, "asked"), np.full(count, "usual")
    scale = Scale(world.prompts, world.choices(asked, Style()), world.choices(usual, Style()))
    small = Style((coarse(command.size),))
    highest = scale.draws_seen(world.choices(asked, small))
    yield f"pictures of {command.size} pixels, all as asked: {conclusion(highest)}"
    doses = choose_doses(read_heldout(layout.folder / "heldout.json"), command.doses, command.seed)
    images = images_of_pairs(place)
    counts = world.prompts["pair"].map({**images, **doses}).fillna(0).to_numpy()
    is_asked = rng(command.seed, "doses", "law").random(count) < drawn_by_law(counts)
    drawn = np.where(is_asked, asked, usual)
    curve = curve_of(scale, world.choices(drawn, small), doses, images, command.doses)
    shows = world.shows(drawn)
    means = curve["pair"].isna()
    for row in curve[means].itertuples():
        of_level = curve[~means & (curve["curve"] == row.curve) & (curve["level"] == row.level)]
        prompts = scale.is_recognized & world.prompts["pair"].isin(of_level["pair"]).to_numpy()
        found = f"{percent(row.drawn)} {interval(row.low, row.high)}"
        yield f"{row.curve}, {row.level:g}: {found}, truth {percent(shows[prompts].mean())}"


def main(command: Doses) -> None:
    place = place_of(read_config(command.config), command.config)
    if command.law:
        print("\n".join(check_law(command, place)))
        return
    export = place.layout.folder / "export"
    run_workflow(command, os.path.relpath(export, ROOT))
    write_training_list(command, place)
    train(command, place)
    run_workflow(command)
    of, choices = read_scale(place)
    seen = of.scale.draws_seen(choices)
    doses = read_json(place.data / "doses.json")
    curve = curve_of(of.scale, choices, doses, images_of_pairs(place), command.doses)
    write_documents(curve, seen, command)
    print("\n".join(lines_of(curve, seen, command)))


if __name__ == "__main__":
    os.chdir(ROOT)
    cli.run(main)
