"""seal and release: made by nbgrader's own step, the same bytes on every run, and nothing of the instructor's in it."""

import json
import shutil
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder.cli.main import main
from autograder.grading.release import ReleaseFault, canonical, release

CONFIG = Path(__file__).parents[2] / "nbgrader_config.py"
QUIZ = """
[[question]]
id = "07-q"
points = 1
prompt = "?"
[[question.choice]]
key = "a"
text = "yes"
reason = "so it is"
right = true
"""


def _cell(source, **changes):
    data = {"grade": False, "grade_id": "answer", "locked": False, "schema_version": 3, "solution": True, "task": False}
    return new_code_cell(source, metadata={"nbgrader": data | changes}, id=data["grade_id"] if not changes else "test")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one assignment, with a quiz file beside the notebook."""
    shutil.copy(CONFIG, tmp_path)
    folder = tmp_path / "source" / "07-small"
    folder.mkdir(parents=True)
    notebook = new_notebook(
        cells=[
            _cell("### BEGIN SOLUTION\nx = 41 + 1\n### END SOLUTION"),
            _cell(
                "x\n### BEGIN HIDDEN TESTS\nassert x == 42\n### END HIDDEN TESTS",
                grade=True, grade_id="test", solution=False, locked=True, points=1,
            ),
        ],
        metadata={"kernelspec": {"display_name": "odd", "name": "my-env", "language": "python"}},
    )  # fmt: skip
    (folder / "07-small.ipynb").write_text(json.dumps(notebook))
    (folder / "quiz.toml").write_text(QUIZ)
    (folder / "data.csv").write_text("1,2\n")
    (tmp_path / "autograder" / "exercises" / "sealed").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_release_is_what_learners_may_see(course):
    """Solutions and hidden tests are cut, the kernel is python3, data comes along and the quiz file does not."""
    (path,) = release(course, ["07-small"], gradebook=False)
    text = path.read_text()
    assert path == course / "notebooks" / "07-small" / "07-small.ipynb"
    assert "41 + 1" not in text
    assert "assert x == 42" not in text
    assert "my-env" not in text
    assert str(course) not in text
    assert (path.parent / "data.csv").exists()
    assert not (path.parent / "quiz.toml").exists()


def test_release_is_repeatable(course):
    """A second release has the same bytes, and does not even touch the file."""
    (path,) = release(course, gradebook=False)
    first, time = path.read_bytes(), path.stat().st_mtime_ns
    release(course, gradebook=False)
    assert path.read_bytes() == first
    assert path.stat().st_mtime_ns == time
    (elsewhere,) = release(course, into=course / "elsewhere", gradebook=False)
    assert elsewhere.read_bytes() == first


def test_commands(course, capsys):
    """The command seals the questions, releases, enters the assignment in the gradebook, and names the files."""
    assert main(["release", "07-small"]) == 0
    out = capsys.readouterr().out
    assert "notebooks/07-small/07-small.ipynb" in out
    assert "autograder/exercises/sealed/07-small.json" in out
    assert (course / "gradebook.db").exists()
    assert main(["seal"]) == 0


def test_faults_keep_the_last_release(course, capsys):
    """A release that fails says why, exits with 1, and leaves the released notebook as it was."""
    (path,) = release(course, gradebook=False)
    before = path.read_bytes()
    source = course / "source" / "07-small" / "07-small.ipynb"
    source.write_text(source.read_text().replace("### END SOLUTION", ""))
    with pytest.raises(ReleaseFault, match="07-small"):
        release(course, gradebook=False)
    assert path.read_bytes() == before
    assert main(["release", "07-nothing"]) == 1
    assert "07-nothing" in capsys.readouterr().err
    (source.parent / "quiz.toml").write_text("[[question]]\n")
    assert main(["release"]) == 2
    assert "without id" in capsys.readouterr().err


def test_elsewhere(tmp_path, monkeypatch, capsys):
    """Outside of a course the commands say so."""
    monkeypatch.chdir(tmp_path)
    assert main(["release"]) == 2
    assert main(["seal"]) == 2
    assert "not the course's folder" in capsys.readouterr().err


def test_canonical():
    """Ids are unique and stable, and outputs, counts and traces of execution are gone."""
    cell = {"cell_type": "code", "source": "a\nb", "outputs": [1], "execution_count": 3, "metadata": {"execution": {}}}
    content = {
        "cells": [cell, cell, dict(cell, id="x"), dict(cell, id="x")],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    made = json.loads(canonical(json.dumps(content).encode()))
    assert [cell["id"] for cell in made["cells"]] == ["cell-0", "cell-1", "x", "x-2"]
    assert made["cells"][0]["source"] == ["a\n", "b"]
    assert made["cells"][0]["outputs"] == []
    assert made["nbformat_minor"] == 5
    assert canonical(json.dumps(made).encode()) == canonical(json.dumps(content).encode())
