"""autograder seal and autograder release: run in the course's folder."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from autograder.exercises.sealing import QuizFault, seal_files


def _course() -> Path | None:
    folder = Path.cwd()
    if (folder / "nbgrader_config.py").is_file() and (folder / "source").is_dir():
        return folder
    print(f"autograder: {folder} is not the course's folder (no nbgrader_config.py, no source/).", file=sys.stderr)
    return None


def seal(given: Namespace) -> int:
    """Make autograder/exercises/sealed/ from the quiz files in source/.

    A course's folder that does not hold the package uses the questions that the installed package has.
    """
    course = _course()
    if course is None:
        return 2
    sealed = course / "autograder" / "exercises" / "sealed"
    if not sealed.parent.is_dir():
        print("The package is not in this folder: its questions stay as they are.")
        return 0
    try:
        written = seal_files(sorted(course.glob("source/*/quiz.toml")), sealed)
    except QuizFault as fault:
        print(f"autograder seal: {fault}", file=sys.stderr)
        return 2
    for path in written:
        print(path.relative_to(course).as_posix())
    return 0


def main(given: Namespace) -> int:
    """Seal the questions and make the student edition."""
    course = _course()
    if course is None or seal(given):
        return 2
    try:
        from autograder.grading.release import ReleaseFault, release
    except ImportError as error:
        print(f"autograder release: {error.name} is missing; pip install 'zerograd[grading]'", file=sys.stderr)
        return 2
    try:
        written = release(course, given.assignments)
    except ReleaseFault as fault:
        print(f"autograder release: {fault}", file=sys.stderr)
        return 1
    for path in written:
        print(path.relative_to(course).as_posix())
    return 0
