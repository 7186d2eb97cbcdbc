"""autograder corpus FOLDER"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from autograder.loops.corpus import judge_folder


def main(given: Namespace) -> int:
    """Print the verdict on every case file, and precision and recall where the cases say what is right."""
    folder = Path(given.folder)
    if not folder.is_dir():
        print(f"autograder corpus: there is no folder {folder}.", file=sys.stderr)
        return 2
    results = judge_folder(folder)
    print(json.dumps(results, ensure_ascii=False) if given.json else _table(results))
    return 0


def _table(results: dict[str, Any]) -> str:
    lines = [f"{case['case']:<52} {case['verdict']:<6} {case['kind']}" for case in results["cases"]]
    figures = [f"{name}: {value}" for name, value in results.items() if name != "cases"]
    return "\n".join([*lines, *figures])
