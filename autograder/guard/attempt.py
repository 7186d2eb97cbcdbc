"""Run a learner's function so that nothing it does reaches further than its own result."""

from __future__ import annotations

import builtins
import contextlib
import getpass
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from autograder.guard.frames import call_learner, learner_line
from autograder.guard.neutral import neutral_state
from autograder.guard.output import Caught, captured
from autograder.guard.timelimit import Clock, TimeLimit, limited, settle

LONGEST_MESSAGE = 500


@dataclass(frozen=True)
class Failure:
    """Why a function did not end by returning.

    ``kind`` is ``raised``, ``timeout``, ``exit`` (it tried to end Python), ``input`` (it asked the user),
    ``memory`` or ``recursion``; ``type`` is the exception's, and so is ``message`` where the kind is ``raised``,
    otherwise a sentence; ``line`` and ``text`` are the learner's line, None and "" where no line is the learner's.
    """

    kind: str
    type: str
    message: str
    line: int | None = None
    text: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a call: its value or its failure, what it printed, and remarks that cost nothing."""

    value: Any
    failure: Failure | None
    printed: str
    notes: tuple[str, ...]
    seconds: float


class InputAsked(Exception):
    """Raised where code asks the user something, for nobody is there to answer."""


def attempt(
    function: Callable[..., Any], *args: Any, seconds: float = 5.0, output: int = 20_000, **kwargs: Any
) -> Outcome:
    """Call ``function`` and bring back what came of it, whatever it does.

    It runs under torch's defaults and for ``seconds`` at most; at most ``output`` characters of what it prints
    are kept, and nothing it writes reaches the caller's streams. Global state is restored. Raises only
    KeyboardInterrupt, and only if the user asks for it.
    """
    started = time.perf_counter()
    with neutral_state(), captured(output) as caught, _nobody_to_ask(caught), limited(seconds) as clock:
        value, failure = _guarded(function, args, kwargs, clock)
    if clock.interrupted:
        raise KeyboardInterrupt
    if clock.reached:
        value, failure = None, _timeout(clock, seconds)
    spent = time.perf_counter() - started
    return Outcome(value, failure, caught.out.text(), tuple(caught.notes.notes), spent)


def _guarded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], clock: Clock
) -> tuple[Any, Failure | None]:
    """The value or the failure of the call; the exception and the frames it holds are let go."""
    value = failure = None
    try:
        try:
            value = call_learner(function, args, kwargs)
        except BaseException as error:
            sys.settrace(clock.tracing)
            failure = _failure(error)
        sys.settrace(clock.tracing)
        settle()
    except TimeLimit:
        sys.settrace(clock.tracing)
        failure = Failure("timeout", "TimeLimit", "")
    return value, failure


KINDS: tuple[tuple[type[BaseException], str, str], ...] = (
    (TimeLimit, "timeout", "It ran too long."),
    (SystemExit, "exit", "It tried to end Python with exit or sys.exit: a function ends with return."),
    (InputAsked, "input", ""),
    (MemoryError, "memory", "It asked for more memory than there is."),
    (RecursionError, "recursion", "It called itself again and again until Python's limit was reached."),
)


def _failure(error: BaseException) -> Failure:
    kind, message = next(((name, words) for cause, name, words in KINDS if isinstance(error, cause)), ("raised", ""))
    if not message:
        try:
            message = str(error)
        except Exception:
            message = "(its text cannot be read)"
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return Failure(kind, type(error).__name__, message, *learner_line(error.__traceback__))


def _timeout(clock: Clock, seconds: float) -> Failure:
    return Failure(
        "timeout",
        "TimeLimit",
        f"It was still running after {seconds:g} seconds: does its loop ever end?",
        clock.line,
        clock.text,
    )


# ---- what would wait for a person, or end the session --------------------------------------------------------------


def _ask(*args: Any, **kwargs: Any) -> Any:
    raise InputAsked("Exercises cannot ask for input: nobody is there to type it.")


def _stop_here(*args: Any, **kwargs: Any) -> Any:
    raise InputAsked("Exercises cannot stop in a debugger: take the breakpoint out.")


def _leave(*args: Any, **kwargs: Any) -> Any:
    raise SystemExit("exit was called")


@contextlib.contextmanager
def _nobody_to_ask(caught: Caught) -> Iterator[None]:
    """``input``, ``breakpoint``, IPython's ``exit`` and ``display`` do no harm in the block.

    ``neutral_state`` puts the builtins and the hooks back.
    """
    builtins.input = _ask
    sys.breakpointhook = _stop_here
    sys.unraisablehook = callable  # does nothing, and being of C it is not stopped in the middle
    asked, getpass.getpass = getpass.getpass, _ask
    shell = _shell()
    before = shell and (shell.__dict__.get("ask_exit"), shell.display_pub)
    if shell:
        shell.ask_exit, shell.display_pub = _leave, _publisher(caught)
    try:
        yield
    finally:
        getpass.getpass = asked
        if shell and before:
            shell.display_pub = before[1]
            del shell.ask_exit
            if before[0]:
                shell.ask_exit = before[0]


def _shell() -> Any:
    """The running IPython shell, if there is one."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


def _publisher(caught: Caught) -> Any:
    """Takes what ``display`` sends: its plain text counts as printed."""
    from IPython.core.displaypub import DisplayPublisher

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, *rest: Any, **more: Any) -> None:
            caught.out.write(str(data.get("text/plain", "")) + "\n")

        def clear_output(self, wait: bool = False) -> None:
            """There is nothing to clear."""

    return Publisher(shell=None)
