"""Loops in which nothing was trained at all: what was left out?"""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


def _steps(f: Facts) -> str:
    count = len(f.optimizer_rows)
    return f"{count} time{'s' if count != 1 else ''}"


@mistake(
    "nothing-happened",
    "Nothing was trained",
    "The function ran no forward pass, called no backward and changed no parameter.",
    "What has to happen for each batch that the loader gives?",
)
def nothing_happened(f: Facts) -> Evidence | None:
    idle = not (f.rows or f.columns or f.all("forward") or f.all("loss") or f.all("call", "autograd.grad"))
    return {"line": None} if idle and f.stood_still else None


@mistake(
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


@mistake(
    "closure-without-backward",
    "The closure computes no gradient",
    "step called your closure and the closure ran the forward pass, but backward was never called: every .grad was None.",
    "The optimizer calls the closure to get a loss and fresh gradients.",
    "A closure clears, computes the loss, calls backward, and returns the loss.",
)
def closure_without_backward(f: Facts) -> Evidence | None:
    inside = [e for e in f.all("forward") if e.inside_step]
    return {"line": f.usual_line(inside)} if inside and not f.columns and not f.all("call", "autograd.grad") else None


@mistake(
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


@mistake(
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


@mistake(
    "step-not-called",
    "step is named but not called",
    "Line {line} names optimizer.step without brackets, so it is looked up and never called: {count} backward calls, no update.",
    "A method without brackets is only a value.",
    "What does the line evaluate to?",
)
def step_not_called(f: Facts) -> Evidence | None:
    line = f.not_called("step")
    return {"line": line, "count": len(f.columns)} if line is not None and f.stood_still else None


@mistake(
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


@mistake(
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


@mistake(
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
    if f.all("call", "zero_grad"):  # a loop with an optimizer that forgets its step
        return None
    return {"line": f.usual_line(reads)}


@mistake(
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


@mistake(
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


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
