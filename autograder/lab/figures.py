"""The pictures: the lab's, and the ones for reports."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from autograder.lab.draw import (
    DASHES,
    NOTHING,
    OWN,
    RIGHT,
    STATES,
    curve,
    draw_ledger,
    draw_series,
    hatch,
    lines,
    square,
)  # fmt: skip
from autograder.lab.experiment import Experiment, Series
from autograder.lab.grid import Grid, Wanted, make_grid
from autograder.lab.letters import Letters, put
from autograder.lab.style import GREY, INK, NORMAL, ORANGE, Box, Sheet, blank, our_style, paper, part
from autograder.loops import Ledger

LARGEST_CELL = 0.42  # inches
WIDTH, HEIGHT = 10.4, 5.3
LEDGER = (0.75, 0.55, 4.56, 4.0)  # left, top, width, height, in inches
RIGHT_HALF = (6.25, 3.95)  # left, width
WRONG, MISSING = "should not be there, or not that much", "missing"


def cell_size(grid: Grid, width: float, height: float, largest: float = LARGEST_CELL) -> float:
    return min(largest, width / max(1, len(grid.calls)), height / max(1, len(grid.rows)))


def ledger_sheet(page: Sheet, grid: Grid, left: float, top: float, cell: float) -> Sheet:
    """A part of the page that has one unit for each cell."""
    columns, rows = max(1, len(grid.calls)), max(1, len(grid.rows))
    return part(page, (left, top, cell * columns, cell * rows), (0, columns), (0, rows))


def lab_figure(state: Experiment) -> Figure:
    """The lab's picture of one state: the ledger, the norms that the steps used, the losses."""
    with our_style():
        figure = blank(WIDTH, HEIGHT)
        page = paper(figure)
        _ledger_part(page, state.grid)
        _norms_part(page, state)
        _losses_part(page, state)
    return figure


def _heading(page: Sheet, left: float, top: float, words: str) -> None:
    put(page, [Letters(left, top, words, "left")], size=NORMAL, weight="bold")


def _ledger_part(page: Sheet, grid: Grid) -> None:
    left, top, width, height = LEDGER
    cell = cell_size(grid, width, height)
    below = top + cell * max(1, len(grid.rows))
    draw_ledger(ledger_sheet(page, grid, left, top, cell), grid, cell)
    _heading(page, left - 0.55, 0.2, "Ledger: how much of each batch's gradient the step used")
    ledger_keys(page, grid, left, below + 0.55)


def ledger_keys(page: Sheet, grid: Grid, x: float, y: float) -> None:
    """What the marks mean, as far as there are any."""
    side = 0.14
    if grid.has_wrong:
        lines(page, hatch(x, y - side / 2, side, 3), ORANGE, 1.0)
        put(page, [Letters(x + side, y, WRONG, "left", 0.7)])
        x += 2.6
    if grid.has_missing:
        box = [*square(0, 0), (0.0, 0.0)]
        across, down = [x + side * c for c, _ in box], [y - side / 2 + side * r for _, r in box]
        curve(page, across, down, {"color": ORANGE, "linewidth": 1.2, "linestyle": DASHES})
        put(page, [Letters(x + side, y, MISSING, "left", 0.7)])


def _norms_part(page: Sheet, state: Experiment) -> None:
    left, width = RIGHT_HALF
    empty = {row.number: row.state for row in state.grid.steps if row.found_nothing}
    own = _pair(state.norms)
    nothing = [own[0][number - 1] for number in empty if number]
    place = (left, 0.6, width, 1.6)
    draw_series(page, place, own, _pair(state.right_norms), _ticks(state), _end(state), nothing)
    _border(page, place, state)
    _heading(page, left - 0.35, 0.2, "Norm of the gradient that each step used")
    series_keys(page, left, 0.43, next((f".grad was {STATES[s]}" for s in empty.values()), ""))


def series_keys(page: Sheet, x: float, y: float, nothing: str = "") -> None:
    styles = [("this loop", OWN, 0.95), ("right loop", RIGHT, 1.05), *([(nothing, NOTHING, 1.0)] if nothing else [])]
    for words, style, width in styles:
        long = 0.0 if style is NOTHING else 0.3
        curve(page, [x, x + long] if long else [x], [y, y] if long else [y], style)
        put(page, [Letters(x + long + 0.12, y, words, "left")])
        x += long + width


def _losses_part(page: Sheet, state: Experiment) -> None:
    left, width = RIGHT_HALF
    place = (left, 2.95, width, 1.6)
    at = [i + 0.5 for i in range(len(state.losses))]
    draw_series(page, place, (at, state.losses), (at, state.right_losses), _ticks(state), _end(state))
    _border(page, place, state)
    _heading(page, left - 0.35, 2.7, "Loss of each batch")
    put(page, [Letters(left + width / 2, 4.55, "backward call, by its batch", "center", 0, -2.7)])


def _end(state: Experiment) -> float:
    return float(len(state.losses))


def _ticks(state: Experiment) -> dict[float, str]:
    return {i + 0.5: str(i % state.settings.batches + 1) for i in range(len(state.losses))}


def _border(page: Sheet, place: Box, state: Experiment) -> None:
    """The line between the epochs."""
    left, top, width, height = place
    middle = left + width / 2
    lines(page, [[(middle, top), (middle, top + height)]], INK, 1.0)


def _pair(series: Series) -> tuple[list[float], list[float]]:
    return [a - 0.5 for a in series.at], list(series.values)


# ---------------------------------------------------------------------- for reports
def ledger_figure(
    ledger: Ledger, expected: Sequence[Wanted] | None = None, states: Sequence[str] | None = None
) -> Figure:
    """A ledger as a small table of shaded numbers, marked where it departs from ``expected`` (``wanted_steps``)."""
    return grid_figure(make_grid(ledger, expected, states))


def grid_figure(grid: Grid) -> Figure:
    with our_style():
        cell = cell_size(grid, 5.0, 4.2, largest=0.32)
        width, height = cell * max(1, len(grid.calls)), cell * max(1, len(grid.rows))
        marked = grid.has_wrong or grid.has_missing
        notes = 0.6 if any(row.found_nothing for row in grid.rows) else 0.2
        figure = blank(max(4.3 if marked else 2.6, width + 0.7 + notes), height + 0.75 + 0.25 * marked)
        page = paper(figure)
        draw_ledger(ledger_sheet(page, grid, 0.7, 0.25, cell), grid, cell)
        ledger_keys(page, grid, 0.7, height + 0.8)
        if any(grid.left_out):
            words = f"the first {len(grid.rows)} steps and {len(grid.calls)} calls"
            put(page, [Letters(0.7, 0.1, words, "left")], colour=GREY)
    return figure


def norms_figure(own: Series | Sequence[float], right: Series | Sequence[float]) -> Figure:
    """The norm that each step used beside the norm that it should have used."""

    def pair(series: Series | Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
        return _pair(series) if isinstance(series, Series) else ([i + 0.5 for i in range(len(series))], series)

    with our_style():
        figure = blank(5.0, 2.5)
        page = paper(figure)
        pairs = pair(own), pair(right)
        end = max([1.0, *(x + 0.5 for xs, _ in pairs for x in xs)])
        every = max(1, round(end / 12))
        ticks = {i + 0.5: str(i + 1) for i in range(0, int(end), every)}
        draw_series(page, (0.55, 0.6, 4.25, 1.4), *pairs, ticks, end)
        _heading(page, 0.2, 0.2, "Norm of the gradient that each step used")
        series_keys(page, 0.55, 0.43)
        label = "backward call" if isinstance(own, Series) else "step"
        put(page, [Letters(2.7, 2.0, label, "center", 0, -2.7)])
    return figure
