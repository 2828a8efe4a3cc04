"""Time and memory of the steps by size, and how they grow: the default run with more and more images, and with it
every step; many captions through pairs, split, divergence and audit; many images through score and table.

The captions are distinct: drawn in the sketches' grammar and, given an archive of real ones, every other image's are
two real captions of a bird, joined. The images' embeddings are made up and put in the cache, so that the step itself
runs as it is, reads every file, and only encodes nothing. Each step is a process of its own. ``docs/scale.md`` holds
the figures.
"""

import contextlib
import itertools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import psutil
from pydantic import Field
from pydantic_settings import CliPositionalArg

from workflow_scripts.clip.config import ModelConfig
from workflow_scripts.core import cli
from workflow_scripts.core.code import ROOT
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import empty_table, read_json, write_json, write_table
from workflow_scripts.core.progress import track
from workflow_scripts.core.seeds import rng
from workflow_scripts.core.step import Step, command, declaration
from workflow_scripts.core.tables import (
    CAPTIONS,
    DIVERGENCE,
    IMAGES,
    MANIFEST,
    PROMPTS,
    SPLIT,
    SWAPPED,
    TESTS,
    VARIANTS,
)
from workflow_scripts.dataset.sketch.captions import write_caption
from workflow_scripts.dataset.sketch.world import Dice, draw_scene, make_world
from workflow_scripts.dataset.sources.cub import read_captions
from workflow_scripts.text.lexicon import COMPOUNDS
from workflow_scripts.workflow.config import Config
from workflow_scripts.workflow.resources import measured

if TYPE_CHECKING:
    from workflow_scripts.clip.embed import Encoder

EACH = 10  # captions of an image
CLASSES = 200
DATASET, COMPOSITION, GENERATOR, JUDGE = "scale", "color", "madeup", "0"
WIDTH = 512  # numbers of an embedding, as RN101's
VARIED = ("blue", "brown", "gray", "green", "orange", "pink", "purple", "tan", "white", "yellow")  # of made-up variants
LOOK = 0.2  # seconds between two looks at a step's memory
# Files of fields that are not tables, and inputs that these runs do not have.
FILES = {
    "heldout": "heldout.json",
    "audit": "audit.json",
    "csv": "splits.csv",
    "jsonl": "prompts.jsonl",
    "unused": "make_splits.json",
    "widths": "widths.json",
    "compounds": str(COMPOUNDS),
}
ABSENT = ("division", "reports", "extracted")


# measuring


def memory(process: psutil.Process) -> int:
    """Bytes that a process and those that it started hold, what several share counted once; or its own greatest."""
    total = 0
    with contextlib.suppress(psutil.Error, OSError):  # ended meanwhile
        highest = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        for one in [process, *process.children(recursive=True)]:
            total += one.memory_full_info().pss
        return max(total, 1024 * int(highest[1]) if highest else 0)
    return total


def measure(name: str, folder: Path, /, **given: Any) -> dict[str, float]:
    """Run step ``stage.module``: wall-clock and CPU seconds, and the largest memory, children included, in MB.

    Args:
        folder: of what it reads and writes, by the names of its fields; what is in ``given`` comes first.
    """
    declared = declaration(name)
    config = Config.model_validate({"cache": str(folder / "cache")})
    paths = {
        field: str(folder / FILES.get(field, f"{field}.parquet"))
        for field in declared.model_fields.keys() - Step.model_fields
    }
    known = {"dataset": DATASET, "composition": COMPOSITION, "generator": GENERATOR, **given}
    own = {field: value for field, value in known.items() if field in declared.model_fields}
    absent = {field: None for field in ABSENT}
    words = command(name, config, {**paths, **absent}, paths, own)
    line = [sys.executable, "-m", *shlex.split(words)]
    begun = time.monotonic()
    started = subprocess.Popen(line, cwd=ROOT)
    process, largest, ended = psutil.Process(started.pid), 0, 0
    while not ended:
        largest = max(largest, memory(process))
        time.sleep(LOOK)
        ended, status, usage = os.wait4(started.pid, os.WNOHANG)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise UserError(f"{name} failed (exit {started.returncode}); see its error above")
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "processor": round(usage.ru_utime + usage.ru_stime, 1),
        "memory": round(largest / 1e6),
    }


def grown(rows: list[dict[str, Any]], of: str) -> list[dict[str, Any]]:
    """The rows by step and size; ``growth``: the exponents of time and memory since the size before."""
    steps = list(dict.fromkeys(row["step"] for row in rows))
    result: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (steps.index(row["step"]), row[of])):
        new = {name: value for name, value in row.items() if name != "growth"}
        if result and result[-1]["step"] == row["step"]:
            last = result[-1]
            times = math.log(row[of] / last[of])
            new["growth"] = {
                name: round(math.log(max(row[name], 1) / max(last[name], 1)) / times, 2)
                for name in ("processor", "memory")
            }
        result.append(new)
    return result


# captions


def drawn_captions() -> Iterator[list[str]]:
    """Captions of birds that are never drawn, an image's at a time."""
    world = make_world(0, CLASSES)
    for index in itertools.count():
        dice = Dice(rng(0, "scale", index))
        scene = draw_scene(world, index % CLASSES, dice)
        yield [write_caption(scene, dice).text for _ in range(EACH)]


def joined_captions(archive: Path) -> Iterator[list[str]]:
    """Two real captions of a bird as two sentences, an image's at a time, until all ordered twos are used."""
    of_bird = read_captions(archive)[0].groupby("image_id")["text"].agg(list).tolist()
    for shift in range(1, EACH):
        for texts in of_bird:
            yield [f"{one}. {texts[(i + shift) % len(texts)]}." for i, one in enumerate(texts)]


def make_captions(size: int, real: Path | None, folder: Path) -> None:
    """captions.parquet of ``size`` distinct texts, ten an image, and images.parquet, without files, in ``folder``."""
    sources = [drawn_captions(), *([joined_captions(real)] if real else [])]
    seen: set[str] = set()
    rows: list[tuple[str, int, str, str]] = []
    for number in track(itertools.count(), None, "images with captions"):
        given = next(sources[number % len(sources)], None)
        if given is None:
            raise UserError(f"{real}: too few captions for {size} of which half are real: ask for fewer")
        new = [text for text in dict.fromkeys(given) if text not in seen]
        seen.update(new)
        rows += [(f"{number:07d}", i, f"class{number % CLASSES:03d}", text) for i, text in enumerate(new)]
        if len(rows) >= size:
            break
    captions = pd.DataFrame(rows[:size], columns=list(CAPTIONS.columns))
    write_table(captions, folder / "captions.parquet", CAPTIONS)
    write_table(images_of(captions["image_id"].unique(), False), folder / "images.parquet", IMAGES)


def images_of(names: Iterable[str], with_file: bool) -> pd.DataFrame:
    """images.parquet of these images; with_file: as if they lay in the results."""
    table = pd.DataFrame({"image_id": list(names)})
    table["path"] = DATASET + "/images/" + table["image_id"] + ".png" if with_file else None
    for name in ("width", "height"):
        table[name] = pd.array([96 if with_file else None] * len(table), dtype="Int64")
    for name in ("bbox_x", "bbox_y", "bbox_w", "bbox_h"):
        table[name] = np.nan
    return table.astype({"path": "str"})


def caption_steps(size: int, real: Path | None, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure each step over so many captions."""
    make_captions(size, real, folder)
    lexicons = ROOT / "lexicons"
    adjectives = sorted(map(str, (lexicons / "adjectives").glob("*.yaml")))
    words = {
        "adjectives": str(lexicons / "adjectives" / f"{COMPOSITION}.yaml"),
        "nouns": str(lexicons / "nouns" / "birds.yaml"),
    }
    steps: dict[str, dict[str, Any]] = {
        "pairs.extract_pairs": words | {"adjectives": adjectives},
        "pairs.rank_pairs": words,
        "split.sample_heldout": {"adjectives": None, "nouns": None, "pairs": None},
        "split.make_splits": words,
        "split.swap_adjectives": words,
        "split.make_prompts": {},
        "split.make_variants": words,
        "split.estimate_widths": {},
        "judge.make_negatives": words,
        "divergence.measure_splits": words | {"adjectives": adjectives},
        "split.audit": words,
        "split.export": {"folder": str(folder / "export")},
    }
    for name, given in steps.items():
        summary = {"summary": str(folder / f"{name.split('.')[1]}.json")}
        yield {"step": name.split(".")[1], "captions": size, **measure(name, folder, **summary, **given)}


# images


def make_images(images: int, draws: int, folder: Path) -> int:
    """All that scoring reads, but for embeddings: a pool of so many images a split, so many draws of each caption.

    Returns how many generated images there are; each is a file that no other equals.
    """
    place = folder / DATASET / COMPOSITION
    ids = [f"{i:06d}" for i in range(2 * images)]
    rows = [(i, c, f"class{int(i) % CLASSES:03d}", f"bird {i} number {c}") for i in ids for c in range(EACH)]
    captions = pd.DataFrame(rows, columns=list(CAPTIONS.columns))
    splits = pd.DataFrame({"image_id": ids, "split": ["test_seen"] * images + ["test_unseen"] * images})
    # As in C-CUB, few pairs hold most of the swapped captions.
    pairs = [f"red_{noun}" for noun in ("bill", "wing", "tail", "eye", "crown", "back")]
    chances = np.array([32, 16, 8, 4, 2, 1]) / 63
    swapped = captions[captions["image_id"].isin(ids[:images])].drop(columns="class_id").reset_index(drop=True)
    swapped["swapped_text"] = "no " + swapped["text"]
    swapped["changes"] = [[] for _ in range(len(swapped))]
    swapped["pair"] = rng(0, "scale", "pairs").choice(pairs, len(swapped), p=chances)
    of_split = dict(zip(captions["image_id"].unique(), splits["split"], strict=True))
    asked = captions.assign(split=captions["image_id"].map(of_split), pair=None)
    other = swapped.assign(split="test_swapped", text=swapped["swapped_text"])
    prompts = pd.concat([asked, other], ignore_index=True)[["image_id", "caption_id", "split", "text", "pair"]]
    each = prompts[prompts["split"] == "test_swapped"].drop(columns="pair")
    variants = each.loc[each.index.repeat(len(VARIED))].assign(adjective=np.tile(VARIED, len(each)))
    variants["text"] = variants["adjective"] + " " + variants["text"]
    variants["changes"] = [[] for _ in range(len(variants))]
    prompts = prompts.loc[prompts.index.repeat(draws)].assign(draw=np.tile(np.arange(draws), len(prompts)))
    names = prompts["caption_id"].astype("str") + "_" + prompts["draw"].astype("str")
    prompts["file_name"] = prompts["split"] + "/" + prompts["image_id"] + "/" + names + ".png"
    prompts = prompts.astype({"pair": "str"}).sort_values(["split", "image_id", "caption_id", "draw"])
    manifest = prompts.assign(path=f"{DATASET}/{COMPOSITION}/generated/" + prompts["file_name"], status="ok")
    tables = (
        (captions, CAPTIONS, "captions"), (images_of(ids, True), IMAGES, "images"), (splits, SPLIT, "splits"),
        (swapped, SWAPPED, "swapped"), (prompts, PROMPTS, "prompts"), (manifest, MANIFEST, "manifest"),
        (variants.astype({"adjective": "str"}), VARIANTS, "variants"),
        (empty_table(DIVERGENCE), DIVERGENCE, "divergence"),
    )  # fmt: skip
    for table, schema, name in tables:
        write_table(table[list(schema.columns)].reset_index(drop=True), place / f"{name}.parquet", schema)
    for number, path in enumerate(track(manifest["path"], len(manifest), "files")):
        file = folder / path
        if number % draws == 0:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(number.to_bytes(8, "big"))
    return len(manifest)


class MadeUp:
    """A judge whose embeddings of a caption are random, and of an image near its caption's."""

    width = WIDTH

    def __init__(self, judge: "Encoder", texts: Iterable[str], of_image: dict[str, str]) -> None:
        self.name, self.hash, self.of_image = judge.name, judge.hash, of_image
        self.device, self.tokenizer = judge.device, judge.tokenizer
        self.numbers = {text: number for number, text in enumerate(texts)}
        self.vectors = self._unit(rng(0, "scale", "texts").normal(size=(len(self.numbers), WIDTH)))
        self.noise = rng(0, "scale", "images")

    @staticmethod
    def _unit(vectors: np.ndarray) -> np.ndarray:
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def encode_texts(self, texts: Sequence[str], batch: int) -> np.ndarray:
        return self.vectors[[self.numbers[text] for text in texts]]

    def encode_images(self, items: Sequence[tuple[Path, Any]], batch: int) -> np.ndarray:
        own = self.encode_texts([self.of_image[str(path)] for path, _ in items], batch)
        return self._unit(own + 0.25 * self.noise.normal(size=own.shape))


def fill_cache(folder: Path) -> Path:
    """Save a judge, and put made-up embeddings of everything to be scored into the cache; return the judge's folder."""
    from workflow_scripts.clip.embed import open_embedder
    from workflow_scripts.clip.model import build, save_judge

    place = folder / DATASET / COMPOSITION
    prompts, manifest = (pd.read_parquet(place / f"{name}.parquet") for name in ("prompts", "manifest"))
    others = [pd.read_parquet(place / f"{name}.parquet")["text"] for name in ("captions", "variants")]
    texts = pd.concat([prompts["text"], *others]).drop_duplicates()
    judge = place / "judges" / JUDGE
    judge.mkdir(parents=True, exist_ok=True)
    save_judge(
        build(ModelConfig(model="sketch", pretrained=None), texts.head(1000).tolist(), 0), "made up", None, judge
    )
    paths = [folder / path for path in manifest["path"]]
    with open_embedder(judge, 256, 2, "cpu", place / "cache") as embedder:
        of_image = dict(zip(map(str, paths), prompts["text"], strict=True))
        embedder.judge = MadeUp(embedder.judge, texts, of_image)
        embedder.texts(texts.tolist())
        for start in range(0, len(paths), 1 << 16):
            embedder.images([(path, None) for path in paths[start : start + (1 << 16)]])
    return judge


def image_steps(images: int, draws: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure scoring and the table of one generator that draws ``draws`` images of each caption of a pool."""
    size = make_images(images, draws, folder)
    place = folder / DATASET / COMPOSITION
    judge = fill_cache(folder)
    about = {"images": size, "pool": images * EACH, "draws": draws}
    scoring = {"results": str(folder), "judge": str(judge), "serves": {GENERATOR: list(TESTS)}, "device": "cpu"}
    scores = {"scores": [str(place / "scores" / JUDGE / GENERATOR)], "manifests": [str(place / "manifest.parquet")]}
    scores["embedded"] = []
    yield {"step": "score_images", **about, **measure("score.score_images", place, **scoring, **scores)}
    (place / "health").mkdir()
    write_json({"ratio": None}, place / "health" / f"{JUDGE}.json")  # not measured
    write_json({"pairs": [], "source": "config"}, place / "heldout.json")
    table = {"results": str(folder), "compositions": [COMPOSITION], "generators": [GENERATOR], "judges": [JUDGE]}
    outputs = {name: str(folder / f"table.{name}") for name in ("csv", "md", "tex")}
    more = {"comparisons": str(folder / "comparisons.csv"), "metrics": str(folder / "metrics.json")}
    yield {"step": "make_table", **about, **measure("report.make_table", place, **table, **outputs, **more)}


# the default run


def read_benchmarks(results: Path) -> Iterator[dict[str, Any]]:
    """Yield what each rule of a run took: its jobs' seconds and CPU seconds together, and the largest memory in MB."""
    for rule, jobs in measured(results).groupby("rule", sort=False):
        seconds, processor = (round(float(jobs[name].sum()), 1) for name in ("seconds", "busy"))
        memory = round(jobs["rss"].max() * (1 << 20) / 1e6)
        yield {"step": rule, "seconds": seconds, "processor": processor, "memory": memory}


def run_steps(images: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure all steps of the default run with so many images."""
    changed = [
        f"results={folder / 'results'}",
        f"cache={folder / 'cache'}",
        f"dataset={{sketch: {{images: {images}}}}}",
    ]
    command = ["snakemake", "--cores", "all", "--quiet", "rules", "--configfile", str(ROOT / "config.yaml")]
    if subprocess.run([*command, "--config", *changed], cwd=ROOT).returncode:
        raise UserError(f"the run with {images} images failed; see its error above")
    for row in read_benchmarks(folder / "results"):
        yield row | {"images": images}


# Of each part, what grows, and sizes: images of the default run; captions; draws of each caption of a pool; images of
# a pool, drawn twice.
PARTS: dict[str, tuple[str, list[int]]] = {
    "run": ("images", [1000, 3000, 9000]),
    "captions": ("captions", [75_000, 300_000, 1_200_000]),
    "draws": ("images", [7, 28, 112]),
    "pools": ("images", [150, 600, 2400]),
}
POOL, TWICE = 300, 2


def run_part(part: str, size: int, real: Path | None, folder: Path) -> list[dict[str, Any]]:
    """The rows of one size; ``folder`` is empty, and emptied after."""
    if part == "run":
        steps = run_steps(size, folder)
    elif part == "captions":
        steps = caption_steps(size, real, folder)
    else:
        steps = image_steps(POOL, size, folder) if part == "draws" else image_steps(size, TWICE, folder)
    rows = []
    for row in steps:
        cli.log.info("%s", json.dumps(row))
        rows.append(row)
    return rows


def lines(rows: list[dict[str, Any]], of: str) -> Iterator[str]:
    """The rows as a Markdown table."""
    yield f"| step | {of} | seconds | CPU seconds | memory, MB | exponent of time | exponent of memory |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        growth = row.get("growth", {})
        cells = [row["step"], f"{row[of]:,}", *(f"{row[name]:,}" for name in ("seconds", "processor", "memory"))]
        yield f"| {' | '.join([*cells, *(str(growth.get(name, '')) for name in ('processor', 'memory'))])} |"


class Scale(Step):
    """Measure time and memory of the steps by size, and how they grow."""

    parts: CliPositionalArg[list[str]] = Field([], description=f"of {', '.join(PARTS)}; default: all")
    sizes: list[int] = Field([], description="sizes of one part: captions, draws, images")
    real: Path | None = Field(None, description="Reed's captions of CUB, cub_captions.zip")
    folder: Path | None = Field(None, description="folder with 10 GB of space; default: the system's temporary one")
    out: Path = Field(Path("results/scale.json"), description="file of the figures")


def main(step: Scale) -> None:
    figures = read_json(step.out) if step.out.is_file() else {}
    for part in step.parts or PARTS:
        of, sizes = PARTS[part]
        for size in step.sizes or sizes:
            with tempfile.TemporaryDirectory(dir=step.folder) as name:
                new = run_part(part, size, step.real, Path(name))
            kept = [row for row in figures.get(part, []) if row[of] != new[0][of]]
            figures[part] = grown([*kept, *new], of)
            write_json(figures, step.out)
        print("\n".join(lines(figures[part], of)))


if __name__ == "__main__":
    cli.run(main)
