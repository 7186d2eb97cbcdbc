"""How a class did, exercise by exercise, as nbgrader's gradebook knows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nbgrader.api import Gradebook


@dataclass(frozen=True)
class CellResult:
    """One graded cell: ``full``, ``partial`` and ``none`` count the submissions with all, some and no points."""

    assignment: str
    cell: str
    max_score: float
    mean: float
    full: int
    partial: int
    none: int
    ungraded: int


def class_results(db_url: str, assignments: Sequence[str] = ()) -> list[CellResult]:
    """Results of the named assignments (all, if none is named), in the order of the notebook's cells.

    Raises LookupError for an assignment that the gradebook does not have.
    """
    with Gradebook(db_url) as gradebook:
        known = [assignment.name for assignment in gradebook.assignments]
        for name in assignments:
            if name not in known:
                raise LookupError(f"the gradebook has no assignment {name!r}; it has {', '.join(known) or 'none'}")
        return [result for name in assignments or known for result in _results(gradebook, name)]


def _results(gradebook: Gradebook, assignment: str) -> list[CellResult]:
    grades = defaultdict(list)
    for submission in gradebook.assignment_submissions(assignment):
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                grades[grade.name].append((grade.score, grade.max_score, grade.needs_manual_grade))
    return [_result(assignment, cell, rows) for cell, rows in grades.items()]


def _result(assignment: str, cell: str, rows: list[tuple[float, float, bool]]) -> CellResult:
    done = [(score, most) for score, most, waits in rows if not waits]
    full = sum(score >= most for score, most in done)
    none = sum(score == 0 < most for score, most in done)
    mean = sum(score for score, _ in done) / len(done) if done else 0.0
    return CellResult(
        assignment, cell, rows[0][1], mean, full, len(done) - full - none, none, len(rows) - len(done)
    )  # fmt: skip
