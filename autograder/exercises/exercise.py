"""What every exercise is: two halves, of which only the first runs the learner's code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from autograder.exercises.report import Report
from autograder.guard import attempt


class Exercise(Protocol):
    """An exercise by its id. ``run`` is the untrusted half, ``judge`` the trusted one."""

    @property
    def id(self) -> str:
        """The lesson's number and a name, such as ``03-plain-loop``."""

    @property
    def title(self) -> str:
        """What the learner reads."""

    @property
    def points(self) -> float:
        """The most that it can earn."""

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints for whoever has no mistake to get hints on."""

    def run(self, answer: Any, seed: int) -> dict[str, Any]:
        """Try ``answer`` and bring back plain data about it. Never raises for a fault of the answer."""

    def judge(self, data: dict[str, Any], seed: int) -> Report:
        """Judge what ``run`` brought back. Runs no learner code."""


def fault_of(answer: Any, name: str, parameters: tuple[str, ...]) -> str | None:
    """Why ``answer`` cannot be called with ``parameters``, in one sentence; None if it can."""
    if answer is None or answer is ...:
        return f"There is no answer yet: define `{name}` in the cell above, run it, then run this cell."
    if not callable(answer):
        return f"`{name}` should be a function; this is {_described(answer)}."
    kind = _unusual(answer)
    if kind:
        return f"`{name}` is {kind}: calling it would run none of its lines. Write a plain function that returns."
    return _signature_fault(answer, name, parameters)


def _described(answer: Any) -> str:
    text = attempt(repr, answer, seconds=1).value
    shown = f" ({text[:60]})" if isinstance(text, str) else ""
    return f"of type {type(answer).__name__}{shown}"


def _unusual(answer: Any) -> str:
    """A generator or coroutine function by its name; "" for one that runs when it is called."""
    while isinstance(answer, functools.partial):
        answer = answer.func
    call = inspect.getattr_static(type(answer), "__call__", None)
    for function in (answer, call):
        if inspect.iscoroutinefunction(function):
            return "a coroutine function (`async def`)"
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            return "a generator function (it has a `yield`)"
    return ""


def _signature_fault(answer: Callable[..., Any], name: str, parameters: tuple[str, ...]) -> str | None:
    signature = attempt(inspect.signature, answer, seconds=1).value
    if not isinstance(signature, inspect.Signature):
        return None  # some callables of C have none: the call itself will tell
    try:
        signature.bind(*parameters)
    except TypeError:
        wanted, taken = ", ".join(parameters), ", ".join(signature.parameters)
        return f"`{name}` is called as `{name}({wanted})`, but yours takes ({taken})."
    return None


def unwritten(name: str) -> str:
    """The sentence for an answer that is still the stub."""
    return f"`{name}` still raises NotImplementedError: write it in the cell above, run that cell, then run this one."
