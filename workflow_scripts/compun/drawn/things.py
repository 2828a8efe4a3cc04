"""The outlines of things, on a square from -1 to 1, y downward; all silhouettes differ.

A thing is a sequence of polygons; a ``HOLE`` shows the ground behind the thing.
"""

import math

from workflow_scripts.dataset.sketch.draw import Points, arc, strip

SOLID, HOLE = True, False
Shape = tuple[tuple[Points, bool], ...]


def _box(left: float, top: float, right: float, bottom: float) -> Points:
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def _star(points: int, inner: float) -> Points:
    turns = [math.pi * i / points - math.pi / 2 for i in range(2 * points)]
    far = [inner if i % 2 else 1.0 for i in range(2 * points)]
    return tuple((r * math.cos(a), r * math.sin(a)) for r, a in zip(far, turns, strict=True))


def _blade(steps: int) -> Points:
    """Return a leaf blade from the lower left to the upper right, widest in the middle."""
    along = [i / steps for i in range(steps + 1)]
    widths = tuple(0.02 + 1.05 * math.sin(math.pi * t) for t in along)
    return strip(tuple((1.7 * t - 0.75, 0.75 - 1.7 * t) for t in along), widths)


def _solid(*polygons: Points) -> Shape:
    return tuple((points, SOLID) for points in polygons)


THINGS: dict[str, Shape] = {
    "arrow": _solid(((-1, -0.22), (0.1, -0.22), (0.1, -0.7), (1, 0), (0.1, 0.7), (0.1, 0.22), (-1, 0.22))),
    "bell": _solid(
        (*arc(0, -0.25, 0.55, 0.65, 180, 360), (0.6, 0.3), (0.9, 0.65), (-0.9, 0.65), (-0.6, 0.3)),
        arc(0, 0.78, 0.22, 0.2),
    ),
    "boat": _solid(((-1, 0.25), (1, 0.25), (0.6, 0.85), (-0.6, 0.85)), ((-0.08, -1), (-0.08, 0.1), (-0.85, 0.1)),
                   ((0.12, -0.8), (0.75, 0.1), (0.12, 0.1))),
    "box": _solid(_box(-0.8, -0.75, 0.8, 0.75)),
    "cross": _solid(((-0.28, -0.95), (0.28, -0.95), (0.28, -0.28), (0.95, -0.28), (0.95, 0.28), (0.28, 0.28),
                     (0.28, 0.95), (-0.28, 0.95), (-0.28, 0.28), (-0.95, 0.28), (-0.95, -0.28), (-0.28, -0.28))),
    "cup": (
        (arc(0.6, 0, 0.4, 0.42), SOLID),
        (arc(0.6, 0, 0.2, 0.22), HOLE),
        (((-0.75, -0.7), (0.55, -0.7), (0.42, 0.75), (-0.62, 0.75)), SOLID),
    ),
    "fish": _solid(arc(0.2, 0, 0.78, 0.5), ((-0.4, 0), (-1, -0.6), (-0.82, 0), (-1, 0.6))),
    "flag": _solid(_box(-0.85, -0.95, -0.65, 1),
                   ((-0.6, -0.9), (0.95, -0.9), (0.55, -0.4), (0.95, 0.15), (-0.6, 0.15))),
    "hat": _solid((*arc(0, 0.25, 0.55, 0.95, 180, 360), (0.55, 0.35), (-0.55, 0.35)), arc(0, 0.5, 1, 0.24)),
    "heart": _solid((*arc(-0.46, -0.3, 0.5, 0.5, 150, 340), *arc(0.46, -0.3, 0.5, 0.5, 200, 390), (0, 0.95))),
    "house": _solid(_box(-0.7, -0.1, 0.7, 0.9), ((-0.95, -0.1), (0, -0.95), (0.95, -0.1))),
    "key": (
        (arc(-0.58, 0, 0.42, 0.42), SOLID),
        (arc(-0.58, 0, 0.2, 0.2), HOLE),
        (_box(-0.2, -0.12, 1, 0.12), SOLID),
        (_box(0.35, 0.1, 0.55, 0.45), SOLID),
        (_box(0.78, 0.1, 0.98, 0.5), SOLID),
    ),
    "ladder": _solid(_box(-0.6, -1, -0.38, 1), _box(0.38, -1, 0.6, 1),
                     *(_box(-0.4, y - 0.09, 0.4, y + 0.09) for y in (-0.7, -0.23, 0.23, 0.7))),
    "lamp": _solid(((-0.4, -0.95), (0.4, -0.95), (0.8, -0.1), (-0.8, -0.1)), _box(-0.1, -0.1, 0.1, 0.7),
                   _box(-0.5, 0.7, 0.5, 0.92)),
    "leaf": _solid(_blade(12), ((-0.99, 0.89), (-0.89, 0.99), (-0.5, 0.6), (-0.6, 0.5))),
    "moon": _solid((*arc(0, 0, 0.95, 0.95, 40, 320), *reversed(arc(0.38, 0, 0.7, 0.68, 60, 300)))),
    "mushroom": _solid(_box(-0.26, -0.1, 0.26, 0.9), (*arc(0, 0, 0.95, 0.85, 180, 360), (0.95, 0.1), (-0.95, 0.1))),
    "ring": ((arc(0, 0, 0.92, 0.92), SOLID), (arc(0, 0, 0.52, 0.52), HOLE)),
    "star": _solid(_star(5, 0.42)),
    "tree": _solid(_box(-0.14, 0.4, 0.14, 1), ((0, -1), (0.5, -0.3), (-0.5, -0.3)),
                   ((0, -0.65), (0.65, 0.1), (-0.65, 0.1)), ((0, -0.25), (0.8, 0.5), (-0.8, 0.5))),
}  # fmt: skip
