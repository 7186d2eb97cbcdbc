"""Run one notebook in a fresh kernel and print the points of its graded cells as JSON. Called by ``notebook``."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

CELL_SECONDS = 60


def main(path: str) -> None:
    """Print one JSON object: ``cells``, or ``trouble`` in one sentence."""
    logging.disable(logging.CRITICAL)
    try:
        answer: dict[str, Any] = {"cells": graded(Path(path))}
    except ImportError as error:
        answer = {"trouble": f"{error.name} is missing: the fresh run needs nbclient, nbformat and ipykernel."}
    except Exception as error:
        answer = {"trouble": f"The notebook cannot be run: {type(error).__name__}: {error}"}
    print(json.dumps(answer))


def graded(path: Path) -> list[dict[str, Any]]:
    """Run the notebook; id, points, score and reason of each graded cell."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        interrupt_on_timeout=True,
        allow_errors=True,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    manager: Any = client.create_kernel_manager()
    # The kernel that is called python3 on this computer may be another Python than the learner's.
    manager.kernel_spec.argv[:] = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    client.execute()
    return [_cell(cell) for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]


def _cell(cell: Any) -> dict[str, Any]:
    data = cell.metadata["nbgrader"]
    score, points = grade_of(cell), float(data["points"])
    return {"id": data["grade_id"], "points": points, "score": score, "why": _why(cell) if score == 0 else ""}


def grade_of(cell: Any) -> float | None:
    """The points of an executed graded cell by nbgrader's rule; None where a person grades."""
    try:
        from nbgrader.utils import determine_grade
    except ImportError:
        return _by_rule(cell)
    score = determine_grade(cell)[0]
    return None if score is None else float(score)


def _by_rule(cell: Any) -> float | None:
    """nbgrader's rule: an error or text on stderr costs all, else the last value is the points, else full points."""
    data = cell.metadata["nbgrader"]
    points = float(data["points"])
    if data.get("solution") or cell.cell_type != "code":
        return None
    for output in cell.outputs:
        if output.output_type == "error" or output.get("name") == "stderr":
            return 0.0
        if output.output_type == "execute_result":
            try:
                return float(output["data"]["text/plain"])
            except (KeyError, ValueError):
                return points
    return points


def _why(cell: Any) -> str:
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}".splitlines()[0][:120]
        if output.get("name") == "stderr":
            return "it wrote to stderr"
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
