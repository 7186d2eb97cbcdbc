"""What a check says: points, one sentence, and what stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.loops import Ledger, Task


@dataclass(frozen=True)
class Part:
    """One property that earns points of its own: ``got`` of ``points``."""

    name: str
    points: float
    got: float
    message: str = ""


@dataclass(frozen=True)
class Report:
    """The result of one exercise.

    ``message`` is one sentence, about the mistake nearest to the cause; ``kind`` is its slug in the catalogue
    (``none`` if all is right), ``line`` and ``text`` the learner's line that it speaks of. ``notes`` are things
    seen that cost nothing, ``printed`` is what the answer printed.
    """

    exercise: str
    title: str
    score: float
    max_score: float
    message: str
    parts: tuple[Part, ...] = ()
    kind: str = "none"
    line: int | None = None
    text: str = ""
    hints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    printed: str = ""
    ledger: Ledger | None = field(default=None, compare=False)
    task: Task | None = None  # what the ledger's loop was asked to do

    @property
    def passed(self) -> bool:
        """Whether every point was earned."""
        return self.score >= self.max_score

    def plain(self) -> dict[str, Any]:
        """The report as JSON can hold it; without the ledger."""
        parts = [{"name": p.name, "points": p.points, "got": p.got, "message": p.message} for p in self.parts]
        names = "exercise", "title", "score", "max_score", "message", "kind", "line", "text", "printed"
        lists = {"parts": parts, "hints": list(self.hints), "notes": list(self.notes)}
        return {name: getattr(self, name) for name in names} | lists | {"passed": self.passed}


def sentence(text: str) -> str:
    """``text`` with a full stop, unless it has an end of its own."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def counts_after(part: str) -> str:
    """What is said of a part that was not looked at, for another has to hold first."""
    return f"counts when “{part}” holds"


def refused(exercise: Any, message: str, kind: str = "no-answer", hints: tuple[str, ...] = ()) -> Report:
    """The report on an answer that cannot be judged: no points, and the reason."""
    return Report(exercise.id, exercise.title, 0.0, float(exercise.points), message, kind=kind, hints=hints)


# Functions that draw a report's ledger as an HTML fragment; the lab adds one when it is imported.
pictures: list[Callable[[Report], str | None]] = []
