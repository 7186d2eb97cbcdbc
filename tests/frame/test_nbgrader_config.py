"""nbgrader_config.py: nbgrader's own commands, run in the course's folder, find and make the right files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def code_cell(source, grade_id, **nbgrader):
    marks = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3}
    return {
        "cell_type": "code",
        "id": grade_id,
        "execution_count": None,
        "outputs": [],
        "source": source,
        "metadata": {"nbgrader": {**marks, "grade_id": grade_id, **nbgrader}},
    }


SOLUTION = "def one():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
NOTEBOOK = {
    "cells": [
        code_cell(SOLUTION, "one", solution=True),
        code_cell("assert one() == 1", "check", grade=True, locked=True, points=2),
    ],
    # A kernel of the student's own computer, which is not here.
    "metadata": {"kernelspec": {"name": "conda-env-mine", "display_name": "Mine", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of one assignment, released, handed in by one student, graded and given feedback."""
    course = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    for folder in ("source/03-zero-grad", "submitted/ada/03-zero-grad"):
        (course / folder).mkdir(parents=True)
        (course / folder / "03-zero-grad.ipynb").write_text(json.dumps(NOTEBOOK))
    for command in ("generate_assignment", "autograde", "generate_feedback"):
        nbgrader(course, command, "03-zero-grad")
    return course


def nbgrader(course, *arguments):
    programs = str(Path(sys.executable).parent)
    variables = {**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_release_lies_where_learners_look(course):
    """The student edition is notebooks/<assignment>/<assignment>.ipynb, with nbgrader's own stub."""
    released = json.loads((course / "notebooks/03-zero-grad/03-zero-grad.ipynb").read_text())
    assert "# YOUR CODE HERE\n    raise NotImplementedError()" in "".join(released["cells"][0]["source"])


@pytest.mark.slow
def test_grades_are_in_the_course_folder(course):
    """The gradebook lies beside nbgrader_config.py and holds the student's points."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission("03-zero-grad", "ada").score == 2


@pytest.mark.slow
def test_feedback_is_one_page_per_student(course):
    """Feedback is feedback/<student>/<assignment>/<assignment>.html."""
    assert (course / "feedback/ada/03-zero-grad/03-zero-grad.html").stat().st_size > 0
