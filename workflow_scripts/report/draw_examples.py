"""Draw pages for print: seen captions beside their swapped ones, the pairs marked, with each generator's images.

As figures 4 to 7 of the paper: a PDF of A4 pages with six captions each, the same examples as on the page.
"""

import re
import textwrap
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic
from workflow_scripts.core.layout import Layout
from workflow_scripts.core.pictures import BrokenImage, read_rgb
from workflow_scripts.plot.drawing import style
from workflow_scripts.plot.examples import PER_PAGE, Caption, Example, Picture, Segment, read_examples
from workflow_scripts.report.steps import DrawExamples

# Inches of A4; the content fits on US Letter too.
PAGE, MARGIN = (8.27, 11.69), 0.5
TOP = 10.95
BLOCK, REAL, GAP = 1.62, 0.9, 0.14
HALF = (PAGE[0] - 2 * MARGIN - REAL - 2 * GAP) / 2
# Points, lines and inches.
TEXT, LINES, LINE = 7.5, 5, 0.135
SMALL, SMALL_LINE = 5.5, 0.09
LARGEST = 0.72
# Longer side of a picture in pixels.
PIXELS = 176
# Generators in a row; more generators get further pages, because smaller pictures could not be recognized.
IN_A_ROW = 6
# Colors of text and background, as on the page.
MARKS = {"seen": ("#0b6b2f", "#dff3e4"), "swapped": ("#b3141b", "#fde3e1")}
SOFT = "#5b6168"
Line = list[Segment]


@cache
def width(text: str, points: float, bold: bool = False) -> float:
    """Return the width of a text in inches."""
    font = FontProperties(family="DejaVu Sans", size=points, weight="bold" if bold else "normal")
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0] / 72


def wrap(segments: Sequence[Segment], room: float) -> list[Line]:
    """Return segments in lines of at most ``room`` inches, broken at spaces; longer words are broken anywhere."""
    # A word is a list of segments, because it may have a mark and a comma.
    words: list[Line] = [[]]
    for text, kind in segments:
        for number, part in enumerate(re.split(r"\s", text)):
            if number:
                words.append([])
            words[-1] += [(part, kind)] * bool(part)
    lines: list[Line] = [[]]
    for word in filter(None, words):
        space = _space(lines[-1], word)
        if lines[-1] and _length([*lines[-1], space, *word]) <= room:
            lines[-1] += [space, *word]
            continue
        if lines[-1]:
            lines.append([])
        for text, kind in word:
            for letter in text if _length(word) > room else [text]:
                if _length([*lines[-1], (letter, kind)]) > room:
                    lines.append([])
                lines[-1].append((letter, kind))
    return [_joined(line) for line in lines if line]


def _space(before: Line, after: Line) -> Segment:
    """Return the space between two words, marked if both are."""
    return " ", after[0][1] if before and before[-1][1] == after[0][1] else ""


def _length(line: Line) -> float:
    return sum(width(text, TEXT, bool(kind)) for text, kind in line)


def _joined(line: Line) -> Line:
    joined: Line = []
    for text, kind in line:
        if joined and joined[-1][1] == kind:
            joined[-1] = (joined[-1][0] + text, kind)
        else:
            joined.append((text, kind))
    return joined


def fit(segments: Sequence[Segment], room: float, most: int) -> list[Line]:
    """Return segments in at most ``most`` lines around the first mark; dots replace the other lines."""
    lines = wrap(segments, room)
    if len(lines) <= most:
        return lines
    lines = wrap(segments, room - 2 * width(" …", TEXT))
    marked = next((number for number, line in enumerate(lines) if any(kind for _, kind in line)), 0)
    first = min(max(marked - most // 2, 0), len(lines) - most)
    shown = [list(line) for line in lines[first : first + most]]
    if first:
        shown[0].insert(0, ("… ", ""))
    if first + most < len(lines):
        shown[-1].append((" …", ""))
    return shown


def shorten(text: str, room: float, points: float) -> str:
    """Return a text that fits into ``room`` inches, with dots in its middle if it is too long."""
    shown, keep = text, len(text)
    while width(shown, points) > room and keep > 2:
        keep -= 1
        shown = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
    return shown


def read_picture(file: Path) -> np.ndarray | None:
    """Return the pixels of a picture, small enough for print; None if it cannot be read."""
    try:
        small = read_rgb(file)
    except (BrokenImage, OSError):  # the page shows a gap
        return None
    small.thumbnail((PIXELS, PIXELS))
    return np.asarray(small)


class Sheet:
    """A page; positions are inches from its left and its bottom, paths of pictures below ``results``."""

    def __init__(self, results: Path) -> None:
        self.figure, self.results = Figure(figsize=PAGE), results

    def text(self, x: float, y: float, text: str, points: float, color: str = "black", bold: bool = False) -> None:
        look = {"fontsize": points, "color": color, "fontweight": "bold" if bold else "normal", "va": "baseline"}
        self.figure.text(x / PAGE[0], y / PAGE[1], text, look)

    def box(self, x: float, y: float, w: float, h: float, **look: object) -> None:
        place = Rectangle((x / PAGE[0], y / PAGE[1]), w / PAGE[0], h / PAGE[1], transform=self.figure.transFigure)
        place.set(**look)
        self.figure.add_artist(place)

    def line(self, x: float, y: float, segments: Line) -> None:
        for text, kind in segments:
            color, back = MARKS.get(kind, ("black", None))
            if back:
                self.box(x, y - 0.03, width(text, TEXT, True), LINE - 0.01, facecolor=back, edgecolor="none")
            self.text(x, y, text, TEXT, color, bool(kind))
            x += width(text, TEXT, bool(kind))

    def picture(self, x: float, y: float, side: float, picture: Picture) -> None:
        """Draw a picture in a square, framed by whether the judge retrieved the caption, with its title below."""
        pixels = read_picture(self.results / picture.path) if picture.path else None
        frames: dict[bool | None, tuple[str, str, float]] = {
            True: (MARKS["seen"][0], "solid", 1.2),
            False: (MARKS["swapped"][0], "dashed", 1.2),
            None: ("#b0b5ba", "dotted" if pixels is None else "solid", 0.6),
        }
        color, dash, wide = frames[picture.hit]
        if pixels is not None:
            h, w = (side * length / max(pixels.shape) for length in pixels.shape[:2])
            place = ((x + (side - w) / 2) / PAGE[0], (y + (side - h) / 2) / PAGE[1], w / PAGE[0], h / PAGE[1])
            axes = self.figure.add_axes(place)
            axes.imshow(pixels, interpolation="none", aspect="auto")
            axes.set_axis_off()
        self.box(x, y, side, side, facecolor="none", edgecolor=color, linestyle=dash, linewidth=wide)
        sign = "" if picture.hit is None else "✓ " if picture.hit else "✗ "
        for number, words in enumerate(filter(None, (picture.title, sign + picture.verdict))):
            ink = color if number and picture.hit is not None else SOFT
            self.text(x, y - (number + 1) * SMALL_LINE, shorten(words, side + 0.07, SMALL), SMALL, ink)

    def half(self, x: float, top: float, caption: Caption, names: Sequence[str]) -> None:
        """Draw a caption and, below it, the pictures that the generators ``names`` made from it."""
        for number, line in enumerate(fit(caption.segments, HALF, LINES)):
            self.line(x, top - (number + 1) * LINE, line)
        step = min(LARGEST + 0.08, (HALF + 0.08) / max(len(names), 1))
        side = step - 0.08
        foot = top - BLOCK + 2 * SMALL_LINE + 0.12
        for picture in caption.pictures:
            if picture.title in names:
                self.picture(x + names.index(picture.title) * step, foot, side, picture)

    def block(self, top: float, example: Example, names: Sequence[str]) -> None:
        """Draw an example: the real image, the seen caption, the swapped one."""
        self.picture(MARGIN, top - REAL, REAL, example.real)
        below = top - REAL - (3 if example.real.verdict else 2) * SMALL_LINE
        self.text(MARGIN, below, shorten(example.image_id, REAL + 0.1, SMALL), SMALL, SOFT)
        for number, caption in enumerate(example.captions):
            self.half(MARGIN + REAL + GAP + number * (HALF + GAP), top, caption, names)


def of_both(examples: Sequence[Example]) -> list[str]:
    """Return the generators with pictures of seen and of swapped captions."""
    seen, swapped = (
        dict.fromkeys(picture.title for e in examples for picture in e.captions[side].pictures) for side in (0, 1)
    )
    return [name for name in seen if name in swapped]


def draw_page(examples: Sequence[Example], names: Sequence[str], results: Path, title: str, foot: str) -> Figure:
    sheet = Sheet(results)
    sheet.text(MARGIN, TOP + 0.3, title, 9, bold=True)
    if not examples:
        sheet.text(MARGIN, TOP - 0.2, "No caption was swapped.", TEXT)
    for number, kind in enumerate(("seen", "swapped") if examples else ()):
        x = MARGIN + REAL + GAP + number * (HALF + GAP)
        sheet.text(x, TOP + 0.08, f"{kind} pair", TEXT, MARKS[kind][0], bold=True)
    for number, example in enumerate(examples):
        top = TOP - number * (BLOCK + 0.08)
        sheet.box(MARGIN, top, PAGE[0] - 2 * MARGIN, 0, edgecolor="#d5d9de", linewidth=0.5)
        sheet.block(top - 0.04, example, names)
    for number, line in enumerate(textwrap.wrap(foot, 150)):
        sheet.text(MARGIN, MARGIN + 0.15 - number * 0.1, line, SMALL + 0.5, SOFT)
    return sheet.figure


def pages(examples: Sequence[Example], layout: Layout, seed: int) -> list[Figure]:
    """Return all pages, at least one; the examples are repeated for each group of generators."""
    all_names = of_both(examples)
    groups = [all_names[start : start + IN_A_ROW] for start in range(0, len(all_names), IN_A_ROW)] or [[]]
    ends = [*range(0, max(len(examples), 1), PER_PAGE), len(examples)]
    parts = [examples[a:b] for a, b in pairwise(ends)] or [examples]
    drawn = []
    for number, (names, part) in enumerate(product(groups, parts), 1):
        foot = f"Captions drawn by seed {seed}, spread over pairs and classes. "
        if names:
            of = f" ({len(names)} of {len(all_names)} generators)" if len(groups) > 1 else ""
            foot += (
                f"Images, from left: {', '.join(names)}{of}. ✓, ✗: whether the judge found the caption among the"
                " candidates drawn for it; %: how often it would among any others."
            )
        elif examples:
            foot += "No generator made images of seen and of swapped captions."
        title = f"{layout.dataset}, {layout.composition}: seen and swapped, page {number} of {len(groups) * len(parts)}"
        drawn.append(draw_page(part, names, layout.results, title, foot))
    return drawn


def main(step: DrawExamples) -> None:
    examples, _ = read_examples(step.layout, step.generators, step.judge, step.examples, step.seed)
    # Text as text, so that it can be searched and read aloud.
    with style(**{"pdf.fonttype": 42, "figure.constrained_layout.use": False}), atomic(step.document) as temporary:
        about = {"CreationDate": None, "Creator": "compclip", "Title": f"{step.dataset}, {step.composition}"}
        drawn = pages(examples, step.layout, step.seed)
        with PdfPages(temporary, metadata=about) as file:
            for page in drawn:
                file.savefig(page)
    log.info("%s: %d swapped captions on %d pages", step.document, len(examples), len(drawn))


if __name__ == "__main__":
    cli.run(main)
