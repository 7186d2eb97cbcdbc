"""Make the student edition: nbgrader's own release step, then the same bytes on every run."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from traitlets.config.loader import Config, PyFileConfigLoader

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
INSTRUCTORS = ("quiz.toml",)  # what stands beside a source notebook and must not be handed out


class ReleaseFault(Exception):
    """A release that failed; the text is what nbgrader said."""


def release(
    course: Path, assignments: Sequence[str] = (), *, into: Path | None = None, gradebook: bool = True
) -> list[Path]:
    """Release assignments (all, if none is named) of the course's folder; returns the notebooks.

    They are written to ``into``, by default the course's ``notebooks``. With ``gradebook`` they are entered in the
    gradebook too, which ``nbgrader autograde`` needs. Files there are replaced only when all have been made.
    """
    names = list(assignments) or sorted(path.parent.name for path in course.glob("source/*/*.ipynb"))
    target = into or course / "notebooks"
    with tempfile.TemporaryDirectory() as folder:
        made = [_generate(course, name, Path(folder), gradebook) for name in dict.fromkeys(names)]
        return [path for generated in made for path in _install(generated, target)]


def _generate(course: Path, name: str, folder: Path, gradebook: bool) -> Path:
    """Let nbgrader make one assignment in ``folder``; returns its folder there."""
    config = _config(course, name, folder)
    if not gradebook:
        config.SaveCells.enabled = False
        config.GenerateAssignment.no_database = True
    said = _Said()
    coursedir = CourseDirectory(config=config)
    converter = GenerateAssignment(coursedir=coursedir, config=config)
    converter.force = True
    converter.log.addHandler(said)
    before = os.environ.get("PATH", os.defpath)
    # nbgrader calls the alembic that it finds there, to mark a new gradebook's version.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        converter.start()
    except (NbGraderException, OSError) as error:
        raise ReleaseFault(f"{name}: {said.last or error}") from error
    finally:
        os.environ["PATH"] = before
        converter.log.removeHandler(said)
    return folder / "release" / name


def _config(course: Path, name: str, folder: Path) -> Config:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(course)).load_config()
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.assignment_id = name
    config.CourseDirectory.release_directory = str(folder / "release")
    ignored = config.CourseDirectory.get("ignore") or [".ipynb_checkpoints", "*.pyc", "__pycache__", "feedback"]
    config.CourseDirectory.ignore = [*dict.fromkeys([*ignored, *INSTRUCTORS])]
    return config


class _Said(logging.Handler):
    """Keeps what nbgrader says of a trouble: of a traceback its last line."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().strip().splitlines()
        if lines and (not self.last or lines[0].startswith("Traceback")):
            self.last = lines[-1]


def _install(generated: Path, target: Path) -> list[Path]:
    """Copy an assignment's files to the course, each only if its content is new."""
    written = []
    for file in sorted(path for path in generated.rglob("*") if path.is_file()):
        content = canonical(file.read_bytes()) if file.suffix == ".ipynb" else file.read_bytes()
        place = target / generated.name / file.relative_to(generated)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_bytes() != content:
            place.write_bytes(content)
        if file.suffix == ".ipynb":
            written.append(place)
    return written


def canonical(notebook: bytes) -> bytes:
    """A notebook's content as one fixed sequence of bytes: nothing of a run in it, stable ids, nbformat 4.5."""
    content: dict[str, Any] = json.loads(notebook)
    content |= {"nbformat": 4, "nbformat_minor": 5}
    content["metadata"] = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    seen: set[str] = set()
    for number, cell in enumerate(content["cells"]):
        cell["id"] = _unused(
            cell.get("id") or cell["metadata"].get("nbgrader", {}).get("grade_id") or f"cell-{number}", seen
        )
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
            cell["metadata"].pop("execution", None)
    return (json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _unused(wanted: str, seen: set[str]) -> str:
    """``wanted``, or with a number behind it if it is taken; ids have 64 characters at most."""
    name, number = wanted[:64], 2
    while name in seen:
        name, number = f"{wanted[:60]}-{number}", number + 1
    seen.add(name)
    return name
