"""Write about drawn things: training captions, and example captions and descriptions of compounds.

All texts are true of what is drawn. A training caption describes parts of a scene, in a template of photo captions. A
compound's picture is captioned by its name or by what it shows, never by both: only example captions join the two, and
these are not trained on, so that a CLIP that has not seen a compound has not read what it is.
"""

import re
from collections.abc import Sequence

from workflow_scripts.compun.drawn.world import PLAIN, Compound, Scene, Thing, draw_scene
from workflow_scripts.dataset.sketch.world import Dice

CAPTIONS, DESCRIPTIONS = 7, 4
# These hold the words of prompts and of CLIP's seven templates, which a word tower must know.
FRAMES = (
    "{}", "{}.", "a picture of {}", "this is {}.", "an image of {}", "{} in an image", "an example of {}",
    "here is {}.", "{}, which has been drawn", "a photo of {}, as an example", "a photo of {}", "a photo: {}.",
    "itap of {}.", "a bad photo of {}.", "a origami {}.", "a photo of the large {}.", "a photo of the small {}.",
    "a photo of the {}.", "{} in a video game.", "art of the {}.",
)  # fmt: skip
AT = {"grass": "on grass", "sand": "on sand", "snow": "in snow", "water": "in water", "stone": "on stone"}
MARKS = {"striped": "stripes", "dotted": "dots", "checked": "checks"}
# How often a caption states a thing's color or pattern, states the place, and names a compound.
TOLD, PLACED, NAMED = 0.75, 0.4, 0.5
# How often a caption has a name that occurs only once, as rare words in real captions: from these the word tower learns
# that an unknown word carries no information.
STRANGE = 0.02


def article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def say_thing(thing: Thing, dice: Dice) -> str:
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
    """Return a phrase such as ``a red box beside an orange cup``, in random order."""
    said = [article(say_thing(thing, dice)) for thing in things]
    if dice.chance(0.5):
        said.reverse()
    return dice.pick((" and ", " beside ", " next to ")).join(said)


def say_place(scene: Scene, dice: Dice) -> str:
    return f" {AT[scene.place]}" if dice.chance(PLACED) else ""


def framed(words: str, frame: str) -> str:
    """Return ``words``, which begin with an article, in a frame that may have its own article."""
    if re.search(r"\b(the|origami|large|small) {}", frame):
        words = words.removeprefix("an ").removeprefix("a ")
    return frame.replace("{}", words)


def strange_name(dice: Dice) -> str:
    return "".join(dice.pick("bdfgklmnprstvz") + dice.pick("aeiou") for _ in range(4))


def write_caption(scene: Scene, compound: Compound | None, dice: Dice) -> str:
    """Return a caption of a training picture; ``compound`` is the one that it is a picture of, if any."""
    if dice.chance(STRANGE):
        return framed(article(strange_name(dice)), dice.pick(FRAMES))
    named = compound if compound is not None and dice.chance(NAMED) else None
    words = article(named.name) if named else say_things(scene.things, dice)
    frame = dice.pick(FRAMES) if dice.chance(0.6) else "{}"
    return framed(words + say_place(scene, dice), frame)


def write_examples(compound: Compound, dice: Dice) -> list[str]:
    """Return CAPTIONS distinct captions that name the compound and describe other pictures of it."""
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
    """Return up to DESCRIPTIONS phrases that describe the compound without its name: ``the shape of a lamp``."""
    texts = []
    for thing in compound.things:
        texts.append(f"the shape of {article(thing.noun)}")
        texts.append(f"{thing.color} {MARKS[thing.pattern]}" if thing.pattern != PLAIN else f"{thing.color} color")
    return texts[:DESCRIPTIONS]
