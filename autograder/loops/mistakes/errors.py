"""Loops that raise: the error's own words say where, the events before it say why."""

from __future__ import annotations

from textwrap import shorten

from autograder.loops.facts import Facts, listed
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

SHELF = Shelf()
mistake = SHELF.mistake


def raised(f: Facts, *words: str) -> bool:
    """Whether the run ended in an error whose message holds one of these words."""
    return f.failure is not None and any(w in f.failure.message for w in words)


def here(f: Facts, **more: object) -> Evidence:
    assert f.failure is not None
    error = shorten(f.failure.message.split(": ")[0], 120, placeholder=" ...").rstrip(".")
    return {"line": f.failure.line, "error": error, **more}


def last(f: Facts, what: str) -> Event | None:
    return next((e for e in reversed(f.events) if e.what == what), None)


def _tracked_nowhere(f: Facts) -> bool:
    return raised(f, "does not require grad", "does not have a grad_fn")


def _switched_off(f: Facts) -> Event | None:
    """The statement that switched grad mode off for good: no with block ends it."""
    for e in reversed(f.events):
        if e.what == "call" and e.name == "set_grad_enabled.exit":
            return None
        if e.what == "call" and e.name == "set_grad_enabled":
            return None if e.mode else e
    return None


def _forward_was_off(f: Facts) -> bool:
    seen = last(f, "forward") or last(f, "loss")
    if seen is None:
        entered = last(f, "enter")
        return entered is not None and entered.grad_enabled is False
    return seen.grad_enabled is False if seen.what == "forward" else not seen.tracked and not f.columns


@mistake(
    "grad-mode-leaked",
    "Grad mode was left switched off",
    "Gradients were switched off {where} and never switched on again, so the next forward pass recorded nothing and "
    "backward had nothing to follow.",
    "Which line changes whether PyTorch records, and how long does that last?",
    "A call to torch.set_grad_enabled lasts until the next one; a with block ends by itself.",
    "Put the part that needs no gradients into a with block and nothing else.",
)
def grad_mode_leaked(f: Facts) -> Evidence | None:
    if not (_tracked_nowhere(f) and _forward_was_off(f)):
        return None
    off, entered = _switched_off(f), last(f, "enter")
    at_entry = entered is not None and entered.call > 0 and entered.grad_enabled is False
    if off is None and not at_entry:
        return None
    line = off.line if off else None
    return here(f) | {"line": line or here(f)["line"], "where": f"on line {line}" if line else "by the call before"}


@mistake(
    "no-grad-around-training",
    "The training forward pass runs without recording",
    "The forward pass of batch {batch} ran with gradients switched off, so its loss has no graph and backward on line "
    "{line} has nothing to follow.",
    "backward can only go where the forward pass was recorded.",
    "Look at what surrounds the line that calls the model.",
    "no_grad belongs around evaluation and around updates by hand, not around the forward pass that is trained.",
)
def no_grad_around_training(f: Facts) -> Evidence | None:
    if not (_tracked_nowhere(f) and _forward_was_off(f)):
        return None
    forward = last(f, "forward")
    return here(f, batch=(forward.batch or 0) + 1 if forward else 1)


@mistake(
    "loss-detached",
    "The loss was cut off from its graph",
    "The model's output was recorded, but what line {line} calls backward on is no longer connected to it ({error}).",
    "Something between the model's output and backward turns the loss into plain numbers.",
    "detach(), item(), float(), numpy and torch.tensor(...) all cut the graph.",
    "Keep the loss tensor for backward; make the number for printing from it separately.",
)
def loss_detached(f: Facts) -> Evidence | None:
    if _tracked_nowhere(f) or raised(f, "has no attribute 'backward'"):
        return here(f)
    return None


def _second_time(f: Facts) -> bool:
    return raised(f, "backward through the graph a second time", "second time")


@mistake(
    "hidden-state-not-detached",
    "The hidden state carries its history along",
    "The graph that line {line} goes back through reaches the forward passes of batches {batches}; the earlier ones "
    "were finished, and their graph is gone.",
    "What does this batch's forward pass take over from the batch before?",
    "A state that is carried over brings its whole history with it.",
    "Keep the state's values and cut its history before the next forward pass.",
)
def hidden_state_not_detached(f: Facts) -> Evidence | None:
    failing = last(f, "backward")
    changed = raised(f, "modified by an inplace operation")
    if failing is None or not (_second_time(f) or changed) or len(failing.forwards or []) < 2:
        return None
    if f.task.signature == "train_gan" or not any(e.carried for e in f.all("forward")):
        return None
    finished = {n for e in f.columns if e is not failing for n in e.forwards}
    if not finished & set(failing.forwards):
        return None
    return here(f, batches=listed(b + 1 for b in failing.batches))


@mistake(
    "double-backward",
    "backward was called twice on one loss",
    "Line {line} calls backward a second time on the loss of batch {batch}; the first call freed its graph.",
    "How many backward calls does one forward pass need?",
    "One forward pass, one backward call: a second one would only add the same gradient again.",
    "Remove one of the two calls; retain_graph=True would double every gradient.",
)
def double_backward_raises(f: Facts) -> Evidence | None:
    failing = last(f, "backward")
    if failing is None or not _second_time(f) or not f.all("fetch"):
        return None
    earlier = [e for e in f.columns if e is not failing and e.root == failing.root and e.root is not None]
    between = f.events[f.index(earlier[-1]) : f.index(failing)] if earlier else ()
    if not earlier or any(e.what == "fetch" for e in between):
        return None
    return here(f, batch=(failing.batches or [0])[0] + 1)


@mistake(
    "graph-reused-after-free",
    "The graph was used again after backward had freed it",
    "Line {line} goes back through a graph that the backward call before had freed: its forward pass was not run again.",
    "Each backward frees the graph of its forward pass.",
    "Which part of the forward pass is computed once, before the loop?",
    "Compute inside the loop what depends on the weights; retain_graph=True would use the old weights' graph.",
)
def graph_reused(f: Facts) -> Evidence | None:
    return here(f) if _second_time(f) else None


@mistake(
    "step-before-backward",
    "step comes before backward",
    "For batch {batch} line {step} stepped between the forward pass and backward: the weights that backward needs "
    "had changed, and the step had no gradient of batch {batch} to use.",
    "What is in .grad when step is called?",
    "step uses what is in .grad at that moment; backward puts it there.",
)
def stepped_before_backward(f: Facts) -> Evidence | None:
    failing, forward, row = last(f, "backward"), last(f, "forward"), last(f, "update")
    if not raised(f, "modified by an inplace operation") or failing is None or forward is None or row is None:
        return None
    between = f.index(forward) < f.index(row) < f.index(failing)
    return here(f, batch=(row.batch or 0) + 1, step=row.line) | {"line": row.line} if between else None


@mistake(
    "stale-graph-reused",
    "An old graph is used after the weights have changed",
    "Line {line} goes back through a graph that was recorded before the weights changed, so autograd refuses: {error}",
    "When was the forward pass run, and when did the weights change?",
    "The forward pass must be run again after each update.",
)
def stale_graph_raises(f: Facts) -> Evidence | None:
    return here(f) if raised(f, "modified by an inplace operation") else None


@mistake(
    "inference-tensors-in-training",
    "Tensors made under inference_mode are used in training",
    "Line {line} uses a tensor made under inference_mode in a computation that must be recorded ({error}).",
    "inference_mode promises that its tensors never meet autograd again.",
    "torch.no_grad() makes no such promise, and computes the same features.",
)
def inference_tensors(f: Facts) -> Evidence | None:
    return here(f) if raised(f, "nference tensor") else None


@mistake(
    "zero-on-none",
    "A gradient that is None cannot be zeroed",
    "Line {line} wants to change a .grad that is still None: before the first backward call there is nothing to clear.",
    "What is .grad before the first backward call?",
    "Clear after the update, ask whether .grad is None first, or assign None: that is always allowed.",
)
def zero_on_none(f: Facts) -> Evidence | None:
    read = last(f, "read")
    untouched = not f.columns and not f.all("call", "zero_grad") and not f.all("call", "module.zero_grad")
    return here(f) if raised(f, "'NoneType' object has no attribute") and untouched and read is not None else None


@mistake(
    "grad-assumed-tensor",
    "Code expects a tensor in .grad where there is None",
    "Line {line} computes with .grad while it is None{cleared}.",
    "zero_grad() leaves None behind unless it is told otherwise.",
    "Read gradients before they are cleared, or allow for None.",
)
def grad_assumed_tensor(f: Facts) -> Evidence | None:
    read = last(f, "read")
    if f.failure is None or "None" not in f.failure.message or read is None or "none" not in read.states:
        return None
    clear = next((e for e in reversed(f.events) if e.what == "clear" and e.to == "none"), None)
    return here(f, cleared=f": line {clear.line} had cleared it" if clear else ": no backward call has filled it yet")


@mistake(
    "leaf-updated-in-place",
    "A weight is changed in place while autograd records",
    "Line {line} changes a weight in place while autograd is recording, which PyTorch refuses ({error}).",
    "An update is not part of the computation that is differentiated.",
    "Updates by hand belong under torch.no_grad().",
)
def leaf_updated_in_place(f: Facts) -> Evidence | None:
    return here(f) if raised(f, "leaf Variable that requires grad", "a view of a leaf Variable") else None


@mistake(
    "requires-grad-on-integers",
    "Whole numbers cannot require gradients",
    "Line {line} asks a tensor of whole numbers to require gradients; only floating point and complex tensors can.",
    "A derivative needs small changes, and integers have none.",
    "Make the tensor floating point first.",
)
def integers(f: Facts) -> Evidence | None:
    return here(f) if raised(f, "nly Tensors of floating point", "nly floating point") else None


@mistake(
    "amp-unscale-per-microbatch",
    "unscale_ was called more than once per update",
    "Line {line} unscales gradients that were unscaled already since the last update.",
    "Unscaling divides what is in .grad; a second time it would divide again.",
    "Unscale once per update, after the last microbatch and before clipping.",
)
def unscale_twice(f: Facts) -> Evidence | None:
    return here(f) if raised(f, "unscale_() has already been called") else None


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
