"""Draw docs/pictures/idea.svg, the first picture of the README, from a finished default run.

It shows a seen caption with its image, the caption swapped, and what a model that composes and a
model that memorizes draw for it. Of the swapped captions with one change that every judge reads
right for both models, it takes a short one whose two images differ most.
"""

import base64
import textwrap
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from pydantic import Field

from compclip.core.artifacts.files import write_text
from compclip.core.artifacts.parquet import read_table
from compclip.core.errors import UserError
from compclip.core.identity.code import ROOT
from compclip.core.settings import cli
from compclip.core.settings.cli import Command
from compclip.core.tables import CAPTION_KEY, IMAGES, MANIFEST, SCORES, SWAPPED
from workflow_scripts.layout import Layout

PICTURE = ROOT / "docs" / "pictures" / "idea.svg"
# Characters of a caption that the picture shows in full, and of a line over one image and over two.
SHORT, LINE, LONG_LINE = 60, 14, 28
# So that the words can be read on a phone, which shows the picture at half its size.
SIDE, GAP, TOP, STEP = 200, 20, 60, 32
# Its own background, because a page's may be light or dark whatever the browser's setting says.
SVG_STYLE = (
    "text{font-family:system-ui,-apple-system,'Segoe "
    "UI',Helvetica,Arial,sans-serif;font-size:25px;fill:#1f2328}"
    ".head{font-weight:600}.from{fill:#0550ae;font-weight:600}.to{fill:#a8071a;font-weight:600}"
    ".right{fill:#116329;font-weight:600}.wrong{fill:#a8071a;font-weight:600}"
)


class Idea(Command):
    """Draw the first picture of the README from a finished default run."""

    results: Path = Field(Path("results"), description="folder of a finished run")
    dataset: str = Field("sketch", description="name of the data set")
    composition: str = Field("color", description="name of the composition")
    composing: str = Field("faithful", description="name of the generator that composes")
    memorizing: str = Field("memorizer", description="name of the generator that memorizes")
    output: Path = Field(PICTURE, description="the picture")


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"), dtype=int)


def choose_entry(command: Idea, layout: Layout) -> pd.Series:
    """Return the entry that is drawn: its texts, changes, and the paths of its three images."""
    entries = read_table(layout.folder / "swapped.parquet", SWAPPED)
    entries = entries[
        (entries["changes"].map(len) == 1) & (entries["swapped_text"].map(len) <= SHORT)
    ]
    for name, generator, right in (
        ("composed", command.composing, 1),
        ("memorized", command.memorizing, 0),
    ):
        made = read_table(layout.folder / "generated" / generator / "manifest.parquet", MANIFEST)
        made = made[made["split"].eq("test_swapped") & made["status"].eq("ok") & made["draw"].eq(0)]
        entries = entries.merge(
            made[[*CAPTION_KEY, "path"]].rename(columns={"path": name}), on=CAPTION_KEY
        )
        for scored in sorted(layout.folder.glob(f"scores/[0-9]*/{generator}/test_swapped.parquet")):
            scores = read_table(scored, SCORES)
            read = scores[scores["draw"].eq(0) & scores["adjective_first"].eq(right)]
            entries = entries.merge(read[CAPTION_KEY], on=CAPTION_KEY)
    images = read_table(command.results / command.dataset / "images.parquet", IMAGES)
    entries = entries.merge(
        images[["image_id", "path"]].rename(columns={"path": "seen"}).dropna(), on="image_id"
    )
    if entries.empty:
        raise UserError(
            f"{layout.folder}: no short swapped caption with one change that the judges read right"
        )
    differences = [
        np.abs(pixels(command.results / one) - pixels(command.results / other)).sum()
        for one, other in zip(entries["composed"], entries["memorized"], strict=True)
    ]
    return entries.iloc[int(np.argmax(differences))]


def marked_lines(text: str, start: int, end: int, kind: str, x: int, width: int) -> str:
    """Return a caption in lines of ``width`` characters, with the characters of a change marked."""
    lines, at = [], 0
    for number, line in enumerate(textwrap.wrap(text, width)):
        begin = text.index(line, at)
        at = begin + len(line)
        a, b = max(start, begin) - begin, min(end, at) - begin
        shown = escape(line)
        if a < b:
            shown = (
                f"{escape(line[:a])}<tspan "
                f'class="{kind}">{escape(line[a:b])}</tspan>{escape(line[b:])}'
            )
        lines.append(f'<text x="{x}" y="{TOP + STEP * (number + 1)}">{shown}</text>')
    return "\n".join(lines)


def image(path: Path, x: int, y: int) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<image x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" '
        f'href="data:image/png;base64,{data}"/>'
    )


def drawing(command: Idea, entry: pd.Series) -> str:
    """Return the picture as SVG."""
    change = entry["changes"][0]
    xs = [GAP + place * (SIDE + GAP) for place in range(3)]
    y = TOP + STEP * len(textwrap.wrap(entry["text"], LINE)) + GAP
    width, height = xs[-1] + SIDE + GAP, y + SIDE + 56
    seen = marked_lines(entry["text"], change["start"], change["end"], "from", xs[0], LINE)
    swapped = marked_lines(
        entry["swapped_text"], change["new_start"], change["new_end"], "to", xs[1], LONG_LINE
    )
    label = y + SIDE + 34
    words = (
        f"{change['original_adj']} {change['noun']} becomes {change['new_adj']} {change['noun']}"
    )
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} \
role="img" aria-label="A seen caption with its image, its swapped caption, and the images of two models for it: \
{escape(words)}.">
<!-- Drawn by python -m benchmarks.idea from a finished default run. -->
<style>{SVG_STYLE}</style>
<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="12" fill="#ffffff" stroke="#d0d7de" stroke-width="2"/>
<path d="M{xs[1] - GAP // 2} {GAP}V{height - GAP}" stroke="#d0d7de" stroke-width="2"/>
<text class="head" x="{xs[0]}" y="42">Seen caption</text>
<text class="head" x="{xs[1]}" y="42">Swapped caption: unseen</text>
{seen}
{swapped}
{image(command.results / entry["seen"], xs[0], y)}
{image(command.results / entry["composed"], xs[1], y)}
{image(command.results / entry["memorized"], xs[2], y)}
<text x="{xs[0]}" y="{label}">its image</text>
<text class="right" x="{xs[1]}" y="{label}">✓ composes</text>
<text class="wrong" x="{xs[2]}" y="{label}">✗ memorizes</text>
</svg>
"""  # noqa: E501


def main(command: Idea) -> None:
    layout = Layout(command.results, command.dataset, command.composition)
    write_text(drawing(command, choose_entry(command, layout)), command.output)


if __name__ == "__main__":
    cli.run(main)
