"""The updates of an accumulating loop beside the groups of microbatches that they should have used."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.recording import Event


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-9)


class Groups:
    """The updates of an accumulating loop beside the groups that they should have used."""

    def __init__(self, f: Facts) -> None:
        self.f, self.k = f, f.task.k
        self.groups = f.task.groups()
        self.rows = [r for r in f.rows if r.call == 0]
        self.used = [f.batches(r) for r in self.rows]
        self.sizes = f.task.batches

    @property
    def at_every_batch(self) -> bool:
        """One update for every microbatch."""
        return len(self.rows) == len(self.sizes) > len(self.groups)

    def members(self, row: Event) -> list[int]:
        """The group that the row's last batch belongs to."""
        last = self.f.batches(row)[-1:] or [row.batch or 0]
        return next(g for g in self.groups if last[0] in g)

    def share(self, row: Event, batch: int) -> float:
        return self.f.shares[row.row].get((row.call, batch), 0.0)

    def right_share(self, group: list[int], batch: int) -> float:
        if self.f.task.model == "bn" or self.f.task.reference == "accumulate_micro":
            return 1 / len(group)
        return self.sizes[batch] / sum(self.sizes[b] for b in group)

    @property
    def whole_rows(self) -> list[tuple[Event, list[int]]]:
        """Rows that used exactly one group, with it."""
        return [(r, g) for r, used in zip(self.rows, self.used, strict=True) for g in self.groups if used == g]

    def ratios(self, rows: list[tuple[Event, list[int]]]) -> list[float]:
        """Each member's share as a multiple of the right one."""
        return [self.share(r, b) / self.right_share(g, b) for r, g in rows for b in g]


def numbers(batches: list[int]) -> str:
    own = [b + 1 for b in batches]
    return f"batch{'es' if len(own) != 1 else ''} {listed(own)}"
