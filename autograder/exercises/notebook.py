"""Check a whole notebook: run it from top to bottom in a fresh kernel, and show the points of each graded cell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from autograder.exercises.progress import grading
from autograder.exercises.render import mark, number

FRESH = "ZEROGRAD_FRESH_RUN"
LONGEST = 180  # seconds for the whole notebook
NEEDED = "the course's own environment has what it needs, or run: pip install nbclient nbformat ipykernel"


class NoNotebook(Exception):
    """The notebook cannot be found or run; the text says what to do."""


def check_notebook(path: str | os.PathLike[str] | None = None) -> None:
    """Run the notebook as it is saved on disk in a fresh kernel, and print the points of each graded cell.

    Save first: what was typed since the last save is not in the file. ``path`` is only needed where the notebook
    cannot be found by itself.
    """
    if FRESH in os.environ or grading():
        print("check_notebook: this is a fresh run already.")
        return
    try:
        notebook = find_notebook(path)
        cells = run_fresh(notebook)
    except NoNotebook as trouble:
        print(trouble)
        return
    print(f"{notebook.name}, as last saved, run from top to bottom in a fresh kernel:")
    print(table(cells))
    print("Something missing? Save the notebook, then run this cell again.")


def find_notebook(path: str | os.PathLike[str] | None = None) -> Path:
    """The notebook to check. Raises NoNotebook."""
    if path is not None:
        found = Path(path).expanduser()
        if found.is_file():
            return found
        raise NoNotebook(f"There is no file {found}.")
    for candidate in (_editors_path(), os.environ.get("JPY_SESSION_NAME")):
        if candidate and candidate.endswith(".ipynb") and Path(candidate).is_file():
            return Path(candidate)
    here = [file for file in sorted(Path.cwd().glob("*.ipynb")) if _graded_ids(file)]
    if len(here) == 1:
        return here[0]
    names = ", ".join(file.name for file in here) or "none"
    raise NoNotebook(
        f'Which notebook? Those with graded cells in this folder: {names}. Say it: check_notebook("NAME.ipynb")'
    )


def _editors_path() -> str | None:
    """VS Code tells the kernel the notebook's path in a variable."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return shell.user_ns.get("__vsc_ipynb_file__") if shell else None


def _graded_ids(file: Path) -> list[str]:
    try:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        metadata = [cell.get("metadata", {}).get("nbgrader", {}) for cell in cells]
        return [data["grade_id"] for data in metadata if data.get("grade")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def run_fresh(notebook: Path) -> list[dict[str, Any]]:
    """Per graded cell: its id, points, score and, if it lost all, why. Raises NoNotebook."""
    command = [sys.executable, "-m", "autograder.exercises.fresh", str(notebook.resolve())]
    environment = os.environ | {FRESH: "1", "PYTHONPATH": _search_path()}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST, env=environment, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise NoNotebook(f"The notebook was still running after {LONGEST} seconds.") from None
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NoNotebook(f"The fresh run broke: {last}") from None
    if "trouble" in answer:
        raise NoNotebook(answer["trouble"])
    cells: list[dict[str, Any]] = answer["cells"]
    return cells


def _search_path() -> str:
    """Where this kernel found the package, for the new one."""
    here = str(Path(__file__).parents[2])
    before = os.environ.get("PYTHONPATH")
    return os.pathsep.join([here, before] if before else [here])


def table(cells: list[dict[str, Any]]) -> str:
    """Points per graded cell, and their sum."""
    lines = []
    for cell in cells:
        if cell["score"] is None:
            lines.append(f"? {cell['id']:<32} graded by hand, {number(cell['points'])} points")
            continue
        sign, points = mark(cell["score"], cell["points"]), f"{number(cell['score'])} of {number(cell['points'])}"
        lines.append(f"{sign} {cell['id']:<32} {points}{'   ' + cell['why'] if cell['why'] else ''}")
    scored = [cell for cell in cells if cell["score"] is not None]
    reached, possible = sum(cell["score"] for cell in scored), sum(cell["points"] for cell in scored)
    return "\n".join([*lines, f"Sum: {number(reached)} of {number(possible)} points"])
