"""A wrong loop is caught, its mistake is named, and the line and the numbers are the learner's own."""

from __future__ import annotations

import re

import pytest

from autograder.loops import judge, run
from autograder.loops.mistakes import CATALOGUE
from tests.loops.wrong_loops import WRONG

NAMES = [f"{kind}:{f.__name__}" for f, _, kind, _ in WRONG]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("function", "task", "kind", "at"), WRONG, ids=NAMES)
def test_wrong_loop_is_named(function, task, kind, at, seed):
    """The verdict is wrong, names the mistake nearest the cause, and points at the line that holds it."""
    recording = run(function, task, seed)
    verdict = judge(recording, task, seed)
    assert not verdict.right
    assert verdict.kind == kind, verdict.message
    assert not re.search(r"None (?:calls|clears|stepped)|line None|\{|\bnan\b", verdict.message), verdict.message
    if at:
        assert at in recording.lines.get(verdict.line, "") or at in (
            recording.failure.text if recording.failure else ""
        )


def test_every_kind_of_the_catalogue_has_a_wrong_loop():
    """No entry of the catalogue is without a loop that it was tried on."""
    tried = {kind for _, _, kind, _ in WRONG}
    assert {m.slug for m in CATALOGUE} <= tried
