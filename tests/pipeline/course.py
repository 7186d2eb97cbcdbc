"""A course in a folder of its own: release, hand in, grade by nbgrader's own commands, read the gradebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook

from tests.pipeline.editions import LESSON, ROOT, SOURCE, environment


def make_course(folder: Path, notebook: Any = None) -> Path:
    """The course's configuration and lesson 3, or ``notebook`` in its place."""
    lesson = folder / "source" / LESSON
    lesson.mkdir(parents=True)
    (folder / "autograder/exercises/sealed").mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    shutil.copy(SOURCE.with_name("quiz.toml"), lesson)
    if notebook is None:
        shutil.copy(SOURCE, lesson)
    else:
        nbformat.write(notebook, lesson / SOURCE.name)
    return folder


def python(course: Path, *arguments: str, timeout: float = 560) -> subprocess.CompletedProcess[str]:
    """Run this Python in the course's folder; it must end well."""
    programs = str(Path(sys.executable).parent)  # nbgrader calls the alembic that it finds on PATH
    variables = environment(course) | {"PATH": os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=course, env=variables, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
    return done


def nbgrader(course: Path, command: str) -> subprocess.CompletedProcess[str]:
    return python(course, "-m", "nbgrader", command, LESSON)


def submit(course: Path, student: str, notebook: Any) -> None:
    folder = course / "submitted" / student / LESSON
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / SOURCE.name)


def autograded(course: Path, student: str) -> Any:
    """The executed notebook of a student."""
    return nbformat.read(course / "autograded" / student / LESSON / SOURCE.name, as_version=4)


def gradebook(course: Path) -> dict[str, dict[str, float]]:
    """The score of every grade cell, by student, as nbgrader's gradebook has it."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        return {
            submission.student.id: {grade.name: grade.score for grade in submission.notebooks[0].grades}
            for submission in book.assignment_submissions(LESSON)
        }


def grade_in_two_halves(folder: Path, source: Any, sheets: dict[str, Any]) -> dict[str, tuple[Any, dict[str, float]]]:
    """Grade sheets in two courses at a time: by student, the executed notebook and the gradebook's scores."""
    students = sorted(sheets)
    halves = [students[::2], students[1::2]]

    def grade(half: list[str]) -> dict[str, tuple[Any, dict[str, float]]]:
        course = make_course(folder / half[0], source)
        nbgrader(course, "generate_assignment")
        for student in half:
            submit(course, student, sheets[student])
        nbgrader(course, "autograde")
        scores = gradebook(course)
        return {student: (autograded(course, student), scores[student]) for student in half}

    with ThreadPoolExecutor(len(halves)) as pool:
        first, second = pool.map(grade, halves)
    return first | second
