"""Birds drawn by the project's own code: no files are needed, and the content of every picture is known."""

from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from workflow_scripts.core import seeds
from workflow_scripts.core.progress import track
from workflow_scripts.core.section import Section
from workflow_scripts.dataset.sketch.captions import write_caption
from workflow_scripts.dataset.sketch.draw import draw_pose, paint, png, pose_columns
from workflow_scripts.dataset.sketch.world import Dice, draw_scene, draw_wild_scene, make_world
from workflow_scripts.dataset.source import Loaded

TABLES = ("scenes", "facts", "pretraining")


class Settings(Section):
    """Drawn birds."""

    images: int = Field(9000, ge=1, description="birds")
    species: int = Field(80, ge=2, description="classes, each with its own habits")
    captions: int = Field(10, ge=1, description="captions per image")
    pretraining: float = Field(
        4 / 3, ge=0, description="wild birds for each bird: judges alone learn from them (docs/measurement.md)"
    )
    size: int = Field(96, ge=32, le=512, description="width and height of an image in pixels")


def load(settings: Settings, *, seed: int, limit: int | None, folder: Path, cache: Path) -> Loaded:
    """Draw the birds into ``folder`` and write their captions (``source.py``); ``cache`` is not used.

    Table ``scenes`` has a row for each image, with every attribute and the pose; ``facts`` a row for each statement of
    a caption: image_id, caption_id, part, kind, value, start, end (characters); ``pretraining`` a row for each caption
    of a wild bird, which is not in the data set: path, text.
    """
    world = make_world(seed, settings.species)
    count = min(settings.images, limit or settings.images)
    digits = len(str(settings.images - 1))
    scenes: list[dict[str, Any]] = []
    captions: list[tuple[Any, ...]] = []
    facts: list[tuple[Any, ...]] = []
    for index in track(range(count), count, "birds"):
        image_id = f"{index:0{digits}d}"
        species = index % settings.species
        dice = Dice(seeds.rng(seed, "sketch", "image", index))
        scene = draw_scene(world, species, dice)
        pose = draw_pose(dice)
        (folder / f"{image_id}.png").write_bytes(png(paint(scene, pose, settings.size)))
        scenes.append({"image_id": image_id, **scene, **pose_columns(pose)})
        for caption_id in range(settings.captions):
            caption = write_caption(scene, dice)
            captions.append((image_id, caption_id, f"species{species:03d}", caption.text))
            facts += [(image_id, caption_id, f.part, f.kind, f.value, f.start, f.end) for f in caption.facts]
    ids = [row["image_id"] for row in scenes]
    wild = draw_wild_birds(settings, round(settings.pretraining * count), seed, folder)
    return Loaded(
        captions=pd.DataFrame(captions, columns=["image_id", "caption_id", "class_id", "text"]),
        images=pd.DataFrame({"image_id": ids, "path": [f"{i}.png" for i in ids]}),
        tables={
            "scenes": pd.DataFrame(scenes),
            "facts": pd.DataFrame(facts, columns=["image_id", "caption_id", "part", "kind", "value", "start", "end"]),
            "pretraining": wild,
        },
        summary={"facts": len(facts), "pretraining_images": int(wild["path"].nunique())},
    )


def draw_wild_birds(settings: Settings, count: int, seed: int, folder: Path) -> pd.DataFrame:
    """Draw wild birds into ``folder``; return path and text of each caption."""
    rows: list[tuple[str, str]] = []
    (folder / "pretraining").mkdir()
    for index in track(range(count), count, "wild birds"):
        dice = Dice(seeds.rng(seed, "sketch", "pretraining", index))
        scene = draw_wild_scene(dice)
        path = f"pretraining/{index:0{len(str(max(0, count - 1)))}d}.png"
        (folder / path).write_bytes(png(paint(scene, draw_pose(dice), settings.size)))
        rows += [(path, write_caption(scene, dice).text) for _ in range(settings.captions)]
    return pd.DataFrame(rows, columns=["path", "text"], dtype="str")
