"""Lesson 3: clear gradients by hand, in either mode, without an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from autograder.exercises.function import Case, FunctionExercise, Scene


def reset_reference(parameters: Iterable[nn.Parameter], set_to_none: bool) -> None:
    """What ``Optimizer.zero_grad`` does (torch/optim/optimizer.py), for any parameters."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if set_to_none:
            parameter.grad = None
        else:
            parameter.grad.detach_()
            parameter.grad.zero_()


def _parameters(seed: int) -> list[nn.Parameter]:
    """Three parameters with gradients."""
    generator = torch.Generator().manual_seed(3000 + seed)
    made = [nn.Parameter(torch.randn(*shape, generator=generator)) for shape in ((2, 3), (3,), (1, 2))]
    for parameter in made:
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    return made


def _state(grad: Tensor | None) -> str:
    return "None" if grad is None else "not zero" if bool(grad.detach().any()) else "zeros"


def _look_at_reset(parameters: list[nn.Parameter]) -> Callable[[Any], dict[str, Any]]:
    values, grads = [p.detach().clone() for p in parameters], [p.grad for p in parameters]

    def look(result: Any) -> dict[str, Any]:
        pairs = list(zip(parameters, grads, strict=True))
        return {
            "states": [_state(p.grad) for p in parameters],
            "replaced": [i for i, (p, grad) in enumerate(pairs) if p.grad is not None and p.grad is not grad],
            "history": [i for i, p in enumerate(parameters) if p.grad is not None and p.grad.requires_grad],
            "moved": [
                i for i, (p, v) in enumerate(zip(parameters, values, strict=True)) if not torch.equal(p.detach(), v)
            ],
        }

    return look


def _reset_scene(
    set_to_none: bool, as_generator: bool = False, prepare: Callable[[list[nn.Parameter]], None] | None = None
) -> Callable[[int], Scene]:
    def make(seed: int) -> Scene:
        parameters = _parameters(seed)
        if prepare:
            prepare(parameters)
        given = (p for p in parameters) if as_generator else list(parameters)
        return Scene((given, set_to_none), _look_at_reset(parameters))

    return make


def _first_without_grad(parameters: list[nn.Parameter]) -> None:
    parameters[0].grad = None


def _first_frozen(parameters: list[nn.Parameter]) -> None:
    parameters[0].requires_grad_(False)


def _first_with_history(parameters: list[nn.Parameter]) -> None:
    """A gradient that was made with ``create_graph=True``; assigned, because ``backward`` would warn."""
    loss = (parameters[0] ** 3).sum()
    (parameters[0].grad,) = torch.autograd.grad(loss, parameters[0], create_graph=True)


RESET_SAYS: dict[str, Callable[[Any, Any], str]] = {
    "states": lambda got, want: f"After the call the gradients should be {want}, and are {got}.",
    "replaced": lambda got, want: (
        f"The .grad of parameter {got[0]} is another tensor than before: fill the one that is there."
    ),
    "history": lambda got, want: f"The .grad of parameter {got[0]} still hangs on a graph: detach it.",
    "moved": lambda got, want: f"Parameter {got[0]} itself was changed; only its .grad should be.",
}

RESET = FunctionExercise(
    id="03-reset",
    title="Clear by hand",
    function="reset",
    parameters=("parameters", "set_to_none"),
    reference=reset_reference,
    parts={"set_to_none=True": 4, "set_to_none=False": 4, "missing gradients, frozen parameters, kept graphs": 2},
    after={"missing gradients, frozen parameters, kept graphs": "set_to_none=False"},
    says=RESET_SAYS,
    cases=(
        Case("set_to_none=True", "with set_to_none=True and a list of parameters", _reset_scene(True)),
        Case("set_to_none=True", "with set_to_none=True and model.parameters()", _reset_scene(True, as_generator=True)),
        Case("set_to_none=False", "with set_to_none=False and a list of parameters", _reset_scene(False)),
        Case(
            "set_to_none=False", "with set_to_none=False and model.parameters()", _reset_scene(False, as_generator=True)
        ),
        *(
            Case("missing gradients, frozen parameters, kept graphs", setting, _reset_scene(mode, prepare=prepare))
            for mode, setting, prepare in (
                (False, "with set_to_none=False and a .grad that is None already", _first_without_grad),
                (True, "with set_to_none=True and a .grad that is None already", _first_without_grad),
                (False, "with set_to_none=False and a frozen parameter that still has a .grad", _first_frozen),
                (False, "with set_to_none=False after backward(create_graph=True)", _first_with_history),
            )
        ),
    ),
    hints=(
        "Go through the parameters once: a generator can be used up only once.",
        "A .grad that is None has nothing to fill; what would calling a method on it do?",
        "An in-place method of the gradient keeps the tensor; a new tensor of zeros does not.",
    ),
)
