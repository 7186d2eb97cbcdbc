"""End code that takes too long, also code that catches every exception."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from autograder.guard.frames import BORDER, in_reach, learner_frame, line_text

PATIENCE = 0.05  # seconds that code has to leave in good order, before every line raises


class TimeLimit(BaseException):
    """Raised in code that runs longer than it may."""


class Clock:
    """One limit: whether it was reached, at which line, and whether the user pressed stop meanwhile."""

    def __init__(self) -> None:
        self.reached = self.interrupted = False
        self.tracing = sys.gettrace()  # to be set again by whoever catches TimeLimit, before all else
        self.line: int | None = None
        self.text = ""

    def reach(self, frame: FrameType | None) -> None:
        """Note that time is up, and where the learner's code was."""
        learner = None if self.reached else learner_frame(frame)
        self.reached = True
        if learner is not None:
            self.line, self.text = learner.f_lineno, line_text(learner, learner.f_lineno)


def settle() -> None:
    """Called where a ``TimeLimit`` that is still on its way shall arrive: Python raises it on entering."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[Clock]:
    """Raise ``TimeLimit`` in the learner's code, and only there, when ``seconds`` are over.

    Code that swallows it meets it again at every line, so that it leaves any nest of ``except BaseException``.
    In the main thread a timer signal does this, which ends ``time.sleep`` too; elsewhere, and on Windows, a
    second thread does what it can: it cannot end a call into C.
    """
    main = threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if main and hasattr(signal, "setitimer") else _watchdog(seconds) as clock:
        yield clock


# ---- the storm ----------------------------------------------------------------------------------------------------

MONITORING: Any = getattr(sys, "monitoring", None)  # from Python 3.12
TOOL = 4  # one of the two numbers of sys.monitoring that no kind of tool is asked to use


def _raise_at_every_line(frame: FrameType | None) -> None:
    """Make every line that begins in reach, in this thread, raise ``TimeLimit``, until ``_calm``."""
    if MONITORING is None:
        _trace(frame)
    elif MONITORING.get_tool(TOOL) is None:
        _monitor(threading.get_ident())


def _monitor(thread: int) -> None:
    def on_line(code: CodeType, place: int) -> None:
        if threading.get_ident() == thread and in_reach(sys._getframe(1)):
            raise TimeLimit

    MONITORING.use_tool_id(TOOL, "time limit")
    for event in (MONITORING.events.LINE, MONITORING.events.PY_START):
        MONITORING.register_callback(TOOL, event, on_line)
    MONITORING.set_events(TOOL, MONITORING.events.LINE | MONITORING.events.PY_START)


def _trace(frame: FrameType | None) -> None:
    """The same before Python 3.12, with a trace function.

    One that raises is taken away by Python, and one that is written in Python is interrupted by what it asks for.
    So it is a C function that asks for an exception and returns None: the exception comes right after it.
    """
    trace = functools.partial(_ask_for_exception, threading.get_ident(), TimeLimit)
    while frame is not None and frame.f_code is not BORDER:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)


# PyThreadState_SetAsyncExc(thread, exception); a trace function's three arguments follow, and C does not look at them.
_ask_for_exception: Any = ctypes.PYFUNCTYPE(None, ctypes.c_ulong, *[ctypes.py_object] * 4)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


def _calm() -> None:
    """End the storm. Where it is a trace function, whoever caught ``TimeLimit`` has done so."""
    if MONITORING is not None and MONITORING.get_tool(TOOL) == "time limit":
        MONITORING.set_events(TOOL, 0)
        for event in (MONITORING.events.LINE, MONITORING.events.PY_START):
            MONITORING.register_callback(TOOL, event, None)
        MONITORING.free_tool_id(TOOL)


# ---- main thread: a timer signal ----------------------------------------------------------------------------------


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[Clock]:
    clock = Clock()

    def on_alarm(number: int, frame: FrameType | None) -> None:
        if not in_reach(frame):
            return
        if clock.reached:
            _raise_at_every_line(frame)
        clock.reach(frame)
        raise TimeLimit

    with _interrupts(clock):
        started, before = time.monotonic(), signal.signal(signal.SIGALRM, on_alarm)
        left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, PATIENCE)
        try:
            yield clock
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            _calm()
            signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
            if left:
                spent = time.monotonic() - started
                signal.setitimer(signal.ITIMER_REAL, max(left - spent, 1e-4), interval)


@contextlib.contextmanager
def _interrupts(clock: Clock) -> Iterator[None]:
    """Note the user's Ctrl-C, and start the storm in case the learner's code swallows it."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        clock.interrupted = True
        signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
        if in_reach(frame):
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ---- other threads: a watchdog ------------------------------------------------------------------------------------


class _Storm(TimeLimit):
    """Python makes the exception in the thread that it is meant for: from there its frames can be traced."""

    def __init__(self) -> None:
        super().__init__()
        _raise_at_every_line(sys._getframe(1))


@contextlib.contextmanager
def _watchdog(seconds: float) -> Iterator[Clock]:
    clock, done, thread = Clock(), threading.Event(), threading.get_ident()

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            pause, frame = PATIENCE, sys._current_frames().get(thread)
            if in_reach(frame):
                kind = _Storm if clock.reached else TimeLimit
                clock.reach(frame)
                _ask_for_exception(thread, kind, None, None, None)

    watcher = threading.Thread(target=watch, name="time limit", daemon=True)
    watcher.start()
    try:
        yield clock
    finally:
        while watcher.is_alive():
            with contextlib.suppress(TimeLimit):  # one may be on its way
                done.set()
                watcher.join()
        _calm()
        # One that is still on its way is not taken back but replaced, and caught: Python 3.11 notes that there is
        # one, and forgets it only when one arrives.
        with contextlib.suppress(TimeLimit):
            _ask_for_exception(thread, TimeLimit, None, None, None)
            settle()
