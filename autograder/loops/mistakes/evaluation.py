"""Mistakes of evaluation: what it records, which mode it runs in, what it leaves behind, how it averages."""

from __future__ import annotations

import torch

from autograder.loops.facts import Facts, tolerance
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

SHELF = Shelf()
mistake = SHELF.mistake


def forwards(f: Facts) -> list[Event]:
    return f.all("forward")


@mistake(
    "eval-backward-leaks-gradients",
    "Evaluation calls backward",
    "Line {line} called backward {count} times, and when the function returned .grad held the gradients of the evaluation data: "
    "the next training step will add to them.",
    "Which lines of a training loop does an evaluation need?",
    "Nothing is trained here: there is nothing to call backward for.",
)
def calls_backward(f: Facts) -> Evidence | None:
    ends = f.all("exit")
    left = bool(ends) and any(state != "none" for state in ends[-1].grads)
    return {"line": f.backward_line, "count": len(f.columns)} if f.columns and left else None


@mistake(
    "parameters-changed",
    "Evaluation changes the model",
    "After the call {name} had another value than before: line {line} changed it.",
    "What may an evaluation change in the model?",
)
def changes_the_model(f: Facts) -> Evidence | None:
    if not f.wrong_parameters:
        return None
    return {"line": f.step_line, "name": f.recording.parameters[f.wrong_parameters[0]]}


@mistake(
    "eval-in-train-mode",
    "The model is evaluated in training mode",
    "The forward pass of batch {batch} (line {line}) ran in training mode: batch norm used that batch's own statistics{moved}.",
    "Which layers compute something else in training than in evaluation?",
    "no_grad changes what is recorded, not what is computed.",
    "The model has a method that switches the mode, and one that switches back.",
)
def in_train_mode(f: Facts) -> Evidence | None:
    training = [e for e in forwards(f) if e.training]
    if not training:
        return None
    arrays = f.recording.arrays
    names = [key.removeprefix("buffer/0/") for key in arrays if key.startswith("buffer/0/")]
    changed = any(
        not torch.equal(arrays[f"buffer/0/{n}"], arrays.get(f"buffer/1/{n}", arrays[f"buffer/0/{n}"])) for n in names
    )
    moved = " and moved its running statistics" if changed else ""
    return {"line": training[0].line, "batch": (training[0].batch or 0) + 1, "moved": moved}


@mistake(
    "no-grad-not-entered",
    "no_grad is made but not entered",
    "Line {line} makes a torch.no_grad() and drops it: {count} forward passes were recorded all the same.",
    "What does no_grad need to take effect?",
    "It is a context manager and a decorator; a bare call does nothing.",
)
def not_entered(f: Facts) -> Evidence | None:
    tracked = [e for e in forwards(f) if e.tracked]
    made = f.all("call", "no_grad")
    used = f.all("call", "no_grad.enter") or f.all("call", "no_grad.decorate")
    return {"line": made[0].line, "count": len(tracked)} if tracked and made and not used else None


@mistake(
    "eval-without-no-grad",
    "Evaluation records graphs",
    "{count} forward passes (line {line}) were recorded for a backward that never comes{kept}.",
    "Who will use the graph that the forward pass records?",
    "eval() changes what layers compute; it does not stop the recording.",
)
def records_graphs(f: Facts) -> Evidence | None:
    tracked = [e for e in forwards(f) if e.tracked]
    if not tracked:
        return None
    held = len(f.recording.returned.get("forwards") or [])
    kept = f", and what is returned holds on to {held} of their graphs" if held else ""
    return {"line": f.usual_line(tracked), "count": len(tracked), "kept": kept}


@mistake(
    "eval-mode-left-on",
    "The model is left in eval mode",
    "The model was in training mode before the call and in eval mode after it (line {line}): training would go on without dropout "
    "and with fixed statistics.",
    "Which mode was the model in when the function was called?",
    "Put back what you found, also after an error.",
)
def left_in_eval(f: Facts) -> Evidence | None:
    ends = f.all("exit")
    if not ends or all(ends[-1].training.values()):
        return None
    switches = [e for e in f.all("call", "module.train") if not e.mode]
    return {"line": switches[-1].line if switches else None}


@mistake(
    "grad-mode-leaked",
    "Grad mode is left switched off",
    "The function returns with gradients switched off{place}: whatever is trained next will not be recorded.",
    "Which line changes whether PyTorch records, and how long does that last?",
    "A with block switches back by itself, also after an error.",
)
def grad_left_off(f: Facts) -> Evidence | None:
    ends = f.all("exit")
    if not ends or ends[-1].grad_enabled:
        return None
    line = f.usual_line(e for e in f.all("call", "set_grad_enabled") if not e.mode)
    return {"line": line, "place": f" (line {line})" if line else ""}


@mistake(
    "eval-mean-of-means",
    "The mean of the batches' means is not the mean of the samples",
    "The function returned {got:.4g}, the mean of the batches' means; over all {samples} samples the mean is {want:.4g}: batches of "
    "{sizes} samples must not count alike.",
    "How many samples does each batch's mean stand for?",
    "Weigh each batch's mean by its number of samples.",
)
def mean_of_means(f: Facts) -> Evidence | None:
    losses = [e.loss for e in f.all("loss") if e.loss is not None]
    got, want = f.recording.arrays.get("returned"), f.reference.value
    if got is None or want is None or not losses or _close(f, float(got), float(want)):
        return None
    if not _close(f, float(got), sum(losses) / len(losses)):
        return None
    sizes = ", ".join(str(n) for n in f.task.batches)
    return {
        "line": f.usual_line(f.all("loss")), "got": float(got), "want": float(want),
        "samples": sum(f.task.batches), "sizes": sizes,
    }  # fmt: skip


def _close(f: Facts, a: float, b: float) -> bool:
    return abs(a - b) <= tolerance(f.task.dtype, abs(b))


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
