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


class Tags:
    """Marks in the nodes' ``metadata``, PyTorch's own place for notes; nothing is kept alive by them."""

    def __init__(self) -> None:
        self.batch_of: dict[int, int | None] = {}
        self.roots = 0

    def tag(self, outputs: list[Tensor], forward: int, batch: int | None) -> None:
        """Mark the outputs of a forward pass."""
        self.batch_of[forward] = batch
        for tensor in outputs:
            if tensor.grad_fn is not None:
                tensor.grad_fn.metadata[(id(self), "forward")] = forward

    def reached(self, roots: list[Tensor]) -> list[int]:
        """Numbers of the forward passes in the graphs of ``roots``, in order."""
        found, seen = set(), set()
        todo = [root.grad_fn for root in roots]
        while todo and len(seen) < LIMIT:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            found.add(node.metadata.get((id(self), "forward")))
            todo += [following for following, _ in node.next_functions]
        return sorted(found - {None})  # type: ignore[type-var]

    def finish(self, roots: list[Tensor]) -> int | None:
        """Mark the root of a backward call; the same root has the same number the next time."""
        number = None
        for root in roots:
            if root.grad_fn is not None:
                number = root.grad_fn.metadata.setdefault((id(self), "root"), self.roots)
        self.roots += 1
        return number

    def finished(self, value: Any) -> bool:
        """Whether backward was called on this tensor before."""
        node = value.grad_fn if isinstance(value, torch.Tensor) else None
        return node is not None and (id(self), "root") in node.metadata
