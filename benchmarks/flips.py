"""Flip single bits in every kind of artifact and cache of a finished run, and read it as a step does.

``make faults`` does so after its kills. A flip is *refused* if an error names the file, *made again* if the log names
it or the value counts as missing, and *without effect* if the value that is read is the same. Anything else is
undetected: another value, an error that is not ours, or one that does not name the file.
"""

import datetime
import json
import logging
import os
import platform
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from PIL import Image
from pydantic import Field

from workflow_scripts.clip.activations import Activations
from workflow_scripts.clip.model import check_judge
from workflow_scripts.clip.pixels import PREPROCESS, Preprocess
from workflow_scripts.core import cli, digests, tables
from workflow_scripts.core.cache import Cache, key
from workflow_scripts.core.errors import UserError
from workflow_scripts.core.io import read_table, write_text
from workflow_scripts.core.step import Step
from workflow_scripts.judge.checkpoint import Checkpoint
from workflow_scripts.judge.feed import Feed
from workflow_scripts.judge.parallel import ALONE

OUTCOMES = ("refused", "made again", "without effect", "undetected")
# Values of caches that a small run does not fill, of their real sizes: an embedding, features, a PNG, an answer.
OTHER_CACHES = {
    "answers of a language model": lambda draw: json.dumps({"texts": [draw.randbytes(20).hex()] * 5}).encode(),
    "images of diffusers": lambda draw: bytes([0]) + draw.randbytes(20_000),
    "features of Inception": lambda draw: draw.randbytes(4 * 2048),
}
CACHES = {"occurrences.sqlite": "parses", "chunks.sqlite": "chunks", "files.sqlite": "index of files"}
# Tables that have a schema are also read without their record, by page checksums and schema alone.
SCHEMAS = {
    f"{name}.parquet": getattr(tables, name.upper().replace("SPLITS", "SPLIT"))
    for name in (
        "captions", "images", "pairs", "ranking", "splits", "swapped", "prompts", "manifest", "divergence", "compounds",
        "examples", "steps",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """Something that is stored in ``files``, a bit of one of which is flipped.

    ``read`` returns what a step gets, and whether something was missing; it may repair the files.
    """

    name: str
    files: list[Path]
    read: Callable[[], tuple[Any, bool]]


def artifacts(results: Path, place: Path) -> Iterator[Kind]:
    """Yield the kinds of artifacts of a run, copied to ``place``: one of each name, as the next step checks it."""
    seen = set()
    for record in sorted(results.rglob(f"{digests.FOLDER}/*")):
        artifact = record.parent.parent / record.name
        recorded = digests.read_record(artifact)
        if recorded is None or not artifact.exists():
            continue
        folder = artifact.is_dir()
        name = artifact.name if folder or artifact.suffix in (".parquet", ".json") else f"*{artifact.suffix}"
        # Folders are of one kind if they contain files of the same names.
        kind = frozenset(recorded.files) if folder else name
        if kind in seen:
            continue
        seen.add(kind)
        copy = place / str(len(seen)) / artifact.name
        copy.parent.mkdir(parents=True)
        (shutil.copytree if folder else shutil.copy)(artifact, copy)
        shutil.copytree(record.parent, copy.parent / digests.FOLDER)
        files = (
            [path for path in sorted(copy.rglob("*")) if path.is_file() and path.stat().st_size] if folder else [copy]
        )
        for suffix in sorted({path.suffix for path in files}):
            of = f"{artifact.parent.name}/{name}/*{suffix}" if folder else name
            yield Kind(of, [path for path in files if path.suffix == suffix], partial(_checked, copy))
        schema = SCHEMAS.get(copy.name)
        if schema is not None:
            yield Kind(f"{name}, without its record", [copy], partial(_table, copy, schema))
        if (copy / "weights.safetensors").is_file():
            yield from judge(f"{artifact.parent.name}/{name}", shutil.copytree(copy, copy.with_name("alone")))


def _checked(artifact: Path) -> tuple[Any, bool]:
    digests.check([artifact])
    return {str(path): path.read_bytes() for path in [artifact, *artifact.rglob("*")] if path.is_file()}, False


def _table(file: Path, schema: tables.Schema) -> tuple[Any, bool]:
    return read_table(file, schema).to_json(), False


def judge(title: str, folder: Path) -> Iterator[Kind]:
    for name in ("weights.safetensors", "model.json", "vocabulary.json"):
        yield Kind(f"{title}/{name}, without its record", [folder / name], lambda: (check_judge(folder), False))


def caches(cache: Path, place: Path) -> Iterator[Kind]:
    """Yield the caches of a run, copied to ``place``, and those that it did not fill."""
    files = {CACHES.get(file.name, file.parent.name): file for file in sorted(cache.rglob("*.sqlite"))}
    for name, file in files.items():
        copy = place / file.parent.name / file.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
        yield _cache(f"cache: {name}", copy)
    draw = random.Random(0)
    for name, value in OTHER_CACHES.items():
        copy = place / f"{name}.sqlite"
        with Cache(copy) as made:
            made.put((key(name, number), value(draw)) for number in range(100))
        yield _cache(f"cache: {name}", copy)


def _cache(name: str, file: Path) -> Kind:
    with sqlite3.connect(file) as db:
        keys = [row[0] for row in db.execute("SELECT key FROM entries")]
    with Cache(file) as whole:
        values = whole.get(keys)

    def read() -> tuple[Any, bool]:
        with Cache(file) as cache:
            now = cache.get(keys)
            # What a step computes again, it stores.
            cache.put((key, values[key]) for key in keys if key not in now)
        return values | now, len(now) < len(values)

    return Kind(name, [file], read)


def kept(cache: Path, place: Path) -> Iterator[Kind]:
    """Yield the other files that a run keeps: those of trainings, and the index of captions."""
    checkpoints = [place / "checkpoint.pt", place / "checkpoint_previous.pt"]
    state = _checkpoint(checkpoints[0])
    for rows in ([{"epoch": 1}], [{"epoch": 1}, {"epoch": 2}]):
        with torch.no_grad():
            next(state.model.parameters()).add_(1)
        state.written = -1e9
        state.keep(rows, last=False)
    yield Kind("checkpoint", checkpoints[:1], lambda: _resumed(checkpoints[0]))
    pixels, images = place / "images.bin", [place / f"{number}.png" for number in range(20)]
    draw = np.random.default_rng(0)
    for image in images:
        Image.fromarray(draw.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(image)
    _pixels(images, place)
    yield Kind("pixels of a training", [pixels], lambda: (_pixels(images, place), False))
    table = torch.randn(200, 64)
    _activations(table, place)
    yield Kind("activations of a training", [place / "frozen.bin"], lambda: (_activations(table, place), False))


def _checkpoint(file: Path) -> Checkpoint:
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.AdamW(model.parameters())
    return Checkpoint(file, model, optimizer, torch.amp.GradScaler("cpu", enabled=False), "epoch")


def _resumed(file: Path) -> tuple[Any, bool]:
    checkpoint = _checkpoint(file)
    rows, weight = checkpoint.resume(), next(checkpoint.model.parameters())
    with torch.no_grad():
        # As the training would, from the state that it found.
        for _ in range(len(rows), 2):
            weight.add_(1)
    return weight.tolist(), len(rows) < 2


def _pixels(images: list[Path], place: Path) -> list[Any]:
    preprocess, model = Preprocess(PREPROCESS | {"size": 32}, None), SimpleNamespace(encode_image=lambda pixels: pixels)
    judge = SimpleNamespace(model=model, preprocess=preprocess, threads=1, device=torch.device("cpu"))
    config = SimpleNamespace(precision="fp32", epochs=0, flip=False)
    feed = Feed(judge, config, place, ALONE)  # type: ignore[arg-type]
    return feed.images([(image, None) for image in images], "images")(np.arange(len(images))).tolist()


def _activations(rows: torch.Tensor, place: Path) -> list[Any]:
    table = Activations(place / "frozen.bin", tuple(rows.shape), rows.dtype, torch.device("cpu"))
    table.write([rows], "rows")
    return table.open()[torch.arange(len(rows))].tolist()


class Heard(logging.Handler):
    """Keeps what the log says."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()


def flip(kind: Kind, number: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Flip ``number`` bits of a kind, one after another; return the outcomes, and what was undetected."""
    draw, outcomes, undetected = random.Random(f"{seed} {kind.name}"), Counter[str](), []
    whole = {path: path.read_bytes() for path in kind.files}
    expected = kind.read()[0]
    heard = Heard()
    cli.log.addHandler(heard)
    for _ in range(number):
        file = draw.choice(list(whole))
        raw = bytearray(whole[file])
        place, bit = draw.randrange(len(raw)), draw.randrange(8)
        raw[place] ^= 1 << bit
        file.write_bytes(raw)
        heard.text = ""
        try:
            value, missed = kind.read()
            named = str(file) in heard.text
            same = value == expected
            outcome = "undetected" if not same else "made again" if missed or named else "without effect"
        except UserError as error:
            outcome = "refused" if file.name in str(error) else "undetected"
        except Exception as error:
            outcome, heard.text = "undetected", repr(error)
        if outcome == "undetected":
            undetected.append(f"{kind.name}: {file.name}, byte {place}, bit {bit} {heard.text[:200]}")
        outcomes[outcome] += 1
        for path, content in whole.items():
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
    cli.log.removeHandler(heard)
    return outcomes, undetected


def flip_all(results: Path, cache: Path, number: int, seed: int) -> tuple[list[str], list[str]]:
    """Return a paragraph, a table with a row a kind, and the flips that were undetected."""
    rows, refused, undetected, total = [], [], [], Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        for part in (artifacts(results, place / "artifacts"), caches(cache, place / "caches"), kept(cache, place)):
            for kind in part:
                outcomes, missed = flip(kind, number, seed)
                total += outcomes
                undetected += missed
                if outcomes["refused"] == number:
                    refused.append(kind.name)
                else:
                    rows.append(f"| {kind.name} | " + " | ".join(str(outcomes[outcome]) for outcome in OUTCOMES) + " |")
                cli.log.info("%s: %s", kind.name, dict(outcomes))
    lines = [
        f"{number} flipped bits (seed {seed}) in each of {len(rows) + len(refused)} kinds on {datetime.date.today()},"
        f" {os.cpu_count()} cores, {platform.machine()}, {platform.system()}: "
        + ", ".join(f"{total[outcome]} {outcome}" for outcome in OUTCOMES) + ".",
        "",
        f"All were refused in {len(refused)} kinds: {', '.join(f'`{name}`' for name in dict.fromkeys(refused))}. The"
        " others:",
        "",
        "| kind | " + " | ".join(OUTCOMES) + " |",
        "|---|" + "---|" * len(OUTCOMES),
        *rows,
    ]  # fmt: skip
    return lines, undetected


class Flips(Step):
    """Flip bits in copies of a finished run's artifacts and caches, and read them."""

    results: Path = Field(description="results folder of a finished run")
    cache: Path = Field(description="its cache")
    flips: int = Field(100, ge=1, description="flips of each kind")
    seed: int = 0
    output: Path | None = Field(None, description="file for the table")


def main(step: Flips) -> None:
    lines, undetected = flip_all(step.results, step.cache, step.flips, step.seed)
    if step.output:
        write_text("\n".join(lines) + "\n", step.output)
    print("\n".join([*lines, *undetected]))
    if undetected:
        raise UserError(f"{len(undetected)} flipped bits were undetected: the lines above name them")


if __name__ == "__main__":
    cli.run(main)
