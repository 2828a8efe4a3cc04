"""Birds drawn by compclip: the content of every picture is known, and no files are needed."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from pydantic import Field

from compclip.core import seeds
from compclip.core.progress import track
from compclip.core.section import Count, Section
from compclip.dataset.sketch.captions import SketchCaption, caption_scene
from compclip.dataset.sketch.draw import Pose, draw_pose, paint_scene, png
from compclip.dataset.sketch.world import (
    Dice,
    Scene,
    SketchWorld,
    draw_scene,
    draw_wild_scene,
    make_world,
)
from compclip.dataset.source import Loaded

TABLES = ("scenes", "facts", "pretraining")
PARALLEL = True
# A part has one color and at most one shape: a long bill is not pointed.
ONE_VALUE = True
# birds that a process draws at a time
BIRDS_PER_TASK = 64

T = TypeVar("T")


class Settings(Section):
    """Drawn birds."""

    images: Count = Field(9000, ge=1, description="birds")
    species: Count = Field(80, ge=2, description="classes, each with its own habits")
    captions: Count = Field(10, ge=1, description="captions per image")
    pretraining: float = Field(
        4 / 3,
        ge=0,
        le=1000,
        description="wild birds for each bird: judges alone learn from them (docs/measurement.md)",
    )
    size: int = Field(96, ge=32, le=512, description="width and height of an image in pixels")


def load(
    settings: Settings,
    *,
    seed: int,
    limit: int | None,
    folder: Path,
    cache: Path,
    processes: int = 1,
) -> Loaded:
    """Draw the birds into ``folder`` and return their captions, as ``source.py`` defines; ``cache``
    is not used.

    Table ``scenes`` has a row for each image, with all attributes and the pose; ``facts`` one for
    each statement of a caption: image_id, caption_id, part, kind, value, start, end (characters);
    ``pretraining`` one for each caption of a wild bird, which is not in the data set: path, text.
    """
    count = min(settings.images, limit or settings.images)
    draw = partial(draw_bird, settings, make_world(seed, settings.species), seed, folder)
    birds = list(_drawn(draw, count, "birds", processes))
    scenes = pd.DataFrame([scene for scene, _, _ in birds])
    captions, facts = ([row for bird in birds for row in bird[table]] for table in (1, 2))
    wild = round(settings.pretraining * count)
    (folder / "pretraining").mkdir()
    draw_wild = partial(draw_wild_bird, settings, len(str(max(0, wild - 1))), seed, folder)
    pretraining = [row for rows in _drawn(draw_wild, wild, "wild birds", processes) for row in rows]
    return Loaded(
        captions=pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"]),
        images=pd.DataFrame({"image_id": scenes["image_id"], "path": scenes["image_id"] + ".png"}),
        tables={
            "scenes": scenes,
            "facts": pd.DataFrame(
                facts, columns=["image_id", "caption_id", "part", "kind", "value", "start", "end"]
            ),
            "pretraining": pd.DataFrame(pretraining, columns=["path", "text"], dtype="str"),
        },
        summary={"facts": len(facts), "pretraining_images": wild},
    )


def _drawn(draw: Callable[[int], T], count: int, unit: str, processes: int) -> Iterator[T]:
    """Yield ``draw(number)`` for the numbers below ``count``, in order."""
    if processes == 1:
        yield from track(map(draw, range(count)), count, unit)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        yield from track(pool.map(draw, range(count), chunksize=BIRDS_PER_TASK), count, unit)


@dataclass(frozen=True)
class Bird:
    """A bird of the data set: what is drawn and said of it."""

    scene: Scene
    pose: Pose
    captions: list[SketchCaption]


def make_bird(settings: Settings, world: SketchWorld, seed: int, index: int) -> Bird:
    """Return a bird of the data set; indices beyond ``settings.images`` give further ones."""
    dice = Dice(seeds.rng(seed, "sketch", "image", index))
    scene = draw_scene(world, index % settings.species, dice)
    return Bird(
        scene, draw_pose(dice), [caption_scene(scene, dice) for _ in range(settings.captions)]
    )


def draw_bird(
    settings: Settings, world: SketchWorld, seed: int, folder: Path, index: int
) -> tuple[dict[str, Any], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Draw a bird into ``folder``; return its row of ``scenes``, and its rows of captions and
    ``facts``.
    """
    image_id, species = f"{index:0{len(str(settings.images - 1))}d}", index % settings.species
    bird = make_bird(settings, world, seed, index)
    (folder / f"{image_id}.png").write_bytes(png(paint_scene(bird.scene, bird.pose, settings.size)))
    captions, facts = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for caption_id, caption in enumerate(bird.captions):
        captions.append((image_id, caption_id, f"species{species:03d}", caption.text))
        facts += [
            (image_id, caption_id, f.part, f.kind, f.value, f.start, f.end) for f in caption.facts
        ]
    pose = {f"pose_{name}": value for name, value in asdict(bird.pose).items()}
    row = {"image_id": image_id, **bird.scene} | pose
    return row, captions, facts


def draw_wild_bird(
    settings: Settings, digits: int, seed: int, folder: Path, index: int
) -> list[tuple[str, str]]:
    """Draw a wild bird into ``folder``; return path and text of each of its captions."""
    dice = Dice(seeds.rng(seed, "sketch", "pretraining", index))
    scene = draw_wild_scene(dice)
    path = f"pretraining/{index:0{digits}d}.png"
    (folder / path).write_bytes(png(paint_scene(scene, draw_pose(dice), settings.size)))
    return [(path, caption_scene(scene, dice).text) for _ in range(settings.captions)]
