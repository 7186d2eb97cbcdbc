"""Run a training loop, record what happens to every .grad, and judge the values. Needs torch alone."""

from autograder.loops.judge import Verdict, judge
from autograder.loops.ledger import Ledger, make_ledger
from autograder.loops.recording import Event, Recording
from autograder.loops.reference import reference
from autograder.loops.run import run
from autograder.loops.task import Task, build

__all__ = [
    "Event", "Ledger", "Recording", "Task", "Verdict", "build", "judge", "make_ledger", "reference", "run",
]  # fmt: skip
