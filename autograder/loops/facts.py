"""What a recording shows, worked out once for every rule of the catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from autograder.loops.ledger import TINY, Ledger, make_ledger, shares_by_batch, used_gradient
from autograder.loops.recording import Event, Recording
from autograder.loops.reference import Reference, Step, norm_of


def tolerance(dtype: torch.dtype, moved: float) -> float:
    """How far a parameter may be off, given how far it was meant to move.

    Wide enough for another order of the same sums and for clipping without the 1e-6 in its divisor.
    """
    return 1e-9 + 2e-5 * moved if dtype is torch.float64 else 2e-6 + 2e-3 * moved


def listed(words: Iterable[object]) -> str:
    """``1, 2 and 3``."""
    items = [str(w) for w in words]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else "nothing"


MOST_EVENTS = 1_000  # of a long run the beginning explains the rest


def beginning(recording: Recording) -> Recording:
    """The recording with at most ``MOST_EVENTS`` events, and how its calls ended."""
    events = recording.events
    if len(events) <= MOST_EVENTS:
        return recording
    cut = max((i for i, e in enumerate(events[:MOST_EVENTS]) if e.what == "update"), default=MOST_EVENTS)
    ends = tuple(e for e in events[cut:] if e.what == "exit")
    return replace(recording, events=events[:cut] + ends)


class Facts:
    """A recording beside its reference, with the questions that rules ask of them."""

    def __init__(self, recording: Recording, reference: Reference) -> None:
        self.recording, self.reference, self.task = beginning(recording), reference, recording.task
        self.events, self.failure = self.recording.events, recording.failure
        self.place = {id(e): i for i, e in enumerate(self.events)}

    # ------------------------------------------------------------------ events
    def all(self, what: str, name: str | None = None) -> list[Event]:
        return [e for e in self.events if e.what == what and (name is None or e.name == name)]

    @cached_property
    def rows(self) -> list[Event]:
        return self.all("update")

    @cached_property
    def columns(self) -> list[Event]:
        return self.all("backward")

    @cached_property
    def ledger(self) -> Ledger:
        return make_ledger(self.recording)

    def index(self, event: Event) -> int:
        return self.place[id(event)]

    def before_row(self, row: Event) -> list[Event]:
        """The events since the update before this one (closures: up to this update's end)."""
        end = self.index(row)
        start = self.index(self.rows[row.row - 1]) + 1 if row.row else 0
        return list(self.events[start:end])

    def iterations(self) -> Iterator[list[Event]]:
        """The events of each pass through the loop: from one batch taken to the next."""
        current: list[Event] | None = None
        for event in self.events:
            if event.what in ("fetch", "exit"):
                if current:
                    yield current
                current = [event] if event.what == "fetch" and event.batch is not None else None
            elif current is not None:
                current.append(event)
        if current:
            yield current

    def usual_line(self, events: Iterable[Event]) -> int | None:
        lines = Counter(e.line for e in events if e.line is not None)
        return lines.most_common(1)[0][0] if lines else None

    @property
    def backward_line(self) -> int | None:
        return self.usual_line(self.columns)

    @property
    def step_line(self) -> int | None:
        return self.usual_line(self.rows)

    def not_called(self, name: str) -> int | None:
        """The line where a method of the optimizer was looked up, if it was never called."""
        looked_up = self.all("fetched", name)
        called = self.all("call", "zero_grad") if name == "zero_grad" else self.optimizer_rows
        return looked_up[0].line if looked_up and not called else None

    @cached_property
    def optimizer_rows(self) -> list[Event]:
        return [r for r in self.rows if r.by == "optimizer"]

    # ------------------------------------------------------------------ values
    def wanted(self, row: Event) -> Step | None:
        """The reference's step with the same number in the same call."""
        same_call = [s for s in self.reference.steps if s.call == row.call]
        number = [r.row for r in self.rows if r.call == row.call].index(row.row)
        return same_call[number] if number < len(same_call) else None

    @cached_property
    def deviations(self) -> list[list[float]]:
        """[call][parameter]: how far it is from the reference after each call that ended."""
        out = []
        for call, want in enumerate(self.reference.trajectory):
            got = [self.recording.arrays.get(f"param/{call}/{i}") for i in range(len(want))]
            if any(g is None for g in got):
                break
            out.append([_distance(g, w) for g, w in zip(got, want, strict=True) if g is not None])
        return out

    @cached_property
    def allowed(self) -> float:
        """How far any parameter may be from the reference, by how far the reference moves."""
        path = self.reference.trajectory
        moved = (_distance(now, start) for after in path for now, start in zip(after, path[0], strict=True))
        return tolerance(self.task.dtype, max(moved, default=0.0))

    @cached_property
    def wrong_parameters(self) -> list[int]:
        """Parameters that are off after some call."""
        return sorted({i for after in self.deviations for i, off in enumerate(after) if not off <= self.allowed})

    @cached_property
    def values_right(self) -> bool:
        return len(self.deviations) == self.task.epochs + 1 and not self.wrong_parameters

    @cached_property
    def stood_still(self) -> bool:
        """No parameter ever changed."""
        last = len(self.deviations) - 1
        arrays = self.recording.arrays
        return last > 0 and all(
            torch.equal(arrays[f"param/0/{i}"], arrays[f"param/{last}/{i}"])
            for i in range(len(self.recording.parameters))
        )

    def used_norm(self, row: Event) -> float:
        return self.ledger.norms[row.row]

    def right_norm(self, row: Event) -> float:
        """The norm of the gradient that the update should have used, clipped where that is asked for."""
        want = self.wanted(row)
        if want is None:
            return 0.0
        return want.norm if self.task.clip is None else min(want.norm, self.task.clip)

    def differs(self, row: Event) -> bool:
        """Whether the update used another gradient than the reference's step with that number."""
        want = self.wanted(row)
        if want is None:
            return True
        updated = {i for r in self.rows for i in r.parameters}
        for i, wanted in enumerate(want.grads):
            if i not in updated:  # nobody's task: an optimizer that holds a part of the model
                continue
            used = used_gradient(self.recording, row, i)
            if (used is None) != (wanted is None):
                return True
            if used is not None and wanted is not None:
                room = tolerance(self.task.dtype, norm_of(list(want.grads))) + 1e-9
                if _distance(used, wanted) > room:
                    return True
        return False

    @cached_property
    def first_wrong(self) -> Event | None:
        return next((row for row in self.rows if self.differs(row)), None)

    # ------------------------------------------------------------------ the ledger's shapes
    @cached_property
    def shares(self) -> list[dict[tuple[int, int], float]]:
        return shares_by_batch(self.ledger)

    @cached_property
    def row_columns(self) -> list[set[int]]:
        """Columns that each row used."""
        whole = self.ledger.whole().abs() > TINY
        return [{c for c in range(self.ledger.columns) if whole[r, c]} for r in range(self.ledger.rows)]

    @cached_property
    def reused(self) -> dict[int, set[int]]:
        """Row to the columns that an earlier row had used already."""
        used = self.ledger.weights.abs() > TINY  # [parameter, row, column]: each parameter has its own history
        before = used.cumsum(1) - used.long()
        again = (used & (before > 0)).any(0)
        return {r: set(again[r].nonzero().flatten().tolist()) for r in range(self.ledger.rows) if again[r].any()}

    @cached_property
    def unused_columns(self) -> set[int]:
        used: set[int] = set().union(*self.row_columns) if self.row_columns else set()
        return {c.column for c in self.columns if c.added} - used

    def batches(self, row: Event) -> list[int]:
        """Batch numbers (from 0) that a row used, in order, of its own call."""
        return sorted(b for call, b in self.shares[row.row] if call == row.call)

    def numbered(self, numbers: list[int]) -> str:
        """``batches 1 and 2``; on a single weight there are no batches, only rounds."""
        one, many = ("round", "rounds") if self.task.signature == "fit" else ("batch", "batches")
        return f"{one if len(numbers) == 1 else many} {listed(numbers)}"

    def said(self, row: Event) -> str:
        """What a row used, in words: ``the gradients of batches 1, 2 and 3``."""
        shares = self.shares[row.row]
        old = {b for call, b in shares if call != row.call}
        own = [b + 1 for b in self.batches(row)]
        words = self.numbered(own) if own else ""
        if old:
            words = f"{words}{' and ' if own else ''}batches of the call before"
        if not shares and self.used_norm(row):
            return "a gradient that no single backward call explains"
        return f"the gradient{'s' if len(shares) > 1 else ''} of {words}" if shares else "no gradient"

    @cached_property
    def returned_off(self) -> float:
        """How far a returned tensor is from the wanted one."""
        want, got = self.reference.value, self.recording.arrays.get("returned")
        return _distance(got, want) if want is not None and got is not None else float("inf")

    def main_term_only(self, row: Event) -> bool:
        """Whether an update used the gradient of the batch's own loss, without the task's further terms."""
        plain = make_ledger(replace(self.recording, task=replace(self.task, reference="plain")))
        column = max(self.row_columns[row.row], default=None)
        return column is not None and abs(float(plain.whole()[row.row, column]) - 1) < 1e-6

    def optimizer_name(self, identity: int) -> str:
        """The argument's name of an optimizer, told from the parameters that it holds."""
        row = next(r for r in self.optimizer_rows if identity in r.optimizers)
        name = self.recording.parameters[row.parameters[0]] if row.parameters else ""
        return {"gen": "opt_g", "disc": "opt_d"}.get(name.split(".")[0], "optimizer")


def _distance(a: Tensor, b: Tensor) -> float:
    """The largest difference of two entries; infinite for other shapes."""
    if a.shape != b.shape:
        return float("inf")
    return float((a.double() - b.double()).abs().max()) if a.numel() else 0.0
