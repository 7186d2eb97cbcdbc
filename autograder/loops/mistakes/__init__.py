"""The catalogue of mistakes: what each is called, how a recording shows it, what is said about it.

A rule takes the facts of a run and returns the words to fill into its sentence (and the ``line``), or None.
Rules are asked in the order of ``CATALOGUE``; the first that answers names the mistake, so the ones nearest
the cause come first.
"""

from autograder.loops.mistakes import (
    accumulation,
    clearing,
    clipping,
    closures,
    errors,
    evaluation,
    nothing,
    pollution,
    side,
    tensors,
    updates,
    weighting,
)
from autograder.loops.mistakes.mistake import Mistake, by_slug, find

RAISED: tuple[Mistake, ...] = (*tensors.RAISED, *errors.MISTAKES)
VALUES: tuple[Mistake, ...] = (
    *tensors.VALUES,
    *nothing.MISTAKES,
    *accumulation.MISTAKES,
    *updates.ORDER,
    *closures.MISTAKES,
    *clearing.MISTAKES,
    *pollution.MISTAKES,
    *weighting.MISTAKES,
    *clipping.MISTAKES,
    *updates.OTHERS,
)
SIDE: tuple[Mistake, ...] = side.MISTAKES
EVALUATION: tuple[Mistake, ...] = evaluation.MISTAKES
CATALOGUE: tuple[Mistake, ...] = (*RAISED, *VALUES, *SIDE, *EVALUATION)

__all__ = ["CATALOGUE", "EVALUATION", "RAISED", "SIDE", "VALUES", "Mistake", "by_slug", "find"]
