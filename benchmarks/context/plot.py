"""The table of availability as a picture: what is retained against what can still be read, for each chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from context.availability import CHAINS, OURS, WAYS, Score

PANEL = 620, 460
MARGIN = 70
LEGEND = 150
RIGHTMOST = 50
"""Per cent of tokens at the right end of each panel."""

_INK, _GRID, _PAPER = "#222222", "#dddddd", "#ffffff"
_COLOURS = (
    "#d62728",
    "#e377c2",
    "#7f7f7f",
    "#1f77b4",
    "#17becf",
    "#9467bd",
    "#2ca02c",
    "#ff7f0e",
    "#8c564b",
    "#bcbd22",
)


class _Panel(NamedTuple):
    """Where the picture of one chain has its lower left corner."""

    left: int
    bottom: int

    def at(self, retained: float, share: float) -> tuple[float, float]:
        """The place for shares from 0 to 1."""
        width, height = PANEL[0] - 2 * MARGIN, PANEL[1] - 2 * MARGIN
        return self.left + min(retained * 100 / RIGHTMOST, 1.0) * width, self.bottom - share * height


def draw(found: Sequence[Score], file: Path) -> None:
    """Write the picture of `found` to `file`, as PNG."""
    image = Image.new("RGB", (2 * PANEL[0], 2 * PANEL[1] + LEGEND), _PAPER)
    canvas = ImageDraw.Draw(image)
    chains = [chain for chain in CHAINS if any(score.chain == chain for score in found)]
    for number, chain in enumerate(chains):
        panel = _Panel(MARGIN + PANEL[0] * (number % 2), PANEL[1] * (number // 2 + 1) - MARGIN)
        _axes(canvas, panel, f"{chain} compaction{'s' if chain > 1 else ''}")
        for way, colour in zip(WAYS, _COLOURS, strict=True):
            points = [score for score in found if score.chain == chain and score.way == way.name]
            _line(canvas, panel, points, colour)
    _legend(canvas)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file, optimize=True)


def _axes(canvas: ImageDraw.ImageDraw, panel: _Panel, title: str) -> None:
    for percent in range(0, 101, 20):
        start, end = panel.at(0, percent / 100), panel.at(1, percent / 100)
        canvas.line((*start, *end), fill=_GRID)
        canvas.text((start[0] - 8, start[1]), f"{percent} %", fill=_INK, font=_font(13), anchor="rm")
    for percent in range(0, RIGHTMOST + 1, 10):
        x, y = panel.at(percent / 100, 0)
        canvas.line((x, y, x, panel.at(0, 1)[1]), fill=_GRID)
        canvas.text((x, y + 8), f"{percent} %", fill=_INK, font=_font(13), anchor="mt")
    x, y = panel.at(RIGHTMOST / 200, 1)
    canvas.text(
        (x, y - 14), f"{title}: facts that are there, by tokens retained", fill=_INK, font=_font(16), anchor="mb"
    )


def _line(canvas: ImageDraw.ImageDraw, panel: _Panel, points: Sequence[Score], colour: str) -> None:
    """Draw facts in view as a line with dots; facts that recall adds as a ring above each dot."""
    width = 4 if points and points[0].way == OURS else 2
    closed = [panel.at(score.kept, score.in_view) for score in points]
    canvas.line([place for point in closed for place in point], fill=colour, width=width)
    for score, (x, y) in zip(points, closed, strict=True):
        canvas.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)
        if score.recalled > score.in_view:
            high = panel.at(score.kept, score.recalled)[1]
            canvas.line((x, y, x, high), fill=colour)
            canvas.ellipse((x - 5, high - 5, x + 5, high + 5), outline=colour, width=2, fill=_PAPER)


def _legend(canvas: ImageDraw.ImageDraw) -> None:
    top = 2 * PANEL[1] + 10
    for number, (way, colour) in enumerate(zip(WAYS, _COLOURS, strict=True)):
        x, y = MARGIN + 240 * (number % 5), top + 30 * (number // 5)
        canvas.line((x, y, x + 26, y), fill=colour, width=4)
        canvas.text((x + 34, y), way.name, fill=_INK, font=_font(15), anchor="lm")
    note = "dot: in the view; ring: in the view or recalled by a handle in it. Means of all sessions."
    canvas.text((MARGIN, top + 75), note, fill=_INK, font=_font(14), anchor="lm")


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
