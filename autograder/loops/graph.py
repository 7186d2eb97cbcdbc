"""Tags on the nodes of an autograd graph: which forward passes does a tensor come from?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

LIMIT = 20_000  # nodes looked at per graph


def every_tensor(value: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples, sets and mappings."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        return [tensor for item in value for tensor in every_tensor(item)]
    return []


def notes_of(node: Any) -> dict[Any, Any]:
    """A graph node's ``metadata``, PyTorch's own place for notes (typed as a method there)."""
    return node.metadata


class Tags:
    """Marks on the nodes of graphs; they keep nothing alive."""

    def __init__(self) -> None:
        self.batch_of: dict[int, int | None] = {}
        self.roots = 0

    def tag(self, outputs: list[Tensor], forward: int, batch: int | None) -> None:
        """Mark the outputs of a forward pass."""
        self.batch_of[forward] = batch
        for tensor in outputs:
            if tensor.grad_fn is not None:
                notes_of(tensor.grad_fn)[(id(self), "forward")] = forward

    def reached(self, roots: list[Tensor]) -> list[int]:
        """Numbers of the forward passes in the graphs of ``roots``, in order."""
        found: set[int | None] = set()
        seen: set[Any] = set()
        todo = [root.grad_fn for root in roots]
        while todo and len(seen) < LIMIT:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            found.add(notes_of(node).get((id(self), "forward")))
            todo += [following for following, _ in node.next_functions]
        return sorted(number for number in found if number is not None)

    def finish(self, roots: list[Tensor]) -> int | None:
        """Mark the root of a backward call; the same root has the same number the next time."""
        number = None
        for root in roots:
            if root.grad_fn is not None:
                number = notes_of(root.grad_fn).setdefault((id(self), "root"), self.roots)
        self.roots += 1
        return number

    def finished(self, value: Any) -> bool:
        """Whether backward was called on this tensor before."""
        node = value.grad_fn if isinstance(value, torch.Tensor) else None
        return node is not None and (id(self), "root") in notes_of(node)
