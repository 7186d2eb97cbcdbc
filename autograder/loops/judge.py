"""The trusted half: compare a recording with what was asked for, and name one mistake. Runs no learner code."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.guard import neutral_state
from autograder.loops.facts import Facts, listed
from autograder.loops.ledger import Ledger, parameters_before
from autograder.loops.mistakes import EVALUATION, RAISED, SIDE, VALUES, find
from autograder.loops.recording import Recording
from autograder.loops.reference import reference
from autograder.loops.task import Task


@dataclass(frozen=True)
class Verdict:
    """``kind`` is a slug of the catalogue, ``none`` for a right loop, ``unknown`` where the catalogue has no name.

    ``wrong_parameters`` names the parameters that are off, so that a rubric can give partial points.
    """

    right: bool
    kind: str
    line: int | None
    message: str
    hints: tuple[str, ...] = ()
    ledger: Ledger | None = None
    notes: tuple[str, ...] = ()
    title: str = ""
    values_right: bool = True
    wrong_parameters: tuple[str, ...] = ()


def judge(recording: Recording, task: Task, seed: int = 0) -> Verdict:
    """What happened in ``recording``, against the reference of ``task`` on ``seed``."""
    with neutral_state():
        return _judge(Facts(recording, reference(task, seed)))


def _judge(facts: Facts) -> Verdict:
    recording, task = facts.recording, facts.task
    if recording.failure is not None:
        return _raised(facts)
    right = returned_right(facts) and (task.signature == "gradient" or facts.values_right)
    found = find(facts, EVALUATION if task.signature == "evaluate" else SIDE if right else VALUES)
    if right and found is None:
        return Verdict(True, "none", None, right_words(facts), ledger=facts.ledger, notes=recording.notes)
    names = tuple(recording.parameters[i] for i in facts.wrong_parameters)
    if found is None:
        return _unknown(facts, names)
    mistake, evidence = found
    return Verdict(
        False, mistake.slug, evidence.get("line"), mistake.sentence(evidence), mistake.hints,
        facts.ledger, recording.notes, mistake.title, right, names,
    )  # fmt: skip


def returned_right(facts: Facts) -> bool:
    """Where the task asks for a value: whether the returned one is it."""
    want = facts.reference.value
    if want is None:
        return True
    got = facts.recording.arrays.get("returned")
    if got is None or got.shape != want.shape:
        return False
    return facts.returned_off <= 1e-9 + 2e-5 * float(want.abs().max())


def right_words(facts: Facts) -> str:
    steps = len(facts.reference.steps)
    if not steps:
        return "Right: the values agree with the reference."
    return f"Right: after {steps} steps every parameter is where it should be."


def _raised(facts: Facts) -> Verdict:
    failure, recording = facts.failure, facts.recording
    assert failure is not None
    found = find(facts, RAISED) if failure.kind == "raised" else None
    names = recording.parameters
    if found:
        mistake, evidence = found
        return Verdict(
            False, mistake.slug, evidence.get("line"), mistake.sentence(evidence), mistake.hints,
            _ledger(facts), recording.notes, mistake.title, False, names,
        )  # fmt: skip
    place = f" on line {failure.line}" if failure.line else ""
    words = (
        failure.message
        if failure.kind != "raised"
        else f"{failure.type}{place}{': ' * bool(failure.message)}{failure.message}"
    )
    hints = ("Read the error's last line first; it names what PyTorch could not do.",)
    return Verdict(
        False, failure.kind, failure.line, words, hints,
        _ledger(facts), recording.notes, "The loop did not finish", False, names,
    )  # fmt: skip


def _ledger(facts: Facts) -> Ledger | None:
    """The ledger as far as the run got; None where it stopped in the middle of an update."""
    try:
        return facts.ledger
    except KeyError:
        return None


def _unknown(facts: Facts, names: tuple[str, ...]) -> Verdict:
    """A wrong loop that the catalogue has no name for: say what differs first, and by how much."""
    row = facts.first_wrong
    says = (_returned_words, _count_words, _update_words, _step_words)
    words = next((said for say in says if (said := say(facts))), None) or _value_words(facts, names)
    return Verdict(
        False, "unknown", row.line if row else facts.step_line, words, (),
        facts.ledger, facts.recording.notes, "Another result", False, names,
    )  # fmt: skip


def _returned_words(facts: Facts) -> str | None:
    want, returned = facts.reference.value, facts.recording.returned
    if want is None or facts.wrong_parameters:
        return None
    if returned.get("shape") != list(want.shape):
        shape = f" of shape {tuple(returned['shape'])}" if "shape" in returned else ""
        return (
            f"The function returned {returned['type']}{shape}; it should return a tensor of shape {tuple(want.shape)}."
        )
    return f"The returned tensor is off by up to {facts.returned_off:.3g}."


def _count_words(facts: Facts) -> str | None:
    """Where the loop took another number of steps than it should (two networks may be stepped at once)."""
    if facts.task.signature == "train_gan":
        return None
    for call in range(facts.task.epochs):
        took = sum(row.call == call for row in facts.rows)
        right = sum(step.call == call for step in facts.reference.steps)
        if facts.rows and took != right:
            count = len(facts.task.batches)
            data = f" for {count} batch{'es' * (count != 1)}" if facts.all("fetch") else ""
            return f"Call {call + 1} took {took} step{'s' * (took != 1)}{data}; it should take {right}."
    return None


def _update_words(facts: Facts) -> str | None:
    """Where the gradient was right and the update that was made of it was not."""
    for row in facts.rows:
        want = facts.wanted(row)
        if want is None or not want.after or facts.differs(row):
            return None
        for i, name in enumerate(facts.recording.parameters):
            after = facts.recording.arrays.get(f"at/{row.row}/{i}")
            if after is None or float((after - want.after[i]).abs().max()) <= facts.allowed:
                continue
            before = parameters_before(facts.recording, row.row, i)
            moved, right = float((after - before).norm()), float((want.after[i] - before).norm())
            hand = " by hand" if row.by == "manual" else ""
            return (
                f"In step {row.row + 1} (line {row.line}) the gradient was right, but the update of it{hand} was not "
                f"what the given optimizer makes: {name} moved by {moved:.3g} instead of {right:.3g}."
            )
    return None


def _step_words(facts: Facts) -> str | None:
    row = facts.first_wrong
    want = facts.wanted(row) if row is not None else None
    if row is None or want is None:
        return None
    return (
        f"Step {row.row + 1} (line {row.line}) used another gradient than it should have: norm "
        f"{facts.used_norm(row):.3g} instead of {facts.right_norm(row):.3g}, from {facts.said(row)}."
    )


def _value_words(facts: Facts, names: tuple[str, ...]) -> str:
    off = max((d, n) for devs in facts.deviations for d, n in zip(devs, facts.recording.parameters, strict=True))
    verb = "is not where it" if len(names) == 1 else "are not where they"
    return f"After the run {listed(names[:3])} {verb} should be ({off[1]} is off by {off[0]:.3g})."
