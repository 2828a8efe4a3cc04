"""Draw pictures of scenes, in random poses.

A bird is a stack of polygons on a grid of 96 by 96 units, facing right; the pose rotates, scales,
shifts and mirrors them together. Each part is large, outlined, and never hidden by others, whatever
their shapes.
"""

import io
import math
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
from PIL import Image, ImageDraw

from compclip.dataset.sketch.world import Dice, Scene

GRID_SIZE = 96
# Pixels are drawn this many times finer and then averaged.
FINER = 2

Color = tuple[int, int, int]
RGB: dict[str, Color] = {
    "black": (24, 24, 28),
    "blue": (38, 92, 220),
    "brown": (120, 70, 25),
    "gray": (122, 128, 138),
    "green": (40, 156, 60),
    "orange": (250, 128, 10),
    "pink": (255, 136, 194),
    "purple": (140, 30, 190),
    "red": (210, 26, 34),
    "tan": (208, 172, 112),
    "white": (250, 250, 250),
    "yellow": (248, 228, 40),
}
BACKGROUNDS = (
    (176, 208, 224),
    (190, 214, 178),
    (206, 200, 222),
    (222, 206, 194),
    (160, 190, 190),
    (198, 204, 206),
)

PUPIL = (12, 12, 12)
SLIGHT = ("tarsus", "foot", "eye")

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Pose:
    """How the bird stands, and its surroundings; lengths in units of the grid, angle in degrees."""

    flip: bool
    scale: float
    angle: float
    shift_x: float
    shift_y: float
    light: float
    warmth: float
    background: int
    ground: float


def draw_pose(dice: Dice) -> Pose:
    """Draw a random pose in which every part stays within the picture."""
    return Pose(
        flip=dice.chance(0.5),
        scale=round(dice.between(0.86, 0.98), 3),
        angle=round(dice.between(-7, 7), 2),
        shift_x=round(dice.between(-2, 2), 2),
        shift_y=round(dice.between(-2, 2), 2),
        light=round(dice.between(0.92, 1.04), 3),
        warmth=round(dice.between(-0.03, 0.03), 3),
        background=dice.pick(range(len(BACKGROUNDS))),
        ground=round(dice.between(78, 88), 1),
    )


def arc(
    x: float, y: float, rx: float, ry: float, start: float = 0, stop: float = 360, n: int = 24
) -> Points:
    """Return points on an ellipse; angles in degrees, clockwise from the right, because y grows
    downward.
    """
    steps = n if abs(stop - start) >= 360 else n + 1
    angles = (math.radians(start + (stop - start) * i / n) for i in range(steps))
    return tuple((x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles)


def strip(path: Points, widths: tuple[float, ...]) -> Points:
    """Return the outline of a band along ``path``, with a width for each point."""
    line = np.array(path)
    along = np.gradient(line, axis=0)
    across = np.stack([-along[:, 1], along[:, 0]], 1) / np.linalg.norm(along, axis=1, keepdims=True)
    half = np.array(widths)[:, None] / 2
    return tuple(
        map(tuple, np.concatenate([line + across * half, (line - across * half)[::-1]]).tolist())
    )


BODY_ELLIPSE = (42.0, 51.0, 23.0, 17.0)
HIP = (33.0, 66.0)
STRIDE = 18.0

BILL: dict[str | None, Points] = {
    None: ((73, 25), (85, 30), (86, 32.5), (73, 37)),
    "long": ((73, 26.5), (96, 30), (96, 33), (73, 36)),
    "short": ((73, 23), (78, 24.5), (80.5, 31), (78, 37.5), (73, 39)),
    "curved": strip(((73, 29), (79, 28), (85, 30), (88, 35), (88, 42)), (9, 8, 7, 5, 2)),
    "thick": ((73, 20), (82, 21), (88, 26), (89, 33), (86, 40), (73, 42)),
    "thin": ((73, 29.8), (90, 30.2), (90, 33), (73, 33.6)),
    "flat": (
        (73, 28.5),
        (80, 28.5),
        (87, 24),
        (93, 25),
        (94, 31),
        (93, 37),
        (87, 38),
        (80, 33.5),
        (73, 33.5),
    ),
    "pointed": ((73, 20), (91, 31), (73, 42)),
    "straight": ((73, 27.5), (91, 27.5), (91, 35.5), (73, 35.5)),
}
TAIL: dict[str | None, Points] = {
    None: ((23, 42), (10, 48), (12, 58), (23, 54)),
    "long": ((23, 43), (-1, 56), (3, 67), (23, 54)),
    "short": ((24, 39), (16, 42), (14.5, 50), (18, 58), (24, 58)),
    "pointed": ((23, 38), (1, 54), (23, 58)),
    "round": arc(11, 49, 11, 11),
    "wide": ((24, 46), (5, 29), (1, 40), (1, 54), (5, 66), (24, 53)),
    "thin": ((23, 45.5), (1, 52.5), (2, 56), (23, 49.5)),
    "curved": strip(((24, 49), (14, 50), (6, 45), (3, 36), (6, 26), (13, 22)), (8, 8, 8, 8, 7, 5)),
}
WING: dict[str | None, Points] = {
    None: arc(37, 50, 13, 8.5),
    "long": ((52, 46), (46, 43), (36, 44), (12, 54), (13, 58), (36, 57), (49, 54), (52, 50)),
    "short": arc(43, 49, 8, 8),
    "pointed": ((53, 41), (53, 59), (22, 51)),
    "round": arc(39, 50, 12.5, 12.5),
    "wide": (
        (52, 47),
        (46, 41),
        (24, 39),
        (20, 45),
        (22, 50),
        (20, 56),
        (24, 61),
        (46, 59),
        (52, 54),
    ),
    "thin": arc(38, 50, 16, 4),
    "curved": strip(
        ((53, 55), (47, 46), (38, 43), (29, 46), (23, 55), (23, 60)), (7, 9, 9, 8, 6, 2)
    ),
}
CROWN: dict[str | None, Points] = {
    None: arc(63, 30, 13.6, 14.5, 205, 335),
    "round": (*arc(62, 17, 10, 11, 160, 380), (74, 24), (51, 24)),
    "pointed": ((50.5, 25), (57, 17), (62, 1), (67, 17), (75.5, 25)),
    "flat": ((49, 26), (48, 13), (78, 13), (77, 26)),
    "long": ((75.5, 25), (70, 18), (60, 15), (40, 9), (37, 13), (50, 26)),
    "curved": (
        *strip(((58, 19), (58, 9), (64, 3), (72, 3), (77, 9), (75, 13)), (10, 8, 7, 7, 6, 4)),
    ),
    "small": (*arc(63, 30, 13.6, 14.5, 238, 302), (68, 21), (58, 21)),
}
BELLY: dict[str | None, Points] = {
    None: (*arc(42, 51, 23, 17, 35, 150), (32, 61), (50, 61)),
    "flat": ((22, 60), (62, 60), (62, 68.5), (22, 68.5)),
    "large": (*arc(42, 58, 22, 18, 10, 170), (30, 61), (54, 61)),
    "pointed": ((23, 60), (61, 60), (53, 68), (43, 80), (33, 68)),
    "small": arc(42, 63.5, 7.5, 4.5),
}
EYE: dict[str | None, tuple[Points, Points]] = {
    None: (arc(66, 28.5, 5.2, 5.2), arc(66.5, 28.5, 1.8, 1.8, n=12)),
    "large": (arc(65, 29, 8.2, 8.2), arc(66.5, 29, 2.6, 2.6, n=12)),
    "small": (arc(66, 28.5, 3.3, 3.3), arc(66.5, 28.5, 0.9, 0.9, n=8)),
    "thin": (arc(65, 28.5, 8.5, 2.7), arc(67, 28.5, 1.4, 1.4, n=12)),
}
# Each leg from the hip down, with the depth of its foot.
LEG: dict[str | None, tuple[Points, float]] = {
    None: (strip(((0, 0), (0, 12)), (4.4, 4.4)), 12),
    "long": (strip(((0, 0), (0, 20)), (4.4, 4.4)), 20),
    "short": (strip(((0, 0), (0, 6.5)), (4.4, 4.4)), 6.5),
    "thick": (strip(((0, 0), (0, 12)), (10, 10)), 12),
    "thin": (strip(((0, 0), (0, 12)), (1.8, 1.8)), 12),
    "curved": (strip(((2, 0), (-4, 3), (-5, 7), (-2, 11), (2, 13)), (4.4, 4.4, 4.4, 4.4, 4.4)), 12),
}
FOOT: dict[str | None, Points] = {
    None: ((-2.5, -1), (2.5, -1), (6, 3.5), (-3, 3.5)),
    "large": ((-4, -3), (4, -3), (9.5, 6), (-5, 6)),
    "small": ((-2.2, -1), (2.2, -1), (2.2, 2.4), (-2.2, 2.4)),
    "flat": ((-6, -0.5), (8.5, -0.5), (8.5, 2.5), (-6, 2.5)),
    "pointed": ((-3, -1.5), (2, -2), (9, 6), (3, 3), (1, 7), (-1.5, 3), (-6, 6)),
    "curved": strip(((-3, 1), (2, -1), (7, 0), (8.5, 6)), (4, 5, 5, 2)),
}
BACK = arc(*BODY_ELLIPSE)
BREAST: Points = (*arc(*BODY_ELLIPSE, -52, 52), (54, 58), (53, 45))
NAPE = arc(51, 37, 6, 7.5)
THROAT = arc(68, 44, 7, 6.5)
HEAD = arc(63.0, 30.0, 13.0, 13.0)


@cache
def _stencil(shapes: tuple[str | None, ...]) -> tuple[np.ndarray, tuple[tuple[str, int, int], ...]]:
    """Return all points of a bird, and the part and the slice of each polygon, from back to
    front.
    """
    bill, tail, wing, crown, belly, eye, leg, foot = shapes
    # Legs in front of the belly, the wing in front of the legs: then no shape hides another part.
    pieces: list[tuple[str, Points]] = [
        ("tail", TAIL[tail]),
        ("back", BACK),
        ("belly", BELLY[belly]),
    ]
    limb, depth = LEG[leg]
    for shift in (0.0, STRIDE):
        x, y = HIP[0] + shift, HIP[1]
        pieces.append(("tarsus", tuple((x + px, y + py) for px, py in limb)))
        pieces.append(("foot", tuple((x + px, y + depth + py) for px, py in FOOT[foot])))
    pieces += [
        ("breast", BREAST),
        ("wing", WING[wing]),
        ("throat", THROAT),
        ("bill", BILL[bill]),
        ("head", HEAD),
        ("nape", NAPE),
        ("crown", CROWN[crown]),
        ("eye", EYE[eye][0]),
        ("pupil", EYE[eye][1]),
    ]
    ends = accumulate(len(points) for _, points in pieces)
    slices = tuple(
        (part, end - len(points), end) for (part, points), end in zip(pieces, ends, strict=True)
    )
    return np.array([p for _, points in pieces for p in points], dtype=float), slices


def _place(points: np.ndarray, pose: Pose, size: int) -> list[float]:
    """Return points of the grid in the fine pixels of a picture of ``size``: x and y of the first,
    then the second.
    """
    turn = math.radians(pose.angle)
    c, s = pose.scale * math.cos(turn), pose.scale * math.sin(turn)
    half = GRID_SIZE / 2
    moved = (points - half) @ np.array([[c, s], [-s, c]]) + (
        half + pose.shift_x,
        half + pose.shift_y,
    )
    if pose.flip:
        moved[:, 0] = GRID_SIZE - moved[:, 0]
    return (moved * (size * FINER / GRID_SIZE)).ravel().tolist()


def _lit(rgb: Color, pose: Pose) -> Color:
    r, g, b = rgb
    lit = r * (pose.light + pose.warmth), g * pose.light, b * (pose.light - pose.warmth)
    red, green, blue = (min(255, int(value + 0.5)) for value in lit)
    return red, green, blue


def edge(rgb: Color) -> Color:
    """Return an outline color that is visible beside a part of color ``rgb``: darker, or lighter
    for dark colors.
    """
    r, g, b = rgb
    return (76, 76, 84) if r + g + b < 130 else (r * 11 // 20, g * 11 // 20, b * 11 // 20)


def paint_scene(scene: Scene, pose: Pose, size: int = GRID_SIZE) -> Image.Image:
    """Draw the scene as an RGB picture of ``size`` by ``size`` pixels."""
    shapes = tuple(
        scene[f"{p}:shape"]
        for p in ("bill", "tail", "wing", "crown", "belly", "eye", "tarsus", "foot")
    )
    points, slices = _stencil(shapes)
    placed = _place(points, pose, size)
    fine = size * FINER
    sky = _lit(BACKGROUNDS[pose.background], pose)
    picture = Image.new("RGB", (fine, fine), sky)
    draw = ImageDraw.Draw(picture)
    draw.rectangle(
        (0, pose.ground * fine / GRID_SIZE, fine, fine), fill=tuple(v * 17 // 20 for v in sky)
    )
    for part, start, stop in slices:
        outline = placed[2 * start : 2 * stop]
        if part == "pupil":
            draw.polygon(outline, fill=PUPIL)
            continue
        rgb = _lit(RGB[scene[f"{part}:color"]], pose)  # type: ignore[index]
        rim = edge(rgb)
        # A thick outline would hide the color of a thin leg.
        draw.polygon(outline, fill=rgb, outline=rim)
        if part not in SLIGHT:
            draw.line([*outline, *outline[:2]], fill=rim, width=FINER)
    return picture.reduce(FINER)


def png(picture: Image.Image) -> bytes:
    """Return an RGB picture as PNG.

    A palette would halve the file. But open_clip's transform resizes before it converts to RGB, and
    a palette image is then resized without interpolation.
    """
    buffer = io.BytesIO()
    picture.save(buffer, "png", compress_level=1)
    return buffer.getvalue()
