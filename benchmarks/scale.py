"""Time and memory of the steps by size, and how they grow, for docs/scale.md.

Two parts: one judge of more and more images of the same prompts, and runs of captions alone, which
are distinct: drawn in the grammar of the drawn birds and, given an archive of real ones, half of
them two real captions of a bird, joined, and repeated with other colors. Snakemake's benchmark
files have the figures of each job.
"""

import itertools
import math
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import Field

from benchmarks.speed.default_run import read_jobs
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.seeds import rng
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.dataset.sketch.captions import caption_scene
from compclip.dataset.sketch.world import Dice, draw_scene, make_world
from compclip.dataset.sources.cub import CUB_LAYOUT

CAPTIONS_EACH, CLASSES = 10, 200  # captions of an image, classes
SHARD = 300_000  # captions of a shard
PROMPTS = 2400  # of 3,000 drawn birds, about
# The step to which a shard's rule belongs.
SHARDED = {
    "parse_captions": "extract_pairs",
    "find_contested": "make_splits",
    "offer_swaps": "swap_adjectives",
    "vary_prompts": "make_variants",
    "audit_block": "audit",
}
# What grows in each part, and its sizes.
SIZES = {"images": [100_000, 1_000_000], "captions": [300_000, 3_000_000]}
COLORS = "black blue brown gray green orange pink purple red white yellow".split()


def drawn_captions() -> Iterator[list[str]]:
    """Yield captions of birds that are never drawn, an image's at a time."""
    world = make_world(0, CLASSES)
    for index in itertools.count():
        dice = Dice(rng(0, "scale", index))
        scene = draw_scene(world, index % CLASSES, dice)
        yield [caption_scene(scene, dice).text for _ in range(CAPTIONS_EACH)]


def joined_captions(archive: Path) -> Iterator[list[str]]:
    """Yield two real captions of a bird as two sentences, an image's at a time: all ordered pairs,
    then recolored.
    """
    of_bird = CUB_LAYOUT.read_captions(archive)[0].groupby("image_id")["text"].agg(list).tolist()
    any_color = re.compile(rf"\b({'|'.join(COLORS)})\b")
    for turn, shift, texts in itertools.product(
        range(len(COLORS)), range(1, CAPTIONS_EACH), of_bird
    ):
        both = [f"{text}. {texts[(i + shift) % len(texts)]}." for i, text in enumerate(texts)]
        # Every second part is a color.
        parts = [enumerate(any_color.split(text)) for text in both]
        yield [
            "".join(COLORS[(COLORS.index(p) + turn) % 11] if i % 2 else p for i, p in of)
            for of in parts
        ]


def make_captions(size: int, real: Path | None) -> pd.DataFrame:
    """Return a table of ``size`` distinct captions, ten an image."""
    sources = [drawn_captions(), *([joined_captions(real)] if real else [])]
    seen: set[str] = set()
    rows: list[tuple[str, str, str]] = []
    for number in itertools.count():
        texts = next(sources[number % len(sources)], None)
        if texts is None:
            raise UserError(
                f"{real}: too few captions for {size} when half are real; choose a smaller size"
            )
        new = [text for text in dict.fromkeys(texts) if text not in seen]
        seen.update(new)
        rows += [(f"{number:07d}", f"class{number % CLASSES:03d}", text) for text in new]
        if len(rows) >= size:
            return pd.DataFrame(rows[:size], columns=["image_id", "class_id", "caption"])


def config_of(part: str, size: int, real: Path | None, folder: Path) -> dict[str, Any]:
    """Return the config of a run of one size."""
    places = {"results": str(folder / "results"), "cache": str(folder / "cache")}
    if part == "images":
        values = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
        values["split"]["draws"], values["judge"]["seeds"] = size // PROMPTS, [0]
        drawn = {"source": "sketch", "sketch": {"images": 3000}}
        return (
            values
            | places
            | {"compositions": ["color"], "dataset": drawn, "generate": {"generators": ["unbound"]}}
        )
    if not (file := folder / "captions.csv").exists():
        make_captions(size, real).to_csv(file, index=False)
    table = {"source": "table", "table": {"file": str(file)}, "shards": max(1, size // SHARD)}
    draw = {
        "fraction": 0.1,
        "window": [25, 75],
        "prefer_swappable": False,
    }  # no choice, whose time depends on the captions
    return places | {"dataset": table, "pairs": {"nouns": "birds"}, "split": {"heldout": draw}}


def measured_rules(results: Path) -> Iterator[dict[str, Any]]:
    """Yield what the jobs of each step took together: seconds, CPU seconds, and the largest memory
    in MB.
    """
    jobs = read_jobs(results)
    for rule, of_rule in jobs.groupby(jobs["rule"].replace(SHARDED)):
        memory = (
            pd.to_numeric(of_rule["max_pss"].fillna(of_rule["max_rss"]), errors="coerce").max()
            * 1.048576
        )
        yield {
            "step": rule,
            "seconds": of_rule["s"].sum(),
            "CPU seconds": of_rule["cpu"].sum(),
            "memory, MB": memory,
        }


def growth_table(rows: list[dict[str, Any]], of: str) -> str:
    """Return the rows as Markdown, with the exponents of time and memory since the size before."""
    table = pd.DataFrame(rows).sort_values(["step", of], ignore_index=True)
    growth = table[of].map(math.log).groupby(table["step"]).diff()
    for name in ("CPU seconds", "memory, MB"):
        table[f"exponent of {name.split(',')[0]}"] = (
            table[name].clip(lower=1).map(math.log).groupby(table["step"]).diff() / growth
        ).round(2)
    return table.round(1).astype(object).where(table.notna(), "").to_markdown(index=False)


class Scale(Command):
    """Measure time and memory of the steps by size, and how they grow."""

    part: str = Field("images", pattern="^(images|captions)$", description="what grows")
    sizes: list[int] = Field([], description="sizes; default: those of docs/scale.md")
    real: Path | None = Field(None, description="Reed's captions of CUB, cub_captions.zip")
    folder: Path | None = Field(
        None, description="folder that keeps the runs, which can resume; default: none"
    )
    options: list[str] = Field([], description="further arguments of snakemake")


def main(command: Scale) -> None:
    rows = []
    for size in command.sizes or SIZES[command.part]:
        with tempfile.TemporaryDirectory() as name:
            place = command.folder / f"{command.part}-{size}" if command.folder else Path(name)
            place.mkdir(parents=True, exist_ok=True)
            config = place / "config.yaml"
            config.write_text(
                yaml.safe_dump(config_of(command.part, size, command.real, place)), encoding="utf-8"
            )
            snakemake = [
                "snakemake",
                "--cores",
                "all",
                "--quiet",
                "rules",
                "--configfile",
                str(config),
            ]
            if subprocess.run([*snakemake, *command.options], cwd=ROOT).returncode:
                raise UserError(f"the run with {size} {command.part} failed; see its error above")
            rows += [row | {command.part: size} for row in measured_rules(place / "results")]
        print(growth_table(rows, command.part), flush=True)


if __name__ == "__main__":
    cli.run(main)
