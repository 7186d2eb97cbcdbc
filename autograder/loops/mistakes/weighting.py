"""Mistakes of gradient accumulation: how the members of a group are weighed."""

from __future__ import annotations

from autograder.loops.facts import Facts, listed
from autograder.loops.mistakes.clearing import mixed
from autograder.loops.mistakes.groups import Groups, close, numbers
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


@mistake(
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


@mistake(
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


@mistake(
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


@mistake(
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


@mistake(
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


@mistake(
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


@mistake(
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


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
