"""Right parameters, and still something is wrong: graphs kept alive, logs of nothing, modes left behind."""

from __future__ import annotations

from autograder.loops.facts import Facts
from autograder.loops.mistakes.mistake import Evidence, Mistake, Shelf

SHELF = Shelf()
mistake = SHELF.mistake


@mistake(
    "needless-retain-graph",
    "Finished graphs are kept in memory",
    "The weights are right, but {kept} tensors that were saved for backward are still in memory after the call: line {line} "
    "retains every graph, and what is returned holds on to {count} of them.",
    "What keeps a graph alive after its backward call?",
    "retain_graph=True is needed only when a second backward call goes through the same graph.",
)
def needless_retain(f: Facts) -> Evidence | None:
    held = f.recording.returned.get("forwards") or []
    if not f.recording.kept or len(held) < 2:
        return None
    return {"line": f.usual_line(c for c in f.columns if c.retain), "kept": f.recording.kept, "count": len(held)}


@mistake(
    "loss-kept-with-graph",
    "The running total keeps every batch's graph",
    "The weights are right, but what is returned still has a graph that reaches the forward passes of {count} batches: it grows "
    "with every batch.",
    "What does adding a tensor with a graph to a total do to the total?",
    "For a record of the loss its number is enough: .item() or .detach().",
)
def loss_kept(f: Facts) -> Evidence | None:
    held = f.recording.returned.get("forwards") or []
    return {"line": f.backward_line, "count": len(held)} if len(held) > 1 else None


@mistake(
    "gradient-read-after-zero",
    "The gradients are read after they were cleared",
    "The weights are right, but the {count} numbers that were returned are all 0: line {line} reads .grad after it had been cleared.",
    "What is in .grad at the moment it is read?",
    "Read between backward and clearing.",
)
def read_after_zero(f: Facts) -> Evidence | None:
    numbers = f.recording.returned.get("numbers") or []
    reads = [e for e in f.all("read") if e.call == f.task.epochs - 1]
    if len(numbers) < 2 or any(numbers) or not reads or any("values" in e.states for e in reads):
        return None
    return {"line": f.usual_line(reads), "count": len(numbers)}


@mistake(
    "grad-mode-leaked",
    "Grad mode is left switched off",
    "The weights are right, but the function returns with gradients switched off: whatever is trained next will not be recorded.",
    "Which line changes whether PyTorch records, and how long does that last?",
    "A with block switches back by itself, also after an error.",
)
def leaves_grad_off(f: Facts) -> Evidence | None:
    ends = f.all("exit")
    if not ends or ends[-1].grad_enabled:
        return None
    return {"line": f.usual_line(e for e in f.all("call", "set_grad_enabled") if not e.mode)}


MISTAKES: tuple[Mistake, ...] = tuple(SHELF)
