"""Mistakes on single tensors: leaves, views, updates by hand."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

RAISING, WRONG = Shelf(), Shelf()


def _reads_of_non_leaf(f: Facts) -> int | None:
    return next((e.line for e in reversed(f.events) if e.what == "read" and "non-leaf" in e.states), None)


def _updated_out_of_place(f: Facts) -> bool:
    """In ``fit`` the weight that was given never changed."""
    return f.task.signature == "fit" and not any(r.moved for r in f.rows)


@RAISING.mistake(
    "leaf-replaced",
    "The weight was replaced by a new tensor",
    "On line {line} the name no longer stands for the weight that was given: an update that is not in place makes a new "
    "tensor, and a new tensor has no .grad.",
    "Is the tensor after the update still the same object?",
    "w = w - ... makes a new tensor; an in-place update under no_grad keeps the leaf.",
)
def leaf_replaced_raises(f: Facts) -> Evidence | None:
    if not (f.columns and _updated_out_of_place(f) and f.failure and f.failure.kind == "raised"):
        return None
    replaced = _reads_of_non_leaf(f) is not None or "None" in f.failure.message or "require grad" in f.failure.message
    grew = f.failure.message and "leaf Variable" in f.failure.message
    return {"line": f.failure.line} if replaced and not grew else None


@WRONG.mistake(
    "leaf-replaced",
    "The weight was replaced by a new tensor",
    "The function returned {what} instead of the weight that it was given: an update that is not in place makes a new tensor.",
    "Is the tensor after the update still the same object?",
    "w = w - ... makes a new tensor; an in-place update under no_grad keeps the leaf.",
)
def leaf_replaced(f: Facts) -> Evidence | None:
    returned = f.recording.returned
    if (
        f.task.signature != "fit"
        or not f.columns
        or "leaf" not in returned
        or returned["same"]
        or not _updated_out_of_place(f)
    ):
        return None
    what = "a new tensor" if returned["leaf"] else "the result of an operation (not a leaf)"
    return {"line": _reads_of_non_leaf(f) or f.backward_line, "what": what}


@WRONG.mistake(
    "non-leaf-grad-is-none",
    ".grad of a tensor that is not a leaf",
    "{line_words} .grad of a tensor that is the result of an operation; gradients are kept only in leaves, so it is None.",
    "Which tensor did you ask to require gradients, and which one are you reading?",
    "A view, a cast or any arithmetic gives a new tensor; its .grad stays None.",
)
def non_leaf_grad(f: Facts) -> Evidence | None:
    line = _reads_of_non_leaf(f)
    if f.recording.returned.get("type") == "NoneType" and line is not None:
        return {"line": line, "line_words": f"Line {line} reads"}
    return None


RAISED: tuple[Mistake, ...] = tuple(RAISING)
VALUES: tuple[Mistake, ...] = tuple(WRONG)
