"""A ledger as a picture for a report: small and calm, with its words."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from autograder.lab.figures import grid_figure
from autograder.lab.grid import Wanted, make_grid, wanted_steps
from autograder.lab.state import picture_html
from autograder.lab.style import png
from autograder.lab.words import grid_words, ledger_words
from autograder.loops import Ledger, Task, Verdict

MARKED = ("train", "train_accumulate")  # signatures whose steps each have batches of their own
SCALE = 0.85  # a report is read beside text


class Picture(NamedTuple):
    """A PNG, what it shows in words, and its size in inches."""

    png: bytes
    alt: str
    width: float
    height: float

    @property
    def html(self) -> str:
        return picture_html(self.png, self.alt, SCALE * self.width, SCALE * self.height)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        data = base64.b64encode(self.png).decode()
        return {"text/html": self.html, "image/png": data, "text/plain": self.alt}, {"image/png": {"alt": self.alt}}


def picture(shown: Verdict | Ledger, task: Task | None = None) -> Picture | None:
    """The ledger of ``shown`` drawn; with ``task``, marked where it departs from what that asks for.

    None where there is no ledger, or nothing in it.
    """
    ledger = shown if isinstance(shown, Ledger) else shown.ledger
    wanted: tuple[Wanted, ...] | None = wanted_steps(task) if task is not None else None
    if ledger is None or not ledger.columns or not (ledger.rows or wanted):
        return None
    grid = make_grid(ledger, wanted)
    figure = grid_figure(grid)
    width, height = figure.get_size_inches()
    words = grid_words(grid) if wanted else ledger_words(ledger)
    return Picture(png(figure), f"Ledger: {words}.", float(width), float(height))


def report_html(ledger: Ledger, task: Task | None = None) -> str | None:
    """The picture below a report, with a line that says how it is read; marked where the batches are the rows."""
    drawn = picture(ledger, task if task is not None and task.signature in MARKED else None)
    if drawn is None:
        return None
    caption = "What each step used: a number says how much of that backward call's gradient was in .grad."
    return f'<div style="margin:.5em 0"><div style="opacity:.75;margin:.2em 0">{caption}</div>{drawn.html}</div>'
