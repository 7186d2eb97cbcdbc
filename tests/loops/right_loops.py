"""Right loops in many styles: none of them may be blamed. ``@loop`` says what each was asked to do."""

from __future__ import annotations

import copy
import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from autograder.loops import Task

RIGHT: list[tuple[Callable[..., Any], Task]] = []


def loop(**setup: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        RIGHT.append((function, Task(**setup)))
        return function

    return keep


@loop(optimizer="momentum_wd", batches=(5, 1, 3))
def zero_first(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop()
def zero_last(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        model.zero_grad(set_to_none=False)


@loop(optimizer="adam")
def zero_between_forward_and_backward(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@loop(optimizer="momentum")
def grads_deleted(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            del p.grad


@loop()
def old_style_zero_through_data(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.data.zero_()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop()
def detach_and_zero(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop()
def grads_assigned_zeros(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop()
def subtract_itself(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            p.grad -= p.grad.clone()


@loop()
def fill_under_index(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            p.grad[...] = 0


@loop()
def the_change_is_what_counts(model, optimizer, loss_fn, loader):
    """Never clears: remembers what was there before and steps with the difference."""
    lr = optimizer.param_groups[0]["lr"]
    for x, y in loader:
        before = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        loss_fn(model(x), y).backward()
        with torch.no_grad():
            for p, old in zip(model.parameters(), before, strict=True):
                p -= lr * (p.grad if old is None else p.grad - old)


@loop()
def finally_clears(model, optimizer, loss_fn, loader):
    for x, y in loader:
        try:
            loss_fn(model(x), y).backward()
            optimizer.step()
        finally:
            optimizer.zero_grad()


@loop()
def own_loss_formula(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()


@loop()
def functional_loss_sum_divided(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        (F.mse_loss(model(x), y, reduction="sum") / y.numel()).backward()
        optimizer.step()


@loop()
def sample_by_sample(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        for i in range(len(x)):
            (loss_fn(model(x[i : i + 1]), y[i : i + 1]) / len(x)).backward()
        optimizer.step()


@loop()
def backward_with_a_gradient_of_one(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(torch.ones_like(loss))
        optimizer.step()


@loop()
def backward_of_a_vector(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        squares = (model(x) - y) ** 2
        squares.backward(torch.full_like(squares, 1 / squares.numel()))
        optimizer.step()


@loop()
def backward_names_its_inputs(model, optimizer, loss_fn, loader):
    params = list(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        torch.autograd.backward(loss_fn(model(x), y), inputs=params)
        optimizer.step()


@loop()
def two_halves_two_forward_passes(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        for rows in (slice(0, 1), slice(1, None)):
            weight = len(x[rows]) / len(x)
            (weight * loss_fn(model(x[rows]), y[rows])).backward()
        optimizer.step()


@loop()
def a_class(model, optimizer, loss_fn, loader):
    class Trainer:
        def __init__(self):
            self.seen = 0

        def __call__(self, batch):
            x, y = batch
            self.seen += 1
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()

    trainer = Trainer()
    for batch in loader:
        trainer(batch)


@loop()
def recursion(model, optimizer, loss_fn, loader):
    def go(batches):
        if batches:
            x, y = batches[0]
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
            go(batches[1:])

    go(list(loader))


@loop()
def a_generator_of_losses(model, optimizer, loss_fn, loader):
    def losses():
        for x, y in loader:
            yield loss_fn(model(x), y)

    for loss in losses():
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@loop()
def step_comes_at_the_next_round(model, optimizer, loss_fn, loader):
    pending = False
    for x, y in loader:
        if pending:
            optimizer.step()
            optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        pending = True
    if pending:
        optimizer.step()
        optimizer.zero_grad()


@loop()
def in_a_thread(model, optimizer, loss_fn, loader):
    def work():
        for x, y in loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@loop()
def through_a_data_loader(model, optimizer, loss_fn, loader):
    for x, y in DataLoader(list(loader), batch_size=None):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop(optimizer="momentum")
def a_copy_is_trained_and_loaded_back(model, optimizer, loss_fn, loader):
    for x, y in loader:
        twin = copy.deepcopy(model)
        loss_fn(twin(x), y).backward()
        for p, q in zip(model.parameters(), twin.parameters(), strict=True):
            p.grad = q.grad
        optimizer.step()


@loop()
def averaged_copy_beside(model, optimizer, loss_fn, loader):
    shadow = [p.detach().clone() for p in model.parameters()]
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        for s, p in zip(shadow, model.parameters(), strict=True):
            s.lerp_(p.detach(), 0.1)


@loop()
def two_optimizers_for_two_layers(model, optimizer, loss_fn, loader):
    first = torch.optim.SGD(model[0].parameters(), lr=0.1)
    second = torch.optim.SGD(model[2].parameters(), lr=0.1)
    for x, y in loader:
        first.zero_grad()
        second.zero_grad()
        loss_fn(model(x), y).backward()
        first.step()
        second.step()


@loop()
def sparse_validation_between(model, optimizer, loss_fn, loader):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        if i % 2:
            with torch.inference_mode():
                loss_fn(model(x), y).item()


@loop(model="bn")
def evaluates_in_eval_mode_and_comes_back(model, optimizer, loss_fn, loader):
    for x, y in loader:
        model.eval()
        with torch.no_grad():
            loss_fn(model(x), y)
        model.train()
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop()
def checkpointed(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        hidden = checkpoint(model[0], x, use_reentrant=False)
        loss_fn(model[2](model[1](hidden)), y).backward()
        optimizer.step()


@loop()
def checkpointed_reentrant(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        hidden = checkpoint(model[0], x.clone().requires_grad_(), use_reentrant=True)
        loss_fn(model[2](model[1](hidden)), y).backward()
        optimizer.step()


@loop()
def gradient_of_the_gradient_not_used(model, optimizer, loss_fn, loader):
    params = list(model.parameters())
    for x, y in loader:
        grads = torch.autograd.grad(loss_fn(model(x), y), params, create_graph=True)
        for p, g in zip(params, grads, strict=True):
            p.grad = g.detach()
        optimizer.step()


@loop()
def functional_vmap_gradients(model, optimizer, loss_fn, loader):
    names = [n for n, _ in model.named_parameters()]

    def one(params, x, y):
        return ((torch.func.functional_call(model, params, (x[None],)) - y) ** 2).mean()

    for x, y in loader:
        params = {n: p.detach() for n, p in model.named_parameters()}
        grads = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))(params, x, y)
        for n, p in model.named_parameters():
            p.grad = grads[n].mean(0)
        optimizer.step()
    assert names


@loop()
def grad_scaler_on_the_cpu(model, optimizer, loss_fn, loader):
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()


@loop(clip=0.05)
def grad_scaler_unscaled_and_clipped(model, optimizer, loss_fn, loader):
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()


@loop(clip=0.05)
def clipped_in_a_step_pre_hook(model, optimizer, loss_fn, loader):
    hook = optimizer.register_step_pre_hook(lambda *a: nn.utils.clip_grad_norm_(model.parameters(), 0.05) and None)
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    hook.remove()


@loop(clip=0.05)
def clipped_by_hand_without_epsilon(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        if norm > 0.05:
            for p in model.parameters():
                p.grad *= 0.05 / norm
        optimizer.step()


@loop(clip=100.0)
def clip_that_never_bites(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        optimizer.step()


@loop(optimizer="lbfgs", reference="lbfgs")
def closure_made_by_partial(model, optimizer, loss_fn, loader):
    def evaluate(x, y):
        model.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        return loss

    for x, y in loader:
        optimizer.step(functools.partial(evaluate, x, y))


@loop(optimizer="head_sgd")
def head_only_with_frozen_body(model, optimizer, loss_fn, loader):
    model[0].requires_grad_(False)
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    model[0].requires_grad_(True)


@loop(optimizer="head_sgd")
def head_only_on_features(model, optimizer, loss_fn, loader):
    for x, y in loader:
        with torch.no_grad():
            features = model[1](model[0](x))
        optimizer.zero_grad()
        loss_fn(model[2](features), y).backward()
        optimizer.step()


@loop(model="rnn", reference="rnn")
def state_detached_in_place(model, optimizer, loss_fn, loader):
    h = None
    for x, y in loader:
        optimizer.zero_grad()
        out, h = model(x, None if h is None else h.detach())
        loss_fn(out, y).backward()
        optimizer.step()


@loop(model="branches", optimizer="momentum_wd")
def idle_branch_left_alone(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop(batches=(4,))
def one_batch(model, optimizer, loss_fn, loader):
    x, y = next(iter(loader))
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()


@loop()
def returns_the_last_loss_with_its_graph(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
    return loss


@loop()
def logs_everything_as_numbers(model, optimizer, loss_fn, loader):
    log = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
        optimizer.step()
        log.append((loss.item(), norm.item(), [p.grad.abs().max().item() for p in model.parameters()]))
    return log


@loop()
def retains_without_keeping(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()


@loop()
def looks_twice_at_the_loader(model, optimizer, loss_fn, loader):
    total = sum(len(x) for x, _ in loader)
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    return total


@loop()
def named_step_and_zero(model, optimizer, loss_fn, loader):
    step, clear = optimizer.step, optimizer.zero_grad
    for x, y in loader:
        clear()
        loss_fn(model(x), y).backward()
        step()


@loop()
def hooks_collect_gradients(model, optimizer, loss_fn, loader):
    seen = []
    handles = [p.register_hook(lambda g: seen.append(float(g.norm())) or None) for p in model.parameters()]
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    for handle in handles:
        handle.remove()
    return seen


@loop(reference="auxiliary")
def penalty_in_a_second_backward(model, optimizer, loss_fn, loader):
    count = len(list(model.parameters()))
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        (0.1 * sum(p.pow(2).sum() for p in model.parameters()) / count).backward()
        optimizer.step()


@loop(reference="adversarial")
def attack_by_autograd_grad(model, optimizer, loss_fn, loader):
    for x, y in loader:
        probe = x.clone().requires_grad_()
        slope = torch.autograd.grad(loss_fn(model(probe), y), probe)[0]
        optimizer.zero_grad()
        loss_fn(model(x + 0.1 * slope.sign()), y).backward()
        optimizer.step()


@loop(model="mlp32")
def single_precision(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop(signature="train_accumulate", batches=(4,) * 7)
def accumulate_by_sample_weights(model, optimizer, loss_fn, loader, accumulation_steps):
    batches = list(loader)
    for i in range(0, len(batches), accumulation_steps):
        group = batches[i : i + accumulation_steps]
        total = sum(len(x) for x, _ in group)
        optimizer.zero_grad()
        for x, y in group:
            (loss_fn(model(x), y) * len(x) / total).backward()
        optimizer.step()


@loop(signature="train_accumulate", batches=(6, 1, 2, 5, 3, 1, 2))
def accumulate_unequal_rescaled_at_the_end(model, optimizer, loss_fn, loader, accumulation_steps):
    def finish(count):
        for p in model.parameters():
            p.grad /= count
        optimizer.step()
        optimizer.zero_grad()

    seen, optimizer_steps = 0, 0
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) * len(x)).backward()
        seen += len(x)
        if i % accumulation_steps == 0:
            finish(seen)
            seen, optimizer_steps = 0, optimizer_steps + 1
    if seen:
        finish(seen)


@loop(signature="train_accumulate", batches=(3, 5, 4, 2))
def accumulate_one_big_batch(model, optimizer, loss_fn, loader, accumulation_steps):
    iterator = iter(loader)
    while group := list(itertools.islice(iterator, accumulation_steps)):
        x, y = (torch.cat(part) for part in zip(*group, strict=True))
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@loop(signature="train_accumulate", k=5, batches=(4, 4, 4))
def accumulate_in_own_buffers(model, optimizer, loss_fn, loader, accumulation_steps):
    params, batches = list(model.parameters()), list(loader)
    for i in range(0, len(batches), accumulation_steps):
        group = batches[i : i + accumulation_steps]
        buffers = [torch.zeros(p.shape) for p in params]
        for x, y in group:
            for b, g in zip(buffers, torch.autograd.grad(loss_fn(model(x), y), params), strict=True):
                b += g / len(group)
        for p, b in zip(params, buffers, strict=True):
            p.grad = b
        optimizer.step()
        optimizer.zero_grad()


@loop(signature="train_accumulate", batches=(4,) * 5, k=2, optimizer="momentum_wd")
def accumulate_divides_gradients_at_the_boundary(model, optimizer, loss_fn, loader, accumulation_steps):
    count = 0
    for i, (x, y) in enumerate(loader, 1):
        loss_fn(model(x), y).backward()
        count += 1
        if count == accumulation_steps or i == len(loader):
            for p in model.parameters():
                p.grad.div_(count)
            optimizer.step()
            optimizer.zero_grad()
            count = 0


@loop(signature="train_accumulate", batches=(4,) * 6, k=3)
def accumulate_zero_only_before_first_of_group(model, optimizer, loss_fn, loader, accumulation_steps):
    total = len(loader)
    for i, (x, y) in enumerate(loader):
        first = i % accumulation_steps == 0
        size = min(accumulation_steps, total - i) if first else size  # noqa: F821
        if first:
            model.zero_grad(set_to_none=False)
        (loss_fn(model(x), y) / size).backward()
        if i % accumulation_steps == accumulation_steps - 1 or i == total - 1:
            optimizer.step()


@loop(signature="train_gan", batches=(4,) * 4)
def gan_each_clears_its_own(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        opt_d.zero_grad()
        fake = gen(z)
        (loss_fn(disc(real), one) + loss_fn(disc(fake.detach()), zero)).backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_fn(disc(fake), one).backward()
        opt_g.step()


@loop(signature="train_gan", batches=(4,) * 4)
def gan_generator_through_autograd_grad(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        with torch.no_grad():
            fake = gen(z)
        loss = loss_fn(disc(torch.cat([real, fake])), torch.cat([one, zero])) * 2
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        params = list(gen.parameters())
        for p, g in zip(params, torch.autograd.grad(loss_fn(disc(gen(z)), one), params), strict=True):
            p.grad = g
        opt_g.step()


@loop(signature="fit")
def fit_with_optimizer(w, x, y, lr, steps):
    optimizer = torch.optim.SGD([w], lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        ((x @ w - y) ** 2).mean().backward()
        optimizer.step()
    return w


@loop(signature="fit")
def fit_by_autograd_grad(w, x, y, lr, steps):
    for _ in range(steps):
        (g,) = torch.autograd.grad(((x @ w - y) ** 2).mean(), w)
        with torch.no_grad():
            w.sub_(lr * g)
    return w


@loop(signature="gradient")
def gradient_by_backward(x):
    leaf = x.detach().clone().requires_grad_()
    (torch.sigmoid(2 * leaf) ** 2).sum().backward()
    return leaf.grad


@loop(signature="gradient")
def gradient_by_func(x):
    return torch.func.grad(lambda t: (torch.sigmoid(2 * t) ** 2).sum())(x)


@loop(signature="evaluate", batches=(4, 4, 3, 1))
def evaluate_under_inference_mode(model, loss_fn, loader):
    was = model.training
    model.eval()
    with torch.inference_mode():
        total = sum(loss_fn(model(x), y).item() * len(x) for x, y in loader)
    model.train(was)
    return total / sum(len(x) for x, _ in loader)


@loop(signature="evaluate", batches=(4, 2, 3))
def evaluate_all_at_once(model, loss_fn, loader):
    x, y = (torch.cat(part) for part in zip(*loader, strict=True))
    model.eval()
    with torch.set_grad_enabled(False):
        loss = loss_fn(model(x), y)
    model.train()
    return loss


@loop(signature="evaluate", batches=(4, 2, 3))
def evaluate_a_frozen_copy(model, loss_fn, loader):
    twin = copy.deepcopy(model).eval().requires_grad_(False)
    sums = [F.mse_loss(twin(x), y, reduction="sum") for x, y in loader]
    return float(sum(sums)) / sum(y.numel() for _, y in loader)


@loop(signature="evaluate", batches=(4, 1, 3))
@torch.no_grad()
def evaluate_decorated_with_restored_modes(model, loss_fn, loader):
    modes = {m: m.training for m in model.modules()}
    try:
        model.train(False)
        weighted = [(loss_fn(model(x), y), len(x)) for x, y in loader]
    finally:
        for module, mode in modes.items():
            module.training = mode
    return sum(loss * n for loss, n in weighted) / sum(n for _, n in weighted)
