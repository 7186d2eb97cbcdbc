"""Many short texts, fast: a table of hundreds of numbers is drawn in some milliseconds.

A text is the outline of its letters. Equal texts are one marker at many places, which matplotlib draws once and copies;
the others are one collection of paths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import IdentityTransform

from autograder.lab.style import INK, SMALL, Sheet

RIM, ORDER = 2.4, 3.0
MIDDLE = 0.365  # half the height of a digit in this font: keeps all texts of a row on one line


class Letters(NamedTuple):
    """``text`` at a place; ``dx``, ``dy`` move it by that many font sizes, ``align`` is left, center or right."""

    x: float
    y: float
    text: str
    align: str = "center"
    dx: float = 0.0
    dy: float = 0.0


@lru_cache(maxsize=512)
def outline(text: str, align: str, dx: float, dy: float, weight: str) -> Path:
    """The outline of ``text`` for a font of size 1, its middle (or its left or right end) at (dx, dy)."""
    path = TextPath((0, 0), text, size=1.0, prop=FontProperties(family="DejaVu Sans", weight=weight))
    (left, _), (right, _) = path.get_extents().get_points()
    anchor = {"left": left, "center": (left + right) / 2, "right": right}[align]
    return Path(np.asarray(path.vertices) - [anchor - dx, MIDDLE - dy], path.codes)


def put(
    sheet: Sheet,
    items: Iterable[Letters],
    *,
    size: float = SMALL,
    colour: str = INK,
    weight: str = "normal",
    rim: bool = False,
) -> None:
    """Write ``items`` at places of the sheet. ``rim`` edges the letters with white, so that no hatch crosses them."""
    places: dict[Path, list[tuple[float, float]]] = defaultdict(list)
    for x, y, *looks in items:
        places[outline(*looks, weight)].append((x, y))
    often = {path: points for path, points in places.items() if rim or len(points) > 2}
    for path, points in often.items():
        _copies(sheet, path, points, size, colour, rim)
    seldom = [(path, point) for path, points in places.items() if path not in often for point in points]
    if seldom:
        paths, spots = zip(*seldom, strict=True)
        letters = PathCollection(
            paths, sizes=[size**2], offsets=spots, offset_transform=sheet.transform,
            transform=IdentityTransform(), clip_on=False, zorder=ORDER, linewidths=0.0, facecolors=colour,
        )  # fmt: skip
        sheet.axes.add_collection(letters, autolim=False)


def _copies(sheet: Sheet, path: Path, points: list[tuple[float, float]], size: float, colour: str, rim: bool) -> None:
    x, y = zip(*points, strict=True)
    large = 2 * float(np.abs(path.vertices).max())  # a marker's farthest coordinate is put at half the marker's size
    for shade, edge in [("white", RIM), (colour, 0.0)] if rim else [(colour, 0.0)]:
        copies = Line2D(
            x, y, linestyle="none", marker=path, markersize=size * large, color=shade, markeredgewidth=edge,
            transform=sheet.transform, clip_on=False, zorder=ORDER,
        )  # fmt: skip
        sheet.axes.add_artist(copies)
