"""The units without a gradient are found by their gradients: what only looks like it earns nothing."""

from __future__ import annotations

import pytest
import torch

from autograder.exercises.catalogue import find
from autograder.exercises.checking import examine


def gradients(model, x, y, loss_fn):
    return torch.autograd.grad(loss_fn(model(x), y), [model[0].weight, model[0].bias])


def by_gradients(model, x, y, loss_fn):
    weight, bias = gradients(model, x, y, loss_fn)
    return [i for i in range(len(bias)) if not weight[i].any() and bias[i] == 0]


def by_the_bias(model, x, y, loss_fn):
    return (model[0].bias < -5).nonzero().flatten().tolist()


def by_activations(model, x, y, loss_fn):
    return (model[1](model[0](x)) == 0).all(0).nonzero().flatten().tolist()


def by_small_gradients(model, x, y, loss_fn):
    weight, bias = gradients(model, x, y, loss_fn)
    return ((weight.abs() < 1e-5).all(1) & (bias.abs() < 1e-5)).nonzero().flatten().tolist()


def by_weights_alone(model, x, y, loss_fn):
    weight, _ = gradients(model, x, y, loss_fn)
    return (weight == 0).all(1).nonzero().flatten().tolist()


def by_bias_alone(model, x, y, loss_fn):
    """Equivalent: where a unit's bias gets exactly no gradient, in practice its weights get none either."""
    _, bias = gradients(model, x, y, loss_fn)
    return (bias == 0).nonzero().flatten().tolist()


def with_gradients_left_behind(model, x, y, loss_fn):
    model.zero_grad()
    loss_fn(model(x), y).backward()
    weight, bias = model[0].weight.grad, model[0].bias.grad
    return [i for i in range(len(bias)) if not weight[i].any() and bias[i] == 0]


@pytest.mark.parametrize("seed", [0, 20, 7041])
@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (by_gradients, 5),
        (by_the_bias, 0),
        (by_activations, 0),
        (by_small_gradients, 0),
        (by_weights_alone, 0),
        (by_bias_alone, 5),
        (with_gradients_left_behind, 3),
    ],
)
def test_points(answer, points, seed):
    """A unit is dead if its own gradients are exactly zero, however that comes about."""
    assert examine(find("03-dead-unit"), answer, seed).score == points
