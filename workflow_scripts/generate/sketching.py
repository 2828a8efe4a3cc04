"""What the generators of sketches share: a prompt's facts, the bird that it starts from, the drawing.

For one image_id, caption_id and draw all of them start from the same bird of train in the same pose, so that
they differ in nothing but what they make of the prompt, and their scores can be compared in pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workflow_scripts.common import seeds, tables
from workflow_scripts.common.cli import log
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.io import atomic, read_table
from workflow_scripts.common.progress import track
from workflow_scripts.dataset.sketch.draw import draw_pose, paint, png
from workflow_scripts.dataset.sketch.world import ATTRIBUTES, Dice, Scene
from workflow_scripts.generate.generator import Context, Generated

SPLITS = tables.TESTS


@dataclass(frozen=True)
class Statement:
    """What a prompt says of a part, and which attribute of a scene that is."""

    part: str
    kind: str
    value: str

    @property
    def attribute(self) -> str:
        return f"{self.part}:{self.kind}"

    @property
    def drawable(self) -> bool:
        return can_have(self.attribute, self.value)


# From what the prompt states (all drawable), the bird to start from and a source of chance: the bird to draw.
Painter = Callable[[Sequence[Statement], Scene, Dice], Scene]


def can_have(attribute: str, value: str) -> bool:
    """Whether there is a way to draw it: `curved eye` has none."""
    return value in ATTRIBUTES.get(attribute, ())


def _table(context: Context, name: str) -> pd.DataFrame:
    if name not in context.tables:
        raise UserError(f"generate: needs {name}.parquet, which only the data set sketch has")
    return pd.read_parquet(context.tables[name])


def prompt_statements(
    prompts: pd.DataFrame, facts: pd.DataFrame, swapped: pd.DataFrame, composition: str
) -> list[list[Statement]]:
    """What each row of ``prompts`` states, in the order of its text.

    A swapped prompt states its caption's facts, with the adjective at a change's ``start`` replaced.
    """
    stated: dict[tuple[str, int], list[tuple[str, str, str, int]]] = defaultdict(list)
    for image_id, caption_id, part, kind, value, start in zip(
        facts.image_id, facts.caption_id, facts.part, facts.kind, facts.value, facts.start, strict=True
    ):
        stated[image_id, caption_id].append((part, kind, value, start))
    changes = {
        (image_id, caption_id): {int(c["start"]): c["new_adj"] for c in changed}
        for image_id, caption_id, changed in zip(swapped.image_id, swapped.caption_id, swapped.changes, strict=True)
    }
    result = []
    for image_id, caption_id, split in zip(prompts.image_id, prompts.caption_id, prompts.split, strict=True):
        new = changes.get((image_id, caption_id), {}) if split == "test_swapped" else {}
        row = [
            Statement(part, composition, new[start]) if start in new else Statement(part, kind, value)
            for part, kind, value, start in stated[image_id, caption_id]
        ]
        result.append(row)
    return result


def train_birds(context: Context) -> list[Scene]:
    """The scenes of the images of train, in the order of their ids."""
    splits = read_table(context.tables["splits"], tables.SPLIT)
    train = set(splits.image_id[splits.split == "train"])
    scenes = _table(context, "scenes")
    rows = scenes[scenes.image_id.isin(train)].sort_values("image_id")[list(ATTRIBUTES)]
    rows = rows.astype(object).where(rows.notna(), None)
    return rows.to_dict("records")


def train_pairs(context: Context) -> Counter[tuple[str, str]]:
    """How often each (adjective, noun) occurs in the captions of train.

    They are the pairs that the splits were made from, so that none of them is held out.
    """
    splits = read_table(context.tables["splits"], tables.SPLIT)
    train = set(splits.image_id[splits.split == "train"])
    pairs = read_table(context.tables["pairs"], tables.PAIRS, ["image_id", "adjective", "noun"])
    pairs = pairs[pairs.image_id.isin(train)]
    return Counter(zip(pairs.adjective, pairs.noun, strict=True))


def draw_prompts(prompts: pd.DataFrame, context: Context, painter: Painter) -> Generated:
    """Draw each prompt with ``painter`` into ``context.folder``, at the size of the data set's images."""
    facts, swapped = _table(context, "facts"), read_table(context.tables["swapped"], tables.SWAPPED)
    size = int(read_table(context.tables["images"], tables.IMAGES, ["width"]).width.max())
    statements = prompt_statements(prompts, facts, swapped, context.composition)
    birds = train_birds(context)
    undrawable: Counter[str] = Counter()
    manifest, scenes = [], []
    rows = zip(prompts.image_id, prompts.caption_id, prompts.split, prompts.draw, prompts.file_name, strict=True)
    for stated, row in zip(statements, track(rows, len(prompts), "drawings"), strict=True):
        image_id, caption_id, split, draw, file_name = row
        keys = (image_id, int(caption_id), int(draw))
        dice = Dice(seeds.rng(context.seed, "sketch", "start", *keys))
        start, pose = dice.pick(birds), draw_pose(dice)
        undrawable.update(f"{s.value}_{s.part}" for s in stated if not s.drawable)
        chance = Dice(seeds.rng(context.seed, "sketch", "painter", *keys))
        scene = painter([s for s in stated if s.drawable], start, chance)
        _write(context.folder / file_name, png(paint(scene, pose, size)))
        manifest.append((image_id, caption_id, split, draw, f"{context.place}/{file_name}", "ok"))
        scenes.append({"image_id": image_id, "caption_id": caption_id, "split": split, "draw": draw, **scene})
    if undrawable:
        named = ", ".join(f"{pair} ({n})" for pair, n in undrawable.most_common())
        log.warning("%d statements of prompts cannot be drawn and were left out: %s", undrawable.total(), named)
    columns = ["image_id", "caption_id", "split", "draw", "path", "status"]
    return Generated(
        pd.DataFrame(manifest, columns=columns),
        pd.DataFrame(scenes, columns=["image_id", "caption_id", "split", "draw", *ATTRIBUTES]),
    )


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as temporary:
        temporary.write_bytes(content)
