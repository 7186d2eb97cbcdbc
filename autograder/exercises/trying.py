"""Trying a function out in a cell that is not graded: bounded, so that a loop without an end costs seconds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from autograder.guard import attempt

SECONDS = 10.0


class Stopped(RuntimeError):
    """A function that was tried did not return; the text says why, and where."""


def tried(function: Callable[..., Any], *, seconds: float = SECONDS) -> Callable[..., Any]:
    """``function`` with a time limit: ``tried(train)(model, optimizer, loss_fn, loader)``.

    What it prints is shown when it has ended. Raises NotImplementedError where it is not written yet, and Stopped
    where it raises something else or is still running after ``seconds``.
    """

    @functools.wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        outcome = attempt(function, *args, seconds=seconds, **kwargs)
        if outcome.printed:
            print(outcome.printed, end="" if outcome.printed.endswith("\n") else "\n")
        failure = outcome.failure
        if failure is None:
            return outcome.value
        if failure.type == "NotImplementedError":
            raise NotImplementedError
        where = f" (line {failure.line}: {failure.text})" if failure.line else ""
        what = f"{failure.type}: {failure.message}" if failure.kind == "raised" else failure.message
        raise Stopped(f"{what}{where}")

    return bounded
