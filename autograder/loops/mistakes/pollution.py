"""Gradients of another loss that are still, or also, in .grad."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.clearing import mixed
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


@mistake(
    "stale-gradient-at-entry",
    "A gradient from before the loop is still there",
    "The first step used {used} together with the gradient of a backward call before the loop (line {line}): norm {norm:.3g} "
    "instead of {right:.3g}.",
    "What is in .grad when the loop begins?",
    "Clear after the check before the loop, or at the start of every round.",
)
def stale_at_entry(f: Facts) -> Evidence | None:
    first_fetch = next((f.index(e) for e in f.events if e.what == "fetch"), None)
    row = f.first_wrong
    if first_fetch is None or row is None or row.row != 0:
        return None
    early = [c for c in f.columns if f.index(c) < first_fetch or c is f.columns[0]]
    columns = sorted(f.row_columns[0])
    if len(columns) < 2 or not early or f.columns[columns[0]] not in early:
        return None
    if f.task.accumulates and f.index(early[0]) > first_fetch:
        return None  # two backward calls in one step are what is asked for
    between = f.events[f.index(f.columns[columns[0]]) : f.index(f.columns[columns[-1]])]
    fetched_anew = any(e.what == "fetch" for e in between)  # the trial took a batch of its own, then the loop began
    if f.index(early[0]) < first_fetch or (fetched_anew and len(columns) == 2):
        return mixed(f, row) | {"line": early[0].line}
    return None


@mistake(
    "generator-leaks-into-discriminator",
    "The generator's backward also fills the discriminator",
    "Step {step} of the discriminator used its own gradient and the generator's: line {line} goes back through the "
    "discriminator and fills its .grad, and nothing clears it before the discriminator's own backward.",
    "Whose .grad does the generator's loss reach?",
    "The discriminator's gradients must be clean when its own backward is called.",
)
def generator_leaks(f: Facts) -> Evidence | None:
    if f.task.signature != "train_gan":
        return None
    disc = {i for i, n in enumerate(f.recording.parameters) if n.startswith("disc.")}
    for row in f.rows:
        if not set(row.parameters) <= disc:
            continue
        leaking = [f.columns[c] for c in f.row_columns[row.row] if set(f.columns[c].added) - disc]
        if leaking and f.differs(row):
            return {"line": leaking[0].line, "step": row.row + 1}
    return None


@mistake(
    "extra-backward-pollutes-gradients",
    "Another backward call adds into the weights' gradients",
    "Step {step} used two gradients together, from backward on lines {lines} (norm {norm:.3g} instead of {right:.3g}); only the "
    "last belongs to the loss that is trained.",
    "Which backward calls ran since the gradients were last cleared?",
    "Clear after the other backward, or use torch.autograd.grad, which leaves .grad alone.",
)
def extra_backward(f: Facts) -> Evidence | None:
    if f.task.accumulates:
        return None
    row = f.first_wrong
    if row is None or row.row in f.reused:
        return None
    columns = [f.columns[c] for c in sorted(f.row_columns[row.row])]
    same = {tuple(c.batches) for c in columns}
    if len(columns) < 2 or len({c.root for c in columns}) < 2 or len(same) > 1:
        return None
    lines = " and ".join(str(c.line) for c in columns[:2])
    return mixed(f, row) | {"line": columns[0].line, "lines": lines}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
