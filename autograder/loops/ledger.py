"""The ledger: how much of each backward call's gradient was in .grad when each step was taken.

One row per update of the parameters, one column per backward call. The plain loop is the identity; never
zeroing fills the lower triangle; zeroing between backward and step leaves empty rows; accumulating over k
microbatches gives blocks of 1/k.

The entries are found by bookkeeping (a backward adds 1, clearing sets 0, scaling multiplies) and held against
the values: where the bookkeeping does not give the .grad that was seen, they are fitted anew by least squares,
and what does not fit is the row's residual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.loops.recording import Event, Recording
from autograder.loops.reference import batch_loss
from autograder.loops.task import build

WINDOW = 64  # columns tried in a least squares fit
TINY = 1e-6  # relative: below this a residual is rounding


@dataclass(frozen=True)
class Ledger:
    """``weights[p, r, c]``: the share of column c's gradient of parameter p that row r used.

    An entry is measured against the whole gradient of the column's batch, so that a loss divided by k gives
    1/k. ``residual[p, r]`` is relative to the norm of what was used. ``norms[r]`` is the norm of the whole
    gradient that row r used; ``shares[p, r]`` each parameter's part of its square.
    """

    parameters: tuple[str, ...]
    weights: Tensor
    residual: Tensor
    norms: tuple[float, ...]
    column_batches: tuple[tuple[int, ...], ...]
    column_calls: tuple[int, ...]
    row_calls: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.weights.shape[1]

    @property
    def columns(self) -> int:
        return self.weights.shape[2]

    def whole(self) -> Tensor:
        """[row, column]: the entry of largest size over the parameters (the whole model at a glance)."""
        if not self.weights.numel():
            return torch.zeros(self.rows, self.columns, dtype=torch.float64)
        where = self.weights.abs().argmax(0, keepdim=True)
        return self.weights.gather(0, where)[0]

    def text(self, digits: int = 2) -> str:
        """The whole ledger as lines of text: steps down, backward calls across."""
        whole = self.whole()
        width = max(5, digits + 4)
        head = "step".rjust(5) + "".join(f"b{c + 1}".rjust(width) for c in range(self.columns))
        lines = [head]
        for r in range(self.rows):
            cells = ("·" if abs(v) < TINY else f"{v:.{digits}f}" for v in whole[r].tolist())
            lines.append(str(r + 1).rjust(5) + "".join(cell.rjust(width) for cell in cells))
        return "\n".join(lines)


def make_ledger(recording: Recording) -> Ledger:
    """Work the ledger out from a recording's events and arrays."""
    rows = [e for e in recording.events if e.what == "update"]
    columns = [e for e in recording.events if e.what == "backward"]
    count = len(recording.parameters)
    weights = torch.zeros(count, len(rows), len(columns), dtype=torch.float64)
    residual = torch.zeros(count, len(rows), dtype=torch.float64)
    norms = [0.0] * len(rows)
    added = [_contributions(recording, len(columns), i) for i in range(count)]
    booked = [_bookkeeping(recording.events, len(columns), i) for i in range(count)]
    for row in rows:
        used = {i: g.double().reshape(-1) for i in range(count) if (g := used_gradient(recording, row, i)) is not None}
        norms[row.row] = float(sum(float(g @ g) for g in used.values()) ** 0.5)
        entries = {i: booked[i].get(row.row, torch.zeros(len(columns), dtype=torch.float64)) for i in used}
        for i, entry, rest in _explain(recording, entries, used, added, row_limit(columns, row)):
            weights[i, row.row], residual[i, row.row] = entry, rest
    weights *= torch.tensor(column_units(recording, columns), dtype=torch.float64)
    return Ledger(
        recording.parameters, weights, residual, tuple(norms),
        tuple(tuple(c.batches) for c in columns), tuple(c.call for c in columns), tuple(r.call for r in rows),
    )  # fmt: skip


def row_limit(columns: list[Event], row: Event) -> int:
    """Columns from this one on came after the row (a closure's columns come inside its step)."""
    if row.inside_backward:
        return int(row.columns)
    return min((e.column for e in columns[row.columns :] if not e.inside_step), default=len(columns))


def used_gradient(recording: Recording, row: Event, i: int) -> Tensor | None:
    """The gradient that an update used for parameter ``i``; None where .grad was None.

    An update by hand need not come from .grad: where the task is plain SGD it is read off the change itself.
    """
    if i not in row.parameters:
        return None
    grad = recording.arrays.get(f"grad/{row.row}/{i}")
    if row.by != "manual":
        return grad
    before, after = parameters_before(recording, row.row, i), recording.arrays[f"at/{row.row}/{i}"]
    return (before - after) / row.lr if row.lr else grad


def parameters_before(recording: Recording, row: int, i: int) -> Tensor:
    """Parameter ``i`` as it was before update ``row`` (rows before it in all calls)."""
    return recording.arrays[f"at/{row - 1}/{i}" if row else f"param/0/{i}"]


def column_units(recording: Recording, columns: list[Event]) -> list[float]:
    """What each column added, as a multiple of the whole gradient of its batch (1.0 where that is not known)."""
    task = recording.task
    if task.signature not in ("train", "train_accumulate") or task.model == "rnn":
        return [1.0] * len(columns)
    material = build(task, recording.seed)
    named = list(material.parameters().values())
    known: dict[tuple[Any, ...], list[Tensor | None]] = {}
    rows_seen, units = 0, []
    for event in recording.events:
        if event.what == "update":
            rows_seen = event.row + 1
        if event.what != "backward":
            continue
        if len(event.batches) != 1 or event.batches[0] >= len(task.batches):
            units.append(1.0)
            continue
        key = (rows_seen, event.batches[0])
        if key not in known:
            with torch.no_grad():
                for i, p in enumerate(named):
                    p.copy_(parameters_before(recording, rows_seen, i))
            loss = batch_loss(task, material, event.batches[0])()
            known[key] = list(torch.autograd.grad(loss, named, allow_unused=True))
        units.append(_multiple(recording, event.column, known[key]))
    return units


def _multiple(recording: Recording, column: int, gradient: list[Tensor | None]) -> float:
    """c where the column's contribution is c times ``gradient``; 1.0 where there is no such c."""
    added = [_added(recording, column, i) for i in range(len(gradient))]
    pairs = [(a.double(), g.double()) for a, g in zip(added, gradient, strict=True) if a is not None and g is not None]
    square = sum(float((g * g).sum()) for _, g in pairs)
    if not square:
        return 1.0
    c = sum(float((a * g).sum()) for a, g in pairs) / square
    rest = sum(float(((a - c * g) ** 2).sum()) for a, g in pairs) ** 0.5
    room = 1e-6 if recording.task.dtype is torch.float64 else 1e-3
    return c if rest <= room * max(abs(c), 1e-12) * square**0.5 else 1.0


def _added(recording: Recording, column: int, i: int) -> Tensor | None:
    return recording.arrays.get(f"add/{column}/{i}")


def _contributions(recording: Recording, columns: int, i: int) -> Tensor:
    """[column, entry]: what each backward call added to parameter ``i``; zeros where it added nothing."""
    size = recording.arrays[f"param/0/{i}"].numel()
    out = torch.zeros(columns, size, dtype=torch.float64)
    for c in range(columns):
        added = _added(recording, c, i)
        if added is not None:
            out[c] = added.reshape(-1)
    return out


def _bookkeeping(events: tuple[Event, ...], columns: int, i: int) -> dict[int, Tensor]:
    """Row to the share of each column for parameter ``i``, as adding, clearing and scaling say."""
    now = torch.zeros(columns, dtype=torch.float64)
    out: dict[int, Tensor] = {}
    for event in events:
        if event.what == "backward" and i in event.added:
            now[event.column] += 1.0
        elif event.what in ("clear", "edit") and i in event.parameters:
            now.zero_()
        elif event.what == "scale" and i in event.parameters:
            now *= event.factors[event.parameters.index(i)]
        elif event.what == "update" and i in event.parameters:
            out[event.row] = now.clone()
    return out


def _explain(
    recording: Recording, entries: dict[int, Tensor], used: dict[int, Tensor], added: list[Tensor], limit: int
) -> Iterator[tuple[int, Tensor, float]]:
    """Per parameter the share of each column, and the relative residual.

    Where bookkeeping does not explain the values, one fit over all such parameters together is tried, on the
    columns before ``limit``: a single small parameter can be fitted by almost anything.
    """
    room = 1e-9 if recording.task.dtype is torch.float64 else 1e-4
    rests = {i: _rest(entries[i] @ added[i], g) for i, g in used.items()}
    odd = [i for i in used if rests[i] > room]
    fitted = _fit([added[i][:limit] for i in odd], [used[i] for i in odd], 100 * room) if odd else None
    for i in used:
        if fitted is not None and i in odd:
            entry = torch.zeros_like(entries[i])
            entry[:limit] = torch.where(added[i][:limit].any(1), fitted, 0.0)
            yield i, entry, 0.0
        else:
            yield i, entries[i], rests[i] if rests[i] > room else 0.0


def _rest(explained: Tensor, used: Tensor) -> float:
    """The norm of what is left of ``used``, relative to ``used``."""
    size = float(used.norm())
    return float((used - explained).norm()) / size if size else 0.0


def _fit(added: list[Tensor], used: list[Tensor], room: float) -> Tensor | None:
    """Least squares on as few of the latest columns as explain ``used``; None where none do."""
    target, matrix = torch.cat(used), torch.cat(added, 1)
    there = matrix.any(1).nonzero().flatten().flip(0)[:WINDOW]
    for count in sorted({1, 2, 3, 4, 6, 8, 12, 24, len(there)} - {0}):
        if count > min(len(there), len(target) - 1) or not bool(target.any()):
            break
        some = matrix[there[:count]].T
        solution = torch.linalg.lstsq(some, target[:, None]).solution.reshape(-1)
        if float((target - some @ solution).norm()) <= room * float(target.norm()):
            out = torch.zeros(len(matrix), dtype=torch.float64)
            out[there[:count]] = torch.where(solution.abs() > TINY, solution, 0.0)
            return out
    return None


def shares_by_batch(ledger: Ledger) -> list[dict[tuple[int, int], float]]:
    """Per row: how much of each (call, batch)'s gradient it used, over the whole model."""
    out = []
    for row in ledger.whole().tolist():
        shares: dict[tuple[int, int], float] = defaultdict(float)
        for c, value in enumerate(row):
            if abs(value) > TINY:
                for batch in ledger.column_batches[c]:
                    shares[ledger.column_calls[c], batch] += value / len(ledger.column_batches[c])
        out.append(dict(shares))
    return out
