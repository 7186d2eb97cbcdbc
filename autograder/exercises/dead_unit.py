"""Lesson 3: find the hidden units that get no gradient, from the gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.function import Case, FunctionExercise, Scene

FINDS, LEAVES = "finds the units", "leaves every .grad as it was"


def dead_units_reference(model: nn.Sequential, x: Tensor, y: Tensor, loss_fn: nn.Module) -> list[int]:
    """Hidden units whose weights and bias get a gradient of exactly zero."""
    weight, bias = torch.autograd.grad(loss_fn(model(x), y), list(model[0].parameters()))
    dead = (weight == 0).all(dim=1) & (bias == 0)
    return [int(unit) for unit in dead.nonzero().flatten()]


def _units_scene(dead: int, stale: bool = False, silent: int = 0) -> Callable[[int], Scene]:
    """A network of which ``dead`` hidden units get no gradient from the batch; its first ``silent`` features are 0."""

    def make(seed: int) -> Scene:
        generator = torch.Generator().manual_seed(3100 + seed)
        hidden, last = nn.Linear(3, 8), nn.Linear(8, 2)
        model = nn.Sequential(hidden, nn.ReLU(), last)
        for parameter in model.parameters():
            parameter.data.normal_(generator=generator)
            parameter.grad = torch.ones_like(parameter) if stale else None
        x, y = torch.rand(8, 3, generator=generator), torch.randn(8, 2, generator=generator)
        x[:, :silent] = 0.0
        hidden.bias.data.uniform_(2.0, 6.0, generator=generator)
        _kill(hidden, last, torch.randperm(8, generator=generator)[:dead].tolist())
        return Scene((model, x, y, nn.MSELoss()), _look_at_units(model))

    return make


def _kill(hidden: nn.Linear, last: nn.Linear, units: list[int]) -> None:
    """Make units dead in different ways, and leave one alive that looks dead."""
    ways = ("bias", "weights", "outgoing")
    for way, unit in zip(ways, units, strict=False):
        if way == "bias":  # never fires: the bias pulls every input below zero
            hidden.bias.data[unit] = -hidden.weight.data[unit].abs().sum() - 0.5
        elif way == "weights":  # never fires: the inputs are not negative, its weights are, and its bias is not large
            hidden.weight.data[unit] = -hidden.weight.data[unit].abs() - 0.1
            hidden.bias.data[unit] = -0.01
        else:  # fires, and nothing listens to it
            last.weight.data[:, unit] = 0.0
    alive = next(unit for unit in range(hidden.out_features) if unit not in units)
    last.weight.data[:, alive] = 1e-6  # a tiny gradient is a gradient


def _look_at_units(model: nn.Sequential) -> Callable[[Any], dict[str, Any]]:
    parameters = dict(model.named_parameters())
    grads = {name: None if p.grad is None else p.grad.clone() for name, p in parameters.items()}

    def unchanged(name: str) -> bool:
        now, before = parameters[name].grad, grads[name]
        return now is before if now is None or before is None else torch.equal(now, before)

    def look(result: Any) -> dict[str, Any]:
        return {"units": _as_indices(result), "grads": [name for name in parameters if not unchanged(name)]}

    return look


def _as_indices(result: Any) -> list[int] | str:
    if isinstance(result, Tensor) and result.dim() == 1:
        result = result.tolist()
    if not isinstance(result, (list, tuple)):
        return "None" if result is None else f"something of type {type(result).__name__}"
    if any(isinstance(unit, bool) or not hasattr(unit, "__index__") for unit in result):
        return "a list of other things than indices"
    return [int(unit) for unit in result]


def _case(part: str, what: str, setting: str, *, dead: int, stale: bool = False, silent: int = 0) -> Case:
    """A case of which one thing is looked at."""

    def make(seed: int) -> Scene:
        scene = _units_scene(dead, stale, silent)(seed)
        return Scene(scene.arguments, lambda result: {what: scene.look(result)[what]})

    return Case(part, setting, make)


UNITS_SAYS: dict[str, Callable[[Any, Any], str]] = {
    "units": lambda got, want: f"The units without any gradient are {want}; your function returned {got}.",
    "grads": lambda got, want: f"After the call the .grad of {', '.join(got)} is not what it was before the call.",
}

DEAD_UNIT = FunctionExercise(
    id="03-dead-unit",
    title="Find the dead units",
    function="find_dead_units",
    parameters=("model", "x", "y", "loss_fn"),
    reference=dead_units_reference,
    parts={FINDS: 3, LEAVES: 2},
    after={LEAVES: FINDS},
    says=UNITS_SAYS,
    cases=(
        _case(FINDS, "units", "with three dead units", dead=3),
        _case(FINDS, "units", "with no dead unit", dead=0),
        _case(FINDS, "units", "with a feature that is always 0", dead=1, silent=1),
        _case(FINDS, "units", "with a batch in which every number is 0", dead=1, silent=3),
        _case(FINDS, "units", "with gradients of an earlier batch in .grad", dead=3, stale=True),
        _case(LEAVES, "grads", "where every .grad was None", dead=2),
        _case(LEAVES, "grads", "with gradients of an earlier batch in .grad", dead=2, stale=True),
    ),
    hints=(
        "A unit of the first layer owns one row of its weight and one entry of its bias.",
        "A unit is dead on this batch if all of its own gradients are exactly zero.",
        "torch.autograd.grad gives gradients without touching .grad.",
    ),
)
