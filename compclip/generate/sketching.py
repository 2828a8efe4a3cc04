"""Functions of all sketch generators: the statements of a prompt, the bird to start from, the
drawing.

For one image_id, caption_id and draw, all generators start from the same bird of train in the same
pose. They differ only in their use of the prompt, so their scores can be compared in pairs.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from compclip.core import seeds
from compclip.core.log import log
from compclip.core.progress import track
from compclip.dataset.sketch.draw import draw_pose, paint_scene, png
from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from compclip.generate.generator import KEYS, Context, Generated, manifest

SKETCH_TABLES = ("images", "splits", "swapped", "scenes", "facts")


@dataclass(frozen=True)
class Statement:
    """A statement of a prompt about a part."""

    part: str
    kind: str
    value: str

    @property
    def attribute(self) -> str:
        return f"{self.part}:{self.kind}"


# Maps the drawable statements of a prompt, the bird to start from and random numbers to the bird to
# draw.
Painter = Callable[[Sequence[Statement], Scene, Dice], Scene]


def can_have(attribute: str, value: str) -> bool:
    """Return whether the value can be drawn: a curved eye cannot."""
    return value in ATTRIBUTES.get(attribute, ())


def prompt_statements(
    prompts: pd.DataFrame, facts: pd.DataFrame, swapped: pd.DataFrame, composition: str
) -> list[list[Statement]]:
    """Return the statements of each prompt, in the order of its text.

    A swapped prompt states the facts of its caption, with the adjective at each change's ``start``
    replaced.
    """
    stated = defaultdict[tuple[str, int], list[Any]](list)
    for fact in facts[facts["image_id"].isin(prompts["image_id"])].itertuples():
        stated[fact.image_id, fact.caption_id].append(fact)
    changes = {
        (image_id, caption_id): {int(c["start"]): c["new_adj"] for c in changed}
        for image_id, caption_id, changed in zip(
            swapped.image_id, swapped.caption_id, swapped.changes, strict=True
        )
    }
    result = []
    for image_id, caption_id, split in zip(
        prompts.image_id, prompts.caption_id, prompts.split, strict=True
    ):
        new = changes.get((image_id, caption_id), {}) if split == "test_swapped" else {}
        row = [
            Statement(f.part, composition, new[f.start])
            if f.start in new
            else Statement(f.part, f.kind, f.value)
            for f in stated[image_id, caption_id]
        ]
        result.append(row)
    return result


def _train(context: Context) -> pd.Series:
    splits = context.tables["splits"]
    return splits.image_id[splits.split == "train"]


def train_birds(context: Context) -> list[Scene]:
    """Return the scenes of the images of train, in the order of their ids."""
    scenes = context.tables["scenes"]
    rows = scenes[scenes.image_id.isin(_train(context))].sort_values("image_id")[list(ATTRIBUTES)]
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def train_pairs(context: Context) -> Counter[tuple[str, str]]:
    """Return counts of each (adjective, noun) in the captions of train, without held-out pairs."""
    pairs = context.tables["pairs"]
    pairs = pairs[pairs.image_id.isin(_train(context))]
    return Counter(zip(pairs.adjective, pairs.noun, strict=True))


def draw_prompts(prompts: pd.DataFrame, context: Context, painter: Painter) -> Generated:
    """Draw each prompt with ``painter`` into ``context.folder``, in the size of the data set's
    images.
    """
    tables, size = context.tables, int(context.tables["images"].width.max())
    statements = prompt_statements(prompts, tables["facts"], tables["swapped"], context.composition)
    birds = train_birds(context)
    undrawable: Counter[str] = Counter()
    scenes, pictures = (
        [],
        dict[Any, bytes](),
    )  # some painters draw the same bird for several prompts
    for stated, row in zip(
        statements, track(prompts.itertuples(), len(prompts), "drawings"), strict=True
    ):
        keys = (row.image_id, int(row.caption_id), int(row.draw))
        dice = Dice(seeds.rng(context.seed, "sketch", "start", *keys))
        start, pose = dice.pick(birds), draw_pose(dice)
        drawable = [s for s in stated if can_have(s.attribute, s.value)]
        undrawable.update(f"{s.value}_{s.part}" for s in stated if s not in drawable)
        scene = painter(drawable, start, Dice(seeds.rng(context.seed, "sketch", "painter", *keys)))
        file = context.folder / row.file_name
        file.parent.mkdir(parents=True, exist_ok=True)
        shown = *scene.items(), pose
        if shown not in pictures:
            pictures[shown] = png(paint_scene(scene, pose, size))
        file.write_bytes(pictures[shown])
        scenes.append(scene)
    if undrawable:
        log.warning("%d statements of prompts cannot be drawn and were skipped", undrawable.total())
    drawn = pd.DataFrame(scenes, columns=list(ATTRIBUTES))
    return Generated(
        manifest(prompts, [f"{context.place}/{name}" for name in prompts.file_name]),
        pd.concat([prompts[KEYS].reset_index(drop=True), drawn], axis=1),
        {"undrawable": dict(undrawable.most_common())},
    )
