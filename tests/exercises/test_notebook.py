"""Whole notebooks: the fresh run, and the traps that cost points in a grade cell."""

import json
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from autograder import check_notebook
from autograder.exercises import notebook as module
from autograder.exercises.fresh import _by_rule, grade_of
from autograder.exercises.notebook import NoNotebook, find_notebook, run_fresh, table

ROOT = Path(__file__).parents[2]

SETUP = """
import logging, os, subprocess, sys, warnings
import torch
from torch import nn
from autograder import check
old = sys.stderr

def base(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

def with_trap(trap):
    def train(model, optimizer, loss_fn, loader):
        trap()
        base(model, optimizer, loss_fn, loader)
    return train
"""

# Each is what some learner's right answer does on the way, and what cost it all points with a bare test.
TRAPS = {
    "non-leaf-grad": "x = torch.ones(2, requires_grad=True) * 2\nx.grad",
    "mse-shapes": "nn.MSELoss()(torch.ones(4, 1), torch.ones(4))",
    "tensor-of-tensor": "torch.tensor(torch.ones(2))",
    "scheduler-first": (
        "o = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)\ntorch.optim.lr_scheduler.StepLR(o, 1).step()"
    ),
    "detect-anomaly": "torch.autograd.set_detect_anomaly(True)",
    "create-graph": "torch.ones(2, requires_grad=True).pow(2).sum().backward(create_graph=True)",
    "data-loader": "list(torch.utils.data.DataLoader(range(4), num_workers=1))",
    "progress-bar": "sys.stderr.write('\\r 50%|#####     | 1/2')",
    "logging": "logging.warning('careful')",
    "logging-kept": "logging.StreamHandler(old).emit(logging.makeLogRecord({'msg': 'kept'}))",
    "descriptor": "os.write(2, b'from C++\\n')",
    "child": "subprocess.run('echo oops >&2', shell=True)",
    "old-stream": "print('to the kernel', file=old)",
    "exit-autocall": "try:\n    exit()\nexcept BaseException:\n    pass",
    "display": "display({'text/html': '<b>x</b>'}, raw=True)",
    "unraisable": "type('T', (), {'__del__': lambda self: 1 / 0})()",
    "flood": "print('x' * 10_000_000)",
    "state": "torch.set_default_dtype(torch.float64); torch.set_grad_enabled(True); torch.manual_seed(0)",
    "figure": "import matplotlib.pyplot as plt; plt.plot([1, 2])",
}


def _graded(source, name, points=10):
    data = {"grade": True, "grade_id": name, "locked": True, "points": points, "schema_version": 3, "solution": False,
            "task": False, "cell_type": "code"}  # fmt: skip
    return new_code_cell(source, metadata={"nbgrader": data})


def _indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())


def _notebook(path, *cells):
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.fixture(autouse=True)
def no_kernel_of_ours(monkeypatch):
    """The variables of the kernel that may run these tests say nothing about the notebooks here."""
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.delenv(module.FRESH, raising=False)


@pytest.mark.slow
def test_no_trap_costs_a_point_in_a_real_kernel(tmp_path):
    """No ordinary warning or message of a right answer reaches the cell's stderr: nbgrader gives all points."""
    cells = [new_code_cell(SETUP)]
    for name, code in TRAPS.items():
        cells.append(new_code_cell(f"def trap():\n{_indented(code)}"))
        cells.append(_graded('check("03-plain-loop", with_trap(trap))', name))
    results = run_fresh(_notebook(tmp_path / "traps.ipynb", *cells))
    assert {cell["id"]: (cell["score"], cell["why"]) for cell in results} == dict.fromkeys(TRAPS, (10.0, ""))


@pytest.mark.slow
def test_bad_answers_in_a_real_kernel(tmp_path):
    """Answers that stop, ask, hang or die get 0 in their own cell; the kernel lives and the next cell is right."""
    bad = {
        "exits": "exit()",
        "system-exit": "sys.exit(3)",
        "asks": "input()",
        "breakpoint": "breakpoint()",
        "hangs": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "generator": "yield",
        "stub": "raise NotImplementedError",
    }
    cells = [new_code_cell(SETUP)]
    for name, code in bad.items():
        cells.append(new_code_cell(f"def train(model, optimizer, loss_fn, loader):\n{_indented(code)}"))
        cells.append(_graded('check("03-plain-loop", train)', name))
    cells.append(_graded('check("03-plain-loop", base)', "after"))
    results = {cell["id"]: cell for cell in run_fresh(_notebook(tmp_path / "bad.ipynb", *cells))}
    assert {name: cell["score"] for name, cell in results.items()} == {**dict.fromkeys(bad, 0.0), "after": 10.0}
    assert all(not cell["why"] for cell in results.values())


@pytest.mark.slow
def test_check_notebook_shows_points_and_does_not_recurse(tmp_path, capsys):
    """Points per graded cell and their sum; the call in the notebook itself does nothing in the fresh run."""
    path = _notebook(
        tmp_path / "a.ipynb",
        _graded("1.5", "half", 3),
        _graded("1 / 0", "broken", 2),
        _graded("import sys\nprint('x', file=sys.stderr)", "loud", 2),
        _graded("pass", "silent", 1),
        new_code_cell(f"from autograder import check_notebook\ncheck_notebook({str(tmp_path / 'a.ipynb')!r})"),
    )
    check_notebook(path)
    out = capsys.readouterr().out
    assert "~ half" in out
    assert "1.5 of 3" in out
    assert "ZeroDivisionError" in out
    assert "it wrote to stderr" in out
    assert "Sum: 2.5 of 8 points" in out


def test_finding_the_notebook(tmp_path, monkeypatch):
    """A given path, else the one JupyterLab names, else the only one here with graded cells; else a sentence."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoNotebook, match="none"):
        find_notebook()
    (tmp_path / "broken.ipynb").write_text("{")
    _notebook(tmp_path / "notes.ipynb", new_code_cell("1"))
    lesson = _notebook(tmp_path / "lesson.ipynb", _graded("1", "a"))
    assert find_notebook() == lesson
    other = _notebook(tmp_path / "other.ipynb", _graded("1", "a"))
    with pytest.raises(NoNotebook, match=r"lesson\.ipynb, other\.ipynb"):
        find_notebook()
    monkeypatch.setenv("JPY_SESSION_NAME", str(other))
    assert find_notebook() == other
    assert find_notebook("lesson.ipynb") == Path("lesson.ipynb")
    with pytest.raises(NoNotebook, match="no file"):
        find_notebook("nowhere.ipynb")


def test_trouble_is_a_sentence(tmp_path, capsys):
    """A file that is no notebook gives a sentence, and no traceback."""
    broken = tmp_path / "broken.ipynb"
    broken.write_text("{")
    check_notebook(broken)
    assert "cannot be run" in capsys.readouterr().out


def test_no_recursion(monkeypatch, capsys):
    """In a fresh run, and while nbgrader grades, the call returns at once."""
    for name in (module.FRESH, "NBGRADER_EXECUTION"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            check_notebook("nowhere.ipynb")
    assert capsys.readouterr().out.count("already") == 2


@pytest.mark.parametrize(
    ("outputs", "points"),
    [
        ([], 3.0),
        ([{"output_type": "execute_result", "data": {"text/plain": "1.5"}, "metadata": {}, "execution_count": 1}], 1.5),
        ([{"output_type": "stream", "name": "stdout", "text": "x"}], 3.0),
        ([{"output_type": "stream", "name": "stderr", "text": "x"}], 0.0),
        ([{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}], 0.0),
    ],
)
def test_our_rule_is_nbgraders(outputs, points):
    """Where nbgrader is not installed, the points are those that it would give."""
    cell = _graded("", "a", 3)
    cell.outputs = [nbformat.from_dict(output) for output in outputs]
    assert grade_of(cell) == points
    assert _by_rule(cell) == points


def test_table_marks_what_people_grade():
    """A cell that a person grades is listed, and is not part of the sum."""
    text = table(
        [{"id": "essay", "points": 5.0, "score": None, "why": ""}, {"id": "a", "points": 2.0, "score": 2.0, "why": ""}]
    )
    assert "graded by hand" in text
    assert "Sum: 2 of 2" in text


def test_fresh_answers_in_json(tmp_path):
    """The fresh run's own program prints one JSON object, whatever the notebook prints."""
    path = _notebook(tmp_path / "a.ipynb", _graded("print('{')\n2", "a", 2))
    assert run_fresh(path) == [{"id": "a", "points": 2.0, "score": 2.0, "why": ""}]
    assert os.environ.get(module.FRESH) is None
    assert json.loads(path.read_text())["cells"][0]["outputs"] == []
