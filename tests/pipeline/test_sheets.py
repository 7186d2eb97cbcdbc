"""Answer sheets of sample students: the same points from check, from the grade cell and from nbgrader's gradebook."""

from __future__ import annotations

import math
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.pipeline.editions import STUDENT, answered, by_grade_id, execute, marks, points, read, shortened, shown
from tests.pipeline.sheets import ANSWERS, SHEETS, answers_of

EVERY = [(exercise, name) for exercise, answers in ANSWERS.items() for name in answers]
RIGHT = [(e, n) for e, n in EVERY if ANSWERS[e][n].kind == "none"]
WRONG = [(e, n) for e, n in EVERY if ANSWERS[e][n].kind != "none"]
SESSIONS = ("student-05", "student-18", "student-19", "student-24")
BLAME = re.compile(r"should|wrong|mistake|never|instead|not", re.IGNORECASE)
BROKEN_WORDS = re.compile(r"None (?:calls|clears|stepped)|line None|nothing alone|[{}]|recorder:|check itself failed")


def names(cases):
    return [f"{exercise}:{name}" for exercise, name in cases]


def test_sheets_use_every_answer():
    """There are at least 28 sheets, every answer stands on one, and most mix several exercises."""
    used = {(exercise, name) for sheet in SHEETS.values() for exercise, name in sheet.items()}
    assert used == set(EVERY)
    assert len(SHEETS) >= 28
    assert all(len(sheet) >= 2 for sheet in SHEETS.values())


@pytest.mark.parametrize(("exercise", "name"), EVERY, ids=names(EVERY))
def test_points_in_this_process(own_report, exercise, name):
    """check gives an answer the points that it deserves, on the public seed and on the hidden one."""
    reports, _ = own_report(exercise, name)
    assert [report.score for report in reports] == [ANSWERS[exercise][name].points] * len(reports), reports[0].message


@pytest.mark.parametrize(("exercise", "name"), RIGHT, ids=names(RIGHT))
def test_right_answer_is_not_blamed(own_report, exercise, name):
    """A right answer in an unusual style meets no word of blame, no hint and no lost part."""
    for report in own_report(exercise, name)[0]:
        assert report.kind == "none", report.message
        assert report.message.startswith("Right:")
        assert not report.hints
        assert not report.parts
        if not exercise.startswith(("03-predict", "03-quiz")):  # a question's reason may speak of the other choices
            assert not BLAME.search(re.sub(r"(?:where|what) it should", "", report.message)), report.message


@pytest.mark.parametrize(("exercise", "name"), WRONG, ids=names(WRONG))
def test_wrong_answer_is_told_its_mistake(own_report, exercise, name):
    """The report names the mistake, and shows a number, a value or the line that is the learner's own."""
    answer = ANSWERS[exercise][name]
    source = answered(read(STUDENT), {exercise: answer})
    lines = [line.strip() for line in by_grade_id(source)[f"{exercise}-answer"].source.splitlines()]
    for report in own_report(exercise, name)[0]:
        assert report.kind == answer.kind, report.message
        assert all(word in report.message for word in answer.says), report.message
        assert not BROKEN_WORDS.search(report.message), report.message
        if report.line is not None:
            assert report.text
            assert report.text == lines[report.line - 1]
        own = report.line is not None or re.search(r"\d", report.message) or answer.says
        assert own, report.message


@pytest.mark.parametrize(("exercise", "name"), EVERY, ids=names(EVERY))
def test_answer_leaves_no_trace(own_report, exercise, name):
    """After a check the process is as before: grad mode, dtype, random state, threads, folder, warnings, logging."""
    assert own_report(exercise, name)[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("student", SHEETS)
def test_gradebook_has_the_points(graded, student):
    """nbgrader autograde gives each exercise of a sheet what it deserves, whatever the sheet's other answers do."""
    deserved = {exercise: answer.points for exercise, answer in answers_of(student).items()}
    notebook, scores = graded[student]
    assert {name: score for name, score in scores.items() if score or name in deserved} == deserved
    assert points(notebook) == scores


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("student", SHEETS)
def test_gradebook_agrees_with_check(graded, own_report, student):
    """The same function gets the same points from check here and from nbgrader."""
    scores = graded[student][1]
    for exercise, name in SHEETS[student].items():
        reports, _ = own_report(exercise, name)
        assert scores[exercise] == reports[0].score, f"{exercise}: {name}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("student", SHEETS)
def test_cells_show_the_report(graded, own_report, student):
    """The executed grade cell holds the message, and the learner's line where the message speaks of one."""
    cells = by_grade_id(graded[student][0])
    for exercise, name in SHEETS[student].items():
        report, text = own_report(exercise, name)[0][0], shown(cells[exercise])
        assert report.message.split(" This was ")[0] in text
        assert report.line is None or f"line {report.line}: {report.text}" in text


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("student", SHEETS)
def test_grade_cells_are_quiet_and_end_in_one_number(graded, student):
    """A grade cell writes nothing to a stream and raises nothing; it ends in one finite float up to its points."""
    for cell in graded[student][0].cells:
        if not marks(cell).get("grade"):
            continue
        kinds = [out.output_type for out in cell.outputs]
        assert kinds.count("execute_result") == 1
        assert set(kinds) == {"display_data", "execute_result"}, cell.outputs
        value = float(cell.outputs[-1]["data"]["text/plain"])
        assert math.isfinite(value)
        assert 0 <= value <= marks(cell)["points"]
        assert set(cell.outputs[-1]["data"]) == {"text/plain"}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """Some sheets as the learners themselves run them: no hidden tests, and not under nbgrader."""
    folder, student = tmp_path_factory.mktemp("sessions"), shortened(read(STUDENT))
    with ThreadPoolExecutor(2) as pool:
        ran = pool.map(lambda name: execute(answered(student, answers_of(name)), folder), SESSIONS)
        return dict(zip(SESSIONS, ran, strict=True))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("student", SESSIONS)
def test_own_session_agrees_with_gradebook(sessions, graded, student):
    """What learners see in their own kernel is what the gradebook will say."""
    assert points(sessions[student]) == graded[student][1]
