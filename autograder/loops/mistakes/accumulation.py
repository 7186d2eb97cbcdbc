"""Mistakes of gradient accumulation: where the groups end."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.mistakes.clearing import mixed
from autograder.loops.mistakes.groups import Groups, close, numbers
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


@mistake(
    "step-in-backward-with-accumulation",
    "Hooks step while gradients should still be collected",
    "The parameters changed while backward on line {line} was running, for every one of the {count} microbatches: the step "
    "is taken as soon as a gradient arrives, so nothing is ever accumulated.",
    "When is the step taken, and how many microbatches are in .grad then?",
    "Stepping inside backward and accumulating over several backward calls exclude each other.",
)
def step_in_backward(f: Facts) -> Evidence | None:
    inside = [r for r in f.rows if r.inside_backward]
    if not f.task.accumulates or not inside or len(f.rows) <= len(f.task.groups()) * f.task.epochs:
        return None
    return {"line": f.backward_line, "count": len(f.task.batches)}


@mistake(
    "accumulate-repeats-batch",
    "The same batch is used again and again",
    "Step {step} used batch {batch} {times} times (backward on line {line}); a group of {k} must hold {k} different microbatches.",
    "Where does the inner loop get its data from?",
    "Each of the k backward calls needs the next batch of the loader.",
)
def repeats(f: Facts) -> Evidence | None:
    if not f.task.accumulates:
        return None
    for row in f.rows:
        if row.row in f.reused:  # the same batch again because nothing was cleared
            continue
        own = [tuple(f.columns[c].batches) for c in f.row_columns[row.row]]
        roots = {f.columns[c].root for c in f.row_columns[row.row]}
        if len(own) > 1 and len(set(own)) == 1 and len(own[0]) == 1 and len(roots) == len(own):
            return {
                "line": f.backward_line,
                "step": row.row + 1,
                "batch": own[0][0] + 1,
                "times": len(own),
                "k": f.task.k,
            }
    return None


@mistake(
    "backward-only-at-boundary",
    "Only the last microbatch of a group is differentiated",
    "Step {step} used {used} alone: the forward passes of the other microbatches ran, but line {line} called backward only "
    "at the group's end ({backs} backward calls for {forwards} forward passes).",
    "Which of the forward passes is followed by backward?",
    "backward belongs to every microbatch; only step and clearing wait for the group's end.",
)
def only_at_boundary(f: Facts) -> Evidence | None:
    forwards = [e for e in f.all("forward") if e.grad_enabled]
    if not f.task.accumulates or f.task.k < 2 or not f.rows or not f.columns:
        return None
    covered = sum(max(len(c.batches), 1) for c in f.columns)
    if not forwards or covered >= len(forwards) or any(len(c.batches) > 1 for c in f.columns):
        return None
    row = f.rows[0]
    return {
        "line": f.backward_line, "step": 1, "used": numbers(f.batches(row)),
        "backs": len(f.columns), "forwards": len(forwards),
    }  # fmt: skip


@mistake(
    "zero-per-microbatch",
    "Gradients are cleared for every microbatch",
    "Step {step} used {used} alone (norm {norm:.3g}); it should have used {group} together (norm {right:.3g}): line {line} clears "
    "before every backward, and throws the others of the group away.",
    "What is left of the first microbatch's gradient when the group is stepped?",
    "Clear once per group, after its step, not once per microbatch.",
)
def zero_per_microbatch(f: Facts) -> Evidence | None:
    if not f.task.accumulates or f.task.k < 2:
        return None
    g = Groups(f)
    rows = [(r, used) for r, used in zip(g.rows, g.used, strict=True) if len(g.members(r)) > 1]
    if not rows or g.at_every_batch or any(len(used) != 1 or used[0] != g.members(r)[-1] for r, used in rows):
        return None
    row, used = rows[0]
    between = [e for e in f.before_row(row) if e.what == "clear"]
    return mixed(f, row) | {
        "line": f.usual_line(between or f.all("clear")) or row.line, "used": numbers(used), "group": numbers(g.members(row)),
    }  # fmt: skip


@mistake(
    "step-per-microbatch",
    "A step is taken for every microbatch",
    "{count} steps were taken for {count} microbatches; with {k} accumulation steps there should be {right_count}. Step {step} "
    "(line {line}) already used {used}.",
    "How many microbatches make one step?",
    "step and clearing both wait for the end of the group.",
)
def step_per_microbatch(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or not g.at_every_batch or any(r.inside_backward for r in g.rows):
        return None
    first = [g.share(r, used[0]) for r, used in zip(g.rows, g.used, strict=True) if len(used) == 1]
    single = len(first) == len(g.rows)
    if single and not all(close(share, 1.0) for share in first):
        return None
    if not f.all("clear"):
        return None
    return {
        "line": f.step_line, "count": len(g.rows), "k": g.k, "right_count": len(g.groups), "step": 1, "used": numbers(g.used[0]),
    }  # fmt: skip


@mistake(
    "scaled-not-accumulated",
    "The loss is divided, but nothing is accumulated",
    "{count} steps were taken for {count} microbatches, each with one gradient divided by {divisor:.3g}; with {k} accumulation "
    "steps there should be {right_count} steps (line {line}).",
    "How many microbatches are in .grad when step is called?",
    "Step and clear once for k microbatches.",
)
def scaled_not_accumulated(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or not g.at_every_batch or any(len(used) != 1 for used in g.used):
        return None
    divisor = 1 / max(g.share(g.rows[0], g.used[0][0]), 1e-12)
    return {"line": f.step_line, "count": len(g.rows), "divisor": divisor, "k": g.k, "right_count": len(g.groups)}


@mistake(
    "leftover-leaks",
    "The leftover joins the next epoch's first group",
    "Step {step} used {used}: the last, incomplete group of the call before was never stepped and still lay in .grad.",
    "What is in .grad when the loader ends in the middle of a group?",
    "Step the leftover after the loop and clear, so that the next epoch starts clean.",
)
def leftover_leaks(f: Facts) -> Evidence | None:
    if not f.task.accumulates:
        return None
    for row in f.rows:
        old = {c for c in f.row_columns[row.row] if f.columns[c].call < row.call}
        if old and not old & f.reused.get(row.row, set()) and len(f.task.batches) % f.task.k:
            return {"line": f.step_line, "step": row.row + 1, "used": f.said(row)}
    return None


@mistake(
    "accumulate-off-by-one",
    "The groups are shifted by one",
    "The first step used {used} alone and the second {second}; the first should have used {group}: the condition on line {line}"
    " is true one microbatch too {when}.",
    "Write down the values of your counter for which the condition is true.",
    "Counting from 0, the k-th microbatch has the number k - 1.",
)
def off_by_one(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or g.k < 2 or len(g.rows) < 1 or g.at_every_batch:
        return None
    sizes = [len(used) for used in g.used]
    early = sizes[0] == 1 and (len(sizes) == 1 or sizes[1] == min(g.k, len(g.sizes) - 1))
    late = sizes[0] == g.k + 1
    if not (early or late) or g.used[0] == g.groups[0] or g.used[0][0] != 0:
        return None
    second = numbers(g.used[1]) if len(g.used) > 1 else "nothing"
    return {
        "line": f.step_line, "used": numbers(g.used[0]), "second": second,
        "group": numbers(g.groups[0]), "when": "early" if early else "late",
    }  # fmt: skip


@mistake(
    "accumulate-condition-inverted",
    "The condition is the wrong way round",
    "Steps were taken after microbatches {after}; with {k} accumulation steps they belong after {right} (line {line}).",
    "For which microbatches is your condition true?",
    "i % k is 0, which counts as false, exactly at the boundary.",
)
def inverted(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or g.k < 2 or not g.rows:
        return None
    after = [(r.batch or 0) + 1 for r in g.rows]
    want = [group[-1] + 1 for group in g.groups]
    full = {w for w in want if w % g.k == 0}
    if len(after) <= len(want) or full & set(after):
        return None
    return {"line": f.step_line, "after": listed(after), "k": g.k, "right": listed(want)}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
