"""Mistakes of clipping, gradient scaling and schedules."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.clearing import mixed
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

SHELF = Shelf()
mistake = SHELF.mistake


def too_long(f: Facts) -> Event | None:
    """The first update whose gradient is longer than the task's maximum norm."""
    if f.task.clip is None:
        return None
    room = 1 + 1e-4
    return next((r for r in f.rows if f.used_norm(r) > f.task.clip * room), None)


def shrinks(f: Facts) -> list[Event]:
    """Events in which .grad was made smaller by one factor, or the library's clip was called."""
    unscaling = bool(f.all("call", "scaler.scale"))  # which shrinks by one factor too
    scaled = [e for e in f.all("scale") if all(0 < x < 1 for x in e.factors) and not unscaling]
    return sorted([*scaled, *f.all("call", "clip")], key=f.index)


def unclipped(f: Facts, row: Event, **more: object) -> Evidence:
    return {"line": row.line, "step": row.row + 1, "norm": f.used_norm(row), "limit": f.task.clip, **more}


@mistake(
    "amp-clip-without-unscale",
    "Scaled gradients are clipped",
    "Line {line} clips while the gradients are still multiplied by the scaler's factor, so step {step} used norm {norm:.3g} instead "
    "of {right:.3g}.",
    "What are the gradients multiplied by when they are clipped?",
    "Unscale the optimizer's gradients before clipping.",
)
def clip_scaled(f: Facts) -> Evidence | None:
    row = f.first_wrong
    if row is None or f.task.clip is None or not f.all("call", "scaler.scale") or not shrinks(f):
        return None
    clip = shrinks(f)[0]
    before = [e for e in f.events[: f.index(clip)] if e.what == "call" and e.name == "scaler.unscale"]
    return mixed(f, row) | {"line": clip.line} if not before else None


@mistake(
    "short-gradient-lengthened",
    "A gradient below the limit is scaled up to it",
    "The gradient of step {step} had norm {right:.3g}, below the limit of {limit:.3g}, and line {line} scaled it to {norm:.3g}.",
    "What must clipping do to a gradient that is short already?",
    "The factor is never larger than 1.",
)
def lengthened(f: Facts) -> Evidence | None:
    row = f.first_wrong
    want = f.wanted(row) if row is not None else None
    if f.task.clip is None or row is None or want is None or not want.norm < 0.99 * f.task.clip:
        return None
    longer = [e for e in f.all("scale") if all(x > 1 for x in e.factors)]
    if not longer or f.used_norm(row) < 0.99 * f.task.clip:
        return None
    return unclipped(f, row, right=want.norm) | {"line": longer[0].line}


@mistake(
    "clip-per-microbatch",
    "Partial sums are clipped",
    "Line {line} clips {count} times for step {step}: what was collected is shrunk again for each new microbatch, so the "
    "direction of the sum changes, not only its length.",
    "How many gradients are in .grad when clipping is called?",
    "Clip once per step, on the whole sum.",
)
def clip_per_microbatch(f: Facts) -> Evidence | None:
    if f.task.clip is None or not f.task.accumulates or f.task.k < 2:
        return None
    for row in f.rows:
        events = f.before_row(row)
        clips = [i for i, e in enumerate(events) if e.what == "call" and e.name == "clip"]
        clips = clips or [i for i, e in enumerate(events) if e.what == "scale"]
        backs = [i for i, e in enumerate(events) if e.what == "backward"]
        inside = [i for i in clips if backs and i < backs[-1] and any(b < i for b in backs)]
        if inside and f.differs(row):
            return {"line": events[inside[0]].line, "count": len(clips), "step": row.row + 1}
    return None


@mistake(
    "clip-exhausted-generator",
    "Clipping was given no tensors",
    "Line {clip} clipped nothing although the gradients were there: the generator that it was given had been used up, so step "
    "{step} used norm {norm:.3g} with a limit of {limit:.3g}.",
    "model.parameters() is a generator. How often can a generator be read?",
    "Ask the model for its parameters each time, or keep them in a list.",
)
def clip_exhausted(f: Facts) -> Evidence | None:
    row = too_long(f)
    empty = [c for c in f.all("call", "clip") if c.norm == 0.0 and "values" in c.grads]
    return unclipped(f, row, clip=empty[0].line) | {"line": empty[0].line} if row is not None and empty else None


def _places(f: Facts, row: Event) -> tuple[Event | None, Event | None]:
    """The clipping that came before the row's backward, and the one that came after the row itself."""
    round_ = next((i for i in f.iterations() if any(e is row for e in i)), list(f.events))
    clips = [e for e in shrinks(f) if any(e is r for r in round_)]
    backs = [e for e in round_ if e.what == "backward"]
    early = next((c for c in clips if backs and f.index(c) < f.index(backs[0])), None)
    late = next((c for c in clips if f.index(c) > f.index(row)), None)
    return early, late


@mistake(
    "clip-after-step",
    "Clipping comes after the step",
    "Step {step} (line {at}) used norm {norm:.3g} although the limit is {limit:.3g}: line {line} clips after it, when the update has been made.",
    "What does clipping change, and who has used that already?",
    "Clip after backward and before step.",
)
def clip_after_step(f: Facts) -> Evidence | None:
    row = too_long(f)
    late = _places(f, row)[1] if row else None
    return unclipped(f, row, at=row.line) | {"line": late.line} if row and late else None


@mistake(
    "clip-before-backward",
    "Clipping comes before backward",
    "Step {step} used norm {norm:.3g} although the limit is {limit:.3g}: line {line} clips before line {back} calls backward, so the "
    "fresh gradient was never clipped.",
    "What is in .grad when clipping is called?",
    "Clip after backward and before step.",
)
def clip_before_backward(f: Facts) -> Evidence | None:
    row = too_long(f)
    early = _places(f, row)[0] if row else None
    return unclipped(f, row, back=f.backward_line) | {"line": early.line} if row and early else None


@mistake(
    "missing-clip",
    "Nothing clips the gradient",
    "Step {step} (line {line}) used norm {norm:.3g} although the limit is {limit:.3g}: nothing shortened the gradient before the step.",
    "Which line makes the gradient shorter, and when does it run?",
    "Clip after backward and before step.",
)
def missing_clip(f: Facts) -> Evidence | None:
    row = too_long(f)
    return unclipped(f, row) if row and not shrinks(f) else None


@mistake(
    "scheduler-per-microbatch",
    "The scheduler moves more often than the optimizer",
    "Line {line} stepped the scheduler {schedules} times for {steps} optimizer steps, so step {step} used the learning rate {lr:.3g} "
    "instead of {right:.3g}.",
    "How many scheduler steps belong to one optimizer step?",
    "The scheduler waits for the optimizer.",
)
def scheduler_often(f: Facts) -> Evidence | None:
    calls, rows = f.all("call", "scheduler.step"), f.optimizer_rows
    off = [(r, w) for r in rows if (w := f.wanted(r)) is not None and abs(w.lr - r.lr) > 1e-9]
    if len(calls) <= len(rows) or not off or "scheduler" not in f.task.reference:
        return None
    row, want = off[0]
    return {
        "line": calls[0].line, "schedules": len(calls), "steps": len(rows),
        "step": row.row + 1, "lr": row.lr, "right": want.lr,
    }  # fmt: skip


@mistake(
    "scheduler-before-optimizer",
    "The scheduler moves before the optimizer",
    "Line {line} stepped the scheduler before the first optimizer step, so step 1 used the learning rate {lr:.3g} instead of {right:.3g}.",
    "Which learning rate does the first step use?",
    "The optimizer steps first, then the scheduler.",
)
def scheduler_first(f: Facts) -> Evidence | None:
    calls, rows = f.all("call", "scheduler.step"), f.optimizer_rows
    if not calls or not rows or f.index(calls[0]) > f.index(rows[0]) or "scheduler" not in f.task.reference:
        return None
    want = f.reference.steps[0]
    return {"line": calls[0].line, "lr": rows[0].lr, "right": want.lr}


@mistake(
    "auxiliary-loss-detached",
    "One term of the loss is cut off",
    "Step {step} used norm {norm:.3g} instead of {right:.3g}: exactly the gradient without the second term of the loss, which "
    "reached backward on line {line} as a plain number.",
    "Which terms of the loss have a grad_fn?",
    "A term that is rebuilt from numbers adds to the loss and nothing to the gradient.",
)
def auxiliary_detached(f: Facts) -> Evidence | None:
    row = f.first_wrong
    return mixed(f, row) if row is not None and f.task.reference == "auxiliary" and f.main_term_only(row) else None


@mistake(
    "eval-mode-left-on",
    "Training goes on in eval mode",
    "From batch {batch} of call {call} on the model was trained in eval mode: line {line} switched it, and nothing switched it back.",
    "Which mode is the model in when the next batch comes?",
    "eval() lasts until train() is called.",
)
def eval_left_on(f: Facts) -> Evidence | None:
    trained = [e for e in f.all("forward") if e.grad_enabled]
    off = next((e for e in trained if not e.training), None)
    if off is None:
        return None
    switches = [e for e in f.events[: f.index(off)] if e.what == "call" and e.name == "module.train" and not e.mode]
    line = switches[-1].line if switches else off.line
    return {"line": line, "batch": (off.batch or 0) + 1, "call": off.call + 1}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
