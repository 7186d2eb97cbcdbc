"""Mistakes of closures, which the optimizer calls inside its step."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


@mistake(
    "closure-without-zero-grad",
    "The closure does not clear",
    "step called your closure {count} times for batch {batch}, and each call added its gradient to the ones before: the "
    "closure's line {line} calls backward and none of its lines clears.",
    "How often does this optimizer call the closure in one step?",
    "Clear inside the closure, before backward.",
)
def closure_without_zero(f: Facts) -> Evidence | None:
    for start, row in enumerate(f.rows):
        end = f.index(f.rows[start + 1]) if start + 1 < len(f.rows) else len(f.events)
        inside = [e for e in f.events[f.index(row) : end] if e.inside_step or (e.what == "clear")]
        backs = [i for i, e in enumerate(inside) if e.what == "backward"]
        if len(backs) > 1 and not any(e.what == "clear" for e in inside[backs[0] : backs[-1]]):
            return {"line": inside[backs[0]].line, "count": len(backs), "batch": (row.batch or 0) + 1}
    return None


@mistake(
    "closure-does-not-recompute",
    "The closure returns a loss that was computed before",
    "step called your closure, but no forward pass ran inside it: every call got the same loss and gradient although the "
    "weights had moved (line {line}).",
    "The optimizer calls the closure again after it has moved the weights.",
    "Loss and gradient must be computed inside the closure.",
)
def closure_stale(f: Facts) -> Evidence | None:
    if f.task.optimizer != "lbfgs" or not f.optimizer_rows or any(e.inside_step for e in f.all("forward")):
        return None
    return {"line": f.step_line}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
