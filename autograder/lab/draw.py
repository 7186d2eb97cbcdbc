"""Draw a ledger, and numbers over backward calls, into given axes.

Ticks, hatches and texts are drawn as few artists with many parts: matplotlib's own would take most of the time
that a slider may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from autograder.lab.grid import Grid
from autograder.lab.letters import Letters, put
from autograder.lab.style import BLUE, GREY, INK, ORANGE, PALE, Box, Sheet, part
from autograder.lab.words import share
from autograder.loops.ledger import TINY

SHADES = LinearSegmentedColormap.from_list("ledger", ["#E8F1F8", "#9CC7E4", "#5FA5D2"])  # black text reads on all
DASHES = (0, (3, 2))
STATES = {"none": "None", "zeros": "zeros"}
Point = tuple[float, float]


def lines(sheet: Sheet, segments: Iterable[Sequence[Point]], colour: str, width: float, order: float = 1.0) -> None:
    """All ``segments`` as one path: one artist, drawn at once."""
    points = [point for segment in segments for point in segment]
    if points:
        path = Path(points, [Path.MOVETO, Path.LINETO] * (len(points) // 2))
        _add(sheet, PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width), order)


def _add(sheet: Sheet, artist: Patch | PolyCollection, order: float) -> None:
    artist.set(transform=sheet.transform, zorder=order, clip_on=False)
    if isinstance(artist, Patch):
        sheet.axes.add_artist(artist)
    else:
        sheet.axes.add_collection(artist, autolim=False)


# ---------------------------------------------------------------------- the ledger
def draw_ledger(sheet: Sheet, grid: Grid, cell: float) -> None:
    """The ledger as a table of shaded numbers, a cell for each unit of the sheet; ``cell`` is its side in inches."""
    _rules(sheet, grid)
    _shades(sheet, grid)
    _marks(sheet, grid, strokes=5 if cell > 0.28 else 3)
    _numbers(sheet, grid, cell)
    _labels(sheet, grid, cell)


def _rules(sheet: Sheet, grid: Grid) -> None:
    rows, columns = len(grid.rows), len(grid.calls)
    thin = [[(0, r), (columns, r)] for r in range(rows + 1)] + [[(c, 0), (c, rows)] for c in range(columns + 1)]
    ends = [r for r in range(1, rows) if grid.rows[r].call != grid.rows[r - 1].call]
    borders = [c for c in range(1, columns) if grid.calls[c] != grid.calls[c - 1]]
    thick = [[(0, r), (columns, r)] for r in ends] + [[(c, 0), (c, rows)] for c in borders]
    lines(sheet, thin, PALE, 0.6)
    lines(sheet, thick, INK, 1.0, order=2.5)


def square(r: int, c: int, inset: float = 0.0) -> list[Point]:
    low, high = inset, 1 - inset
    return [(c + low, r + low), (c + high, r + low), (c + high, r + high), (c + low, r + high)]


def _shades(sheet: Sheet, grid: Grid) -> None:
    """The more of a gradient was used, the darker."""
    used = [(r, c, abs(v)) for r, row in enumerate(grid.rows) for c, v in enumerate(row.entries) if abs(v) > TINY]
    if not used:
        return
    sizes = np.array([v for _, _, v in used])
    cells = PolyCollection(
        [square(r, c) for r, c, _ in used], facecolors=SHADES(sizes / max(1.0, sizes.max())),
        edgecolors="white", linewidths=0.8,
    )  # fmt: skip
    _add(sheet, cells, 1.5)


def _marks(sheet: Sheet, grid: Grid, strokes: int) -> None:
    """Where it is not as it should be: hatched what is too much, dashed squares around what is missing."""
    cells = [(r, c, row) for r, row in enumerate(grid.rows) for c in range(len(grid.calls))]
    wrong = [square(r, c, 0.03)[0] for r, c, row in cells if row.is_wrong(c)]
    lines(sheet, [line for corner in wrong for line in hatch(*corner, 0.94, strokes)], ORANGE, 1.0, order=2.0)
    missing = PolyCollection(
        [square(r, c, 0.12) for r, c, row in cells if row.is_missing(c)],
        facecolors="none", edgecolors=ORANGE, linewidths=1.2, linestyles=[DASHES],
    )  # fmt: skip
    _add(sheet, missing, 2.0)


def hatch(x: float, y: float, side: float, strokes: int) -> list[list[Point]]:
    """Slanted strokes that fill a square whose upper left corner is at (x, y)."""
    out = []
    for number in range(1, strokes + 1):
        part = 2 * number / (strokes + 1)
        low, high = max(0.0, part - 1), min(1.0, part)
        out.append([(x + side * low, y + side * (part - low)), (x + side * high, y + side * (part - high))])
    return out


def _numbers(sheet: Sheet, grid: Grid, cell: float) -> None:
    short = cell < 0.28
    used = [(r, c) for r, row in enumerate(grid.rows) for c, v in enumerate(row.entries) if abs(v) > TINY]
    texts = {(r, c): share(grid.rows[r].entries[c]) for r, c in used}
    longest = max((len(text) - short * text.startswith("0.") for text in texts.values()), default=1)
    size = min(8.0, 72 * cell * 0.8 / (0.6 * max(longest, 2)))
    for wrong in (False, True):
        items = [
            Letters(c + 0.5, r + 0.5, text.replace("0.", ".") if short else text)
            for (r, c), text in texts.items()
            if grid.rows[r].is_wrong(c) == wrong
        ]
        put(sheet, items, size=size, rim=wrong)


def _labels(sheet: Sheet, grid: Grid, cell: float) -> None:
    rows, columns = len(grid.rows), len(grid.calls)
    size = min(7.5, 72 * cell * 0.55)
    below = [",".join(str(b + 1) for b in batches) or "–" for batches in grid.batches]
    put(sheet, [Letters(c + 0.5, rows, text, "center", 0, -1.1) for c, text in enumerate(below)], size=size)
    taken = [(r, row) for r, row in enumerate(grid.rows) if row.number is not None]
    left = [Letters(0, r + 0.5, f"step {row.number}", "right", -0.6) for r, row in taken]
    put(sheet, left, size=size)
    missed = [r for r, row in enumerate(grid.rows) if row.number is None]
    put(sheet, [Letters(0, r + 0.5, "no step", "right", -0.6) for r in missed], size=size, colour=ORANGE)
    put(sheet, [Letters(columns / 2, rows, "backward call, by its batch", "center", 0, -1.2 - 1.5 * size / 7.5)])
    put(sheet, epochs(grid.calls, 0.0), colour=GREY)
    put(sheet, found(grid), size=size, colour=GREY)


def found(grid: Grid) -> list[Letters]:
    """What was in .grad at the steps that used no gradient, to the right of their rows."""
    columns = len(grid.calls)
    empty = [(r, row) for r, row in enumerate(grid.rows) if row.found_nothing]
    words = [Letters(columns, r + 0.5, STATES[row.state], "left", 0.8) for r, row in empty]
    return [Letters(columns, 0, ".grad", "left", 0.8, 0.9), *words] if words else []


def epochs(calls: Sequence[int], y: float) -> list[Letters]:
    """``epoch 1``, ``epoch 2`` over their columns; nothing where there is only one."""
    numbers = sorted(set(calls)) if len(set(calls)) > 1 else []
    return [Letters(calls.index(n) + calls.count(n) / 2, y, f"epoch {n + 1}", "center", 0, 0.9) for n in numbers]


# ---------------------------------------------------------------------- numbers over backward calls
Style = dict[str, Any]
RIGHT: Style = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 1.2, "marker": "s", "markersize": 5.5}
RIGHT["markerfacecolor"] = "white"
OWN: Style = {"color": BLUE, "linestyle": "-", "linewidth": 1.5, "marker": "o", "markersize": 3.8}
NOTHING: Style = {"color": ORANGE, "linestyle": "none", "marker": "x", "markersize": 6.5, "markeredgewidth": 1.7}
Pairs = tuple[Sequence[float], Sequence[float]]


def draw_series(
    page: Sheet,
    place: Box,
    own: Pairs,
    right: Pairs,
    ticks: dict[float, str],
    end: float,
    nothing: Sequence[float] = (),
) -> Sheet:
    """This loop's numbers over the right loop's, told apart by marks and dashes, not only by colour.

    ``ticks`` are the labels below the axis (from 0 to ``end``), ``nothing`` where a step found no gradient.
    """
    levels = height_ticks([*own[1], *right[1]])
    sheet = part(page, place, (0, end), (levels[-1], 0))
    lines(sheet, [[(0, y), (end, y)] for y in levels], PALE, 0.7)
    lines(sheet, [[(0, 0), (end, 0)]], GREY, 0.9, order=1.5)
    for (x, y), style in ((right, RIGHT), (own, OWN), ((nothing, [0.0] * len(nothing)), NOTHING)):
        curve(sheet, x, y, style)
    put(sheet, [Letters(0, y, f"{y:g}", "right", -0.6) for y in levels])
    put(sheet, [Letters(x, 0, text, "center", 0, -1.1) for x, text in ticks.items()])
    return sheet


def curve(sheet: Sheet, x: Sequence[float], y: Sequence[float], style: Style, order: float = 2.5) -> None:
    sheet.axes.add_artist(Line2D(x, y, transform=sheet.transform, zorder=order, clip_on=False, **style))


def height_ticks(values: Sequence[float]) -> list[float]:
    """Round numbers from 0 to above the largest of ``values``; infinite ones are left out."""
    finite = [v for v in values if abs(v) < 1e12]
    top = max(finite, default=0.0) or 1.0
    levels = MaxNLocator(4).tick_values(0.0, top)
    return [float(y) for y in levels if y >= 0]
