"""The verbs of a notebook's cells: check, hint, progress."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from autograder.exercises import progress as records
from autograder.exercises.catalogue import exercises, find
from autograder.exercises.exercise import Exercise
from autograder.exercises.render import number, show
from autograder.exercises.report import Report, refused
from autograder.guard import neutral_state

SEED = 20

# What this session has shown: the last report of each exercise, and how many of its hints were given.
_last: dict[str, Report] = {}
_given: dict[str, tuple[tuple[str, ...], int]] = {}


def check(exercise_id: str, answer: Any = None, *, seed: int | None = None) -> float:
    """Try ``answer``, show what is right and wrong about it, and return its points.

    The points are one finite float between 0 and the exercise's points. A wrong answer never raises, whatever it
    does; an unknown id raises UnknownExercise. The same answer gets the same points; ``seed`` chooses other data.
    """
    exercise, before = find(exercise_id), _last.get(exercise_id)
    with names_kept(answer):
        report = examine(exercise, answer, seed)
    # A second try on other data, as hidden tests make it, has something to say only if it finds more.
    if seed is None or before is None or report.score < before.score:
        _last[exercise_id] = report
        show(report)
        records.record(report)
    return report.score


@contextlib.contextmanager
def names_kept(answer: Any) -> Iterator[None]:
    """The notebook's names for what is ours mean the same after the answer has run, whatever it assigned to them."""
    try:
        namespace = inspect.unwrap(answer).__globals__
    except (AttributeError, ValueError):
        namespace = {}
    ours = {name: value for name, value in namespace.items() if _is_ours(value)}
    try:
        yield
    finally:
        namespace.update(ours)


def _is_ours(value: Any) -> bool:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(module, str) and module.split(".")[0] == "autograder"


def examine(exercise: Exercise, answer: Any, seed: int | None = None) -> Report:
    """The report on an answer, without showing it."""
    chosen = SEED if seed is None else int(seed)
    with neutral_state(chosen):
        try:
            report = exercise.judge(exercise.run(answer, chosen), chosen)
        except Exception as error:
            return _own_fault(exercise, error)
    return report


def _own_fault(exercise: Exercise, error: Exception) -> Report:
    """The report where the checker broke: it costs the learner a result, and must not cost the notebook."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{last.name}, line {last.lineno}"
    message = f"The check itself failed, please tell your instructor: {type(error).__name__} in {where}: {error}"
    return refused(exercise, message, "check-failed")


def hint(exercise_id: str) -> None:
    """Show the next hint: on the mistake that was last shown, else on the exercise."""
    exercise = find(exercise_id)
    report = _last.get(exercise_id)
    if report is not None and report.passed:
        print(f"{exercise.title}: all points are there already.")
        return
    hints = (report.hints if report else ()) or exercise.hints
    before, count = _given.get(exercise_id, ((), 0))
    if before != hints:
        count = 0
    if not hints:
        print(f"There is no hint for {exercise_id}.")
    elif count >= len(hints):
        print(f"Those were all hints for {exercise_id}. The first was: {hints[0]}")
    else:
        print(f"Hint {count + 1} of {len(hints)}: {hints[count]}")
        count += 1
    _given[exercise_id] = hints, count


def progress(lesson: str | None = None) -> None:
    """Show the best points so far on this computer; ``lesson`` is the number that ids begin with, such as "03"."""
    if records.grading():  # nothing is kept while grading: the page's own score is the one that counts
        return
    reached, note = records.read()
    shown = [e for e in exercises().values() if lesson is None or e.id.startswith(lesson)]
    print("The best so far on this computer:")
    for exercise in shown:
        best = reached.get(exercise.id, {}).get("best")
        state = "not checked yet" if best is None else f"{number(best)} of {number(exercise.points)}"
        print(f"{'✓' if best is not None and best >= exercise.points else '·'} {exercise.id:<28} {state}")
    total = sum(min(reached.get(e.id, {}).get("best", 0.0), e.points) for e in shown)
    print(f"{number(total)} of {number(sum(e.points for e in shown))} points")
    if note:
        print(note)
