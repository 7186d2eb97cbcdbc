"""A function that is tried in a cell of its own is bounded, and says what stopped it."""

from __future__ import annotations

import time

import pytest

from autograder import tried
from autograder.exercises.trying import Stopped


def swallows_everything():
    while True:
        try:
            time.sleep(0.001)
        except BaseException:
            continue


def divides():
    return 1 / 0


def not_written():
    raise NotImplementedError


def test_the_value_and_the_prints_come_through(capsys):
    """A function that returns behaves as if it were called directly."""
    assert tried(lambda a, b=1: print("seen", a) or a + b)(2, b=3) == 5
    assert capsys.readouterr().out == "seen 2\n"


def test_an_endless_loop_costs_seconds_not_the_notebook():
    """A loop that swallows every interrupt is stopped all the same."""
    started = time.monotonic()
    with pytest.raises(Stopped, match=r"still running after 0\.3 seconds.*line \d+"):
        tried(swallows_everything, seconds=0.3)()
    assert time.monotonic() - started < 5


def test_an_error_names_its_line():
    """What the function raised is said with the learner's line."""
    with pytest.raises(Stopped, match=r"ZeroDivisionError: division by zero \(line \d+: return 1 / 0\)"):
        tried(divides)()


def test_a_stub_is_still_a_stub():
    """A function that is not written yet raises what the notebook's cell expects of it."""
    with pytest.raises(NotImplementedError):
        tried(not_written)()
