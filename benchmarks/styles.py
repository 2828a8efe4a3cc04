"""Draw generators of known truth in other styles, and compare what is said of them with what they
drew.

A generator renders its own images in a style and by a law of composing (``benchmarks.laws``). Its
*truth* is the fraction of held-out prompts whose pair the drawn scene shows, relative to that of
matched seen prompts, over recognized pairs; half a part counts as half. A verdict is *wrong* if the
truth is more than ``TOLERANCE`` outside of the region that it names, or of all regions, if it names
several. This is the one rule; ``wrong_regions`` computes it.
"""

import io
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from pydantic import Field
from tqdm import tqdm

from benchmarks.laws import DRAWN, LAWS, STYLES, Prompts, Style
from compclip.clip.model import Judge, load_judge
from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.heldout import matched_pairs, pair_names, read_heldout
from compclip.core.artifacts.parquet import read_frame, read_table
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.tables import HELD_OUT, RANKING, TESTS, VARIANTS
from compclip.dataset.sketch.draw import GRID_SIZE, Pose, draw_pose, paint_scene
from compclip.dataset.sketch.world import Dice, Scene
from compclip.generate import sketching
from compclip.generate.generators import faithful, memorizer, unbound, usual
from compclip.score.choices import adjective_choices, options_of, variants_of_entries
from compclip.stats.composed import REGIONS, SEEN, JudgeChoices, Scale, verdict_of
from workflow_scripts.layout import Layout
from workflow_scripts.workflow.config import read_config

DOCUMENT = ROOT / "docs" / "styles.md"
EACH_GENERATOR = ROOT / "docs" / "styles.csv"
# Columns of docs/styles.csv, by what they are called here.
PERCENTAGES = {
    "seen": "draws_seen_pairs",
    "truth": "truth",
    "estimate": "composes",
    "low": "same_pairs_low",
    "high": "same_pairs_high",
    "new_low": "new_pairs_low",
    "new_high": "new_pairs_high",
}
BEGIN, END = "<!-- measured by `make styles` -->", "<!-- end of styles -->"
MOST_PROMPTS = 1200  # of a split
TOLERANCE = 0.02
ENOUGH = 0.5  # of seen pairs: below, a generator may be beyond the targets
EDGES = (-np.inf, *REGIONS, np.inf)
# The lowest and the highest fraction of each verdict, and of two as in "hardly to half".
SPANS = {verdict_of(low, high): (low, high) for low, high in combinations(EDGES, 2)}
BATCH = 256
HALF_RESAMPLES = 200  # of each law
TARGETS = {
    "mean absolute error": "at most 6",
    "largest mean absolute error of a style": "at most 10",
    "wrong verdicts": "at most 1",
    "coverage for the same pairs": "at least 92",
    "lowest coverage of a law": "at least 90",
    "verdict given": "at least 90",
}


class Styles(Command):
    """Draw generators in other styles and by known laws; write what is said of them into
    docs/styles.md and docs/styles.csv.
    """

    config: Path = Field(
        Path("config.yaml"), description="config of the finished run, with drawn birds"
    )
    seeds: int = Field(3, ge=1, description="seeds of drawing; each pairs other styles and laws")
    generators: int = Field(40, ge=1, description="generators of each seed")
    quick: bool = Field(
        False, description="all laws in the plain style, without resampling; writes nothing"
    )


def wrong_regions(verdict: str, truth: float) -> bool:
    """Return whether the truth is more than ``TOLERANCE`` outside of the region, or regions, of a
    verdict.
    """
    low, high = SPANS[verdict]
    return truth < low - TOLERANCE or truth > high + TOLERANCE


class World:
    """The prompts of one composition, what may be drawn for them, and the judges.

    Args:
        layout: of a finished run.
        judges: names of its judges.
        seed: of drawing.
    """

    def __init__(self, layout: Layout, judges: Sequence[str], seed: int) -> None:
        self.composition, self.seed = layout.composition, seed
        self.variants = read_table(layout.folder / "variants.parquet", VARIANTS)
        ranking = read_table(layout.folder / "ranking.parquet", RANKING)
        matched = matched_pairs(ranking, read_heldout(layout.folder / "heldout.json"))
        names = ("images", "facts", "scenes", "pairs")
        tables = {name: read_frame(layout.data / f"{name}.parquet") for name in names}
        tables |= {
            name: read_frame(layout.folder / f"{name}.parquet") for name in ("splits", "swapped")
        }
        self.prompts = self._choose(read_frame(layout.folder / "prompts.parquet"), matched)
        context: Any = SimpleNamespace(tables=tables)
        self.birds, self.known = sketching.train_birds(context), sketching.train_pairs(context)
        self.favorite = memorizer.favorites(self.known)
        self.stated = sketching.prompt_statements(
            self.prompts, tables["facts"], tables["swapped"], self.composition
        )
        self.judges = [load_judge(layout.data / "judges" / name, 1, "cpu") for name in judges]
        counts = ranking.set_index(pair_names(ranking))["count"]
        self.frequency = counts.reindex(self.prompts["pair"]).rank(pct=True).fillna(0).to_numpy()
        self.texts: dict[str, dict[str, np.ndarray]] = {}
        self.scenes: dict[tuple[int, str], tuple[Scene, Pose]] = {}

    def _choose(self, prompts: pd.DataFrame, matched: set[str]) -> pd.DataFrame:
        """Return at most ``MOST_PROMPTS`` a split; of seen ones the matched, drawn several times,
        and some others.
        """
        random = rng(self.seed, "styles", "prompts", self.composition)
        prompts = prompts[prompts["draw"] == 0]
        chosen = []
        for split in TESTS:
            rows = prompts[prompts["split"] == split].reset_index(drop=True)
            asked, _ = variants_of_entries(rows, split, self.variants)
            rows = rows.iloc[np.unique(asked)]
            rows = (
                rows.iloc[np.sort(random.permutation(len(rows))[:MOST_PROMPTS])]
                if split != SEEN
                else rows
            )
            if split == SEEN:
                is_matched = rows["pair"].isin(list(matched))
                draws = max(1, round(MOST_PROMPTS * 2 / 3 / max(1, is_matched.sum())))
                others = rows[~is_matched]
                others = others.iloc[np.sort(random.permutation(len(others))[: MOST_PROMPTS // 3])]
                rows = pd.concat(
                    [others, *(rows[is_matched].assign(draw=draw) for draw in range(draws))]
                )
            chosen.append(rows)
        table = pd.concat(chosen, ignore_index=True)
        pair = table["pair"].str.split("_", expand=True)
        matches = table["pair"].isin(list(matched))
        return table.assign(
            adjective=pair[0],
            noun=pair[1],
            cluster=table["image_id"],
            matched=matches,
            eligible=True,
        )

    def scene(self, row: int, drawn: str) -> tuple[Scene, Pose]:
        """Return what is drawn for a prompt: a key of ``DRAWN``, except for ``half``, which is two
        scenes.
        """
        if (row, drawn) not in self.scenes:
            self.scenes[row, drawn] = self._scene(row, drawn)
        return self.scenes[row, drawn]

    def _scene(self, row: int, drawn: str) -> tuple[Scene, Pose]:
        prompt = self.prompts.iloc[row]
        key = (str(prompt["image_id"]), int(prompt["caption_id"]), int(prompt["draw"]))
        dice = Dice(rng(self.seed, "styles", "start", *key))
        start, pose = dice.pick(self.birds), draw_pose(dice)
        stated = [s for s in self.stated[row] if sketching.can_have(s.attribute, s.value)]
        painter = Dice(rng(self.seed, "styles", "painter", *key))
        if drawn == "ignored":
            return start, pose
        if drawn == "unbound":
            return unbound.paint(stated, start, painter), pose
        if drawn == "usual" and prompt["split"] == SEEN:
            return usual.paint(
                stated, start, painter, pair_counts=self.known, kind=self.composition
            ), pose
        if drawn == "usual":
            return memorizer.paint(
                stated, start, painter, pair_counts=self.known, favorite=self.favorite
            ), pose
        if drawn == "bold":
            pose = replace(
                pose, scale=0.98, angle=0.0, shift_x=0.0, shift_y=0.0, light=1.0, warmth=0.0
            )
        return faithful.paint(stated, start, painter), pose

    def picture(self, row: int, drawn: str) -> Image.Image:
        if drawn != "half":
            return paint_scene(*self.scene(row, drawn))
        asked, other = (np.array(self.picture(row, name)) for name in ("asked", "usual"))
        asked[:, GRID_SIZE // 2 :] = other[:, GRID_SIZE // 2 :]
        return Image.fromarray(asked)

    def shows(self, drawn: np.ndarray) -> np.ndarray:
        """Return the fraction of each prompt's pair that its image shows, by the drawn scene."""
        shown = np.zeros(len(drawn))
        for row, (name, prompt) in enumerate(zip(drawn, self.prompts.itertuples(), strict=True)):
            if name == "half":
                shown[row] = DRAWN["half"]
                continue
            scene, _ = self.scene(row, name)
            shown[row] = scene[f"{prompt.noun}:{self.composition}"] == prompt.adjective
        return shown

    def choices(self, drawn: np.ndarray, style: Style) -> JudgeChoices:
        """Draw all prompts in a style, and return what the judges choose."""
        files = []
        with style.applied():
            for row, name in enumerate(drawn):
                buffer = io.BytesIO()
                style.of(self.picture(row, name), row).save(buffer, "bmp")
                files.append((buffer, None))
        first, chosen = [], []
        vectors = np.split(
            self.judges[0].encode_images(files, BATCH, *self.judges[1:]), len(self.judges), axis=1
        )
        for judge, images in zip(self.judges, vectors, strict=True):
            texts = self.texts.setdefault(judge.hash, {})
            of_judge = [self._of_split(split, judge, texts, images) for split in TESTS]
            first.append(np.concatenate([of[0] for of in of_judge]))
            chosen.append(np.concatenate([of[1] for of in of_judge]))
        return JudgeChoices(np.stack(first, axis=1), np.stack(chosen, axis=1))

    def _of_split(
        self, split: str, judge: Judge, known: dict[str, np.ndarray], images: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = (self.prompts["split"] == split).to_numpy()

        def embed(texts: Sequence[str]) -> np.ndarray:
            missing = [text for text in dict.fromkeys(texts) if text not in known]
            if missing:
                known.update(zip(missing, judge.encode_texts(missing, BATCH), strict=True))
            return np.stack([known[text] for text in texts])

        options = options_of(self.prompts[rows], split, self.variants)
        found = adjective_choices(options, embed, images[rows])
        assert found.chosen is not None, "variants name their adjectives"
        return found.first, found.chosen


@dataclass(frozen=True)
class Known:
    """A scale whose anchors are drawn in the plain style, and the prompts as laws see them."""

    world: World
    scale: Scale
    prompts: Prompts
    asked: JudgeChoices
    usual: JudgeChoices


def known_world(world: World) -> Known:
    n = len(world.prompts)
    asked, usual_pair = (
        world.choices(np.full(n, name), STYLES["plain"]) for name in ("asked", "usual")
    )
    scale = Scale(world.prompts, asked, usual_pair)
    recognized = set(world.prompts["pair"][scale.is_held_out & scale.is_recognized])
    right = (
        pd.Series(asked.own_chance.mean(axis=1)).groupby(world.prompts["noun"]).transform("mean")
    )
    prompts = Prompts(
        world.prompts,
        world.frequency,
        right.rank(pct=True).to_numpy(),
        world.prompts["pair"].isin(list(recognized)).to_numpy(),
    )
    return Known(world, scale, prompts, asked, usual_pair)


def estimates(scale: Scale, choices: JudgeChoices, shows: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield truth, estimate, intervals and verdict of each held-out split, and of all."""
    skills = scale.skills(choices)
    of_seen = shows[scale.is_seen & scale.is_recognized].mean()
    for split, fraction in skills.composes.items():
        assert skills.draws_seen is not None, "there are recognized seen pairs"
        low, high = fraction.same_pairs_low, fraction.same_pairs_high
        assert low is not None and high is not None, "there are resamples"
        truth = min(1.0, shows[scale.recognized_held_out_by_split()[split]].mean() / of_seen)
        verdict = None if skills.no_verdict_reason else verdict_of(low, high)
        yield {
            "split": split,
            "seen": skills.draws_seen.value,
            "truth": truth,
            "estimate": min(1.0, max(0.0, fraction.value)),
            "low": low,
            "high": high,
            "new_low": fraction.new_pairs_low,
            "new_high": fraction.new_pairs_high,
            "verdict": verdict,
            "wrong": verdict is not None and wrong_regions(verdict, truth),
            # Values above 1 count as 1.
            "covers": min(low, 1) - 1e-9 <= truth <= high + 1e-9,
        }


def half_scale(known: Known, random: np.random.Generator) -> tuple[Scale, np.ndarray]:
    """Return the scale of a random half of the images, and its rows."""
    images = known.world.prompts["cluster"].unique()
    chosen = random.permutation(images)[: len(images) // 2]
    rows = known.world.prompts["cluster"].isin(chosen).to_numpy()
    asked, usual_pair = (
        JudgeChoices(of.own_chance[rows], of.chosen[rows]) for of in (known.asked, known.usual)
    )
    return Scale(
        known.world.prompts[rows].reset_index(drop=True), asked, usual_pair, resamples=100
    ), rows


def generators(seed: int, count: int, quick: bool) -> list[tuple[str, str]]:
    """Return pairs of a style and a law: each law in several styles, others for each seed."""
    if quick:
        return [("plain", law) for law in LAWS]
    styles = rng(seed, "styles", "order").permutation([*STYLES])
    laws = rng(seed, "laws", "order").permutation([*LAWS])
    return [
        (str(styles[number % len(styles)]), str(laws[number % len(laws)]))
        for number in range(count)
    ]


def measure(
    known: Known, pairs: Sequence[tuple[str, str]], resamples: int
) -> Iterator[dict[str, Any]]:
    """Yield rows of each generator: of all its prompts, and of halves of the images (``half``)."""
    for style, law in tqdm(pairs, unit="generator", desc=known.world.composition):
        random = rng(known.world.seed, "styles", "law", style, law)
        drawn = LAWS[law](known.prompts, random)
        shows = known.world.shows(drawn)
        choices = known.world.choices(drawn, STYLES[style])
        about = {
            "composition": known.world.composition,
            "seed": known.world.seed,
            "style": style,
            "law": law,
        }
        for row in estimates(known.scale, choices, shows):
            yield about | {"half": False} | row
        for _ in range(resamples):
            scale, rows = half_scale(known, random)
            for row in estimates(
                scale, JudgeChoices(choices.own_chance[rows], choices.chosen[rows]), shows[rows]
            ):
                yield about | {"half": True} | row


def measured_world(about: tuple[Layout, Sequence[str], int, Styles, int]) -> pd.DataFrame:
    """Return the rows of all generators of a composition and a seed."""
    layout, judges, seed, command, resamples = about
    torch.set_num_threads(1)
    known = known_world(World(layout, judges, seed))
    return pd.DataFrame(
        measure(known, generators(seed, command.generators, command.quick), resamples)
    )


def summary(table: pd.DataFrame, by: str) -> Iterator[str]:
    """Yield a table of errors and coverage by law or style, of generators that draw enough seen
    pairs.
    """
    yield f"| {by} | generators | mean error, points | bias | coverage, same pairs, % |"
    yield "|:--|--:|--:|--:|--:|"
    enough = table[(table["seen"] > ENOUGH) & (table["split"] == HELD_OUT)]
    groups = [*enough.groupby(by)]
    if by == "style":
        groups.append(("all", enough))
    for name, rows in groups:
        whole = rows[~rows["half"]]
        error = 100 * (whole["estimate"] - whole["truth"])
        covers = f"{100 * rows['covers'].mean():.0f}"
        errors = f"{error.abs().mean():.1f} | {error.mean():.1f}"
        yield f"| {name} | {len(whole)} | {errors} | {covers} |"
    wrong = enough.groupby(by)["wrong"].sum()
    by_group = ", ".join(f"{name} {number}" for name, number in wrong[wrong > 0].items())
    verdicts = enough["verdict"].notna().sum()
    yield ""
    intervals = f"Coverage is of {len(enough):,} intervals. " if by == "style" else ""
    yield f"{intervals}Wrong verdicts: {wrong.sum():,} of {verdicts:,} ({by_group or 'none'})."


def each_generator(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each generator, of all its held-out prompts; fractions in %."""
    whole = table[~table["half"] & (table["split"] == HELD_OUT)]
    shown = whole[["composition", "style", "law"]].copy()
    for column, name in PERCENTAGES.items():
        shown[name] = (100 * whole[column]).round(1)
    shown["verdict"] = whole["verdict"]
    shown["wrong"] = whole["wrong"]
    return shown


def measure_targets(table: pd.DataFrame) -> Mapping[str, float]:
    """Return the figures for which the page has targets, of generators that draw enough seen
    pairs.
    """
    enough = table[table["seen"] > ENOUGH]
    whole = enough[~enough["half"]]
    error = (whole["estimate"] - whole["truth"]).abs()
    given = enough[enough["verdict"].notna()]
    able = table[(table["seen"] > ENOUGH) & ~table["half"]]
    return {
        "mean absolute error": float(error.mean()),
        "largest mean absolute error of a style": float(error.groupby(whole["style"]).mean().max()),
        "wrong verdicts": float(given["wrong"].mean()),
        "coverage for the same pairs": float(enough["covers"].mean()),
        "lowest coverage of a law": float(enough.groupby("law")["covers"].mean().min()),
        "verdict given": float(able["verdict"].notna().mean()),
    }


def main(command: Styles) -> None:
    config = read_config(command.config)
    seeds = 1 if command.quick else command.seeds
    resamples = (
        0
        if command.quick
        else max(1, round(HALF_RESAMPLES * len(LAWS) / (seeds * command.generators)))
    )
    results = Path(config.results), config.dataset.source
    worlds = [
        (
            Layout(*results, composition, config.judge.shared),
            config.members,
            seed,
            command,
            resamples,
        )
        for composition in config.compositions
        for seed in range(seeds)
    ]
    # torch's threads do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        tables = list(pool.map(measured_world, worlds))
    table = pd.concat(tables, ignore_index=True)
    target = "mixtures" if command.quick else "styles"
    when = (
        f"`make {target}`, {seeds} seeds, {os.cpu_count()} cores of {platform.machine()}, "
        f"{datetime.now(UTC):%Y-%m-%d}."
    )
    lines = [when, "", "| figure | target, % or points | measured |", "|:--|--:|--:|"]
    lines += [
        f"| {name} | {TARGETS[name]} | {100 * value:.1f} |"
        for name, value in measure_targets(table).items()
    ]
    for by in ("style", "law"):
        lines += ["", *summary(table, by)]
    if not command.quick:
        text = DOCUMENT.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        write_text(before + "\n".join([BEGIN, "", *lines, "", END]) + after, DOCUMENT)
        each_generator(table).to_csv(EACH_GENERATOR, index=False, lineterminator="\n")
    print("\n".join(lines))


if __name__ == "__main__":
    cli.run(main)
