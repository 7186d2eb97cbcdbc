"""A grade cell's last value is its points, whatever the answer is, and whatever it does to names in the notebook."""

from __future__ import annotations

import math

import nbformat
import pytest

from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.harmful import around
from tests.pipeline.answers.right import RIGHT
from tests.pipeline.editions import SOURCE, STUDENT, answered, by_grade_id, execute, notebook_of, points, read, shown

LOOP, UNITS, QUESTION = "03-plain-loop", "03-dead-unit", "03-predict-add"
ODD = (
    "type('Odd', (), {'__repr__': lambda self: '99.0', '__float__': lambda self: 99.0, '__eq__': lambda a, b: True})()"
)

# Values that nbgrader would give full points for, or that would stop it (PyTorch's and NumPy's texts are no floats).
VALUES = {
    "tensor": "torch.tensor(1.5)",
    "float64": "__import__('numpy').float64(1.5)",
    "false": "False",
    "true": "True",
    "nan": "float('nan')",
    "infinity": "float('inf')",
    "too many": "1000.0",
    "negative": "-3.0",
    "figure": "plt.figure()",
    "text": "'10.0'",
    "odd object": ODD,
    "list": "[10.0]",
}
# Lines inside the function that reach for the names of the grade cell: the answer's points, and a wrong one's.
TAKES = {
    "points": "global points\npoints = 10.0",
    "check": "global check\ncheck = lambda *a, **k: 10.0",
    "min": "global min\nmin = lambda *a: 10.0",
    "builtin": "import builtins\nbuiltins.min = max\nbuiltins.float = lambda x: 10.0",
    "displayhook": "import sys\nsys.displayhook = lambda value: print(10.0)",
    "namespace": "get_ipython().user_ns.update(points=10.0, check=lambda *a, **k: 10.0)",
}


def pair(exercise, answer, number, hidden=False):
    """An answer cell and its grade cell, with the hidden tests that nbgrader autograde puts back if ``hidden``."""
    known = by_grade_id(read(STUDENT))
    cells = [known[f"{exercise}-answer"], known[exercise]]
    if hidden:
        cells[1].source = by_grade_id(read(SOURCE))[exercise].source
    made = answered(notebook_of(cells), {exercise: answer}).cells
    for cell in made:
        cell.id = f"{cell.id[:50]}-{number}"
    return made


def executed(folder, cells):
    """The cells after the set-up cell, run in one fresh kernel."""
    return execute(notebook_of([by_grade_id(read(STUDENT))["03-setup"], *cells]), folder).cells[1:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("values")


@pytest.fixture(scope="module")
def value_cells(folder):
    """Per value and exercise the executed grade cell, in one kernel."""
    cases, cells = [], []
    for name, value in VALUES.items():
        for exercise, answer in (
            (LOOP, Answer(around(after=f"return {value}"), 10)),
            (UNITS, Answer(f"return {value}", 0)),
            (QUESTION, Answer(f"answer_predict_add = {value}", 0)),
        ):
            cells += pair(exercise, answer, len(cases))
            cases.append((name, exercise))
    return dict(zip(cases, executed(folder, cells)[1::2], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("exercise", [LOOP, UNITS, QUESTION])
@pytest.mark.parametrize("value", VALUES)
def test_answer_that_is_or_returns_an_odd_value(value_cells, value, exercise):
    """The last value is one finite float in plain text: full points for the right loop, none for the wrong answers."""
    cell = value_cells[value, exercise]
    results = [out.data for out in cell.outputs if out.output_type == "execute_result"]
    assert [set(data) for data in results] == [{"text/plain"}]
    assert math.isfinite(float(results[0]["text/plain"]))
    assert points(notebook_of([cell])) == {exercise: 10.0 if exercise == LOOP else 0.0}, shown(cell)


RESET = """
import sys
from autograder import check
sys.displayhook = shell_displayhook
for name in ("min", "points"):
    globals().pop(name, None)
"""


@pytest.fixture(scope="module")
def taken(folder):
    """Per way of taking a name: the points of a wrong loop that does it, and of the right answer after it."""
    cells = [nbformat.v4.new_code_cell("import sys\nshell_displayhook = sys.displayhook")]
    for number, lines in enumerate(TAKES.values()):
        body = f"{lines}\nfor x, y in loader:\n    optimizer.step()"
        cells += pair(LOOP, Answer(body, 0), number, hidden=True)
        cells += pair(UNITS, RIGHT[UNITS]["save-and-restore"], number, hidden=True)
        cells.append(nbformat.v4.new_code_cell(RESET))
    by_accident, grade = pair(LOOP, Answer(around(), 10), len(TAKES), hidden=True)
    by_accident.source = f"points = 3\nprogress = hint = None\n{by_accident.source}"
    ran = executed(folder, [*cells, by_accident, grade])[1:]
    return {name: (ran[5 * n + 1], ran[5 * n + 3]) for n, name in enumerate(TAKES)} | {"accident": (ran[-1],)}


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES)
def test_function_that_takes_a_name_earns_nothing(taken, name):
    """A wrong answer that rebinds points, check, min or a builtin while it runs gets no point by it."""
    assert points(notebook_of([taken[name][0]])) == {LOOP: 0.0}, shown(taken[name][0])


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES)
def test_function_that_takes_a_name_harms_no_other_exercise(taken, name):
    """The next exercise's points are neither lost nor given away by it."""
    assert points(notebook_of([taken[name][1]])) == {UNITS: 5.0}, shown(taken[name][1])


@pytest.mark.slow
def test_name_taken_by_accident(taken):
    """A learner's own variables called points, progress and hint cost nothing."""
    assert points(notebook_of([taken["accident"][0]])) == {LOOP: 10.0}
