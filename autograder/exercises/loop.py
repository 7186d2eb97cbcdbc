"""Exercises whose answer is a training loop, judged from recordings of several tasks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.exercises.exercise import fault_of, unwritten
from autograder.exercises.report import Part, Report, counts_after, refused, sentence
from autograder.loops import Recording, Task, Verdict, judge, run
from autograder.loops.task import SIGNATURES

Adapt = Callable[[Callable[..., Any], Task], Callable[..., Any]]


@dataclass(frozen=True)
class Trial:
    """One run of the answer; ``setting`` says in words what is special about it."""

    task: Task
    setting: str = ""


@dataclass(frozen=True)
class Rule:
    """A property that earns ``points`` if it holds in all ``trials``.

    By default it holds where the parameters that start with ``prefix`` are right. ``tidy`` asks for a run without
    any mistake, also one that leaves the values right. Mistakes in ``despite`` do not count against it. A rule
    with ``after`` earns nothing unless that other rule holds.
    """

    name: str
    points: float
    trials: tuple[str, ...]
    prefix: str | tuple[str, ...] = ""
    tidy: bool = False
    despite: frozenset[str] = frozenset()
    after: str = ""

    def holds(self, verdicts: dict[str, Verdict]) -> bool:
        """Whether every trial was run and kept the rule."""
        return all(name in verdicts and self._kept(verdicts[name]) for name in self.trials)

    def _kept(self, verdict: Verdict) -> bool:
        if verdict.kind in self.despite:
            return True
        if self.tidy:
            return verdict.right
        if self.prefix and verdict.wrong_parameters:
            return not any(name.startswith(self.prefix) for name in verdict.wrong_parameters)
        return verdict.values_right


def as_it_is(answer: Callable[..., Any], task: Task) -> Callable[..., Any]:
    """The answer takes what the task's signature gives."""
    return answer


def with_max_norm(answer: Callable[..., Any], task: Task) -> Callable[..., Any]:
    """The answer takes the task's bound on the norm as one more argument."""

    def train(*arguments: Any) -> Any:
        return answer(*arguments, task.clip)

    return train


@dataclass(frozen=True)
class LoopExercise:
    """``function`` is the name that the learner's function has, ``extra`` its parameters beyond the signature's."""

    id: str
    title: str
    function: str
    trials: dict[str, Trial]
    rules: tuple[Rule, ...]
    hints: tuple[str, ...] = ()
    adapt: Adapt = as_it_is
    extra: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The sum over the rules."""
        return sum(rule.points for rule in self.rules)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what the function is called with."""
        signature = next(iter(self.trials.values())).task.signature
        return SIGNATURES[signature] + self.extra

    def run(self, answer: Any, seed: int) -> dict[str, Any]:
        """Record the answer on every trial, up to the first that does not end."""
        fault = fault_of(answer, self.function, self.parameters)
        if fault:
            return {"fault": fault}
        _warm_up()
        recordings: dict[str, Recording] = {}
        for name, trial in self.trials.items():
            recordings[name] = run(self.adapt(answer, trial.task), trial.task, seed)
            failure = recordings[name].failure
            if failure and (failure.kind != "raised" or failure.type == "NotImplementedError"):
                break
        return {"recordings": recordings}

    def judge(self, data: dict[str, Any], seed: int) -> Report:
        """Points by rule, and the first mistake in the order of the trials."""
        if data.get("fault"):
            return refused(self, str(data["fault"]))
        recordings: dict[str, Recording] = data["recordings"]
        first = next(iter(recordings.values()))
        if first.failure and first.failure.type == "NotImplementedError":
            return refused(self, unwritten(self.function), hints=self.hints)
        verdicts = {
            name: _verdict(recordings[name], trial.task, seed)
            for name, trial in self.trials.items()
            if name in recordings
        }
        for name in {name for rule in self.rules if rule.tidy for name in rule.trials} & set(verdicts):
            verdicts[name] = _with_modes(verdicts[name], recordings[name])
        return self._report(recordings, verdicts, self._parts(verdicts))

    def _parts(self, verdicts: dict[str, Verdict]) -> tuple[Part, ...]:
        held: dict[str, bool] = {"": True}
        for rule in self.rules:
            held[rule.name] = held[rule.after] and rule.holds(verdicts)
        return tuple(
            Part(
                rule.name, rule.points, rule.points if held[rule.name] else 0.0,
                "" if held[rule.after] else counts_after(rule.after),
            )
            for rule in self.rules
        )  # fmt: skip

    def _report(
        self, recordings: dict[str, Recording], verdicts: dict[str, Verdict], parts: tuple[Part, ...]
    ) -> Report:
        shown = next((name for name, verdict in verdicts.items() if not verdict.right), next(iter(verdicts)))
        verdict, recording = verdicts[shown], recordings[shown]
        message, setting = verdict.message, self.trials[shown].setting
        if not verdict.right:
            message = sentence(f"{verdict.title}. {message}" if verdict.title else message)
            message = f"{message} This was {setting}." if setting else message
        lost = any(part.got < part.points for part in parts)
        notes = dict.fromkeys(note for one in verdicts.values() for note in one.notes)
        return Report(
            self.id, self.title, float(sum(part.got for part in parts)), float(self.points),
            message, parts if lost else (), verdict.kind, verdict.line, _text(recording, verdict.line),
            verdict.hints or (self.hints if lost else ()), tuple(notes), recording.printed, verdict.ledger,
            self.trials[shown].task,
        )  # fmt: skip


def _verdict(recording: Recording, task: Task, seed: int) -> Verdict:
    """The engine's verdict; a run that was stopped gets its own, for it can be as long as time allowed."""
    failure = recording.failure
    if failure is None or failure.kind == "raised":
        return judge(recording, task, seed)
    names = tuple(recording.parameters)
    return Verdict(
        False,
        failure.kind,
        failure.line,
        failure.message,
        notes=recording.notes,
        values_right=False,
        wrong_parameters=names,
    )


def _with_modes(verdict: Verdict, recording: Recording) -> Verdict:
    """A right loop's verdict, which is not tidy if it leaves the model in eval mode."""
    last = [event for event in recording.events if event.what == "exit"][-1:]
    if not verdict.right or not last or all(last[0].training.values()):
        return verdict
    switches = [e for e in recording.events if e.what == "call" and e.name == "module.train" and not e.mode]
    return replace(
        verdict, right=False, kind="eval-mode-left-on", line=switches[-1].line if switches else None,
        title="The model is left in eval mode",
        message="It was in training mode when the function was called, and is in eval mode when it returns.",
        hints=("eval() lasts until train() is called.",),
    )  # fmt: skip


def _text(recording: Recording, line: int | None) -> str:
    if line is None:
        return ""
    if recording.failure and recording.failure.line == line:
        return recording.failure.text
    return recording.lines.get(line, "").strip()


@functools.lru_cache(maxsize=1)
def _warm_up() -> None:
    """Let torch import what its first optimizer step imports: it takes a second, and is not the learner's time."""
    weight = torch.zeros(1, requires_grad=True)
    weight.sum().backward()
    torch.optim.SGD([weight], lr=0.1).step()
