"""Find texts of a figure that cannot be read."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap, leave the figure, or are smaller than 13 pixels (96
    for 72 points).
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ticks = [
        (axis, tick)
        for axes in figure.findobj(lambda artist: hasattr(artist, "xaxis"))
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks()
    ]
    not_drawn = {
        tick.label1
        for axis, tick in ticks
        if not _between(tick.get_loc(), *axis.get_view_interval())
    }
    texts = [
        t
        for t in figure.findobj(Text)
        if t.get_visible() and t.get_text().strip() and t not in not_drawn
    ]
    boxes = [
        (text.get_text(), text.get_window_extent(canvas.get_renderer()).padded(-1))
        for text in texts
    ]
    small = [(text.get_text(), "small") for text in texts if text.get_fontsize() * 96 / 72 < 13]
    outside = [(text, "outside") for text, box in boxes if box.x0 < 0 or box.x1 > figure.bbox.width]
    return (
        [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
        + small
        + outside
    )


def _between(place: float, *ends: float) -> bool:
    return min(ends) <= place <= max(ends)
