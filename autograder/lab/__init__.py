"""Sliders and pictures that are drawn from the engine itself.

``accumulation()`` is the lab of lesson 3. Names are imported when they are first used: matplotlib and ipywidgets are
slow to import, and a report needs neither if it has nothing to draw.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from autograder.exercises.report import Report, pictures

_HOMES = {
    "autograder.lab.panel": ("AccumulationLab", "accumulation"),
    "autograder.lab.figures": ("ledger_figure", "norms_figure"),
    "autograder.lab.grid": ("wanted_steps",),
    "autograder.lab.pictures": ("picture",),
    "autograder.lab.state": ("State", "bench"),
    "autograder.lab.words": ("ledger_words",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def ledger_of(report: Report) -> str | None:
    """The ledger below the report of a loop that is not right, as HTML; None where there is nothing to draw."""
    if report.ledger is None or report.kind == "none":
        return None
    from autograder.lab.pictures import report_html

    return report_html(report.ledger, report.task)


if ledger_of not in pictures:
    pictures.append(ledger_of)
