"""The ledger as it is drawn and spoken of: its rows beside what they should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.loops import Ledger, Recording, Task
from autograder.loops.ledger import TINY

CLOSE = 1e-3  # relative: shares that differ by less are shown as equal
LARGEST = 24  # rows and columns that a picture shows


@dataclass(frozen=True)
class Wanted:
    """A step that a task asks for: the share of each batch, in which call of the function."""

    call: int
    shares: dict[int, float]


@dataclass(frozen=True)
class Row:
    """An optimizer step. ``number`` is None where a step was asked for and none was taken.

    ``wanted`` is None where nothing is known of what is right; ``state`` is the .grad that was used:
    ``values``, ``zeros``, ``none``, or "" where that is not known.
    """

    number: int | None
    call: int
    entries: tuple[float, ...]
    wanted: tuple[float, ...] | None = None
    state: str = ""

    @property
    def is_empty(self) -> bool:
        return not any(abs(value) > TINY for value in self.entries)

    @property
    def found_nothing(self) -> bool:
        """Whether the step is known to have found no gradient at all."""
        return self.state in ("none", "zeros") and self.is_empty

    def is_wrong(self, column: int) -> bool:
        """Whether the entry should not be there, or should be of another size."""
        used = abs(self.entries[column]) > TINY
        return used and self.wanted is not None and not self._agrees(column)

    def is_missing(self, column: int) -> bool:
        used = abs(self.entries[column]) > TINY
        return not used and self.wanted is not None and not self._agrees(column)

    def _agrees(self, column: int) -> bool:
        assert self.wanted is not None
        a, b = self.entries[column], self.wanted[column]
        return abs(a - b) <= max(TINY, CLOSE * max(abs(a), abs(b)))


@dataclass(frozen=True)
class Grid:
    """Rows of a ledger over its columns; ``batches`` and ``calls`` tell each column's batch and call.

    ``left_out`` counts the rows and columns that there was no room for.
    """

    rows: tuple[Row, ...]
    batches: tuple[tuple[int, ...], ...]
    calls: tuple[int, ...]
    left_out: tuple[int, int] = (0, 0)

    @property
    def steps(self) -> list[Row]:
        """The rows that are steps which were taken."""
        return [row for row in self.rows if row.number is not None]

    @property
    def has_wrong(self) -> bool:
        return any(row.is_wrong(c) for row in self.rows for c in range(len(self.calls)))

    @property
    def has_missing(self) -> bool:
        return any(row.is_missing(c) for row in self.rows for c in range(len(self.calls)))


def wanted_steps(task: Task) -> tuple[Wanted, ...] | None:
    """The shares that ``task`` asks for, step by step; None where a table of shares cannot say it."""
    plain = task.reference in ("plain", "accumulate", "accumulate_micro", "scheduler", "accumulate_scheduler")
    if not plain or task.clip is not None or task.optimizer == "lbfgs" or task.model == "rnn":
        return None
    per_sample = task.model != "bn" and task.reference != "accumulate_micro"
    out = []
    for call in range(task.epochs):
        for group in task.groups():
            weights = [task.batches[b] if per_sample else 1 for b in group]
            out.append(Wanted(call, {b: w / sum(weights) for b, w in zip(group, weights, strict=True)}))
    return tuple(out)


def row_states(recording: Recording) -> tuple[str, ...]:
    """What was in .grad when each step was taken: none, zeros or values."""
    out = []
    for event in recording.events:
        if event.what == "update":
            grads = [recording.arrays.get(f"grad/{event.row}/{i}") for i in event.parameters]
            kept = [g for g in grads if g is not None]
            out.append("none" if not kept else "values" if any(bool(g.any()) for g in kept) else "zeros")
    return tuple(out)


def make_grid(
    ledger: Ledger, wanted: Sequence[Wanted] | None = None, states: Sequence[str] | None = None, largest: int = LARGEST
) -> Grid:
    """Put the steps of ``ledger`` beside the wanted ones, by call and by their number in the call."""
    whole = ledger.whole().tolist()
    steps = [
        Row(r + 1, ledger.row_calls[r], tuple(whole[r]), None, states[r] if states else "") for r in range(ledger.rows)
    ]
    rows = steps if wanted is None else _beside(ledger, steps, wanted)
    return _cropped(Grid(tuple(rows), ledger.column_batches, ledger.column_calls), largest)


def _beside(ledger: Ledger, steps: list[Row], wanted: Sequence[Wanted]) -> list[Row]:
    calls = sorted({w.call for w in wanted} | set(ledger.row_calls))
    nothing = (0.0,) * ledger.columns
    rows = []
    for call in calls:
        taken, asked = [s for s in steps if s.call == call], [w for w in wanted if w.call == call]
        for number in range(max(len(taken), len(asked))):
            row = taken[number] if number < len(taken) else Row(None, call, nothing, nothing)
            right = _spread(ledger, asked[number]) if number < len(asked) else nothing
            rows.append(replace(row, wanted=right))
    return rows


def _spread(ledger: Ledger, wanted: Wanted) -> tuple[float, ...]:
    """The wanted shares over the columns; a batch that has several columns counts in its first."""
    left, out = dict(wanted.shares), []
    for call, batches in zip(ledger.column_calls, ledger.column_batches, strict=True):
        own = batches if call == wanted.call else ()
        out.append(sum(left.pop(b, 0.0) for b in own))
    return tuple(out)


def _cropped(grid: Grid, largest: int) -> Grid:
    rows, columns = len(grid.rows), len(grid.calls)
    if rows <= largest and columns <= largest:
        return grid

    def cut(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
        return None if values is None else values[:largest]

    kept = tuple(replace(r, entries=r.entries[:largest], wanted=cut(r.wanted)) for r in grid.rows[:largest])
    left_out = max(0, rows - largest), max(0, columns - largest)
    return Grid(kept, grid.batches[:largest], grid.calls[:largest], left_out)
