"""The untrusted half: run a learner's function on a task and bring back plain data."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from autograder.guard import attempt, neutral_state
from autograder.loops.graph import every_tensor
from autograder.loops.recorder import Recorder
from autograder.loops.recording import Recording
from autograder.loops.task import Task, build

LONGEST = 10_000  # numbers kept of a returned list


def run(function: Callable[..., Any], task: Task, seed: int = 0, *, seconds: float = 5.0) -> Recording:
    """Call ``function`` ``task.epochs`` times on material made from ``seed`` and record what it does.

    Never raises for a fault of ``function``: what it raised, printed or left open is part of the recording.
    ``seconds`` bounds all calls together.
    """
    with neutral_state():
        material = build(task, seed)
        recorder = Recorder(material)

    def calls() -> Any:
        torch.set_default_dtype(task.dtype)  # so that a learner's own buffers match the parameters
        value = None
        with recorder:
            for number in range(task.epochs):
                recorder.start_call(number)
                value = function(*material.arguments)
                recorder.end_call()
        return value

    outcome = attempt(calls, seconds=seconds)
    recorder.close()
    retains = any(e.what == "backward" and e.retain for e in recorder.journal.events)
    kept = _kept(function, task, seed, seconds) if retains and not outcome.failure else 0
    arrays, returned = recorder.journal.arrays, _summary(outcome.value, recorder)
    if isinstance(outcome.value, torch.Tensor):
        arrays["returned"] = outcome.value.detach().to(task.dtype).clone()
    elif task.signature == "evaluate" and _is_number(outcome.value):
        arrays["returned"] = torch.tensor(float(outcome.value), dtype=task.dtype)
    troubles = tuple(f"recorder: {trouble}" for trouble in recorder.troubles)
    return Recording(
        task, seed, recorder.journal.names, tuple(recorder.journal.events), arrays, outcome.failure, outcome.printed,
        outcome.notes + troubles, returned, recorder.journal.lines, kept, outcome.seconds,
    )  # fmt: skip


def _summary(value: Any, recorder: Recorder) -> dict[str, Any]:
    """What the function returned, as plain data: its type, numbers, and the graphs that it holds on to."""
    tensors = every_tensor(value)
    summary: dict[str, Any] = {"type": type(value).__name__, "forwards": recorder.backwards.tags.reached(tensors)}
    if isinstance(value, torch.Tensor):
        summary |= {"leaf": value.is_leaf, "requires_grad": value.requires_grad}
        summary |= {"same": any(value is p for p in recorder.journal.params), "shape": list(value.shape)}
    values = value if isinstance(value, (list, tuple)) else [value]
    if len(values) <= LONGEST and all(_is_number(v) for v in values):
        summary["numbers"] = [float(v.detach() if isinstance(v, Tensor) else v) for v in values]
    return summary


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1)


class _Saved:
    """Stands for one tensor that autograd keeps for a backward pass."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()  # the tensor itself would close a cycle through its grad_fn


def _kept(function: Callable[..., Any], task: Task, seed: int, seconds: float) -> int:
    """How many saved tensors are still alive when the function has returned.

    A second run: saved-tensor hooks switch autograd's in-place checks off, so they must not be there
    in the run that decides.
    """
    alive: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def pack(tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        alive.add(saved)
        return saved

    with neutral_state():
        material = build(task, seed)

    def calls() -> Any:
        torch.set_default_dtype(task.dtype)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
            return [function(*material.arguments) for _ in range(task.epochs)][-1]

    outcome = attempt(calls, seconds=seconds)
    return len(alive) if outcome.value is not None else 0
