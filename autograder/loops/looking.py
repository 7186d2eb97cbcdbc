"""Looking at every .grad and every parameter: what is different from the last look?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.loops.journal import Journal, same


class Looker:
    """Compares values, not calls: whatever changed a .grad or a parameter, in whatever style, is seen."""

    def __init__(self, journal: Journal, moved: Callable[[int], None]) -> None:
        self.journal, self.moved = journal, moved
        self.grads: list[Tensor | None] = [None] * len(journal.params)
        self.params = [p.detach().clone() for p in journal.params]

    def look(self) -> None:
        """Write down what changed since the last look."""
        for i, parameter in enumerate(self.journal.params):
            grad, seen = parameter.grad, self.grads[i]
            if (grad is None) != (seen is None) or (grad is not None and not same(grad, seen)):
                self.expect(i, grad)
                self._grad_changed(i, seen, grad)
            if not same(parameter, self.params[i]):
                self.params[i] = parameter.detach().clone()
                self.moved(i)

    def expect(self, i: int, grad: Tensor | None) -> None:
        """Take the present .grad of parameter ``i`` as seen."""
        self.grads[i] = None if grad is None else grad.detach().clone()

    def _grad_changed(self, i: int, old: Tensor | None, new: Tensor | None) -> None:
        if old is None and new is not None and not bool(new.any()):
            self.journal.extend("fill", i)  # there was nothing to clear
            return
        if new is None or not bool(new.any()):
            self.journal.extend("clear", i, to="none" if new is None else "zeros")
            return
        factor = ratio(new, old) if old is not None and new.shape == old.shape else None
        if factor is None:
            self.journal.extend("edit", i)
        else:
            self.journal.extend("scale", i).data.setdefault("factors", []).append(factor)


def ratio(new: Tensor, old: Tensor) -> float | None:
    """c where new = c * old up to rounding; None where there is no such number."""
    square = float((old * old).sum())
    if not square:
        return None
    c = float((new * old).sum()) / square
    room = 1e-9 if new.dtype is torch.float64 else 1e-5
    return c if float((new - c * old).norm()) <= room * float(new.norm()) else None
