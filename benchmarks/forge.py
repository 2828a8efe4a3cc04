"""Forge submissions and spoil releases in every way that their models allow, and count what passes.

``make forge`` makes a small release in a copy of the checkout, submits the images of a generator
that draws what is asked, and forges that submission: each field of its models changed, removed,
doubled, of another type, beyond its bounds, NaN or exchanged between entries, with all figures
recomputed as a forger would; another model's images under these scores, and the best of several
draws. Releases are spoiled in the same ways, with all digests recomputed. Fields come from the
models' schemas, so a new field is forged without a change here. Prints what passes; its result is
kept in docs/submitting.md.
"""

import copy
import io
import json
import logging
import os
import platform
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pydantic import Field, TypeAdapter

from compclip.core.artifacts.files import read_json, write_text
from compclip.core.errors import UserError, one_line
from compclip.core.identity.code import ROOT
from compclip.core.identity.digests import digests, sha256
from compclip.core.log import log
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.generate.write_manifest import write_manifest
from compclip.release import submit, verify
from compclip.release.check import RELEASE_FILE
from compclip.release.file_models import AdjustmentFile, Contents, JudgeBias, Summary, VariantsFile
from compclip.release.open_release import Release, open_release
from compclip.release.submission import Submission, SubmittedScores, figures_of, read_submission
from tests.project import COMPOSITION, DATASET, SMALL, Project

MOST_IMAGES = 50
SECONDS = 60  # an attempt that takes longer hangs
SMALLER = {"images: 240, species: 20": "images: 100, species: 12", "per_image: 2": "per_image: 1"}
MODELS = {
    "bias": JudgeBias,
    "adjustments": AdjustmentFile,
    "scores": Summary,
    "variants.json": VariantsFile,
}
TOLD = ("name", "judge_weights", "environment")  # of a submission; no verification can prove them
PAGE = ROOT / "docs" / "submitting.md"
SECTION = "## What cannot be proven"
Path_ = tuple[str, ...]
Change = Callable[[Path], object]
Row = tuple[str, str, str, str]  # field, way, kind of outcome, its line


class Forge(Command):
    """Forge submissions and spoil releases, and print what passes."""

    submissions: int = Field(60, ge=1, description="forged submissions")
    releases: int = Field(60, ge=1, description="spoiled releases")
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt: ``refused`` with a line, ``passed``, or ``raw`` for any other
    error.
    """

    kind: str
    line: str = ""


# ---- fields, from the schemas of the models


def fields_of(
    schema: dict[str, Any], defs: dict[str, Any], path: Path_ = ()
) -> Iterator[tuple[Path_, dict[str, Any]]]:
    """Yield each field below a schema, and its own schema; ``*`` stands for a key or an index that
    data choose.
    """
    schema = schema | defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if path:
        yield path, schema
    for option in schema.get("anyOf", []):
        yield from ((at, of) for at, of in fields_of(option, defs, path) if at != path)
    for name, of in schema.get("properties", {}).items():
        is_required = name in schema.get("required", [])
        yield from fields_of(of | {"is_required": is_required}, defs, (*path, name))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from fields_of(schema[key], defs, (*path, "*"))


def model_fields(model: Any) -> dict[Path_, dict[str, Any]]:
    """Return the fields of a model and of all models in it, by path."""
    schema = TypeAdapter(model).json_schema()
    return dict(fields_of(schema, schema.get("$defs", {})))


def places(content: Any, path: Path_) -> list[list[str | int]]:
    """Return all places of a field in JSON content."""
    found: list[list[str | int]] = [[]]
    for name in path:
        longer = list[list[str | int]]()
        for place in found:
            inner = at(content, place)
            keys: Any = (
                [*inner]
                if isinstance(inner, dict)
                else range(len(inner))
                if isinstance(inner, list)
                else []
            )
            longer += [[*place, key] for key in keys if name in ("*", key)]
        found = longer
    return found


def at(content: Any, place: list[str | int]) -> Any:
    for key in place:
        content = content[key]
    return content


def put(content: Any, place: list[str | int], value: Any) -> None:
    at(content, place[:-1])[place[-1]] = value


# ---- ways to change a field


def options_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the bounds of a number's schema, or of the first number that it may be."""
    return next(
        (of for of in [schema, *schema.get("anyOf", [])] if {"minimum", "maximum"} & of.keys()), {}
    )


def changed(value: Any, schema: dict[str, Any], draw: random.Random) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        most = options_of(schema).get("maximum", 1e9)
        return value + 0.25 if value + 0.25 <= most else value - 0.25
    if isinstance(value, str):
        return ("0" if value[:1] != "0" else "1") + value[1:] if len(value) == 64 else f"{value}2"
    if isinstance(value, list):
        return [*reversed(value)] if value != [*reversed(value)] else value[1:]
    if isinstance(value, dict):
        return dict(zip(value, [*value.values()][1:] + [*value.values()][:1], strict=True))
    return 0.25


def is_nullable(schema: dict[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", [])


def of_another_type(value: Any, schema: dict[str, Any], draw: random.Random) -> Any:
    if isinstance(value, dict):
        return [*value.values()]
    if isinstance(value, list):
        return {str(row): of for row, of in enumerate(value)}
    others = [7, [value], True] if isinstance(value, str) else [[], {}, str(value), "true"]
    return draw.choice(others if is_nullable(schema) else [*others, None])


def below(value: Any, schema: dict[str, Any], draw: random.Random) -> Any:
    if isinstance(value, list | dict):
        return type(value)()
    return "" if isinstance(value, str) else options_of(schema).get("minimum", -1e308) - 1e-5


def above(value: Any, schema: dict[str, Any], draw: random.Random) -> Any:
    if isinstance(value, str):
        return draw.choice(
            [f"{value}\u200b", f"{value}\nx", f" {value}", value + "x" * 100_000, f"{value}\0"]
        )
    if isinstance(value, list | dict):
        return 7
    return draw.choice([options_of(schema).get("maximum", 1e308) * 1.00001 + 1e-5, 1e308, 10**400])


def not_a_number(value: Any, schema: dict[str, Any], draw: random.Random) -> Any:
    return draw.choice([float("nan"), float("inf"), float("-inf")])


VALUES = {
    "changed": changed,
    "of another type": of_another_type,
    "below its bounds": below,
    "above its bounds": above,
    "NaN": not_a_number,
}
WAYS = (*VALUES, "removed", "doubled", "exchanged")
TWICE = "__twice__"  # marks a key that is written twice


def forge_field(
    content: Any, path: Path_, schema: dict[str, Any], way: str, draw: random.Random
) -> bool:
    """Change a field of JSON content in place; return whether there is anything to change."""
    found = places(content, path)
    if not found:
        return False
    place = draw.choice(found)
    value, holder = at(content, place), at(content, place[:-1])
    if way in VALUES:
        put(content, place, VALUES[way](value, schema, draw))
    elif way == "removed":
        del holder[place[-1]]
    elif way == "doubled" and isinstance(holder, dict):
        holder[f"{TWICE}{place[-1]}"] = value
    elif way == "doubled":
        holder.insert(int(place[-1]), value)
    else:
        others = [other for other in found if at(content, other) != value]
        if not others:
            return False
        other = draw.choice(others)
        put(content, place, at(content, other))
        put(content, other, value)
    return True


def may_be_valid(value: Any, path: Path_, schema: dict[str, Any], way: str) -> bool:
    """Return whether another release may have a field that was changed in this way."""
    if way == "removed":
        return path[-1] == "*" or not schema.get("is_required", True)
    if way == "below its bounds":
        return isinstance(value, list | dict) and not {"minItems", "minProperties"} & schema.keys()
    return way in ("changed", "exchanged") or (way == "doubled" and path[-1] == "*")


def as_text(content: Any) -> str:
    return json.dumps(content).replace(f'"{TWICE}', '"')


# ---- attempts


@contextmanager
def in_time() -> Iterator[None]:
    """Raise TimeoutError in a block that hangs."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(call: Callable[[], object]) -> Outcome:
    """Call a command, and return what became of it."""
    printed = io.StringIO()
    try:
        with in_time(), redirect_stdout(printed), redirect_stderr(io.StringIO()):
            call()
    except SystemExit:
        return Outcome("refused", printed.getvalue().partition("\n")[0])
    except UserError as error:
        line = one_line(error)
        return Outcome("refused" if "\n" not in line else "raw", line)
    except Exception as error:
        return Outcome("raw", f"{type(error).__name__}: {error}"[:200])
    return Outcome("passed", printed.getvalue().partition("\n")[0])


@dataclass(frozen=True)
class World:
    """A release, images of all its prompts by file_name, of another model too, and the honest
    submission.
    """

    release: Release
    images: Path
    others: Path
    submission: Path
    cache: Path

    def submit(self, images: Path, output: Path, name: str = "mine") -> Path:
        command = submit.Submit(
            release=self.release.folder,
            images=images,
            name=name,
            missing=True,
            sizes=True,
            cache=self.cache,
            output=output,
            judge_weights="none",
            device="cpu",
        )
        submit.main(command)
        return output

    def verify(
        self, file: Path, release: Path | None = None, images: Path | None = None
    ) -> Outcome:
        command = verify.VerifySubmission(
            submission=file,
            release=release or self.release.folder,
            images=images,
            cache=self.cache,
            device="cpu",
        )
        return attempt(lambda: verify.main(command))


def make_world(folder: Path) -> World:
    """Make a small release in a copy of the checkout, and submit the images of its faithful
    generator.
    """
    project = Project(folder / "project")
    project.root.mkdir()
    project.copy()
    text = SMALL.format(results="results", cache=".cache")
    for old, new in SMALLER.items():
        text = text.replace(old, new)
    (project.root / "small.yaml").write_text(text)
    run = [
        sys.executable,
        "-m",
        "workflow_scripts.workflow.run",
        "--config",
        "small.yaml",
        "--cores",
        "2",
    ]
    project.call(*run, "--", "make_release")
    return world_of(folder, project.root / "results")


def world_of(folder: Path, results: Path) -> World:
    """Return the world of a run with a release; see ``make_world``."""
    release = open_release(results / "release")
    prompts = release.part(COMPOSITION).tables["prompts"]
    if len(prompts) > MOST_IMAGES:
        raise UserError(
            f"{len(prompts)} prompts, more than {MOST_IMAGES}; make the run in SMALLER smaller"
        )
    made = results / DATASET / COMPOSITION / "generated" / "faithful" / "images"
    drawn = {name: Path(shutil.copytree(made, folder / name)) for name in ("images", "others")}
    for file in drawn["others"].rglob("*.png"):
        with Image.open(file) as image:
            darker = image.convert("RGB").point(lambda value: value // 2)
        darker.save(file)
    for place in drawn.values():
        write_manifest(place, prompts)
    world = World(
        release, drawn["images"], drawn["others"], folder / "honest.json", folder / "cache"
    )
    world.submit(world.images, world.submission)
    honest = world.verify(world.submission, images=world.images)
    if honest.kind != "passed":
        raise UserError(f"the honest submission is not verified: {honest.line}; fix this first")
    return world


# ---- submissions


def recomputed(content: Any, release: Release) -> Any:
    """Return a forged submission with the figures that follow from its values, if they can be
    computed.
    """
    try:
        judges = {
            name: {
                judge: SubmittedScores.model_validate(scores)
                for judge, scores in of["judges"].items()
            }
            for name, of in content["compositions"].items()
        }
        return content | {"scores": figures_of(release, content["name"], judges)}
    except Exception:  # whatever a forged value does to the computation
        return content


def best_of(world: World, folder: Path) -> dict[str, Any]:
    """Return a submission of the images with, for each prompt, the better values of two models."""
    content = read_json(world.submission)
    other = read_json(world.submit(world.others, folder / "others.json"))
    for judge, scores in content["compositions"][COMPOSITION]["judges"].items():
        values = other["compositions"][COMPOSITION]["judges"][judge]["values"]
        for name, of in scores["values"].items():
            better = np.array(of["expected_top1"]) < np.array(values[name]["expected_top1"])
            for column, own in of.items():
                of[column] = [
                    b if take else a
                    for a, b, take in zip(own, values[name][column], better, strict=True)
                ]
    return recomputed(content, world.release)


def with_images_of(world: World, folder: Path) -> dict[str, Any]:
    """Return the scores of one model with the digests of another's images."""
    content = read_json(world.submission)
    other = read_json(world.submit(world.others, folder / "others.json"))
    content["compositions"][COMPOSITION]["images"] = other["compositions"][COMPOSITION]["images"]
    return content


def controls_added(world: World) -> dict[str, Any]:
    """Return a submission whose controls state more than controls."""
    content = read_json(world.submission)
    for scores in content["compositions"][COMPOSITION]["judges"].values():
        for of in scores["controls"].values():
            of |= {"adjective": 0.99, "adjective_chance": 0.01}
    return content


def named(world: World, name: str) -> dict[str, Any]:
    return recomputed(read_json(world.submission) | {"name": name}, world.release)


def entries_exchanged(world: World) -> dict[str, Any]:
    """Return a submission in which the first and the last entry of each set have each other's
    values.
    """
    content = read_json(world.submission)
    for scores in content["compositions"][COMPOSITION]["judges"].values():
        for of in scores["values"].values():
            for column in of.values():
                column[0], column[-1] = column[-1], column[0]
    return recomputed(content, world.release)


def near_ties(world: World) -> dict[str, Any]:
    """Return a submission from another processor, with a hit more in each set."""
    content = read_json(world.submission)
    content["environment"]["processor"] = "another"
    for scores in content["compositions"][COMPOSITION]["judges"].values():
        for of in scores["values"].values():
            rows = [row for row, hit in enumerate(of["hit"]) if not hit and of["p_beaten"][row] < 1]
            for row in rows[:1]:
                of["hit"][row] = True
    return recomputed(content, world.release)


def forged_submissions(
    world: World, number: int, draw: random.Random, folder: Path
) -> Iterator[tuple[str, str, str, Path]]:
    """Yield the field, the way, the text and the folder of images of each forged submission."""
    control = world.release.part(COMPOSITION).contents.generators[1]
    special: list[tuple[str, str, Any, Path]] = [
        (
            "images",
            "another model's images, and their digests",
            with_images_of(world, folder),
            world.others,
        ),
        ("images", "another model's images", read_json(world.submission), world.others),
        ("values", "the better values of two models", best_of(world, folder), world.images),
        ("values", "entries exchanged", entries_exchanged(world), world.images),
        ("controls", "more than controls", controls_added(world), world.images),
        ("hit", "near ties of another processor", near_ties(world), world.images),
        *(
            ("name", f"a control's name: {name!r}", named(world, name), world.images)
            for name in (
                control,
                control.upper(),
                f"{control}\u200b",
                f" {control}",
                control.replace("l", "1"),
            )
        ),
    ]
    for field, way, content, images in special[:number]:
        yield field, way, as_text(content), images
    honest = {"": (Submission, read_json(world.submission))}
    for forged in drawn_forgeries(honest, number - len(special), draw):
        is_value = forged.path[0] == "compositions" and forged.path[-1] != "images"
        content = recomputed(forged.content, world.release) if is_value else forged.content
        yield ".".join(forged.path), forged.way, as_text(content), world.images


@dataclass(frozen=True)
class Forgery:
    """A forged JSON file; valid: whether another release may have this content."""

    file: str
    path: Path_
    way: str
    content: Any
    valid: bool


def drawn_forgeries(
    files: dict[str, tuple[Any, Any]], number: int, draw: random.Random
) -> Iterator[Forgery]:
    """Yield forged files: every field of every model in turn, each time in another way."""
    # Each field once, whatever the number of files that have it.
    by_model = {
        id(model): (model, [name for name in files if files[name][0] is model])
        for model, _ in files.values()
    }
    fields = [
        (names, path, schema)
        for model, names in by_model.values()
        for path, schema in model_fields(model).items()
    ]
    draw.shuffle(fields)
    ways = [*WAYS] * (len(fields) // len(WAYS) + 1)
    made = turn = 0
    while made < number:
        names, path, schema = fields[turn % len(fields)]
        name = draw.choice(names)
        way = ways[(turn + turn // len(fields)) % len(ways)]
        turn += 1
        content = copy.deepcopy(files[name][1])
        before = as_text(content)
        places_before = places(content, path)
        if (
            places_before
            and forge_field(content, path, schema, way, draw)
            and as_text(content) != before
        ):
            made += 1
            value = at(files[name][1], places_before[0])
            yield Forgery(name, path, way, content, may_be_valid(value, path, schema, way))


def try_submissions(world: World, number: int, draw: random.Random, folder: Path) -> list[Row]:
    """Return field, way, kind and line of each forged submission: kinds are refused, without, with,
    told and raw.
    """
    rows = []
    honest = read_submission(world.submission, world.release)
    for field, way, text, images in forged_submissions(world, number, draw, folder):
        write_text(text, file := folder / "submission.json")
        outcome = world.verify(file)
        kind = outcome.kind
        if kind == "passed":
            changed_ = read_submission(file, world.release)
            is_told = field.split(".")[0] in TOLD
            same = changed_ == honest.model_copy(
                update={name: getattr(changed_, name) for name in TOLD}
            )
            outcome = world.verify(file, images=images)
            kind = "told" if is_told and outcome.kind == "passed" else outcome.kind
            kind = {"passed": "with", "refused": "without"}.get(kind, kind)
            if kind == "with" and same and images == world.images:
                kind = "equal"
        rows.append((field, way, kind, outcome.line))
    return rows


# ---- releases


def signed(folder: Path) -> None:
    """Let release.json list the files of its folder, as a forger would."""
    content = read_json(folder / RELEASE_FILE)
    files = {name: digest for name, digest in digests(folder).items() if name != RELEASE_FILE}
    write_text(json.dumps(content | {"files": files}), folder / RELEASE_FILE)


def put_file(folder: Path, name: str, digest: str = "0" * 64) -> None:
    """Let release.json list a file that is not in its folder."""
    content = read_json(folder / RELEASE_FILE)
    content["files"][name] = digest
    write_text(json.dumps(content), folder / RELEASE_FILE)


def bomb(folder: Path) -> None:
    """Replace the captions by as many equal ones as expand to 2.5 GB."""
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(2_500, np.int32)), pa.array(["a" * 1_000_000])
    )
    table = pa.table(
        {
            "image_id": ["1"] * 2_500,
            "caption_id": range(2_500),
            "class_id": ["1"] * 2_500,
            "text": text,
        }
    )
    pq.write_table(table, folder / "captions.parquet", compression="zstd")
    signed(folder)


def special_spoils(world: World) -> dict[str, Change]:
    """Return ways to spoil the files of a release's folder, by name."""
    judge = next(iter(world.release.part(COMPOSITION).contents.judges.values())).folder

    def replaced(name: str, make: Callable[[Path], object]) -> Change:
        def change(folder: Path) -> None:
            (folder / name).unlink(missing_ok=True)
            make(folder / name)

        return change

    def empty(folder: Path) -> None:
        (folder / "captions.parquet").write_bytes(b"")
        signed(folder)

    names = (
        "/etc/hostname",
        "../outside",
        "a/../../outside",
        "C:\\x",
        "a\0b",
        "x" * 5000,
        "a//b",
        "./a",
        "",
        "a\nb",
    )
    return {
        "an unlisted file": lambda folder: (folder / "more.txt").write_text("x"),
        "an unlisted file of a judge": lambda folder: (folder / judge / "more.json").write_text(
            "{}"
        ),
        "a listed file is missing": lambda folder: (
            folder / judge / "weights.safetensors"
        ).unlink(),
        "files is empty": lambda folder: write_text(
            json.dumps(read_json(folder / RELEASE_FILE) | {"files": {}}), folder / RELEASE_FILE
        ),
        "a flipped byte": lambda folder: (folder / "captions.parquet").write_bytes(
            (folder / "captions.parquet").read_bytes()[:-1] + b"x"
        ),
        "a link": replaced(
            "images.parquet", lambda file: file.symlink_to(world.release.folder / "images.parquet")
        ),
        "a linked folder": lambda folder: (folder / "more").symlink_to("/etc"),
        "a pipe": replaced("images.parquet", lambda file: os.mkfifo(file)),
        "a link to a device": replaced("images.parquet", lambda file: file.symlink_to("/dev/zero")),
        "a Parquet bomb": bomb,
        "release.json is a pipe": replaced(RELEASE_FILE, lambda file: os.mkfifo(file)),
        "an empty table": empty,
        **{f"files lists {name[:20]!r}": partial(put_file, name=name) for name in names},
    }


def spoil_table(folder: Path, name: str, draw: random.Random) -> str:
    """Spoil a column of a table, and return how."""
    table = pd.read_parquet(folder / name)
    column = draw.choice([*table.columns])
    way = draw.choice(
        [
            "removed",
            "doubled",
            "of another type",
            "null",
            "out of bounds",
            "rows doubled",
            "no rows",
        ]
    )
    if way == "removed":
        table = table.drop(columns=column)
    elif way == "doubled":
        table[f"{column}_2"] = table[column]
    elif way == "of another type":
        table[column] = (
            range(len(table)) if not pd.api.types.is_integer_dtype(table[column]) else "x"
        )
    elif way == "null":
        column = table.columns[0]
        table[column] = None
    elif way == "out of bounds":
        # A box may begin outside of its image.
        numbers = table.select_dtypes("number").columns.difference(["bbox_x", "bbox_y"], sort=False)
        column = draw.choice([*numbers]) if len(numbers) else column
        table[column] = -7.0 if len(numbers) else 7
    else:
        table = pd.concat([table, table]) if way == "rows doubled" else table[:0]
    table.to_parquet(folder / name)
    signed(folder)
    return f"{column} {way}" if "rows" not in way else way


def release_files(world: World) -> dict[str, tuple[Any, Any]]:
    """Return the JSON files of the release: their model and content, by path."""
    found: dict[str, tuple[Any, Any]] = {
        RELEASE_FILE: (Contents, read_json(world.release.folder / RELEASE_FILE))
    }
    for name in world.release.contents.files:
        model = next((model for key, model in MODELS.items() if key in name.split("/")), None)
        if model and name.endswith(".json"):
            found[name] = model, read_json(world.release.folder / name)
    return found


def try_releases(world: World, number: int, draw: random.Random, folder: Path) -> list[Row]:
    """Return file, way, kind and line of each spoiled release: kinds are refused, other, opened and
    raw.
    """
    rows = []
    files = release_files(world)
    tables = [name for name in world.release.contents.files if name.endswith(".parquet")]
    # Field, way, change, and whether another release may be like this.
    spoils: list[tuple[str, str, Change, bool]] = []
    for name, change in [*special_spoils(world).items()][: number // 2]:
        spoils.append(("files", name, change, False))
    for name in draw.sample(tables, min(len(tables), number // 6)):
        spoils.append((name, "a column", partial(spoil_table, name=name, draw=draw), False))
    for forged in drawn_forgeries(files, number - len(spoils), draw):
        change = partial(exchange_text, name=forged.file, text=as_text(forged.content))
        spoils.append((".".join([forged.file, *forged.path]), forged.way, change, forged.valid))
    for field, way, change, is_valid in spoils:
        copied = folder / "release"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(world.release.folder, copied)
        how = change(copied)
        outcome = attempt(partial(open_release, copied))
        kind = outcome.kind
        if kind == "passed":
            # Another valid value makes another release, which takes no submission of this one.
            moved = world.verify(world.submission, copied)
            is_other = moved.kind == "refused" and "is for release" in moved.line
            kind = "other" if is_other and is_valid else "opened"
            resigned = read_json(world.submission)
            about = read_json(copied / RELEASE_FILE)
            resigned["release"] = {"name": about["name"], "version": about["version"]}
            resigned["release"]["digest"] = sha256(copied / RELEASE_FILE)
            write_text(json.dumps(resigned), folder / "moved.json")
            used = world.verify(folder / "moved.json", copied)
            kind, outcome = ("raw", used) if used.kind == "raw" else (kind, outcome)
        rows.append((field, f"{way}: {how}" if isinstance(how, str) else way, kind, outcome.line))
    return rows


def exchange_text(folder: Path, name: str, text: str) -> None:
    """Write a file of a release, and the digests of all files."""
    write_text(text, folder / name)
    if name != RELEASE_FILE:
        signed(folder)


# ---- report


def documented() -> set[str]:
    """Return the fields that the documentation names as unprovable without images."""
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    return set(re.findall(r"`(\w+)`", section))


def processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    )
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def summary(submissions: list[Row], releases: list[Row]) -> list[str]:
    """Return the lines that say what passed."""
    of_submissions, of_releases = (
        Counter(row[2] for row in rows) for rows in (submissions, releases)
    )
    without = Counter(
        field.split(".")[-1] if not field.endswith("*") else field.split(".")[-2]
        for field, _, kind, _ in submissions
        if kind == "without"
    )
    unnamed = sorted(set(without) - documented())
    return [
        f"forged submissions: {len(submissions)}",
        f"refused without images: {of_submissions['refused']}; raw errors: {of_submissions['raw']}",
        f"passed without images: {sum(without.values())}"
        f" ({', '.join(f'{name} {n}' for name, n in sorted(without.items())) or 'none'}),"
        " of these not named as unprovable: "
        f"{len(unnamed)}{' ' + ', '.join(unnamed) if unnamed else ''}",
        f"passed with images: {of_submissions['with']}",
        f"only what no verification can prove ({', '.join(TOLD)}): {of_submissions['told']}",
        f"spoiled releases: {len(releases)}; refused: {of_releases['refused']}; raw errors: "
        f"{of_releases['raw']}",
        f"another valid release, which takes no submission of this one: {of_releases['other']}",
        f"opened: {of_releases['opened']}",
    ]


def main(command: Forge) -> None:
    started = time.monotonic()
    log.setLevel(logging.WARNING)  # each verification logs what it encodes
    draw = random.Random(command.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = make_world(folder)
        images = len(world.release.part(COMPOSITION).tables["prompts"])
        submissions = try_submissions(world, command.submissions, draw, folder)
        releases = try_releases(world, command.releases, draw, folder)
    for field, way, kind, line in [*submissions, *releases]:
        print(f"{kind:8} {field}: {way}: {line[:150]}")
    lines = summary(submissions, releases)
    seconds = time.monotonic() - started
    print(*lines, f"{images} images, seed {command.seed}, {seconds:.0f} s, {processor()}", sep="\n")
    bad = {"with", "raw", "opened"} & {row[2] for row in [*submissions, *releases]}
    if bad or "not named as unprovable: 0" not in lines[2]:
        raise UserError("a forgery passed; see the lines above")


if __name__ == "__main__":
    cli.run(main)
