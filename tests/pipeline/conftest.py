"""What several modules look at is made once: the reports in this process, and the sheets as nbgrader grades them."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.exercises.catalogue import find
from autograder.exercises.checking import examine
from autograder.exercises.report import Report
from tests.pipeline.course import grade_in_two_halves
from tests.pipeline.editions import SOURCE, STUDENT, answered, by_grade_id, function_in, read, shortened
from tests.pipeline.sheets import ANSWERS, SHEETS, answers_of

HIDDEN_SEED = 7041


def state() -> tuple[Any, ...]:
    """Whatever of the process an answer could change for those that come after it."""
    generators = torch.get_rng_state().sum().item(), torch.is_grad_enabled(), torch.get_default_dtype()
    settings = torch.get_num_threads(), torch.is_anomaly_enabled(), torch.are_deterministic_algorithms_enabled()
    return *generators, *settings, os.getcwd(), warnings.filters[:], logging.root.level, logging.root.handlers[:]


@pytest.fixture(scope="session")
def own_report() -> Callable[[str, str], tuple[list[Report], bool]]:
    """By exercise and answer's name: the reports on the public and the hidden seed, and whether they left no trace."""
    cells, known = by_grade_id(read(STUDENT)), {}
    # The first step of any optimizer imports much of torch, and sympy, which adds a warnings filter.
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1).step()

    def reports(exercise: str, name: str) -> tuple[list[Report], bool]:
        if (exercise, name) not in known:
            answer = ANSWERS[exercise][name]
            function = _made(cells, exercise, answer)
            before = state()
            seeds = [None, HIDDEN_SEED] if answer.ends else [None]
            made = [examine(find(exercise), function, seed) for seed in seeds]
            known[exercise, name] = made, state() == before
        return known[exercise, name]

    return reports


def _made(cells: Any, exercise: str, answer: Any) -> Any:
    """The answer's function; what its cell sets outside of the function is taken back."""
    from autograder.guard import neutral_state

    with neutral_state():
        return function_in(cells, exercise, answer)


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, dict[str, float]]]:
    """Every sheet after nbgrader autograde: the executed notebook, and the gradebook's scores.

    Their course has no hidden tests, which would check every answer twice; test_scores.py has them.
    """
    source, student = shortened(read(SOURCE)), shortened(read(STUDENT))
    for grade_id, cell in by_grade_id(source).items():
        if cell.metadata.nbgrader.grade:
            cell.source = by_grade_id(student)[grade_id].source
    sheets = {name: answered(student, answers_of(name)) for name in SHEETS}
    return grade_in_two_halves(tmp_path_factory.mktemp("sheets"), source, sheets)
