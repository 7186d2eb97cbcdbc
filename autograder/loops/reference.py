"""What a task's loop must compute, by ``torch.autograd.grad`` alone: no backward, no zero_grad.

Every gradient is put into .grad right before a step and taken away after it, so nothing can pile up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import StepLR

from autograder.guard import neutral_state
from autograder.loops.task import Material, Task, build

EPSILON = 1e-6  # in the divisor of torch.nn.utils.clip_grad_norm_
Loss = Callable[[], Tensor]


@dataclass(frozen=True)
class Want:
    """One optimizer step that is asked for: weighted losses, over some batches."""

    batches: tuple[int, ...]
    losses: tuple[tuple[float, Loss], ...]
    network: str = "model"
    frozen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Step:
    """A step as it must be: ``grads`` one per parameter (None: the step must leave it where it is)."""

    call: int
    batches: tuple[int, ...]
    grads: tuple[Tensor | None, ...]
    norm: float  # of the gradient before clipping
    lr: float
    after: tuple[Tensor, ...] = ()  # the parameters when the step has been made


@dataclass(frozen=True)
class Reference:
    """The steps, and the parameters before the first call and after each (``trajectory[call][i]``)."""

    steps: tuple[Step, ...]
    trajectory: tuple[tuple[Tensor, ...], ...]
    value: Tensor | None = None


def norm_of(grads: tuple[Tensor | None, ...] | list[Tensor | None]) -> float:
    """The global norm: the 2-norm of all entries of all gradients."""
    return float(sum(float((g * g).sum()) for g in grads if g is not None) ** 0.5)


def batch_loss(task: Task, material: Material, batch: int) -> Loss:
    """The loss of one batch as the task defines it."""
    x, y = list.__getitem__(material.loader, batch)
    model, loss_fn = material.modules["model"], material.loss_fn

    def plain() -> Tensor:
        out = model(x)
        return loss_fn(out[0] if isinstance(out, tuple) else out, y)

    def auxiliary() -> Tensor:
        parameters = list(model.parameters())
        penalty = sum(((p**2).sum() for p in parameters), torch.zeros((), dtype=task.dtype))
        return plain() + 0.1 * penalty / len(parameters)

    def adversarial() -> Tensor:
        probe = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss_fn(model(probe), y), probe)
        return loss_fn(model(x + 0.1 * slope.sign()), y)

    def autocast() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return plain()

    return {"auxiliary": auxiliary, "adversarial": adversarial, "autocast": autocast}.get(task.reference, plain)


# ---------------------------------------------------------------------- what each reference asks for
def _plain(task: Task, material: Material) -> Iterator[Want]:
    for batch in range(len(task.batches)):
        yield Want((batch,), ((1.0, batch_loss(task, material, batch)),))


def _accumulate(task: Task, material: Material) -> Iterator[Want]:
    """One step on the concatenated batch of each group; with batch norm on the mean over microbatches."""
    model, loss_fn = material.modules["model"], material.loss_fn
    for group in task.groups():
        if task.model == "bn" or task.reference == "accumulate_micro":
            losses = tuple((1 / len(group), batch_loss(task, material, batch)) for batch in group)
        else:
            x, y = (torch.cat(part) for part in zip(*(material.loader[b] for b in group), strict=True))
            losses = ((1.0, partial(_on, model, loss_fn, x, y)),)
        yield Want(tuple(group), losses)


def _on(model: nn.Module, loss_fn: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return loss_fn(model(x), y)


def _scheduled(plan: Callable[[Task, Material], Iterator[Want]]) -> Callable[[Task, Material], Iterator[Want]]:
    def scheduled(task: Task, material: Material) -> Iterator[Want]:
        scheduler = StepLR(material.optimizers["optimizer"], step_size=1, gamma=0.7)
        for want in plan(task, material):
            yield want
            scheduler.step()

    return scheduled


def _freezing(task: Task, material: Material) -> Iterator[Want]:
    """``freeze_half``, ``freeze_all``: the first layer stands still; ``late_unfreeze``: it joins halfway."""
    model, optimizer = material.modules["model"], material.optimizers["optimizer"]
    first = frozenset(
        f"{next(iter(dict(model.named_children())))}.{n}" for n, _ in next(model.children()).named_parameters()
    )
    half = len(task.batches) // 2
    for want in _plain(task, material):
        (batch,) = want.batches
        if task.reference == "late_unfreeze" and batch == half:
            optimizer.add_param_group({"params": list(next(model.children()).parameters())})
        still = task.reference == "freeze_all" or (task.reference == "freeze_half" and batch >= half)
        yield Want(want.batches, want.losses, frozen=first if still else frozenset())


def _recurrent(task: Task, material: Material) -> Iterator[Want]:
    model, loss_fn, state = material.modules["model"], material.loss_fn, None
    for batch, (x, y) in enumerate(material.loader):
        kept: list[Tensor] = []

        def loss(x: Tensor = x, y: Tensor = y, h: Tensor | None = state, kept: list[Tensor] = kept) -> Tensor:
            out, following = model(x, h)
            kept.append(following.detach())
            return loss_fn(out, y)

        yield Want((batch,), ((1.0, loss),))
        state = kept[0]


def _gan(task: Task, material: Material) -> Iterator[Want]:
    gen, disc, loss_fn = material.modules["gen"], material.modules["disc"], material.loss_fn
    for batch, (z, real) in enumerate(material.loader):
        ones, zeros = (torch.full((len(z), 1), v, dtype=task.dtype) for v in (1.0, 0.0))

        def d_loss(z: Tensor = z, real: Tensor = real, ones: Tensor = ones, zeros: Tensor = zeros) -> Tensor:
            return loss_fn(disc(real), ones) + loss_fn(disc(gen(z).detach()), zeros)

        def g_loss(z: Tensor = z, ones: Tensor = ones) -> Tensor:
            return loss_fn(disc(gen(z)), ones)

        d_step, g_step = Want((batch,), ((1.0, d_loss),), "disc"), Want((batch,), ((1.0, g_loss),), "gen")
        orders = {"gan_g_first": (g_step, d_step), "gan_two_d": (d_step, d_step, g_step)}
        yield from orders.get(task.reference, (d_step, g_step))


PLANS: dict[str, Callable[[Task, Material], Iterator[Want]]] = {
    "plain": _plain, "auxiliary": _plain, "adversarial": _plain, "autocast": _plain, "lbfgs": _plain,
    "accumulate": _accumulate, "accumulate_micro": _accumulate,
    "scheduler": _scheduled(_plain), "accumulate_scheduler": _scheduled(_accumulate),
    "freeze_half": _freezing, "freeze_all": _freezing, "late_unfreeze": _freezing,
    "rnn": _recurrent, "gan_d_first": _gan, "gan_g_first": _gan, "gan_two_d": _gan,
}  # fmt: skip


# ---------------------------------------------------------------------- carrying it out
def reference(task: Task, seed: int = 0) -> Reference:
    """Compute what ``task`` asks for; kept, so its tensors are to be read only.

    Raises KeyError for a reference that is not known.
    """
    with neutral_state():
        return _computed(task, seed)


@lru_cache(maxsize=256)
def _computed(task: Task, seed: int) -> Reference:
    material = build(task, seed)
    if task.signature in ("fit", "gradient"):
        return _closed_form(task, material)
    if task.signature == "evaluate":
        return _mean_per_sample(material)
    named = material.parameters()
    steps: list[Step] = []
    trajectory = [tuple(p.detach().clone() for p in named.values())]
    for call in range(task.epochs):
        for want in PLANS[task.reference](task, material):
            steps.append(_apply(task, material, named, want, call))
        trajectory.append(tuple(p.detach().clone() for p in named.values()))
    return Reference(tuple(steps), tuple(trajectory))


def _apply(task: Task, material: Material, named: dict[str, Tensor], want: Want, call: int) -> Step:
    module = material.modules[want.network]
    optimizer = material.optimizers[{"gen": "opt_g", "disc": "opt_d"}.get(want.network, "optimizer")]
    own = {id(p) for p in module.parameters()}
    parameters = {n: p for n, p in named.items() if id(p) in own and n not in want.frozen}
    lr = float(optimizer.param_groups[0]["lr"])
    if isinstance(optimizer, torch.optim.LBFGS):
        grads, norm = _closure_step(optimizer, parameters, want), 0.0
    else:
        grads, norm = _weighted(parameters, want, named), 0.0
        norm = norm_of(list(grads.values()))
        if task.clip is not None:
            factor = min(1.0, task.clip / (norm + EPSILON))
            grads = {n: None if g is None else g * factor for n, g in grads.items()}
        for n, p in parameters.items():
            p.grad = grads[n]
        optimizer.step()
    for p in named.values():
        p.grad = None
    after = tuple(p.detach().clone() for p in named.values())
    return Step(call, want.batches, tuple(grads.get(n) for n in named), norm, lr, after)


def _weighted(parameters: dict[str, Tensor], want: Want, named: dict[str, Tensor]) -> dict[str, Tensor | None]:
    total: dict[str, Tensor | None] = dict.fromkeys(parameters)
    for weight, loss in want.losses:
        grads = torch.autograd.grad(loss(), list(parameters.values()), allow_unused=True)
        for n, g in zip(parameters, grads, strict=True):
            if g is not None:
                before = total[n]
                total[n] = g * weight if before is None else before + g * weight
    return total


def _closure_step(optimizer: Optimizer, parameters: dict[str, Tensor], want: Want) -> dict[str, Tensor | None]:
    ((_, loss),) = want.losses
    first: dict[str, Tensor | None] = {}

    def closure() -> float:
        value = loss()
        for (n, p), g in zip(parameters.items(), torch.autograd.grad(value, list(parameters.values())), strict=True):
            p.grad = g
            first.setdefault(n, g.clone())
        return float(value.detach())

    optimizer.step(closure)
    return first


def _mean_per_sample(material: Material) -> Reference:
    """The loss of all samples together, in eval mode: with equal weights the mean per sample."""
    model, parameters = material.modules["model"].eval(), tuple(material.parameters().values())
    x, y = (torch.cat(part) for part in zip(*material.loader, strict=True))
    with torch.no_grad():
        value = material.loss_fn(model(x), y)
    return Reference((), (tuple(p.detach() for p in parameters),) * 2, value)


def _closed_form(task: Task, material: Material) -> Reference:
    """Least squares by its normal equations, and the slope of sum(sigmoid(2x)**2): no autograd at all."""
    if task.signature == "gradient":
        (x,) = material.arguments
        s = torch.sigmoid(2 * x)
        return Reference((), (), 4 * s**2 * (1 - s))
    w, x, y, lr, steps = material.arguments
    w = w.detach().clone()
    trajectory, wanted = [(w,)], []
    for number in range(steps):
        grad = (2 / len(x)) * x.T @ (x @ w - y)
        wanted.append(Step(0, (number,), (grad,), float(grad.norm()), lr))
        w = w - lr * grad
    trajectory.append((w,))
    return Reference(tuple(wanted), tuple(trajectory), w)
