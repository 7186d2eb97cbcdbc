"""autograder check FILE.py --exercise ID"""

from __future__ import annotations

import inspect
import json
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.exercises.catalogue import UnknownExercise, find
from autograder.exercises.checking import examine
from autograder.exercises.render import to_text
from autograder.guard import Failure, attempt

PASSED, NOT_PASSED, UNUSABLE = 0, 1, 2


class Unusable(Exception):
    """A file that holds no answer; the text says why."""


def main(given: Namespace) -> int:
    """Print the report on the answer in a file. Exit 0 passed, 1 not passed, 2 unusable."""
    try:
        exercise = find(given.exercise)
        answer = answer_in(Path(given.file), getattr(exercise, "function", "answer"))
    except (UnknownExercise, Unusable) as trouble:
        print(f"autograder check: {trouble}", file=sys.stderr)
        return UNUSABLE
    report = examine(exercise, answer)
    print(json.dumps(report.plain(), ensure_ascii=False) if given.json else to_text(report))
    return PASSED if report.passed else NOT_PASSED


def answer_in(file: Path, name: str) -> Any:
    """What the file defines under ``name``; failing that, the only function that it defines. Raises Unusable."""
    try:
        source = file.read_bytes()
    except OSError as error:
        raise Unusable(f"{file} cannot be read: {error.strerror or error}.") from error
    namespace = _run(file, source)
    if name in namespace:
        return namespace[name]
    functions = [value for value in namespace.values() if inspect.isfunction(value) and value.__module__ == NAME]
    if len(functions) == 1:
        return functions[0]
    found = ", ".join(f"`{function.__name__}`" for function in functions) or "no function"
    raise Unusable(f"{file} should define `{name}`; it defines {found}.")


NAME = "answer_file"


def _run(file: Path, source: bytes) -> dict[str, Any]:
    try:
        code = compile(source, str(file.resolve()), "exec")
    except (SyntaxError, ValueError) as error:
        place = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise Unusable(f"{file}{place}: this is not Python: {getattr(error, 'msg', error)}.") from error
    module = ModuleType(NAME)
    module.__file__ = str(file)
    sys.modules[NAME] = module  # dataclasses and pickle look a class's module up
    failure = attempt(exec, code, module.__dict__, seconds=30).failure
    if failure:
        raise Unusable(_said(file, failure))
    return vars(module)


def _said(file: Path, failure: Failure) -> str:
    place = f", line {failure.line}" if failure.line else ""
    words = f"{failure.type}: {failure.message}" if failure.kind == "raised" else failure.message
    return f"{file}{place}: running the file failed: {words}"
