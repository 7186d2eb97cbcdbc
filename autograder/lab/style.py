"""How every picture of the lab looks, whatever the user's matplotlib is set to."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Transform
from PIL import Image

# Okabe and Ito's colours: told apart by people with any kind of colour vision.
BLUE, ORANGE, INK, GREY, PALE = "#0072B2", "#D55E00", "#222222", "#767676", "#D9D9D9"
DPI = 120
COLOURS = 64  # a palette makes the file a third as large
SMALL, NORMAL = 7.5, 9.0
Box = tuple[float, float, float, float]
Span = tuple[float, float]
# What a user's own style may have changed and would show in our pictures.
OURS = ("axes.", "font.", "figure.", "grid.", "hatch.", "legend.", "lines.", "markers.", "patch.", "path.",
        "savefig.", "text.", "xtick.", "ytick.")  # fmt: skip


@lru_cache(maxsize=1)
def _settings() -> dict[str, Any]:
    plain: dict[str, Any] = {str(k): v for k, v in matplotlib.rcParamsDefault.items() if k.startswith(OURS)}
    return plain | {
        "font.size": NORMAL, "hatch.linewidth": 0.9, "axes.edgecolor": GREY, "axes.linewidth": 0.8,
        "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.titlelocation": "left", "axes.titlesize": NORMAL, "axes.titleweight": "bold",
        "legend.frameon": False, "legend.fontsize": SMALL, "legend.handlelength": 2.2,
        "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "axes.labelsize": SMALL,
        "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip


@contextmanager
def our_style() -> Iterator[None]:
    """The lab's settings for the block; the user's are as before after it."""
    settings: Any = _settings()
    with matplotlib.rc_context(settings):
        yield


def blank(width: float, height: float) -> Figure:
    """A white figure of that many inches that no window and no pyplot knows of."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


class Sheet(NamedTuple):
    """A part of the page with coordinates of its own. One axes for all: a second costs as much as all it holds."""

    axes: Axes
    transform: Transform


def paper(figure: Figure) -> Sheet:
    """The whole figure, in inches from its upper left corner."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return Sheet(axes, axes.transData)


def part(page: Sheet, place: Box, x: Span, y: Span) -> Sheet:
    """The part of ``page`` at ``place`` (left, top, width, height); data run over ``x`` and, downwards, over ``y``."""
    left, top, width, height = place
    across, down = width / ((x[1] - x[0]) or 1), height / ((y[1] - y[0]) or 1)
    inches = Affine2D().translate(-x[0], -y[0]).scale(across, down).translate(left, top)
    return Sheet(page.axes, inches + page.transform)


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file."""
    canvas = FigureCanvasAgg(figure)
    with our_style():
        canvas.draw()  # savefig would draw it twice
    drawn = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
    picture = drawn.convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    palette, ground = picture.getpalette() or [], picture.tobytes()[0]  # the corner's colour
    palette[3 * ground : 3 * ground + 3] = [255, 255, 255]  # the palette's white is a mean of light greys
    picture.putpalette(palette)
    buffer = io.BytesIO()
    picture.save(buffer, "png")
    return buffer.getvalue()
