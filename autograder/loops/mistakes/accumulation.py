"""Mistakes of gradient accumulation: where the groups end, and how their members are weighed."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.mistakes.clearing import mixed
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf
from autograder.loops.recording import Event

GROUPS, WEIGHTS = Shelf(), Shelf()


def close(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-3 * max(abs(a), abs(b), 1e-9)


class Groups:
    """The updates of an accumulating loop beside the groups that they should have used."""

    def __init__(self, f: Facts) -> None:
        self.f, self.k = f, f.task.k
        self.groups = f.task.groups()
        self.rows = [r for r in f.rows if r.call == 0]
        self.used = [f.batches(r) for r in self.rows]
        self.sizes = f.task.batches

    @property
    def at_every_batch(self) -> bool:
        """One update for every microbatch."""
        return len(self.rows) == len(self.sizes) > len(self.groups)

    def members(self, row: Event) -> list[int]:
        """The group that the row's last batch belongs to."""
        last = self.f.batches(row)[-1:] or [row.batch or 0]
        return next(g for g in self.groups if last[0] in g)

    def share(self, row: Event, batch: int) -> float:
        return self.f.shares[row.row].get((row.call, batch), 0.0)

    def right_share(self, group: list[int], batch: int) -> float:
        if self.f.task.model == "bn" or self.f.task.reference == "accumulate_micro":
            return 1 / len(group)
        return self.sizes[batch] / sum(self.sizes[b] for b in group)

    @property
    def whole_rows(self) -> list[tuple[Event, list[int]]]:
        """Rows that used exactly one group, with it."""
        return [(r, g) for r, used in zip(self.rows, self.used, strict=True) for g in self.groups if used == g]

    def ratios(self, rows: list[tuple[Event, list[int]]]) -> list[float]:
        """Each member's share as a multiple of the right one."""
        return [self.share(r, b) / self.right_share(g, b) for r, g in rows for b in g]


def numbers(batches: list[int]) -> str:
    own = [b + 1 for b in batches]
    return f"batch{'es' if len(own) != 1 else ''} {listed(own)}"


# ---------------------------------------------------------------------- where the groups end
@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


@GROUPS.mistake(
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


# ---------------------------------------------------------------------- how the members are weighed
@WEIGHTS.mistake(
    "loss-scaled-after-backward",
    "The loss is divided after backward",
    "Line {line} scales a loss on which backward was already called, so the gradients stay undivided: step 1 used norm "
    "{norm:.3g} instead of {right:.3g}.",
    "Which number did backward see?",
    "What happens to the loss after backward changes no gradient.",
)
def scaled_late(f: Facts) -> Evidence | None:
    late, found = f.all("late-scaling"), no_division(f)
    return found | {"line": f.usual_line(late)} if late and found else None


@WEIGHTS.mistake(
    "accumulate-no-division",
    "The gradients of a group are summed, not averaged",
    "Step {step} used the sum of {group}: norm {norm:.3g}, {factor:.3g} times the {right:.3g} of their mean. Line {line} calls backward "
    "on a loss that was not divided.",
    "Each microbatch's loss is a mean. What is the sum of k means?",
    "Weigh each microbatch's loss by its part of the group before backward.",
)
def no_division(f: Facts) -> Evidence | None:
    g = Groups(f)
    rows = [(r, group) for r, group in g.whole_rows if len(group) > 1]
    ratios = [g.share(r, b) for r, group in rows for b in group]
    if not f.task.accumulates or not rows or not all(close(x, 1.0) for x in ratios):
        return None
    row, group = rows[0]
    return mixed(f, row) | {"group": numbers(group), "factor": len(group)}


@WEIGHTS.mistake(
    "leftover-wrong-scale",
    "The short last group is divided by too much",
    "The last step of the call used {group}, {n} microbatch{es}, but weighed them {factor:.3g} times too little (line {line}: norm "
    "{norm:.3g} instead of {right:.3g}).",
    "How many microbatches are in the last group?",
    "A short group's mean divides by what the group really holds.",
)
def leftover_scale(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or len(g.groups[-1]) == g.k or not g.rows or g.used[-1] != g.groups[-1]:
        return None
    full = [(r, group) for r, group in g.whole_rows if len(group) == g.k]
    ratios = g.ratios([(g.rows[-1], g.groups[-1])])
    n = len(g.groups[-1])
    if not all(close(x, n / g.k) for x in ratios) or not all(close(x, 1.0) for x in g.ratios(full)):
        return None
    return mixed(f, g.rows[-1]) | {
        "group": numbers(g.groups[-1]), "n": n, "es": "" if n == 1 else "es", "factor": g.k / n, "line": g.rows[-1].line,
    }  # fmt: skip


@WEIGHTS.mistake(
    "accumulate-divided-twice",
    "The gradients are divided twice",
    "Step {step} used a gradient of norm {norm:.3g}, {factor:.3g} times smaller than the {right:.3g} of the group's mean: it was "
    "divided twice (line {line}).",
    "How many of your lines divide?",
    "Dividing the loss is enough; dividing .grad as well divides again.",
)
def divided_twice(f: Facts) -> Evidence | None:
    g = Groups(f)
    rows = [(r, group) for r, group in g.whole_rows if len(group) > 1]
    ratios = g.ratios(rows)
    if not f.task.accumulates or not rows or not all(close(x, ratios[0]) for x in ratios) or ratios[0] > 0.75:
        return None
    row, _ = rows[0]
    scaling = f.usual_line(f.all("scale"))
    return mixed(f, row) | {"factor": 1 / ratios[0], "line": scaling or f.backward_line}


@WEIGHTS.mistake(
    "accumulate-unequal-microbatches",
    "Unequal microbatches are weighed equally",
    "In step {step} {group} hold {sizes} samples, but each counted {share:.3g}: samples of small microbatches count more than "
    "those of large ones.",
    "What is the mean over all samples of two means over different numbers of samples?",
    "Weigh each microbatch by its number of samples.",
)
def unequal(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or f.task.model == "bn":
        return None
    for row, group in g.whole_rows:
        sizes = [g.sizes[b] for b in group]
        shares = [g.share(row, b) for b in group]
        if len(set(sizes)) > 1 and all(close(s, shares[0]) for s in shares):
            return mixed(f, row) | {"group": numbers(group), "sizes": listed(sizes), "share": shares[0]}
    return None


@WEIGHTS.mistake(
    "accumulate-wrong-divisor",
    "The members of a group are weighed unequally",
    "In step {step} {group} counted {shares} times; each should have counted {should} (line {line}).",
    "What is each microbatch's loss divided by?",
    "Divide by the number of microbatches in the group, not by the position in it.",
)
def wrong_divisor(f: Facts) -> Evidence | None:
    g = Groups(f)
    if not f.task.accumulates or f.all("scale"):
        return None
    for row, group in g.whole_rows:
        shares = [g.share(row, b) for b in group]
        if len(group) > 1 and not all(close(s, g.right_share(group, b)) for s, b in zip(shares, group, strict=True)):
            should = listed(f"{g.right_share(group, b):.3g}" for b in group)
            return mixed(f, row) | {
                "group": numbers(group), "shares": listed(f"{s:.3g}" for s in shares), "should": should,
            }  # fmt: skip
    return None


@WEIGHTS.mistake(
    "leftover-dropped",
    "The last group is never stepped",
    "{count} of {total} microbatches of a call were never used: {lost} {verb} differentiated on line {line}, and no step followed.",
    "What happens when the loader ends in the middle of a group?",
    "The last group must be stepped too, however short it is.",
)
def leftover_dropped(f: Facts) -> Evidence | None:
    if not f.task.accumulates:
        return None
    lost = sorted(b for c in f.columns if c.call == 0 and c.column in f.unused_columns for b in c.batches)
    total = len(f.task.batches)
    last = [e.batch for e in f.all("forward") if e.call == 0 and e.batch is not None]
    if not lost:
        used = {b for row in f.rows if row.call == 0 for b in f.batches(row)}
        lost = sorted(set(last) - used)
    if not lost or lost != list(range(lost[0], total)):
        return None
    return {
        "line": f.backward_line, "count": len(lost), "total": total, "lost": numbers(lost),
        "verb": "was" if len(lost) == 1 else "were",
    }  # fmt: skip


SHAPES: tuple[Mistake, ...] = tuple(GROUPS)
SCALES: tuple[Mistake, ...] = tuple(WEIGHTS)
