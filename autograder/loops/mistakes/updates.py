"""Mistakes of backward and step: nothing trained, the wrong order, too often, too seldom."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.ledger import TINY
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

NOTHING, SEQUENCE, REST = Shelf(), Shelf(), Shelf()


def _steps(f: Facts) -> str:
    count = len(f.optimizer_rows)
    return f"{count} time{'s' if count != 1 else ''}"


# ---------------------------------------------------------------------- nothing trained
@NOTHING.mistake(
    "nothing-happened",
    "Nothing was trained",
    "The function ran no forward pass, called no backward and changed no parameter.",
    "What has to happen for each batch that the loader gives?",
)
def nothing_happened(f: Facts) -> Evidence | None:
    idle = not (f.rows or f.columns or f.all("forward") or f.all("loss") or f.all("call", "autograd.grad"))
    return {"line": None} if idle and f.stood_still else None


@NOTHING.mistake(
    "not-a-number",
    "A parameter is not a number any more",
    "In step {step} (line {line}) {name} became {what}; every step before it was right.",
    "What was divided by zero, or grew without bound?",
    "Print the gradient and the parameter right before this line.",
)
def not_a_number(f: Facts) -> Evidence | None:
    for row in f.rows:
        after = {i: f.recording.arrays.get(f"at/{row.row}/{i}") for i in range(len(f.recording.parameters))}
        bad = [i for i, value in after.items() if value is not None and not bool(value.isfinite().all())]
        if bad:
            value = after[bad[0]]
            what = "NaN" if value is not None and bool(value.isnan().any()) else "infinite"
            return {"line": row.line, "step": row.row + 1, "name": f.recording.parameters[bad[0]], "what": what}
        if f.differs(row):
            return None
    return None


@NOTHING.mistake(
    "closure-without-backward",
    "The closure computes no gradient",
    "step called your closure and the closure ran the forward pass, but backward was never called: every .grad was None.",
    "The optimizer calls the closure to get a loss and fresh gradients.",
    "A closure clears, computes the loss, calls backward, and returns the loss.",
)
def closure_without_backward(f: Facts) -> Evidence | None:
    inside = [e for e in f.all("forward") if e.inside_step]
    return {"line": f.usual_line(inside)} if inside and not f.columns and not f.all("call", "autograd.grad") else None


@NOTHING.mistake(
    "missing-backward",
    "backward is never called",
    "The loop ran {forwards} forward passes and called step {steps}, but never backward: every .grad stayed None, so no "
    "weight moved.",
    "Which call fills .grad?",
    "Between the loss and the step something must compute gradients.",
)
def missing_backward(f: Facts) -> Evidence | None:
    if f.columns or f.all("call", "autograd.grad") or not f.stood_still:
        return None
    return {"line": f.step_line, "forwards": len(f.all("forward")), "steps": _steps(f)}


@NOTHING.mistake(
    "loss-rewrapped-as-leaf",
    "The loss was made into a new leaf",
    "Line {line} calls backward on a tensor with no history: it was asked to require gradients after it had been cut "
    "off, so none of the {count} parameters got a gradient.",
    "What does the loss's grad_fn say?",
    "Requiring gradients on the loss hides the error, not its cause: find where the graph was cut.",
)
def loss_rewrapped(f: Facts) -> Evidence | None:
    bare = [e for e in f.columns if e.leaf and not e.added]
    if not bare or any(e.added for e in f.columns):
        return None
    return {"line": bare[0].line, "count": len(f.recording.parameters)}


@NOTHING.mistake(
    "step-not-called",
    "step is named but not called",
    "Line {line} names optimizer.step without brackets, so it is looked up and never called: {count} backward calls, no update.",
    "A method without brackets is only a value.",
    "What does the line evaluate to?",
)
def step_not_called(f: Facts) -> Evidence | None:
    line = f.not_called("step")
    return {"line": line, "count": len(f.columns)} if line is not None and f.stood_still else None


@NOTHING.mistake(
    "optimizer-bound-to-other-parameters",
    "The optimizer holds other tensors than the ones trained",
    "Line {line} stepped an optimizer {steps}, but it holds none of the model's parameters: they got gradients and stayed "
    "where they were.",
    "Which tensors were given to the optimizer when it was made?",
    "Compare the identity of the optimizer's tensors with the model's parameters.",
)
def other_parameters(f: Facts) -> Evidence | None:
    rows = f.optimizer_rows
    if not rows or any(r.parameters for r in rows) or not f.columns or not f.stood_still:
        return None
    return {"line": f.step_line, "steps": _steps(f)}


@NOTHING.mistake(
    "leftover-dropped",
    "No group was ever complete",
    "There are {batches} microbatches and {k} accumulation steps, so the group was never complete and not one step was taken.",
    "What happens when the loader ends in the middle of a group?",
    "The last group must be stepped too, however short it is.",
)
def never_complete(f: Facts) -> Evidence | None:
    if not f.task.accumulates or len(f.task.batches) >= f.task.k or any(r.moved for r in f.rows) or not f.columns:
        return None
    return {"line": f.backward_line, "batches": len(f.task.batches), "k": f.task.k} if not f.rows else None


@NOTHING.mistake(
    "update-rebinds-local-name",
    "The update makes new tensors and changes no parameter",
    "Line {line} reads every .grad to compute an update, but the parameters themselves never changed: the result went into "
    "a new tensor.",
    "After p = p - ..., which tensor does the model hold?",
    "Change the parameter itself, in place, under torch.no_grad().",
)
def rebinds(f: Facts) -> Evidence | None:
    reads = [e for e in f.all("read") if "values" in e.states and e.line != f.backward_line]
    if f.rows or not f.columns or not f.stood_still or len(reads) < len(f.columns):
        return None
    if f.all("call", "zero_grad") and not f.all("rebinding"):
        return None
    return {"line": f.usual_line(reads)}


@NOTHING.mistake(
    "missing-step",
    "step is never called",
    "backward was called {count} times and filled .grad, but nothing ever updated the parameters: they are where they started.",
    "Which call changes the weights?",
    "Gradients alone move nothing.",
)
def missing_step(f: Facts) -> Evidence | None:
    if any(r.moved for r in f.rows) or f.rows or not f.columns or not f.stood_still:
        return None
    return {"line": f.backward_line, "count": len(f.columns)}


@NOTHING.mistake(
    "missing-step",
    "One of the networks is never stepped",
    "The parameters of {still} never moved, although backward (line {line}) filled their .grad {count} times; those of {other} did.",
    "Which optimizer holds the network that stands still, and when is it stepped?",
    "Each network needs the step of its own optimizer.",
)
def one_network_stands_still(f: Facts) -> Evidence | None:
    names = [n.split(".")[0] for n in f.recording.parameters]
    moved = {names[i] for r in f.rows if r.moved for i in r.parameters}
    still = sorted(set(names) - moved)
    if f.task.signature != "train_gan" or len(still) != 1 or not moved:
        return None
    columns = [c for c in f.columns if any(names[i] == still[0] for i in c.added)]
    if not columns:
        return None
    return {"line": f.usual_line(columns), "still": still[0], "other": moved.pop(), "count": len(columns)}


# ---------------------------------------------------------------------- the order
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


# ---------------------------------------------------------------------- other ways
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
        want = f.wanted(row)
        lines = listed(sorted({c.line for c in pair if c.line}))
        return {
            "line": pair[1].line, "lines": lines, "step": row.row + 1, "batch": (pair[0].batches or [0])[0] + 1,
            "used": f.used_norm(row), "wanted": want.norm if want else 0.0,
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
    want, column = f.wanted(row), weighted[0]
    return {
        "line": column.line, "weight": column.weight, "step": row.row + 1,
        "used": f.used_norm(row), "wanted": want.norm if want else 0.0,
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


NOTHING_TRAINED: tuple[Mistake, ...] = tuple(NOTHING)
ORDER: tuple[Mistake, ...] = tuple(SEQUENCE)
OTHERS: tuple[Mistake, ...] = tuple(REST)
