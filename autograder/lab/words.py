"""What the pictures show, in words: for screen readers, for plain text, and for the line below the sliders."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.lab.grid import Grid, Row, make_grid
from autograder.lab.settings import Settings
from autograder.loops import Ledger, Verdict
from autograder.loops.ledger import TINY

MOST = 8  # rows told one by one


def share(value: float) -> str:
    """A share as it is written everywhere: 1, 0.5, 0.33."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def ledger_words(ledger: Ledger) -> str:
    """``4 steps by 12 backward calls; step 1 used batches 1 to 3 at 0.33 each; ...``"""
    return grid_words(make_grid(ledger, largest=max(ledger.rows, ledger.columns)))


def grid_words(grid: Grid) -> str:
    taken = grid.steps
    parts = [f"{counted(len(taken), 'step')} by {counted(len(grid.calls), 'backward call')}"]
    parts += [f"step {row.number} used {_used(row, grid)}" for row in taken[:MOST]]
    if len(taken) > MOST:
        last = taken[-1]
        parts.append(f"and so on, until step {last.number} used {_used(last, grid)}")
    missing = len(grid.rows) - len(taken)
    if missing:
        parts.append(f"{counted(missing, 'step')} that should have been taken {'was' if missing == 1 else 'were'} not")
    return "; ".join(parts)


def _used(row: Row, grid: Grid) -> str:
    """The batches of a row, those of one share and one epoch together."""
    runs: list[tuple[int, str, list[int]]] = []
    for entry, call, batches in zip(row.entries, grid.calls, grid.batches, strict=True):
        if abs(entry) <= TINY:
            continue
        size = share(entry)
        if runs and runs[-1][:2] == (call, size) and batches and runs[-1][2][-1] + 1 == batches[0]:
            runs[-1][2].extend(batches)
        else:
            runs.append((call, size, list(batches)))
    if not runs:
        return {"none": "nothing, .grad was None", "zeros": "zeros"}.get(row.state, "nothing")
    several = len(set(grid.calls)) > 1
    return " and ".join(_run(batches, size, call if several else None) for call, size, batches in runs)


def _run(batches: list[int], size: str, call: int | None) -> str:
    where = "" if call is None else f" of epoch {call + 1}"
    if len(batches) == 1:
        return f"batch {batches[0] + 1}{where} at {size}"
    if not batches:
        return f"a gradient of no batch{where} at {size}"
    return f"batches {batches[0] + 1} to {batches[-1] + 1}{where} at {size} each"


def series_words(name: str, values: Sequence[float]) -> str:
    """A row of numbers in one breath: its ends, and its largest."""
    if not values:
        return f"{name}: none"
    ends = f"{values[0]:.3g}" if len(values) == 1 else f"from {values[0]:.3g} to {values[-1]:.3g}"
    return f"{name}: {ends}" + (f", at most {max(values):.3g}" if len(values) > 2 else "")


def verdict_words(verdict: Verdict, settings: Settings) -> str:
    """The rule that the setting breaks, as the grader says it; or that it is right, and why."""
    if not verdict.right:
        return f"{verdict.title}. {verdict.message}"
    return f"{verdict.message} {_why_right(settings)}"


def _why_right(settings: Settings) -> str:
    groups = len(settings.task.groups())
    members = min(settings.steps, settings.batches)
    if members == 1:
        why = "Each step used its own batch's gradient and nothing older."
    else:
        why = f"Each step used the mean of its own group of up to {members} batches, and nothing older."
    if settings.zeroing == "once an epoch":
        why += " The epoch is one single group, so clearing once an epoch is often enough."
    if settings.divide == "nothing":
        why += " A group is one batch, so there is nothing to divide by."
    if not settings.leftover and groups * settings.steps == settings.batches and settings.steps > 1:
        why += " The groups come out even, so nothing is left over."
    return why
