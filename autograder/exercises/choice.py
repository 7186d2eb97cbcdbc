"""Questions with one right choice: predictions, spot the bug, quick checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autograder.exercises.report import Report, refused
from autograder.exercises.sealing import open_choice


@dataclass(frozen=True)
class ChoiceExercise:
    """A question from a sealed file: the choices can be read, which one is right and why cannot."""

    id: str
    points: float
    prompt: str
    choices: dict[str, str]
    sealed: dict[str, Any]
    title: str = ""
    hints: tuple[str, ...] = ()

    def run(self, answer: Any, seed: int) -> dict[str, Any]:
        """The answer as a letter; there is nothing to run."""
        if answer is None or answer is ...:
            return {"answer": ""}
        if type(answer) is not str:
            keys = " or ".join(f'"{key}"' for key in self.choices)
            return {"fault": f"The answer is a letter in quotes, {keys}; this is of type {type(answer).__name__}."}
        return {"answer": answer.strip().lower()[:20]}

    def judge(self, data: dict[str, Any], seed: int) -> Report:
        """All points or none, and the reason for the choice that was made."""
        if data.get("fault"):
            return refused(self, str(data["fault"]), "not-a-choice")
        answer = data["answer"]
        if not answer:
            return refused(
                self,
                "Not answered yet: put the letter of your choice, in quotes, in the cell above; run it, then this one.",
            )
        if answer not in self.choices:
            keys = ", ".join(self.choices)
            return refused(self, f'There is no choice "{answer}": the choices are {keys}.', "not-a-choice")
        right, reason = open_choice(self.sealed, self.id, answer)
        message = f"{'Right' if right else 'Not this one'}: {reason}"
        score = float(self.points) if right else 0.0
        return Report(self.id, self.title, score, float(self.points), message, kind="none" if right else "wrong-choice")
