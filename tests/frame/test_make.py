"""The Makefile: a thin face that lists itself."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROMISED = {"lab", "test", "release", "grade", "feedback", "report", "doctor", "bench", "clean"}


def make(*arguments):
    # The tests themselves may run under a make, which would speak through these.
    outer = {"PORT", "BROWSER", "ARGS", "ASSIGNMENT", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    variables = {name: value for name, value in os.environ.items() if name not in outer}
    command = ["make", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def targets():
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(phony[1].split())


def test_help_is_the_default_and_lists_every_target():
    """Plain `make` changes nothing and says in one line each what there is."""
    listed = [line.split()[1] for line in make().splitlines()]
    assert set(listed) == targets() >= PROMISED
    assert make("help") == make()


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["lab"], "bootstrap.py lab"),
        (["lab", "PORT=9999", "BROWSER=no"], "bootstrap.py lab --port '9999' --no-browser"),
        (["lab", "BROWSER=firefox"], "bootstrap.py lab"),
        (["test", "ARGS=-k loops"], "bootstrap.py test -k loops"),
        (["grade"], "for assignment in 03-zero-grad; do"),
        (["feedback", "ASSIGNMENT=02-backward 04-no-grad"], "in 02-backward 04-no-grad; do"),
        (["release"], "bootstrap.py run autograder release"),
    ],
)
def test_target_calls(arguments, command):
    """Every target sets up through bootstrap.py, and passes on what was asked."""
    shown = make("--dry-run", *arguments)
    assert command in shown
    assert "bootstrap.py" in shown
    assert ("--no-browser" in shown) == ("BROWSER=no" in arguments)
