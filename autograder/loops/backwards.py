"""The ledger's columns: each backward call, and what it added to every .grad."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from torch import Tensor

from autograder.loops.graph import Tags, every_tensor
from autograder.loops.journal import Journal
from autograder.loops.recording import Event


def number_of(tensors: list[Tensor]) -> float | None:
    """The value of a single one-element tensor."""
    return float(tensors[0].detach()) if len(tensors) == 1 and tensors[0].numel() == 1 else None


class Backwards:
    """Watches gradients arrive: a hook before a .grad is added to and one after it give what was added."""

    def __init__(self, journal: Journal, added: Callable[[int, Tensor], None]) -> None:
        self.journal, self.added = journal, added
        self.tags = Tags()
        self.columns = 0
        self.column: Event | None = None
        self.before: dict[int, Tensor | None] = {}

    def begin(self, frame: FrameType | None, batch: int | None, inside_step: bool) -> None:
        """A backward call begins; ``frame`` is torch.autograd.backward's own, where it is known."""
        given: dict[str, Any] = frame.f_locals if frame else {}
        roots, weights = every_tensor(given.get("tensors")), every_tensor(given.get("grad_tensors"))
        reached = self.tags.reached(roots)
        batches = sorted({b for n in reached if (b := self.tags.batch_of[n]) is not None})
        if not batches and batch is not None:
            batches = [batch]
        self.column = self.journal.note(
            "backward", column=self.columns, batches=batches, forwards=reached, added=[],
            root=self.tags.finish(roots), loss=number_of(roots), retain=bool(given.get("retain_graph")),
            weight=number_of(weights), leaf=bool(roots) and all(r.grad_fn is None for r in roots),
            inside_step=inside_step,
        )  # fmt: skip
        self.columns += 1

    def end(self) -> None:
        """The backward call has returned."""
        self.column = None

    def before_adding(self, i: int) -> None:
        """A gradient for parameter ``i`` has arrived and is not in its .grad yet."""
        grad = self.journal.params[i].grad
        self.before[i] = None if grad is None else grad.detach().clone()

    def after_adding(self, i: int) -> None:
        """It has been added."""
        grad, before = self.journal.params[i].grad, self.before.pop(i, None)
        assert self.column is not None
        assert grad is not None
        self.column.data["added"].append(i)
        self.journal.keep(f"add/{self.column.column}/{i}", grad if before is None else grad - before)
        self.added(i, grad)
