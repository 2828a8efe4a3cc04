"""Draw pages for print: seen captions beside their swapped ones, the pairs marked, with each generator's images.

The paper's figures 4 to 7, as a PDF of A4 pages with six captions each. The examples are those of the page.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product

import numpy as np
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath
from PIL import Image

from workflow_scripts.core import cli
from workflow_scripts.core.cli import log
from workflow_scripts.core.io import atomic
from workflow_scripts.plot.drawing import style
from workflow_scripts.plot.examples import PER_PAGE, Caption, Example, Picture, Segment, read_examples
from workflow_scripts.report.steps import DrawExamples

# Inches, of A4: what is drawn fits US Letter too.
PAGE, MARGIN = (8.27, 11.69), 0.5
TOP = 10.95
BLOCK, REAL, GAP = 1.62, 0.9, 0.14
HALF = (PAGE[0] - 2 * MARGIN - REAL - 2 * GAP) / 2
# Points, lines and inches.
TEXT, LINES, LINE = 7.5, 5, 0.135
SMALL, SMALL_LINE = 5.5, 0.09
LARGEST = 0.72
# Generators beside each other: of more the pictures would be too small, and get pages of their own.
ABREAST = 6
# Text, and what is behind it: as on the page.
MARKS = {"seen": ("#0b6b2f", "#dff3e4"), "swapped": ("#b3141b", "#fde3e1")}
SOFT = "#5b6168"
Line = list[Segment]


@cache
def width(text: str, points: float, bold: bool = False) -> float:
    """Inches that ``text`` takes in a line."""
    font = FontProperties(family="DejaVu Sans", size=points, weight="bold" if bold else "normal")
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0] / 72


def wrap(segments: Sequence[Segment], room: float) -> list[Line]:
    """Segments in lines of at most ``room`` inches, broken at spaces, a word that is longer anywhere."""
    # A word may have a mark and a comma: it is a list of segments itself.
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
    """The space between two words: marked where both are."""
    return " ", after[0][1] if before and before[-1][1] == after[0][1] else ""


def _length(line: Line) -> float:
    return sum(width(text, TEXT, bool(kind)) for text, kind in line)


def _joined(line: Line) -> Line:
    """Neighbours of one kind as one segment."""
    found: Line = []
    for text, kind in line:
        if found and found[-1][1] == kind:
            found[-1] = (found[-1][0] + text, kind)
        else:
            found.append((text, kind))
    return found


def fit(segments: Sequence[Segment], room: float, most: int) -> list[Line]:
    """Segments in at most ``most`` lines, those around the first mark; dots where some are left out."""
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
    """``text`` as long as it fits in ``room`` inches, else with dots in its middle."""
    shown, keep = text, len(text)
    while width(shown, points) > room and keep > 2:
        keep -= 1
        shown = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
    return shown


class Sheet:
    """A page on which things are put by inches from its left and from its bottom."""

    def __init__(self) -> None:
        self.figure = Figure(figsize=PAGE)

    def text(self, x: float, y: float, text: str, points: float, color: str = "black", bold: bool = False) -> None:
        """``text`` on a line whose foot is at ``y``."""
        self.figure.text(
            x / PAGE[0], y / PAGE[1], text, fontsize=points, color=color, va="baseline",
            fontweight="bold" if bold else "normal",
        )  # fmt: skip

    def box(self, x: float, y: float, w: float, h: float, **look: object) -> None:
        place = Rectangle((x / PAGE[0], y / PAGE[1]), w / PAGE[0], h / PAGE[1], transform=self.figure.transFigure)
        place.set(**look)
        self.figure.add_artist(place)

    def line(self, x: float, y: float, segments: Line) -> None:
        """A line of a caption, its marks on their color."""
        for text, kind in segments:
            color, back = MARKS.get(kind, ("black", None))
            if back:
                self.box(x, y - 0.03, width(text, TEXT, True), LINE - 0.01, facecolor=back, edgecolor="none")
            self.text(x, y, text, TEXT, color, bool(kind))
            x += width(text, TEXT, bool(kind))

    def picture(self, x: float, y: float, side: float, picture: Picture) -> None:
        """A picture in a square; its frame says whether the judge found the caption, its foot what it is."""
        look = {True: (MARKS["seen"][0], "solid", 1.2), False: (MARKS["swapped"][0], "dashed", 1.2)}
        color, dash, wide = look.get(picture.hit, ("#b0b5ba", "solid" if picture.file else "dotted", 0.6))
        if picture.file:
            pixels = Image.open(io.BytesIO(picture.file)).convert("RGB")
            w, h = (side * length / max(pixels.size) for length in pixels.size)
            place = ((x + (side - w) / 2) / PAGE[0], (y + (side - h) / 2) / PAGE[1], w / PAGE[0], h / PAGE[1])
            axes = self.figure.add_axes(place)
            axes.imshow(np.asarray(pixels), interpolation="none", aspect="auto")
            axes.set_axis_off()
        self.box(x, y, side, side, facecolor="none", edgecolor=color, linestyle=dash, linewidth=wide)
        sign = {True: "✓ ", False: "✗ "}.get(picture.hit, "")
        for number, words in enumerate(filter(None, (picture.title, sign + picture.verdict))):
            self.text(
                x, y - (number + 1) * SMALL_LINE, shorten(words, side + 0.07, SMALL), SMALL,
                color if number and picture.hit is not None else SOFT,
            )  # fmt: skip

    def half(self, x: float, top: float, caption: Caption, names: Sequence[str]) -> None:
        """A caption and, below it, the pictures that the generators ``names`` made of it."""
        for number, line in enumerate(fit(caption.segments, HALF, LINES)):
            self.line(x, top - (number + 1) * LINE, line)
        step = min(LARGEST + 0.08, (HALF + 0.08) / max(len(names), 1))
        side = step - 0.08
        foot = top - BLOCK + 2 * SMALL_LINE + 0.12
        for picture in caption.pictures:
            if picture.title in names:
                self.picture(x + names.index(picture.title) * step, foot, side, picture)

    def block(self, top: float, example: Example, names: Sequence[str]) -> None:
        """An example: the real image, the seen caption, the swapped one."""
        self.picture(MARGIN, top - REAL, REAL, example.real)
        below = top - REAL - (3 if example.real.verdict else 2) * SMALL_LINE
        self.text(MARGIN, below, shorten(example.image_id, REAL + 0.1, SMALL), SMALL, SOFT)
        for number, caption in enumerate(example.captions):
            self.half(MARGIN + REAL + GAP + number * (HALF + GAP), top, caption, names)


def of_both(examples: Sequence[Example]) -> list[str]:
    """The generators that made a seen and a swapped caption."""
    seen, swapped = (
        dict.fromkeys(picture.title for e in examples for picture in e.captions[side].pictures) for side in (0, 1)
    )
    return [name for name in seen if name in swapped]


def draw_page(examples: Sequence[Example], names: Sequence[str], title: str, foot: str) -> Figure:
    """One page; ``foot`` says what a reader must know."""
    sheet = Sheet()
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


def pages(examples: Sequence[Example], dataset: str, composition: str, seed: int) -> list[Figure]:
    """All pages, at least one, that says why it is empty; the examples come again for each ABREAST generators."""
    all_names = of_both(examples)
    groups = [all_names[start : start + ABREAST] for start in range(0, len(all_names), ABREAST)] or [[]]
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
        title = f"{dataset}, {composition}: seen and swapped, page {number} of {len(groups) * len(parts)}"
        drawn.append(draw_page(part, names, title, foot))
    return drawn


def main(step: DrawExamples) -> None:
    examples, _ = read_examples(step.layout, step.generators, step.examples, step.seed)
    # Text as text, so that it can be searched and read aloud.
    with style(**{"pdf.fonttype": 42, "figure.constrained_layout.use": False}), atomic(step.document) as temporary:
        about = {"CreationDate": None, "Creator": "compclip", "Title": f"{step.dataset}, {step.composition}"}
        drawn = pages(examples, step.dataset, step.composition, step.seed)
        with PdfPages(temporary, metadata=about) as file:
            for page in drawn:
                file.savefig(page)
    log.info("%s: %d swapped captions on %d pages", step.document, len(examples), len(drawn))


if __name__ == "__main__":
    cli.run(main)
