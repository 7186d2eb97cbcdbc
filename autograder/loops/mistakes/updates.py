"""Mistakes of backward and step: the wrong order, too often, too seldom."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.ledger import TINY
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

SEQUENCE, REST = Shelf(), Shelf()


def stepped_before_backward(events: list[Event]) -> Event | None:
    """The update of an iteration, if its backward comes only after it."""
    rows = [i for i, e in enumerate(events) if e.what == "update"]
    backs = [i for i, e in enumerate(events) if e.what == "backward" and not e.inside_step]
    if rows and backs and max(rows) < min(backs) and not events[rows[0]].inside_backward:
        return events[rows[0]]
    return None


@SEQUENCE.mistake(
    "step-before-backward",
    "step comes before backward",
    "For batch {batch} line {line} stepped before line {back} called backward, so the step used {used} instead of the "
    "gradient of batch {batch}.",
    "What is in .grad when step is called?",
    "step uses what is in .grad at that moment; backward puts it there.",
)
def step_before_backward(f: Facts) -> Evidence | None:
    iterations = [i for i in f.iterations() if any(e.what in ("backward", "update") for e in i)]
    early = [row for i in iterations if (row := stepped_before_backward(i))]
    if not early or len(early) < 0.5 * len(iterations):
        return None
    row = early[min(1, len(early) - 1)]
    return {"line": row.line, "back": f.backward_line, "batch": (row.batch or 0) + 1, "used": f.said(row)}


@SEQUENCE.mistake(
    "double-step",
    "step is called twice for one backward",
    "Step {step} (line {line}) used the same gradient as step {before} (line {first}): there was no backward call between them.",
    "How many steps belong to one gradient?",
    "One backward, one step.",
)
def double_step(f: Facts) -> Evidence | None:
    for before, row in zip(f.optimizer_rows, f.optimizer_rows[1:], strict=False):
        same = f.row_columns[row.row] and f.row_columns[row.row] == f.row_columns[before.row]
        quiet = not any(e.what in ("backward", "fetch") for e in f.before_row(row))
        if same and quiet and set(row.parameters) == set(before.parameters) and row.row == before.row + 1:
            return {"line": row.line, "step": row.row + 1, "before": before.row + 1, "first": before.line}
    return None


@SEQUENCE.mistake(
    "step-once-per-epoch",
    "One step for the whole loader",
    "The loader gave {batches} batches and backward ran for each, but line {line} stepped once, after the last: it used "
    "{used}.",
    "How often must the weights move in one pass over the loader?",
    "Look at how far the line that steps is indented.",
)
def step_once(f: Facts) -> Evidence | None:
    per_call = [sum(r.call == call for r in f.rows) for call in range(f.task.epochs)]
    needed = len(f.task.groups())
    if needed < 2 or set(per_call) != {1} or any(r.inside_backward for r in f.rows):
        return None
    row = f.rows[0]
    later = [c for c in f.columns if c.call == row.call and c.column >= row.columns]
    before = [c for c in f.columns if c.call == row.call and c.column < row.columns]
    if later or len(before) < needed:
        return None
    return {"line": row.line, "batches": len(f.task.batches), "used": f.said(row)}


@REST.mistake(
    "double-backward",
    "backward was called twice on one loss",
    "In step {step} lines {lines} call backward twice on the loss of batch {batch}, so .grad held that gradient twice: norm "
    "{used:.3g} instead of {wanted:.3g}.",
    "backward adds. What does a second call on the same loss add?",
    "Read the gradients after one call; retain_graph=True only hides that the second call is not needed.",
)
def double_backward(f: Facts) -> Evidence | None:
    for row in f.rows:
        columns = [f.columns[c] for c in sorted(f.row_columns[row.row])]
        roots = [c.root for c in columns if c.root is not None]
        twice = [r for r in roots if roots.count(r) > 1]
        if not twice:
            continue
        pair = [c for c in columns if c.root == twice[0]]
        lines = listed(sorted({c.line for c in pair if c.line}))
        return {
            "line": pair[1].line, "lines": lines, "step": row.row + 1, "batch": (pair[0].batches or [0])[0] + 1,
            "used": f.used_norm(row), "wanted": f.right_norm(row),
        }  # fmt: skip
    return None


@REST.mistake(
    "backward-gradient-argument-misused",
    "backward was given a weight",
    "Line {line} gives backward the argument {weight:.3g}, so every gradient of step {step} was multiplied by it (norm "
    "{used:.3g} instead of {wanted:.3g}).",
    "What is the argument of backward for?",
    "It is a factor on the gradient. A scalar loss needs none.",
)
def weighted_backward(f: Facts) -> Evidence | None:
    row = f.first_wrong
    weighted = [c for c in f.columns if c.weight is not None and abs(c.weight - 1) > TINY]
    if row is None or not weighted:
        return None
    column = weighted[0]
    return {
        "line": column.line, "weight": column.weight, "step": row.row + 1,
        "used": f.used_norm(row), "wanted": f.right_norm(row),
    }  # fmt: skip


@REST.mistake(
    "optimizer-rebuilt",
    "A new optimizer is made for every step",
    "{count} different optimizers took the {steps} steps (line {line}), so what the optimizer remembers between steps was "
    "thrown away each time.",
    "What does this optimizer remember from one step to the next?",
    "Make it once, before the loop.",
)
def rebuilt(f: Facts) -> Evidence | None:
    used = {o for r in f.optimizer_rows for o in r.optimizers}
    return {"line": f.step_line, "count": len(used), "steps": len(f.rows)} if len(used) > 2 else None


@REST.mistake(
    "loss-detached",
    "The generator's step has no gradient of the generator",
    "Step {step} (line {line}) stepped {name}, but line {back} called backward on a loss that does not reach it: what came out of "
    "it was cut off on the way.",
    "Which networks does this loss run through, and is the road to their weights open?",
    "detach() belongs into the discriminator's turn, never into the generator's.",
)
def network_cut_off(f: Facts) -> Evidence | None:
    if f.task.signature != "train_gan":
        return None
    names = f.recording.parameters
    for row in f.optimizer_rows:
        backs = [e for e in f.before_row(row) if e.what == "backward"]
        reached = {i for e in backs for i in e.added}
        if row.parameters and backs and not f.used_norm(row) and not reached & set(row.parameters):
            name = names[row.parameters[0]].split(".")[0]
            return {"line": row.line, "step": row.row + 1, "name": name, "back": backs[-1].line}
    return None


@REST.mistake(
    "frozen-parameter-moves",
    "A parameter without a gradient was moved by momentum or weight decay",
    "In step {step} (line {line}) {name} should have stayed where it was: its .grad was a tensor of zeros instead of None, "
    "so momentum and weight decay moved it by {moved:.3g}.",
    "What does the optimizer do with a .grad of zeros, and what with None?",
    "Zeros are stepped: momentum and weight decay still act. None is skipped.",
    "Which state does your way of clearing leave behind?",
)
def frozen_moves(f: Facts) -> Evidence | None:
    arrays = f.recording.arrays
    for row in f.rows:
        want = f.wanted(row)
        for i, name in enumerate(f.recording.parameters):
            grad = arrays.get(f"grad/{row.row}/{i}")
            if want is None or want.grads[i] is not None or grad is None or i not in row.parameters:
                continue
            before = arrays[f"at/{row.row - 1}/{i}" if row.row else f"param/0/{i}"]
            moved = float((arrays[f"at/{row.row}/{i}"] - before).norm())
            if moved and not bool(grad.any()):
                return {"line": row.line, "step": row.row + 1, "name": name, "moved": moved}
    return None


ORDER: tuple[Mistake, ...] = tuple(SEQUENCE)
OTHERS: tuple[Mistake, ...] = tuple(REST)
