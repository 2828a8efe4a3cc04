"""Birds drawn by compclip: the content of every picture is known, and no files are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from compclip.core import seeds
from compclip.core.processes import map_in_processes
from compclip.core.progress import track
from compclip.core.settings.section import Count, Section
from compclip.dataset.sketch.captions import SketchCaption, caption_scene
from compclip.dataset.sketch.world import (
    Dice,
    Scene,
    SketchWorld,
    draw_scene,
    draw_wild_scene,
    make_world,
)
from compclip.dataset.source import Loaded

if TYPE_CHECKING:
    from compclip.dataset.sketch.draw import Pose

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
        description="wild birds for each bird, for the training of judges alone",
    )
    size: int = Field(96, ge=32, le=512, description="width and height of an image in pixels")


@dataclass(frozen=True)
class BirdRows:
    """A bird's row of ``scenes``, and its rows of captions and ``facts``."""

    scene: dict[str, Any]
    captions: list[tuple[Any, ...]]
    facts: list[tuple[Any, ...]]


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
    import pandas as pd

    # The first birds: a limit gives a subset.
    birds = min(settings.images, limit or settings.images)
    world = make_world(seed, settings.species)
    draw = partial(draw_bird, settings, world, seed, folder)
    scenes = []
    captions = list[tuple[Any, ...]]()
    facts = list[tuple[Any, ...]]()
    for rows in _drawn(draw, birds, "birds", processes):
        scenes.append(rows.scene)
        captions += rows.captions
        facts += rows.facts

    wild_birds = round(settings.pretraining * birds)
    (folder / "pretraining").mkdir()
    # Names have as many digits as the last one, so that they sort by number.
    digits = len(str(max(0, wild_birds - 1)))
    draw_wild = partial(draw_wild_bird, settings, digits, seed, folder)
    pretraining = list[tuple[str, str]]()
    for texts in _drawn(draw_wild, wild_birds, "wild birds", processes):
        pretraining += texts

    scene_table = pd.DataFrame(scenes)
    image_ids = scene_table["image_id"]
    tables = {
        "scenes": scene_table,
        "facts": pd.DataFrame(facts, columns=FACT_COLUMNS),
        "pretraining": pd.DataFrame(pretraining, columns=["path", "text"], dtype="str"),
    }
    return Loaded(
        captions=pd.DataFrame(captions, columns=CAPTION_COLUMNS),
        images=pd.DataFrame({"image_id": image_ids, "path": image_ids + ".png"}),
        tables=tables,
        summary={"facts": len(facts), "pretraining_images": wild_birds},
    )


def _drawn(draw: Callable[[int], T], count: int, unit: str, processes: int) -> Iterator[T]:
    """Yield ``draw(number)`` for the numbers below ``count``, in order."""
    drawn = map_in_processes(draw, range(count), processes, BIRDS_PER_TASK)
    yield from track(drawn, count, unit)


CAPTION_COLUMNS = ["image_id", "caption_id", "class_id", "text"]


FACT_COLUMNS = ["image_id", "caption_id", "part", "kind", "value", "start", "end"]


@dataclass(frozen=True)
class Bird:
    """A bird of the data set: what is drawn and said of it."""

    scene: Scene
    pose: Pose
    captions: list[SketchCaption]


def make_bird(settings: Settings, world: SketchWorld, seed: int, index: int) -> Bird:
    """Return a bird of the data set; indices beyond ``settings.images`` give further ones."""
    from compclip.dataset.sketch.draw import draw_pose

    # A stream for each bird: it depends neither on the number of birds nor on the processes.
    dice = Dice(seeds.rng(seed, "sketch", "image", index))
    scene = draw_scene(world, index % settings.species, dice)
    pose = draw_pose(dice)
    captions = [caption_scene(scene, dice) for _ in range(settings.captions)]
    return Bird(scene, pose, captions)


def draw_bird(
    settings: Settings, world: SketchWorld, seed: int, folder: Path, index: int
) -> BirdRows:
    """Draw a bird into ``folder``, and return its rows."""
    from compclip.dataset.sketch.draw import paint_scene, png

    digits = len(str(settings.images - 1))
    image_id = f"{index:0{digits}d}"
    # In turns, so that any number of first birds has all species.
    species = index % settings.species
    bird = make_bird(settings, world, seed, index)
    picture = paint_scene(bird.scene, bird.pose, settings.size)
    (folder / f"{image_id}.png").write_bytes(png(picture))
    captions = []
    facts = []
    for caption_id, caption in enumerate(bird.captions):
        captions.append((image_id, caption_id, f"species{species:03d}", caption.text))
        for f in caption.facts:
            facts.append((image_id, caption_id, f.part, f.kind, f.value, f.start, f.end))
    pose = {f"pose_{name}": value for name, value in asdict(bird.pose).items()}
    return BirdRows({"image_id": image_id, **bird.scene, **pose}, captions, facts)


def draw_wild_bird(
    settings: Settings, digits: int, seed: int, folder: Path, index: int
) -> list[tuple[str, str]]:
    """Draw a wild bird into ``folder``; return path and text of each of its captions."""
    from compclip.dataset.sketch.draw import draw_pose, paint_scene, png

    dice = Dice(seeds.rng(seed, "sketch", "pretraining", index))
    scene = draw_wild_scene(dice)
    pose = draw_pose(dice)
    path = f"pretraining/{index:0{digits}d}.png"
    picture = paint_scene(scene, pose, settings.size)
    (folder / path).write_bytes(png(picture))
    return [(path, caption_scene(scene, dice).text) for _ in range(settings.captions)]
