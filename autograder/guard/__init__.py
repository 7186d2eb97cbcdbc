"""Run a learner's function so that nothing it does reaches further than its own result. Needs torch alone."""

from autograder.guard.attempt import Failure, InputAsked, Outcome, attempt
from autograder.guard.frames import is_learner_code, learner_frame
from autograder.guard.neutral import neutral_state

__all__ = ["Failure", "InputAsked", "Outcome", "attempt", "is_learner_code", "learner_frame", "neutral_state"]
