"""Exercises whose answer is a function of tensors, compared with a reference on scenes made from the seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.exercises.exercise import fault_of, unwritten
from autograder.exercises.report import Part, Report, counts_after, refused, sentence
from autograder.guard import attempt

Look = Callable[[Any], dict[str, Any]]
CLOSE = 1e-6


@dataclass(frozen=True)
class Scene:
    """The arguments of one call, and ``look``: what is seen afterwards, as plain data by name, given the result."""

    arguments: tuple[Any, ...]
    look: Look


@dataclass(frozen=True)
class Case:
    """One call: ``make`` sets the scene from the seed, ``part`` is the property that it belongs to."""

    part: str
    setting: str
    make: Callable[[int], Scene]


@dataclass(frozen=True)
class FunctionExercise:
    """``parts`` gives each property its points; ``says`` gives each thing that is seen its sentence when it is wrong.

    A part in ``after`` earns nothing unless the part that it names was earned.
    """

    id: str
    title: str
    function: str
    parameters: tuple[str, ...]
    reference: Callable[..., Any]
    cases: tuple[Case, ...]
    parts: dict[str, float]
    says: dict[str, Callable[[Any, Any], str]]
    after: dict[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        """The sum over the parts."""
        return sum(self.parts.values())

    def run(self, answer: Any, seed: int) -> dict[str, Any]:
        """Call the answer on every case, up to the first that does not end."""
        fault = fault_of(answer, self.function, self.parameters)
        if fault:
            return {"fault": fault}
        seen: list[dict[str, Any]] = []
        for number, case in enumerate(self.cases):
            seen.append(_called(answer, case.make(seed + number)))
            failure = seen[-1]["failure"]
            if failure and (failure["kind"] != "raised" or failure["type"] == "NotImplementedError"):
                break
        return {"seen": seen}

    def judge(self, data: dict[str, Any], seed: int) -> Report:
        """Points by part, and the first difference in the order of the cases."""
        if data.get("fault"):
            return refused(self, str(data["fault"]))
        seen = data["seen"]
        if (seen[0]["failure"] or {}).get("type") == "NotImplementedError":
            return refused(self, unwritten(self.function), hints=self.hints)
        wrong = [self._difference(number, seen, seed) for number in range(len(self.cases))]
        return self._report(seen, self._parts(wrong), next((w for w in wrong if w), None))

    def _parts(self, wrong: list[dict[str, Any] | None]) -> tuple[Part, ...]:
        earned: dict[str, bool] = {"": True}
        parts = []
        for name, points in self.parts.items():
            first = self.after.get(name, "")
            kept = not any(w for w, case in zip(wrong, self.cases, strict=True) if case.part == name)
            earned[name] = kept and earned[first]
            parts.append(
                Part(name, points, points if earned[name] else 0.0, "" if earned[first] else counts_after(first))
            )
        return tuple(parts)

    def _difference(self, number: int, seen: list[dict[str, Any]], seed: int) -> dict[str, Any] | None:
        """What is wrong in one case: kind, message, line and text of it; None if nothing is."""
        case = self.cases[number]
        if number >= len(seen):
            return {"kind": "not-run", "message": "A case was not reached."}
        failure = seen[number]["failure"]
        if failure:
            return {
                "kind": failure["kind"],
                "message": f"{_failed(failure)} This was {case.setting}.",
                **_place(failure),
            }
        scene = case.make(seed + number)
        wanted, got = scene.look(self.reference(*scene.arguments)), seen[number]["look"]
        for name, want in wanted.items():
            if not same(got.get(name), want):
                return {"kind": name, "message": f"{self.says[name](got.get(name), want)} This was {case.setting}."}
        return None

    def _report(self, seen: list[dict[str, Any]], parts: tuple[Part, ...], wrong: dict[str, Any] | None) -> Report:
        score = float(sum(part.got for part in parts))
        notes = dict.fromkeys(note for one in seen for note in one["notes"])
        printed = next((one["printed"] for one in seen if one["printed"]), "")
        wrong = wrong or {
            "kind": "none",
            "message": f"Right: `{self.function}` does what it should in all {len(seen)} cases.",
        }
        return Report(
            self.id, self.title, score, float(self.points), wrong["message"],
            parts if score < self.points else (), wrong["kind"], wrong.get("line"), wrong.get("text", ""),
            self.hints if score < self.points else (), tuple(notes), printed,
        )  # fmt: skip


def _called(answer: Callable[..., Any], scene: Scene) -> dict[str, Any]:
    """One call and what is seen after it."""
    outcome = attempt(answer, *scene.arguments)
    failure, look = outcome.failure, {}
    if failure is None:
        looked = attempt(scene.look, outcome.value)  # the learner's result can be any object
        failure, look = looked.failure, looked.value
    return {
        "failure": vars(failure) if failure else None,
        "look": look,
        "notes": list(outcome.notes),
        "printed": outcome.printed,
    }


def _place(failure: dict[str, Any]) -> dict[str, Any]:
    return {"line": failure["line"], "text": failure["text"]}


def _failed(failure: dict[str, Any]) -> str:
    if failure["kind"] != "raised":
        return str(failure["message"])
    place = f"Line {failure['line']}" if failure["line"] else "The function"
    return sentence(f"{place} raised {failure['type']}: {failure['message'] or '(no text)'}")


def same(got: Any, want: Any) -> bool:
    """Equality of plain data, of numbers within a small tolerance."""
    if isinstance(want, bool) or isinstance(got, bool):
        return got is want
    if isinstance(want, (int, float)) and isinstance(got, (int, float)):
        return got == want or math.isclose(got, want, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(want, list) and isinstance(got, list):
        return len(got) == len(want) and all(map(same, got, want))
    return type(got) is type(want) and bool(got == want)
