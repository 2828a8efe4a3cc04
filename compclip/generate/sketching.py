"""Functions of all sketch generators: the statements of a prompt, the bird to start from, the
drawing.

For one image_id, caption_id and draw, all generators of one ``Style.stream`` start from the same
bird of train in the same pose. They differ only in their use of the prompt, so their scores can be
compared in pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compclip.core import seeds
from compclip.core.log import log
from compclip.core.progress import track
from compclip.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from compclip.generate.generator import PROMPT_KEYS, Context, Generated, manifest

if TYPE_CHECKING:
    import pandas as pd

    from compclip.dataset.sketch.draw import Pose

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


@dataclass(frozen=True)
class Style:
    """How the birds of a generator look.

    Attributes:
        light, size: brightness and size, relative to the images of the data set.
        stream: names the random numbers that choose birds and poses; another stream has others.
    """

    light: float = 1.0
    size: float = 1.0
    stream: str = "start"

    def pose(self, dice: Dice) -> Pose:
        """Draw a random pose in this style."""
        from compclip.dataset.sketch.draw import draw_pose

        pose = draw_pose(dice)
        return replace(pose, light=pose.light * self.light, scale=pose.scale * self.size)


PLAIN = Style()
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
    is_prompted = facts["image_id"].isin(prompts["image_id"])
    # As objects, because pandas converts texts one by one when it iterates over them.
    for fact in facts[is_prompted].astype(object).itertuples():
        stated[fact.image_id, fact.caption_id].append(fact)
    swaps: dict[tuple[str, int], dict[int, str]] = {}
    for swap in swapped.itertuples():
        adjectives = {int(change["start"]): change["new_adj"] for change in swap.changes}
        swaps[swap.image_id, swap.caption_id] = adjectives
    # A caption that states no fact has an empty list.
    statements = []
    for prompt in prompts.itertuples():
        key = (prompt.image_id, prompt.caption_id)
        # The same caption may also be a seen prompt, which is not swapped.
        adjectives = swaps.get(key, {}) if prompt.split == "test_swapped" else {}
        statements.append([_statement(fact, adjectives, composition) for fact in stated[key]])
    return statements


def _statement(fact: Any, adjectives: dict[int, str], composition: str) -> Statement:
    """Return a fact's statement; ``adjectives`` are new ones, by start."""
    if fact.start in adjectives:
        return Statement(fact.part, composition, adjectives[fact.start])
    return Statement(fact.part, fact.kind, fact.value)


def _train(context: Context) -> pd.Series:
    """Return the image_ids of train."""
    splits = context.tables["splits"]
    return splits.image_id[splits.split == "train"]


def train_birds(context: Context) -> list[Scene]:
    """Return the scenes of the images of train, in the order of their ids."""
    scenes = context.tables["scenes"]
    # Sorted, so that ``Dice.pick`` does not depend on the order of the table.
    scenes = scenes[scenes.image_id.isin(_train(context))].sort_values("image_id")
    attributes = scenes[list(ATTRIBUTES)]
    # Ordinary shapes are None in a scene, but NaN in a table.
    return attributes.astype(object).where(attributes.notna(), None).to_dict("records")


def train_pairs(context: Context) -> Counter[tuple[str, str]]:
    """Return counts of each (adjective, noun) in the captions of train, without held-out pairs."""
    pairs = context.tables["pairs"]
    pairs = pairs[pairs.image_id.isin(_train(context))]
    return Counter(zip(pairs.adjective, pairs.noun, strict=True))


def draw_prompts(
    prompts: pd.DataFrame, context: Context, painter: Painter, style: Style = PLAIN
) -> Generated:
    """Draw each prompt with ``painter`` into ``context.folder``, in the size of the data set's
    images.
    """
    import pandas as pd

    from compclip.dataset.sketch.draw import paint_scene, png

    tables = context.tables
    size = int(tables["images"].width.max())
    statements = prompt_statements(prompts, tables["facts"], tables["swapped"], context.composition)
    birds = train_birds(context)
    undrawable: Counter[str] = Counter()
    scenes = []
    # Some painters draw the same bird for several prompts.
    pictures = dict[Any, bytes]()
    files = [context.folder / name for name in prompts.file_name]
    # Once for each folder, because asking for one costs as much as half a drawing.
    for folder in {file.parent for file in files}:
        folder.mkdir(parents=True, exist_ok=True)
    rows = track(prompts.itertuples(), len(prompts), "drawings")
    for stated, file, row in zip(statements, files, rows, strict=True):
        keys = (row.image_id, int(row.caption_id), int(row.draw))
        dice = Dice(seeds.rng(context.seed, "sketch", style.stream, *keys))
        start = dice.pick(birds)
        pose = style.pose(dice)
        drawable = []
        for s in stated:
            if can_have(s.attribute, s.value):
                drawable.append(s)
            else:
                undrawable[f"{s.value}_{s.part}"] += 1
        # A stream of its own, so that the painter's draws do not change the start or the pose.
        painter_dice = Dice(seeds.rng(context.seed, "sketch", "painter", *keys))
        scene = painter(drawable, start, painter_dice)
        content = (*scene.items(), pose)
        if content not in pictures:
            pictures[content] = png(paint_scene(scene, pose, size))
        file.write_bytes(pictures[content])
        scenes.append(scene)
    if undrawable:
        log.warning("%d statements of prompts cannot be drawn and were skipped", undrawable.total())
    keys_of_prompts = prompts[PROMPT_KEYS].reset_index(drop=True)
    # For the oracle, which needs no judge to know what an image shows.
    drawn = pd.DataFrame(scenes, columns=list(ATTRIBUTES))
    paths = [f"{context.place}/{name}" for name in prompts.file_name]
    return Generated(
        manifest(prompts, paths),
        pd.concat([keys_of_prompts, drawn], axis=1),
        {"undrawable": dict(undrawable.most_common())},
    )
