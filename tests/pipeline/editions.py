"""The two editions of the lesson: read them, shorten them, put answers in, run them in a fresh kernel."""

from __future__ import annotations

import copy
import linecache
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.utils import determine_grade

from tests.pipeline.answers.answer import Answer

ROOT = Path(__file__).resolve().parents[2]
LESSON = "03-zero-grad"
SOURCE = ROOT / "source" / LESSON / f"{LESSON}.ipynb"
STUDENT = ROOT / "notebooks" / LESSON / f"{LESSON}.ipynb"
STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def notebook_of(cells: list[Any]) -> Any:
    """A notebook of these cells, with the student edition's metadata."""
    notebook = read(STUDENT)
    notebook.cells = cells
    return notebook


def marks(cell: Any) -> dict[str, Any]:
    """What nbgrader keeps of a cell."""
    return cell.metadata.get("nbgrader", {})


def by_grade_id(notebook: Any) -> dict[str, Any]:
    return {marks(cell)["grade_id"]: cell for cell in notebook.cells if marks(cell)}


def shortened(notebook: Any) -> Any:
    """The set-up cell, the answer cells and the grade cells: all that scores depend on."""
    short = copy.deepcopy(notebook)
    short.cells = [c for c in short.cells if c.cell_type == "code" and marks(c)]
    return short


def answered(notebook: Any, answers: Mapping[str, Answer]) -> Any:
    """A copy with these answers in the place of their stubs."""
    filled = copy.deepcopy(notebook)
    cells = by_grade_id(filled)
    for exercise, answer in answers.items():
        cells[f"{exercise}-answer"].source = cell_source(cells[f"{exercise}-answer"].source, answer)
    return filled


def cell_source(stub: str, answer: Answer) -> str:
    """The source of an answered cell."""
    assert stub.count(STUB) == 1, f"no stub in: {stub}"
    text = answer.source.strip("\n")
    return text if answer.whole else stub.replace(STUB, textwrap.indent(text, "    "))


def function_in(cells: Mapping[str, Any], exercise: str, answer: Answer) -> Any:
    """What the answered cell defines and its grade cell checks, made in this process; its lines can be quoted."""
    source = cell_source(cells[f"{exercise}-answer"].source, answer)
    name = re.search(rf'check\("{exercise}", (\w+)', cells[exercise].source)[1]
    file = f"<ipython-input-{exercise}-{abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"display": print}
    exec(cells["03-setup"].source, names)
    exec(compile(source, file, "exec"), names)
    return names[name]


def execute(notebook: Any, folder: Path) -> Any:
    """Run a copy in a fresh kernel, as the learner's own session does; errors stay in the outputs."""
    file = Path(tempfile.mkdtemp(dir=folder)) / "notebook.ipynb"
    nbformat.write(notebook, file)
    command = [sys.executable, str(Path(__file__).with_name("fresh_kernel.py")), str(file)]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    return read(file)


def environment(folder: Path) -> dict[str, str]:
    """One thread a kernel, this checkout's package, and nobody's own progress file."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "ZEROGRAD_HOME": str(folder / "home")}


def points(notebook: Any) -> dict[str, float]:
    """The score of each grade cell of an executed notebook, by nbgrader's rule."""
    cells = (cell for cell in notebook.cells if marks(cell).get("grade"))
    return {marks(cell)["grade_id"]: determine_grade(cell)[0] for cell in cells}


def shown(cell: Any) -> str:
    """What a cell shows as plain text: reports, streams and errors."""
    return "\n".join(
        out.get("text") or out.get("evalue") or out.get("data", {}).get("text/plain", "") for out in cell.outputs
    )
