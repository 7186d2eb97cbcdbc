"""A right loop passes in any style, without a word of blame."""

from __future__ import annotations

import pytest

from autograder.loops import judge, run
from tests.loops.right_loops import RIGHT


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("function", "task"), RIGHT, ids=[f.__name__ for f, _ in RIGHT])
def test_right_loop_passes(function, task, seed):
    """Values decide: a loop whose parameters are right is right, however it is written."""
    verdict = judge(run(function, task, seed), task, seed)
    assert verdict.right, f"{verdict.kind}: {verdict.message}"
    assert verdict.kind == "none"
    assert not [note for note in verdict.notes if note.startswith("recorder")]
