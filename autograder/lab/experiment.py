"""One state of the accumulation lab, run and judged by the engine: data, nothing drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from autograder.guard import attempt
from autograder.lab.grid import Grid, make_grid, row_states, wanted_steps
from autograder.lab.loop import compiled, remembering, source
from autograder.lab.settings import Settings
from autograder.lab.words import verdict_words
from autograder.loops import Recording, Task, Verdict, build, judge, reference, run
from autograder.loops.reference import Reference

KEPT = 256  # states kept: going back is free


@dataclass(frozen=True)
class Series:
    """Numbers over the backward calls: ``at[i]`` calls had been made when ``values[i]`` was seen."""

    at: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Experiment:
    """What the engine saw of one setting, with the right loop beside it.

    ``norms`` are the norms of the gradients that the steps used, ``losses`` those of the batches in order.
    """

    settings: Settings
    source: str
    recording: Recording
    verdict: Verdict
    grid: Grid
    norms: Series
    right_norms: Series
    losses: tuple[float, ...]
    right_losses: tuple[float, ...]
    words: str


@lru_cache(maxsize=KEPT)
def experiment(settings: Settings) -> Experiment:
    """Run the loop of ``settings`` and judge it. Raises RuntimeError where the engine gives no ledger."""
    task, text = settings.task, source(settings)
    recording = run(remembering(compiled(text)), task)
    verdict = judge(recording, task)
    if verdict.ledger is None:
        raise RuntimeError(f"the loop of {settings} did not finish: {verdict.message}")
    return Experiment(
        settings,
        text,
        recording,
        verdict,
        make_grid(verdict.ledger, wanted_steps(task), row_states(recording)),
        used_norms(recording, verdict),
        wanted_norms(task),
        tuple(recording.returned["numbers"]),
        right_losses(settings.right),
        verdict_words(verdict, settings),
    )


def used_norms(recording: Recording, verdict: Verdict) -> Series:
    """The norm that each step used, where it was taken; from the ledger."""
    assert verdict.ledger is not None
    at = tuple(event.columns for event in recording.events if event.what == "update")
    return Series(at, verdict.ledger.norms)


@lru_cache(maxsize=KEPT)
def _reference(task: Task) -> Reference:
    return reference(task)


def wanted_norms(task: Task) -> Series:
    """The norms that the right loop uses, where it takes its steps; from the engine's reference."""
    steps = _reference(task).steps
    at = tuple(step.call * len(task.batches) + step.batches[-1] + 1 for step in steps)
    return Series(at, tuple(step.norm for step in steps))


@lru_cache(maxsize=KEPT)
def right_losses(settings: Settings) -> tuple[float, ...]:
    """The losses of the right loop, by running it. No recorder: only what it returns is wanted."""
    task, function = settings.task, remembering(compiled(source(settings)))
    material = build(task)
    outcome = attempt(lambda: [function(*material.arguments) for _ in range(task.epochs)][-1])
    return tuple(outcome.value or ())


def forget() -> None:
    """Keep nothing of what has been run: the next state is worked out from the start."""
    for kept in (experiment, _reference, right_losses):
        kept.cache_clear()
