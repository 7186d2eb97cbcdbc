"""The command's arguments, and where each subcommand lives."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from autograder import __version__


def parser() -> argparse.ArgumentParser:
    """The command line as argparse knows it; ``run`` names the function that does the work."""
    top = argparse.ArgumentParser(prog="autograder", description="Check training loops, and run the course.")
    top.add_argument("--version", action="version", version=f"zerograd {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="check the function in a file against an exercise")
    check.add_argument("file", metavar="FILE.py")
    check.add_argument("--exercise", required=True, metavar="ID", help="such as 03-plain-loop")
    check.add_argument("--json", action="store_true", help="print the report as JSON")
    check.set_defaults(run="autograder.cli.check:main")

    corpus = commands.add_parser("corpus", help="judge every case file in a folder")
    corpus.add_argument("folder", metavar="FOLDER")
    corpus.add_argument("--json", action="store_true", help="print the results as JSON")
    corpus.set_defaults(run="autograder.cli.corpus:main")

    seal = commands.add_parser("seal", help="make the sealed question files from source/*/quiz.toml")
    seal.set_defaults(run="autograder.cli.release:seal")

    release = commands.add_parser("release", help="make the student edition in notebooks/ from source/")
    release.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="all if none is named")
    release.set_defaults(run="autograder.cli.release:main")

    report = commands.add_parser("report", help="show how the class did, exercise by exercise")
    report.add_argument("assignments", nargs="*", metavar="ASSIGNMENT", help="all if none is named")
    report.set_defaults(run="autograder.cli.report:main")

    doctor = commands.add_parser("doctor", help="check this computer and the set-up")
    doctor.set_defaults(run="autograder.cli.doctor:main")

    bench = commands.add_parser("bench", help="measure the speeds that the project promises")
    bench.add_argument("--json", action="store_true", help="print the measurements as JSON")
    bench.set_defaults(run="autograder.cli.bench:main")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    given = parser().parse_args(arguments)
    module, function = given.run.split(":")
    status: int = getattr(import_module(module), function)(given)
    return status


if __name__ == "__main__":
    sys.exit(main())
