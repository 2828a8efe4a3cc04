"""Paint a scene: things on the ground of their place, in random pose, size and light."""

import math

import numpy as np
from PIL import Image, ImageDraw

from workflow_scripts.compun.drawn.things import SOLID, THINGS
from workflow_scripts.compun.drawn.world import PLAIN, Scene, Thing
from workflow_scripts.dataset.sketch.draw import FINER, RGB, edge
from workflow_scripts.dataset.sketch.world import Dice

SIZE = 64
GROUNDS = {
    "grass": (146, 186, 128), "sand": (226, 206, 164), "snow": (238, 242, 246), "water": (142, 190, 218),
    "stone": (172, 172, 174),
}  # fmt: skip
# Patterns are LIGHT on dark colors and DARK on light ones.
DARK, LIGHT = (64, 52, 60), (250, 250, 250)
LIGHT_COLORS = ("yellow", "pink", "orange")
# Widths of stripe and square, distance and radius of dots, in halves of a thing.
STRIPE, SQUARE, DOTS, DOT = 0.21, 0.3, 0.52, 0.17

Color = tuple[int, int, int]


def paint(scene: Scene, dice: Dice, size: int = SIZE) -> Image.Image:
    """Return an RGB picture of ``size`` by ``size`` pixels; the dice decide pose, light and the phase of patterns."""
    fine = size * FINER
    light = dice.between(0.9, 1.04)
    ground = _lit(GROUNDS[scene.place], light)
    picture = Image.new("RGB", (fine, fine), ground)
    horizon = fine * dice.between(0.1, 0.9)
    ImageDraw.Draw(picture).rectangle((0, horizon, fine, fine), fill=tuple(v * 19 // 20 for v in ground))
    if len(scene.things) == 1:
        places = [(dice.between(-0.12, 0.12), dice.between(-0.12, 0.12), dice.between(0.62, 0.82))]
    else:
        places = [(side + dice.between(-0.05, 0.05), dice.between(-0.3, 0.3), dice.between(0.37, 0.45))
                  for side in (-0.48, 0.48)]  # fmt: skip
    # Which of two things is on the left carries no information.
    order = scene.things[::-1] if dice.chance(0.5) else scene.things
    for thing, place in zip(order, places, strict=True):
        _paint_thing(picture, thing, place, light, dice)
    return picture.reduce(FINER)


def _paint_thing(
    picture: Image.Image, thing: Thing, place: tuple[float, float, float], light: float, dice: Dice
) -> None:
    """Paint a thing; ``place`` is x, y and the half width of the thing, in halves of the picture."""
    half = picture.width / 2
    x, y, scale = half * (1 + place[0]), half * (1 + place[1]), half * place[2]
    turn, flip = math.radians(dice.between(-14, 14)), -1 if dice.chance(0.5) else 1
    c, s = scale * math.cos(turn), scale * math.sin(turn)
    outlines = [
        ([(x + flip * (c * px - s * py), y + s * px + c * py) for px, py in points], solid)
        for points, solid in THINGS[thing.noun]
    ]
    rgb = _lit(RGB[thing.color], light)
    mask = Image.new("L", picture.size, 0)
    inside = ImageDraw.Draw(mask)
    for points, solid in outlines:
        inside.polygon(points, fill=255 if solid is SOLID else 0)
    picture.paste(_filled(thing, rgb, picture.width, scale, dice), mask=mask)
    draw = ImageDraw.Draw(picture)
    for points, _ in outlines:
        draw.line([*points, points[0]], fill=edge(rgb), width=FINER)


def _filled(thing: Thing, rgb: Color, fine: int, scale: float, dice: Dice) -> Image.Image:
    """Return a square of ``fine`` pixels in the thing's color and pattern."""
    if thing.pattern == PLAIN:
        return Image.new("RGB", (fine, fine), rgb)
    turn = math.radians(dice.between(0, 180))
    down, across = np.mgrid[0:fine, 0:fine] / scale
    u = across * math.cos(turn) + down * math.sin(turn) + dice.unit()
    v = down * math.cos(turn) - across * math.sin(turn) + dice.unit()
    if thing.pattern == "striped":
        other = u // STRIPE % 2 == 0
    elif thing.pattern == "checked":
        other = (u // SQUARE + v // SQUARE) % 2 == 0
    else:
        other = np.hypot(u % DOTS - DOTS / 2, v % DOTS - DOTS / 2) < DOT
    second = DARK if thing.color in LIGHT_COLORS else LIGHT
    return Image.fromarray(np.where(other[..., None], second, rgb).astype(np.uint8))


def _lit(rgb: Color, light: float) -> Color:
    return tuple(min(255, int(v * light + 0.5)) for v in rgb)  # type: ignore[return-value]
