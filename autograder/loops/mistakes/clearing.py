"""Mistakes of clearing: too late, too early, too seldom, only in part."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.ledger import TINY
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

SHELF = Shelf()
mistake = SHELF.mistake


def first_reuse(f: Facts) -> Event | None:
    """The first update that used a gradient which an earlier update had used already."""
    return f.rows[min(f.reused)] if f.reused else None


def mixed(f: Facts, row: Event) -> Evidence:
    """The words for an update that used old gradients besides its own."""
    want = f.wanted(row)
    should = [b + 1 for b in want.batches] if want else []
    return {
        "line": f.backward_line, "step": row.row + 1, "used": f.said(row), "norm": f.used_norm(row),
        "should": f"{f.numbered(should)} alone",
        "right": f.right_norm(row),
    }  # fmt: skip


def stale_parameters(f: Facts, row: Event) -> set[int]:
    """The parameters of an update whose gradient held one that had been used before."""
    used = f.ledger.weights[:, row.row].abs() > TINY
    return {i for i in row.parameters if any(used[i, c] for c in f.reused.get(row.row, ()))}


@mistake(
    "zero-between-backward-and-step",
    "Gradients are cleared between backward and step",
    "In step {step} line {back} filled .grad (norm {norm:.3g}) and line {line} cleared it again before line {at} stepped, so "
    "the update used {left}.",
    "Follow .grad from the line that fills it to the line that uses it.",
    "What must be in .grad when step is called?",
    "Clear after the step, or before backward; never between the two.",
)
def zero_between(f: Facts) -> Evidence | None:
    for row in f.optimizer_rows:
        events = f.before_row(row)
        filled = [i for i, e in enumerate(events) if e.what == "backward" and e.added and not e.inside_step]
        cleared = [i for i, e in enumerate(events) if e.what == "clear"]
        empty = not any(f.row_columns[row.row] & {events[i].column for i in filled})
        if not filled or not cleared or cleared[-1] < filled[-1] or not empty:
            continue
        gone = {i for n in cleared if n > filled[-1] for i in events[n].parameters}
        if not gone >= set(events[filled[-1]].added):
            continue
        column, clear = events[filled[-1]], events[cleared[-1]]
        adds = [f.recording.arrays[f"add/{column.column}/{i}"] for i in column.added]
        return {
            "line": clear.line, "back": column.line, "at": row.line, "step": row.row + 1,
            "norm": float(sum(float((a * a).sum()) for a in adds) ** 0.5),
            "left": "None" if clear.to == "none" else "zeros",
        }  # fmt: skip
    return None


@mistake(
    "zero-grad-not-called",
    "zero_grad is named but not called",
    "Line {named} names optimizer.zero_grad without brackets, so nothing was cleared: step {step} used {used} (norm "
    "{norm:.3g}); it should have used {should} (norm {right:.3g}).",
    "A method without brackets is only a value.",
    "What does that line evaluate to?",
)
def zero_grad_not_called(f: Facts) -> Evidence | None:
    line, row = f.not_called("zero_grad"), first_reuse(f)
    return mixed(f, row) | {"line": line, "named": line} if line is not None and row is not None else None


@mistake(
    "zero-wrong-optimizer",
    "The other optimizer's zero_grad is called",
    "Step {step} used {used}: line {line} clears {cleared} twice in each round and {never} never, so its gradients pile up.",
    "Which optimizer holds the parameters that are stepped next?",
    "Each optimizer clears only the parameters that it holds.",
)
def zero_wrong_optimizer(f: Facts) -> Evidence | None:
    row = first_reuse(f)
    if len({o for r in f.optimizer_rows for o in r.optimizers}) != 2 or row is None:
        return None
    calls = f.all("call", "zero_grad")
    cleared = {c.object for c in calls}
    if len(cleared) != 1 or len(calls) < len(f.optimizer_rows) - 1:
        return None
    names = {o: f.optimizer_name(o) for r in f.optimizer_rows for o in r.optimizers}
    (owner,) = cleared
    never = next(n for o, n in names.items() if o != owner)
    return mixed(f, row) | {"line": calls[-1].line, "cleared": names.get(owner, "one optimizer"), "never": never}


@mistake(
    "optimizer-model-parameter-drift",
    "Parameters that the optimizer does not hold are never cleared",
    "optimizer.zero_grad() clears only what the optimizer holds; .grad of {name} was never cleared and held the sum of "
    "{count} backward calls when step {step} was taken on line {line}.",
    "Which parameters does the optimizer hold, and which does the model have?",
    "Clear all parameters whose .grad something reads.",
)
def drift(f: Facts) -> Evidence | None:
    held = {i for r in f.optimizer_rows for i in r.parameters}
    outside = {i for c in f.columns for i in c.added} - held
    touched = {i for e in f.all("clear") for i in e.parameters}
    missed = sorted(outside - touched)
    row = f.first_wrong
    if not missed or not held or row is None or not f.all("clear"):
        return None
    count = sum(missed[0] in c.added for c in f.columns if c.column < row.columns)
    return {"line": row.line, "name": f.recording.parameters[missed[0]], "count": count, "step": row.row + 1}


@mistake(
    "zero-some-parameters",
    "Only some parameters are cleared",
    "Step {step} used the gradient of this batch alone for {fresh}, but {used} for {stale}: line {clear} does not clear all "
    "parameters.",
    "Which parameters does your clearing reach?",
    "Every parameter that backward fills must be cleared.",
)
def zero_some(f: Facts) -> Evidence | None:
    row = first_reuse(f)
    if row is None or not f.all("clear"):
        return None
    old = f.reused[row.row]
    weights = f.ledger.weights[:, row.row].abs() > TINY
    stale = [i for i in row.parameters if any(weights[i, c] for c in old)]
    fresh = [i for i in row.parameters if i not in stale and bool(weights[i].any())]
    touched = {i for e in f.all("clear") for i in e.parameters}
    if not stale or not fresh or set(stale) & touched:
        return None
    names = f.recording.parameters
    return mixed(f, row) | {
        "line": f.usual_line(f.all("clear")), "clear": f.usual_line(f.all("clear")),
        "fresh": names[fresh[0]], "stale": names[stale[0]],
    }  # fmt: skip


@mistake(
    "missing-zero-grad",
    "Gradients are never cleared",
    "Step {step} used {used} (norm {norm:.3g}); it should have used {should} (norm {right:.3g}): line {line} calls backward, "
    "which adds to .grad, and no line clears it.",
    "What is in .grad just before each backward call?",
    "backward adds to .grad; PyTorch cannot know when a new batch starts.",
    "Say when: clear once per update, anywhere between the step and the next backward.",
)
def missing_zero_grad(f: Facts) -> Evidence | None:
    row = first_reuse(f)
    if row is None:
        return None
    columns, params = f.reused[row.row], stale_parameters(f, row)
    end = f.index(row)
    cleared = [e for e in f.events[:end] if e.what == "clear" and set(e.parameters) & params]
    used_before = [e for e in cleared if f.index(e) > f.index(f.columns[min(columns)])]
    any_ever = [e for e in f.all("clear") if set(e.parameters) & params]
    if clearing_calls(f) and clears_outside_the_loop(f):
        return None
    if f.task.signature in ("train_gan", "fit"):
        return mixed(f, row) if not used_before else None
    return mixed(f, row) if not any_ever else None


def clearing_calls(f: Facts) -> list[Event]:
    """The library's clearing methods being called, whether there was something to clear or not."""
    return sorted([*f.all("call", "zero_grad"), *f.all("call", "module.zero_grad")], key=f.index)


def clears_outside_the_loop(f: Facts) -> bool:
    """All clearing happens before a call's first backward or after its last."""
    for event in [*f.all("clear"), *clearing_calls(f)]:
        at = f.index(event)
        earlier = [e.what for e in f.events[:at] if e.call == event.call]
        later = [e.what for e in f.events[at:] if e.call == event.call]
        if "backward" in earlier and "backward" in later:
            return False
    return bool(f.all("clear") or clearing_calls(f))


@mistake(
    "zero-once-per-epoch",
    "Gradients are cleared once per pass over the loader",
    "Step {step} used {used} (norm {norm:.3g}); it should have used {should} (norm {right:.3g}): line {clear} clears once "
    "per call, and line {back} adds to .grad for every batch.",
    "How often is .grad cleared, and how often is it added to?",
    "Clearing belongs to every update, so it stands inside the loop.",
)
def zero_once(f: Facts) -> Evidence | None:
    row = first_reuse(f)
    if row is None or not clears_outside_the_loop(f):
        return None
    events = f.all("clear") or clearing_calls(f)
    return mixed(f, row) | {"line": f.usual_line(events), "clear": f.usual_line(events), "back": f.backward_line}


@mistake(
    "zero-grad-conditional",
    "Gradients are cleared only now and then",
    "Step {step} used {used} (norm {norm:.3g}); it should have used {should} (norm {right:.3g}): {clear}.",
    "In which rounds of the loop is the clearing line reached?",
    "Clearing must not depend on anything but the step.",
)
def zero_conditional(f: Facts) -> Evidence | None:
    row = first_reuse(f)
    if row is None:
        return None
    params = stale_parameters(f, row)
    line = f.usual_line(e for e in f.all("clear") if set(e.parameters) & params)
    words = f"line {line} clears, but not before every step" if line else "no line clears before this step"
    return mixed(f, row) | {"line": line or f.backward_line, "clear": words}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
