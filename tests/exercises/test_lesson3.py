"""Lesson 3's exercises: what they give to answers as learners write them."""

import pytest

from autograder import check
from autograder.exercises.catalogue import find
from autograder.exercises.checking import examine
from autograder.exercises.lesson3 import EXERCISES
from tests.exercises.answers import RIGHT, WRONG, nothing, stub


def test_seventy_points():
    """The exercises of lesson 3 are worth 70 points, and their ids begin with 03."""
    assert sum(exercise.points for exercise in EXERCISES) == 70
    assert all(exercise.id.startswith("03-") for exercise in EXERCISES)


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
@pytest.mark.parametrize("seed", [None, 7041])
def test_right_answers_get_all_points(exercise, answer, seed):
    """A right answer gets all points, in any style and on any seed."""
    report = examine(find(exercise), answer, seed)
    assert report.score == report.max_score, report.message
    assert report.kind == "none"


@pytest.mark.parametrize(("exercise", "answer", "points"), WRONG)
def test_wrong_answers_get_their_part(exercise, answer, points):
    """A wrong answer gets the points of the properties that hold, the same on other seeds, and one sentence."""
    reports = [examine(find(exercise), answer, seed) for seed in (None, 7041)]
    assert [report.score for report in reports] == [points, points]
    assert sum(part.got for part in reports[0].parts) == points
    assert len(reports[0].message) > 20
    assert reports[0].kind != "none"


@pytest.mark.parametrize("exercise", [exercise.id for exercise in EXERCISES])
@pytest.mark.parametrize("answer", [stub, nothing, None, ..., 3, lambda: 0])
def test_no_answer_no_points(exercise, answer):
    """A stub, an empty function and what is no function get nothing, and a sentence that says why."""
    report = examine(find(exercise), answer)
    assert report.score == 0
    assert report.message


@pytest.mark.parametrize("exercise", [exercise.id for exercise in EXERCISES])
def test_stub_is_told_apart(exercise, capsys):
    """The stub is named as such, with the function's name."""
    assert check(exercise, stub) == 0
    assert f"`{find(exercise).function}` still raises NotImplementedError" in capsys.readouterr().out


@pytest.mark.parametrize("exercise", [exercise.id for exercise in EXERCISES])
def test_there_are_hints(exercise):
    """Each exercise has up to three hints of its own."""
    assert 1 <= len(find(exercise).hints) <= 3
