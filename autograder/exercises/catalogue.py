"""All exercises by their id."""

from __future__ import annotations

import difflib
import functools
import json
from importlib import import_module, resources
from typing import Any

from autograder.exercises.choice import ChoiceExercise
from autograder.exercises.exercise import Exercise

LESSONS = ("autograder.exercises.lesson3",)


class UnknownExercise(LookupError):
    """No exercise has this id; the text names those that come nearest."""


@functools.lru_cache(maxsize=1)
def exercises() -> dict[str, Exercise]:
    """Every exercise and question, in the order of the lessons."""
    loops: list[Exercise] = [exercise for lesson in LESSONS for exercise in import_module(lesson).EXERCISES]
    found = {exercise.id: exercise for exercise in [*loops, *_questions()]}
    return dict(sorted(found.items(), key=lambda item: item[0][:2]))


def find(exercise_id: str) -> Exercise:
    """The exercise with this id. Raises UnknownExercise."""
    known = exercises()
    if exercise_id in known:
        return known[exercise_id]
    near = difflib.get_close_matches(str(exercise_id), known, n=3, cutoff=0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"the ids are {', '.join(known)}."
    raise UnknownExercise(f"There is no exercise {exercise_id!r}: {advice}")


def _questions() -> list[ChoiceExercise]:
    folder = resources.files("autograder.exercises") / "sealed"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return [question(entry) for file in files for entry in json.loads(file.read_text("utf-8"))["questions"]]


def question(entry: dict[str, Any]) -> ChoiceExercise:
    """A question from its entry in a sealed file."""
    choices = {choice["key"]: choice["text"] for choice in entry["choices"]}
    title = entry.get("title") or entry["id"].split("-", 1)[-1].replace("-", " ").capitalize()
    return ChoiceExercise(entry["id"], entry["points"], entry["prompt"], choices, entry, title)
