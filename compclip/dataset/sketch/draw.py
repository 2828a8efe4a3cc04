"""Draw pictures of scenes, in random poses.

A bird is a stack of polygons on a grid of 96 by 96 units, facing right; the pose rotates, scales,
shifts and mirrors them together. Each part is large, outlined, and visible beside others, whatever
their shapes.
"""

import io
import math
from dataclasses import dataclass
from functools import cache

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

# Darker than any color of an eye.
PUPIL = (12, 12, 12)
# Parts that get only a thin outline.
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
    """Draw a random pose in which the bird stays within the picture, but for tips of a bill, crown
    or tail: in one of 20 birds, by up to 4 of 96 pixels.
    """
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
    # A whole ellipse does not repeat its first point.
    is_closed = abs(stop - start) >= 360
    steps = n if is_closed else n + 1
    points = []
    for i in range(steps):
        angle = math.radians(start + (stop - start) * i / n)
        points.append((x + rx * math.cos(angle), y + ry * math.sin(angle)))
    return tuple(points)


def strip(path: Points, widths: tuple[float, ...]) -> Points:
    """Return the outline of a band along ``path``, with a width for each point."""
    line = np.array(path)
    tangents = np.gradient(line, axis=0)
    normals = np.stack([-tangents[:, 1], tangents[:, 0]], 1)
    normals = normals / np.linalg.norm(tangents, axis=1, keepdims=True)
    half_widths = np.array(widths)[:, None] / 2
    left = line + normals * half_widths
    right = line - normals * half_widths
    # Back along the second edge, so that the outline does not cross itself.
    outline = np.concatenate([left, right[::-1]])
    return tuple(map(tuple, outline.tolist()))


BODY_ELLIPSE = (42.0, 51.0, 23.0, 17.0)
# The first leg's hip, and how far the second one is in front of it.
HIP = (33.0, 66.0)
STRIDE = 18.0

# The outlines of each part by shape, None the ordinary one. Parts without shapes follow.
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
# Folded on the body, or raised above the back, where the silhouette shows the shape, whatever the
# colors.
WING: dict[str | None, Points] = {
    None: arc(37, 50, 13, 8.5),
    "long": ((53, 46), (47, 40), (14, 10), (6, 12), (10, 21), (36, 52), (46, 55), (52, 51)),
    "short": arc(43, 49, 8, 8),
    "pointed": ((53, 41), (53, 59), (22, 51)),
    "round": arc(33, 36, 15.5, 15.5),
    "wide": (
        (52, 52),
        (49, 40),
        (45, 13),
        (31, 12),
        (18, 18),
        (9, 29),
        (13, 37),
        (36, 50),
        (44, 56),
    ),
    "thin": arc(38, 50, 16, 4),
    "curved": strip(
        ((47, 54), (42, 42), (41, 30), (36, 20), (27, 15), (18, 18)), (13, 12, 10, 9, 7, 3)
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
# The eye and its pupil.
EYE: dict[str | None, tuple[Points, Points]] = {
    None: (arc(66, 28.5, 5.5, 5.5), arc(66.5, 28.5, 1.8, 1.8, n=12)),
    "large": (arc(64.5, 29.5, 9.2, 9.2), arc(66.5, 29.5, 2.8, 2.8, n=12)),
    "small": (arc(67, 28.5, 3.1, 3.1), arc(67.4, 28.5, 0.9, 0.9, n=8)),
    "thin": (arc(64, 28.5, 10.5, 2.7), arc(67, 28.5, 1.4, 1.4, n=12)),
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
# A foot, from the end of its leg.
FOOT: dict[str | None, Points] = {
    None: ((-3, -1), (3, -1), (6, 4), (-4, 4)),
    "large": ((-6, -4), (5, -4), (10, 1), (10, 7), (-7, 7)),
    "small": ((-2.2, -1), (2.2, -1), (2.2, 2.4), (-2.2, 2.4)),
    "flat": ((-7.5, -0.5), (9.5, -0.5), (9.5, 2.3), (-7.5, 2.3)),
    "pointed": ((-2.5, -3), (2.5, -3), (11, 5), (3.5, 2), (1.5, 9), (-1, 2), (-7.5, 5)),
    "curved": strip(((-3, 1), (2, -2), (8, -1), (10, 7)), (4, 6, 5, 2)),
}
BACK = arc(*BODY_ELLIPSE)
BREAST: Points = (*arc(*BODY_ELLIPSE, -52, 52), (54, 58), (53, 45))
NAPE = arc(51, 37, 6, 7.5)
THROAT = arc(68, 44, 7, 6.5)
HEAD = arc(63.0, 30.0, 13.0, 13.0)
# Parts whose shape varies, in the order that ``_polygons`` takes them.
STENCIL_PARTS = ("bill", "tail", "wing", "crown", "belly", "eye", "tarsus", "foot")


def _shifted(points: Points, x: float, y: float) -> Points:
    return tuple((x + px, y + py) for px, py in points)


def _polygons(shapes: tuple[str | None, ...]) -> list[tuple[str, Points]]:
    """Return the part and the points of each polygon of a bird, from back to front."""
    bill, tail, wing, crown, belly, eye, leg, foot = shapes
    # Legs in front of the belly, the wing in front of the legs: then no shape hides another part.
    polygons = [("tail", TAIL[tail]), ("back", BACK), ("belly", BELLY[belly])]
    limb, foot_depth = LEG[leg]
    hip_x, hip_y = HIP
    # Both legs are of one part, and so have one color.
    for stride in (0.0, STRIDE):
        x = hip_x + stride
        polygons.append(("tarsus", _shifted(limb, x, hip_y)))
        polygons.append(("foot", _shifted(FOOT[foot], x, hip_y + foot_depth)))
    iris, pupil = EYE[eye]
    polygons += [
        ("breast", BREAST),
        ("wing", WING[wing]),
        ("throat", THROAT),
        ("bill", BILL[bill]),
        ("head", HEAD),
        ("nape", NAPE),
        ("crown", CROWN[crown]),
        ("eye", iris),
        ("pupil", pupil),
    ]
    return polygons


@cache
def _stencil(shapes: tuple[str | None, ...]) -> tuple[np.ndarray, tuple[tuple[str, int, int], ...]]:
    """Return all points of a bird, (n, 2), and the part and the rows of each polygon, from back to
    front.
    """
    points: list[tuple[float, float]] = []
    slices = []
    for part, polygon in _polygons(shapes):
        start = len(points)
        points += polygon
        slices.append((part, start, len(points)))
    return np.array(points, dtype=float), tuple(slices)


def _to_pixels(points: np.ndarray, pose: Pose, size: int) -> list[float]:
    """Return points of the grid in the fine pixels of a picture of ``size``: x and y of the first,
    then the second.
    """
    radians = math.radians(pose.angle)
    c = pose.scale * math.cos(radians)
    s = pose.scale * math.sin(radians)
    center = GRID_SIZE / 2
    # Rotated and scaled around the center of the grid.
    turned = (points - center) @ np.array([[c, s], [-s, c]])
    moved = turned + (center + pose.shift_x, center + pose.shift_y)
    if pose.flip:
        moved[:, 0] = GRID_SIZE - moved[:, 0]
    pixels = moved * (size * FINER / GRID_SIZE)
    return pixels.ravel().tolist()


def _lit(rgb: Color, pose: Pose) -> Color:
    """Return a color in the light of a pose, which may be warmer: more red and less blue."""
    red, green, blue = rgb
    return (
        _channel(red * (pose.light + pose.warmth)),
        _channel(green * pose.light),
        _channel(blue * (pose.light - pose.warmth)),
    )


def _channel(value: float) -> int:
    return min(255, int(value + 0.5))


def edge(rgb: Color) -> Color:
    """Return an outline color that is visible beside a part of color ``rgb``: darker, or lighter
    for dark colors.
    """
    r, g, b = rgb
    brightness = r + g + b
    if brightness < 130:
        return (76, 76, 84)
    return (r * 11 // 20, g * 11 // 20, b * 11 // 20)


def paint_scene(scene: Scene, pose: Pose, size: int = GRID_SIZE) -> Image.Image:
    """Draw the scene as an RGB picture of ``size`` by ``size`` pixels."""
    shapes = tuple(scene[f"{part}:shape"] for part in STENCIL_PARTS)
    points, slices = _stencil(shapes)
    pixels = _to_pixels(points, pose, size)
    fine_size = size * FINER
    sky = _lit(BACKGROUNDS[pose.background], pose)
    # Fine pixels, averaged at the end, because polygons are drawn without antialiasing.
    picture = Image.new("RGB", (fine_size, fine_size), sky)
    draw = ImageDraw.Draw(picture)
    ground = tuple(channel * 17 // 20 for channel in sky)
    horizon = pose.ground * fine_size / GRID_SIZE
    draw.rectangle((0, horizon, fine_size, fine_size), fill=ground)
    for part, start, stop in slices:
        outline = pixels[2 * start : 2 * stop]
        if part == "pupil":
            draw.polygon(outline, fill=PUPIL)
            continue
        rgb = _lit(RGB[scene[f"{part}:color"]], pose)  # type: ignore[index]
        rim = edge(rgb)
        draw.polygon(outline, fill=rgb, outline=rim)
        # A thick outline would hide the color of a thin leg.
        if part not in SLIGHT:
            # Closed by its first point.
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
