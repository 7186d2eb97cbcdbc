"""autograder report: run in the course's folder, after grading."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path


def main(given: Namespace) -> int:
    """Print a line per graded cell: the mean, and how many got all, some or no points."""
    gradebook = Path.cwd() / "gradebook.db"
    if not gradebook.is_file():
        print(f"autograder report: there is no {gradebook.name} in {Path.cwd()}: grade first.", file=sys.stderr)
        return 2
    try:
        from autograder.grading.classroom import class_results

        results = class_results(f"sqlite:///{gradebook.as_posix()}", given.assignments)
    except ImportError as error:
        print(f"autograder report: {error.name} is missing; pip install 'zerograd[grading]'", file=sys.stderr)
        return 2
    except LookupError as error:
        print(f"autograder report: {error.args[0]}", file=sys.stderr)
        return 2
    if not results:
        print("Nothing has been graded yet.")
        return 0
    print(f"{'graded cell':<32}{'mean':>7}{'of':>7}{'all':>6}{'some':>6}{'none':>6}{'waiting':>9}")
    for r in results:
        print(f"{r.cell:<32}{r.mean:>7.2f}{r.max_score:>7g}{r.full:>6}{r.partial:>6}{r.none:>6}{r.ungraded:>9}")
    return 0
