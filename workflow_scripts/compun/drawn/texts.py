"""What is written about drawn things: captions to train on, and, of a compound, example captions and descriptions.

All of it is true of what is drawn. A training caption tells of some of a scene, in a frame as photos are captioned by.
A compound's picture is captioned by its name or by what it shows; what joins the two, in example captions, is not
trained on: a CLIP that has not seen a compound has not read what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from workflow_scripts.compun.drawn.world import PLAIN, Compound, Scene, Thing, draw_scene
from workflow_scripts.dataset.sketch.world import Dice

CAPTIONS, DESCRIPTIONS = 7, 4
# The words of prompts and of CLIP's seven templates, which a tower of words must have met: they go with anything.
FRAMES = (
    "{}", "{}.", "a picture of {}", "this is {}.", "an image of {}", "{} in an image", "an example of {}",
    "here is {}.", "{}, which has been drawn", "a photo of {}, as an example", "a photo of {}", "a photo: {}.",
    "itap of {}.", "a bad photo of {}.", "a origami {}.", "a photo of the large {}.", "a photo of the small {}.",
    "a photo of the {}.", "{} in a video game.", "art of the {}.",
)  # fmt: skip
AT = {"grass": "on grass", "sand": "on sand", "snow": "in snow", "water": "in water", "stone": "on stone"}
MARKS = {"striped": "stripes", "dotted": "dots", "checked": "checks"}
# How often a caption tells of a thing's color and pattern, of the place, and names a compound that is shown.
TOLD, PLACED, NAMED = 0.75, 0.4, 0.5
# A name that occurs once stands for all rare words, as such do in real captions: a word that the tower of words has
# not met then says nothing, where it would else say anything.
STRANGE = 0.02


def article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def say_thing(thing: Thing, dice: Dice) -> str:
    """A noun phrase without its article."""
    color = thing.color if dice.chance(TOLD) else ""
    pattern = thing.pattern if thing.pattern != PLAIN and dice.chance(TOLD) else ""
    form = dice.unit()
    if form < 0.1:
        return " ".join(filter(None, [color, pattern, "shape of", article(thing.noun)]))
    if pattern and form < 0.4:
        return f"{thing.noun} with {' '.join(filter(None, (color, MARKS[pattern])))}"
    if color and not pattern and form < 0.2:
        return f"{thing.noun} of {color} color"
    words = [color, pattern] if dice.chance(0.5) else [pattern, color]
    return " ".join(filter(None, [*words, thing.noun]))


def say_things(things: Sequence[Thing], dice: Dice) -> str:
    """``a red box beside an orange cup``, in either order."""
    said = [article(say_thing(thing, dice)) for thing in things]
    if dice.chance(0.5):
        said.reverse()
    return dice.pick((" and ", " beside ", " next to ")).join(said)


def say_place(scene: Scene, dice: Dice) -> str:
    return f" {AT[scene.place]}" if dice.chance(PLACED) else ""


def framed(words: str, frame: str) -> str:
    """``words``, which begin with an article, in a frame that may bring its own."""
    if re.search(r"\b(the|origami|large|small) {}", frame):
        words = words.removeprefix("an ").removeprefix("a ")
    return frame.replace("{}", words)


def strange_name(dice: Dice) -> str:
    """A name that no other caption has, but for chance."""
    return "".join(dice.pick("bdfgklmnprstvz") + dice.pick("aeiou") for _ in range(4))


def write_caption(scene: Scene, compound: Compound | None, dice: Dice) -> str:
    """A caption of a training picture; compound: the one whose picture it is."""
    if dice.chance(STRANGE):
        return framed(article(strange_name(dice)), dice.pick(FRAMES))
    named = compound if compound is not None and dice.chance(NAMED) else None
    words = article(named.name) if named else say_things(scene.things, dice)
    frame = dice.pick(FRAMES) if dice.chance(0.6) else "{}"
    return framed(words + say_place(scene, dice), frame)


def write_examples(compound: Compound, dice: Dice) -> list[str]:
    """CAPTIONS different captions that name the compound and say what it shows, each as of another picture of it."""
    texts: list[str] = []
    while len(texts) < CAPTIONS:
        scene = draw_scene(compound.things, dice)
        shown = say_things(scene.things, dice)
        place = say_place(scene, dice) if len(scene.things) == 1 else ""
        form = dice.pick(("{name}, {shown}{place}", "{name}: {shown}{place}", "{shown}{place}, {name}"))
        text = form.format(name=article(compound.name), shown=shown, place=place)
        text = text[0].upper() + text[1:] + "."
        if text not in texts:
            texts.append(text)
    return texts


def write_descriptions(compound: Compound) -> list[str]:
    """Up to DESCRIPTIONS phrases by which the compound is told, without its name: ``the shape of a lamp``."""
    texts = []
    for thing in compound.things:
        texts.append(f"the shape of {article(thing.noun)}")
        texts.append(f"{thing.color} {MARKS[thing.pattern]}" if thing.pattern != PLAIN else f"{thing.color} color")
    return texts[:DESCRIPTIONS]
