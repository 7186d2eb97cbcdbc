"""The ledger's rows: each update of the parameters, by an optimizer or by hand, and the gradient that it used."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer

from autograder.loops.journal import Journal, same
from autograder.loops.recording import Event
from autograder.loops.task import Material


def plain_rate(material: Material) -> float | None:
    """The learning rate where a step must be ``p -= lr * gradient`` and nothing else."""
    if material.tensors:
        return float(material.arguments[3])
    groups = [group for optimizer in material.optimizers.values() for group in optimizer.param_groups]
    plain = all(isinstance(o, torch.optim.SGD) for o in material.optimizers.values())
    if plain and groups and not any(g["momentum"] or g["weight_decay"] for g in groups):
        return float(groups[0]["lr"])
    return None


class Updates:
    """Changes of parameters that belong together are one row.

    A row ends with the next batch, forward or backward, or when one of its parameters is stepped again: two
    optimizers that step one after the other make one row, and so do hooks that step within one backward.
    """

    def __init__(self, journal: Journal, rate: float | None) -> None:
        self.journal, self.rate = journal, rate
        self.row: Event | None = None
        self.rows = 0
        self.stepping = 0  # how deep in optimizers' step()
        self.recapture = False  # a closure ran in step(): the gradients seen at its start are not the ones used
        self.where: dict[str, Any] = {}

    def begin_step(self, optimizer: Optimizer) -> None:
        """An optimizer's step begins: its parameters' gradients are the ones it will use."""
        self.stepping += 1
        groups = [p for group in optimizer.param_groups for p in group["params"]]
        numbers = [self.journal.number[id(p)] for p in groups if id(p) in self.journal.number]
        row = self._row_for(numbers, "optimizer", float(optimizer.param_groups[0]["lr"]))
        if id(optimizer) not in row.data["optimizers"]:
            row.data["optimizers"].append(id(optimizer))

    def end_step(self) -> None:
        """An optimizer's step has ended."""
        self.stepping = max(0, self.stepping - 1)
        self.recapture = False

    def changed(self, i: int) -> None:
        """Parameter ``i`` has another value than before."""
        if not self.stepping:
            self._row_for([i], "manual", self.rate)
        elif self.recapture and self.row is not None:
            self.recapture = False
            for j in self.row.data["parameters"]:
                self._capture(self.row, j)

    def _row_for(self, numbers: list[int], by: str, lr: float | None) -> Event:
        row = self.row
        if row is not None and by == row.data["by"] == "manual" and numbers[0] in row.data["parameters"]:
            return row  # several operations of one update by hand
        if row is None or set(numbers) & set(row.data["parameters"]) or not (numbers or row.data["parameters"]):
            self.close()
            data = {"row": self.rows, "by": by, "parameters": [], "lr": lr, "moved": False, "optimizers": []}
            row = self.row = self.journal.note("update", **data, **self.where)
            self.rows += 1
        for i in numbers:
            row.data["parameters"].append(i)
            self._capture(row, i)
        return row

    def _capture(self, row: Event, i: int) -> None:
        self.journal.arrays.pop(f"grad/{row.row}/{i}", None)
        self.journal.keep(f"grad/{row.row}/{i}", self.journal.params[i].grad)

    def close(self) -> None:
        """The row is complete: keep what it left."""
        if self.row is None:
            return
        row, self.row = self.row, None
        self.journal.keep_parameters(f"at/{row.row}")
        before = f"at/{row.row - 1}" if row.row else "param/0"
        moved = [not same(p, self.journal.arrays[f"{before}/{i}"]) for i, p in enumerate(self.journal.params)]
        row.data["moved"] = any(moved)
