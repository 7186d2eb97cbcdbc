"""The recorder's notebook: events in their order, arrays by name, and the learner's lines."""

from __future__ import annotations

import linecache
import sys
from typing import Any

import torch
from torch import Tensor

from autograder.guard import learner_frame
from autograder.loops.recording import Event


class Journal:
    """What has been written down of one run so far. ``call`` counts the calls of the learner's function."""

    def __init__(self, named: dict[str, Tensor]) -> None:
        self.names, self.params = tuple(named), list(named.values())
        self.number = {id(p): i for i, p in enumerate(self.params)}
        self.events: list[Event] = []
        self.arrays: dict[str, Tensor] = {}
        self.lines: dict[int, str] = {}
        self.call = 0

    def line(self) -> int | None:
        """The learner's line that is being executed now."""
        frame = learner_frame(sys._getframe(1))
        if frame is None:
            return None
        number = frame.f_lineno
        if number not in self.lines:
            text = linecache.getline(frame.f_code.co_filename, number, frame.f_globals)
            self.lines[number] = text.strip()
        return number

    def note(self, what: str, **data: Any) -> Event:
        """Write down an event on the learner's current line."""
        event = Event(what, self.line(), self.call, data)
        self.events.append(event)
        return event

    def extend(self, what: str, i: int, **data: Any) -> Event:
        """Write down a change of parameter ``i``'s .grad; a run of equal changes on one line is one event."""
        last, line = (self.events[-1] if self.events else None), self.line()
        same = last is not None and last.what == what and last.line == line
        if last is None or not same or i in last.data["parameters"] or any(last.data[k] != v for k, v in data.items()):
            last = self.note(what, parameters=[], **data)
        last.data["parameters"].append(i)
        return last

    def keep(self, name: str, tensor: Tensor | None) -> None:
        """Keep a copy of a tensor's values under ``name``."""
        if tensor is not None:
            self.arrays[name] = tensor.detach().clone()

    def keep_parameters(self, prefix: str) -> None:
        """Keep a copy of every parameter."""
        for i, parameter in enumerate(self.params):
            self.keep(f"{prefix}/{i}", parameter)

    def grad_states(self) -> list[str]:
        """The state of every parameter's .grad."""
        return [state_of(p.grad) for p in self.params]


def state_of(grad: Tensor | None) -> str:
    """The state of a .grad: ``none``, ``zeros`` or ``values``."""
    return "none" if grad is None else "values" if bool(grad.any()) else "zeros"


def same(a: Tensor, b: Tensor | None) -> bool:
    """Equal in shape and in every entry; nan counts as equal to nan."""
    if b is None or a.shape != b.shape:
        return False
    return torch.equal(a, b) or torch.equal(a.nan_to_num(), b.nan_to_num())
