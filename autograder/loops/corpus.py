"""Judge a folder of case files: small loops with a ``SETUP`` that says what each was asked to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.loops.judge import judge
from autograder.loops.run import run
from autograder.loops.task import Task

SECONDS = 60.0  # compiling a model takes its time


def load(path: Path) -> ModuleType:
    """Import a case file under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"case_{path.stem.replace('-', '_')}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def judge_case(path: Path, seed: int = 0) -> dict[str, Any]:
    """One case's verdict; ``expected`` is there where the file has it."""
    module = load(path)
    task = Task.from_setup(module.SETUP)
    function: Callable[..., Any] = getattr(module, task.signature)
    verdict = judge(run(function, task, seed, seconds=SECONDS), task, seed)
    case: dict[str, Any] = {
        "case": path.stem, "verdict": "right" if verdict.right else "wrong", "kind": verdict.kind,
        "line": verdict.line, "message": verdict.message,
    }  # fmt: skip
    if hasattr(module, "expected"):
        case["expected"] = module.expected()
    return case


def judge_folder(folder: Path, seed: int = 0) -> dict[str, Any]:
    """All cases of a folder, with precision and recall of the verdict ``wrong`` where answers are known.

    Raises FileNotFoundError for a folder without case files.
    """
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise FileNotFoundError(f"no case files (*.py) in {folder}")
    cases = []
    for path in paths:
        try:
            cases.append(judge_case(path, seed))
        except (AttributeError, KeyError, ValueError) as error:
            cases.append(
                {"case": path.stem, "verdict": "unusable", "kind": "none", "line": None, "message": str(error)}
            )
    known = [c for c in cases if "expected" in c]
    called = [c for c in known if c["verdict"] == "wrong"]
    wrong = [c for c in known if c["expected"]["verdict"] == "wrong"]
    hits = [c for c in called if c in wrong]
    named = [c for c in wrong if c["kind"] == c["expected"]["kind"]]
    return {
        "cases": cases,
        "precision": len(hits) / len(called) if called else None,
        "recall": len(hits) / len(wrong) if wrong else None,
        "named": len(named) / len(wrong) if wrong else None,
    }
