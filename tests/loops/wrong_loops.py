"""Wrong loops, each with the kind of its mistake and a word of its line of source where one is to blame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.loops import Task

WRONG: list[tuple[Callable[..., Any], Task, str, str | None]] = []


def wrong(kind: str, at: str | None = None, **setup: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``at`` is text that the blamed line must hold."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        WRONG.append((function, Task(**setup), kind, at))
        return function

    return keep


# ---------------------------------------------------------------------- clearing
@wrong("missing-zero-grad", "backward", optimizer="momentum")
def never_clears(model, optimizer, loss_fn, loader):
    for x, y in loader:
        prediction = model(x)
        loss = loss_fn(prediction, y)
        loss.backward()
        optimizer.step()


@wrong("missing-zero-grad", "backward")
def clears_a_list_of_copies(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for g in [p.grad for p in model.parameters() if p.grad is not None]:
            g = torch.zeros_like(g)
        torch.autograd.backward(loss_fn(model(x), y))
        optimizer.step()


@wrong("missing-zero-grad", "backward")
def updates_by_hand_and_never_clears(model, optimizer, loss_fn, loader):
    lr = optimizer.param_groups[0]["lr"]
    for x, y in loader:
        loss_fn(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad


@wrong("zero-grad-not-called", "zero_grad")
def clearing_without_brackets(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad


@wrong("zero-once-per-epoch", "zero_grad")
def clears_before_the_loop(model, optimizer, loss_fn, loader):
    model.zero_grad()
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("zero-once-per-epoch", "zero_grad", epochs=1)
def clears_what_is_empty_before_the_loop(model, optimizer, loss_fn, loader):
    optimizer.zero_grad()
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("missing-zero-grad", "backward")
def clears_an_optimizer_of_something_else(model, optimizer, loss_fn, loader):
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    for x, y in loader:
        other.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("zero-once-per-epoch", "zero_grad")
def clears_after_the_loop(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()


@wrong("zero-grad-conditional", "zero_grad", batches=(4,) * 7)
def clears_every_third_time(model, optimizer, loss_fn, loader):
    for i, (x, y) in enumerate(loader):
        if i % 3 == 0:
            optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("zero-grad-conditional", "zero_grad")
def clears_when_the_loss_is_large(model, optimizer, loss_fn, loader):
    for i, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y)
        if i < 2:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@wrong("zero-some-parameters", "grad = None")
def clears_the_first_layer_only(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model[0].parameters():
            p.grad = None
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("zero-some-parameters", "zero_()")
def clears_weights_but_not_biases(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            if p.dim() > 1:
                p.grad.zero_()


@wrong("zero-between-backward-and-step", "zero_grad")
def clears_before_the_step(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()


@wrong("zero-between-backward-and-step", "= None", optimizer="adam")
def sets_none_before_the_step(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        for p in model.parameters():
            p.grad = None
        optimizer.step()


@wrong("zero-between-backward-and-step", "zero_grad", optimizer="momentum_wd")
def zeros_before_the_step(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        model.zero_grad(set_to_none=False)
        optimizer.step()


@wrong("zero-per-microbatch", "zero_grad", signature="train_accumulate", k=2)
def clears_right_before_each_backward(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y) / accumulation_steps
        optimizer.zero_grad()
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()


@wrong("stale-gradient-at-entry", "backward", epochs=1)
def tries_backward_before_the_loop(model, optimizer, loss_fn, loader):
    x, y = loader[0]
    loss_fn(model(x), y).backward()
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


@wrong("extra-backward-pollutes-gradients", "backward")
def penalty_measured_with_backward(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        model(x).abs().mean().backward()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("optimizer-model-parameter-drift", "step", optimizer="head_sgd", clip=0.3)
def clips_what_it_never_clears(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.3)
        optimizer.step()
        optimizer.zero_grad()


@wrong("grad-assumed-tensor", "grad")
def reads_a_norm_after_clearing(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        sum(p.grad.norm() for p in model.parameters())


@wrong("zero-on-none", "zero_")
def zeroes_at_the_top(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model.parameters():
            p.grad.zero_()
        loss_fn(model(x), y).backward()
        optimizer.step()


# ---------------------------------------------------------------------- backward and step
@wrong("step-before-backward", "step()")
def steps_at_the_top(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.step()
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()


@wrong("step-before-backward", "step()", optimizer="adam")
def steps_then_backward(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        loss.backward()


@wrong("missing-backward", "step()")
def forgets_backward(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.requires_grad_(True)
        optimizer.step()


@wrong("nothing-happened")
def does_nothing(model, optimizer, loss_fn, loader):
    pass


@wrong("not-a-number", "/")
def divides_by_zero_at_the_end(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p / 0.0)


@wrong("missing-step", "backward")
def forgets_the_step(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()


@wrong("step-not-called", "optimizer.step")
def step_without_brackets(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step


@wrong("double-step", "step()")
def steps_twice(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.step()


@wrong("unknown", "p -=", optimizer="momentum")
def updates_by_hand_without_the_momentum(model, optimizer, loss_fn, loader):
    for x, y in loader:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad


@wrong("unknown", "step()", model="column")
def squeezes_one_side(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x).squeeze(), y).backward()
        optimizer.step()


@wrong("stale-graph-reused", "backward")
def goes_back_through_a_running_total(model, optimizer, loss_fn, loader):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        total = total + loss_fn(model(x), y)
        total.backward(retain_graph=True)
        optimizer.step()


@wrong("step-once-per-epoch", "step()")
def steps_after_the_loop(model, optimizer, loss_fn, loader):
    optimizer.zero_grad()
    for x, y in loader:
        loss_fn(model(x), y).backward()
    optimizer.step()


@wrong("double-backward", "backward")
def calls_backward_twice(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()


@wrong("double-backward", "backward")
def calls_backward_twice_without_retaining(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        loss.backward()
        optimizer.step()


@wrong("backward-gradient-argument-misused", "backward")
def weights_the_loss_by_itself(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(gradient=loss.detach())
        optimizer.step()


@wrong("update-rebinds-local-name", "p.grad")
def updates_only_the_name(model, optimizer, loss_fn, loader):
    lr = optimizer.param_groups[0]["lr"]
    for x, y in loader:
        model.zero_grad(set_to_none=True)
        loss_fn(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p = p - lr * p.grad


@wrong("optimizer-bound-to-other-parameters", "step()")
def optimizer_of_a_copy(model, optimizer, loss_fn, loader):
    other = torch.optim.SGD([p.detach().clone().requires_grad_() for p in model.parameters()], lr=0.1)
    for x, y in loader:
        model.zero_grad()
        loss_fn(model(x), y).backward()
        other.step()


@wrong("optimizer-rebuilt", "step()", optimizer="momentum")
def new_momentum_each_time(model, optimizer, loss_fn, loader):
    for x, y in loader:
        fresh = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        fresh.zero_grad()
        loss_fn(model(x), y).backward()
        fresh.step()


@wrong("frozen-parameter-moves", "step()", model="branches", optimizer="momentum_wd")
def idle_branch_filled_with_zeros(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        optimizer.step()


@wrong("frozen-parameter-moves", "step()", model="branches", optimizer="momentum_wd")
def idle_branch_gets_zeros(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)
        loss_fn(model(x), y).backward()
        optimizer.step()


# ---------------------------------------------------------------------- graph and loss
@wrong("loss-detached", "backward")
def item_then_backward(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y).item()
        loss.backward()
        optimizer.step()


@wrong("loss-detached", "backward")
def predictions_detached(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x).detach(), y)
        loss.backward()
        optimizer.step()


@wrong("loss-rewrapped-as-leaf", "backward")
def loss_rewrapped(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.tensor(loss_fn(model(x), y).item(), requires_grad=True)
        loss.backward()
        optimizer.step()


@wrong("no-grad-around-training", "backward")
@torch.no_grad()
def everything_without_gradients(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()


@wrong("grad-mode-leaked", "set_grad_enabled", epochs=2)
def switched_off_at_the_end(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    torch.set_grad_enabled(False)


@wrong("grad-mode-leaked", "set_grad_enabled", epochs=1)
def left_off_once(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    torch.set_grad_enabled(False)


@wrong("hidden-state-not-detached", "backward", model="rnn", reference="rnn")
def state_kept_with_retained_graph(model, optimizer, loss_fn, loader):
    h = None
    for x, y in loader:
        optimizer.zero_grad()
        out, h = model(x, h)
        loss_fn(out, y).backward(retain_graph=True)
        optimizer.step()


@wrong("graph-reused-after-free", "backward", signature="fit")
def loss_computed_once(w, x, y, lr, steps):
    residual = x @ w - y
    for _ in range(steps):
        w.grad = None
        (residual**2).mean().backward()
        with torch.no_grad():
            w -= lr * w.grad
    return w


@wrong("loss-kept-with-graph")
def list_of_losses(model, optimizer, loss_fn, loader):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        losses.append(loss_fn(model(x), y))
        losses[-1].backward()
        optimizer.step()
    return losses


@wrong("needless-retain-graph", "backward")
def retained_and_kept(model, optimizer, loss_fn, loader):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    return total


@wrong("inference-tensors-in-training", "loss_fn", optimizer="head_sgd")
def features_from_inference_mode(model, optimizer, loss_fn, loader):
    with torch.inference_mode():
        data = [(model[1](model[0](x)), y) for x, y in loader]
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model[2](x), y).backward()
        optimizer.step()


@wrong("gradient-read-after-zero", "grad")
def log_of_zeros(model, optimizer, loss_fn, loader):
    log = []
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        log.append(float(sum(p.grad.norm() for p in model.parameters())))
    return log


@wrong("eval-mode-left-on", "eval()", model="bn")
def never_back_to_train_mode(model, optimizer, loss_fn, loader):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        if i == 2:
            model.eval()


@wrong("auxiliary-loss-detached", "backward", reference="auxiliary")
def penalty_of_numbers(model, optimizer, loss_fn, loader):
    count = len(list(model.parameters()))
    for x, y in loader:
        optimizer.zero_grad()
        penalty = 0.1 * sum(p.detach().pow(2).sum() for p in model.parameters()) / count
        (loss_fn(model(x), y) + penalty).backward()
        optimizer.step()


# ---------------------------------------------------------------------- clipping, scaling, schedules
@wrong("clip-before-backward", "clip", clip=0.1)
def clips_first(model, optimizer, loss_fn, loader):
    for x, y in loader:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("clip-after-step", "mul_", clip=0.1)
def shortens_by_hand_after_the_step(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad.mul_(min(1.0, 0.1 / float(norm)))


@wrong("short-gradient-lengthened", "*=", clip=50.0)
def always_scales_to_the_limit(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad *= 50.0 / norm
        optimizer.step()


@wrong("missing-clip", "step", clip=0.1)
def does_not_clip(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("clip-exhausted-generator", "clip", clip=0.1)
def clips_a_used_up_generator(model, optimizer, loss_fn, loader):
    params = model.parameters()
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        max(p.grad.norm() for p in params) if loader[0][0] is x else None
        nn.utils.clip_grad_norm_(params, 0.1)
        optimizer.step()


@wrong("clip-per-microbatch", "clip", signature="train_accumulate", k=2, clip=0.1)
def clips_partial_sums(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if not i % accumulation_steps:
            optimizer.step()
            optimizer.zero_grad()


@wrong("amp-clip-without-unscale", "clip", clip=0.1)
def clips_scaled_gradients(model, optimizer, loss_fn, loader):
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()


@wrong("amp-unscale-per-microbatch", "unscale_", signature="train_accumulate")
def unscales_each_microbatch(model, optimizer, loss_fn, loader, accumulation_steps):
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        scaler.scale(loss_fn(model(x), y) / accumulation_steps).backward()
        scaler.unscale_(optimizer)
        if i % accumulation_steps == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


@wrong("closure-without-zero-grad", "backward", optimizer="lbfgs", reference="lbfgs")
def closure_adds_up(model, optimizer, loss_fn, loader):
    for x, y in loader:

        def closure(x=x, y=y):
            loss = loss_fn(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        optimizer.zero_grad()


@wrong("closure-without-backward", None, optimizer="lbfgs", reference="lbfgs")
def closure_only_computes(model, optimizer, loss_fn, loader):
    for x, y in loader:
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        optimizer.step(lambda x=x, y=y: loss_fn(model(x), y))


@wrong("closure-does-not-recompute", "step", optimizer="lbfgs", reference="lbfgs")
def closure_returns_what_was_computed(model, optimizer, loss_fn, loader):
    for x, y in loader:
        model.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step(lambda loss=loss: loss.detach())


@wrong(
    "scheduler-per-microbatch",
    "scheduler.step",
    signature="train_accumulate",
    reference="accumulate_scheduler",
    epochs=1,
)
def schedule_runs_too_fast(model, optimizer, loss_fn, loader, accumulation_steps):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()


@wrong("scheduler-before-optimizer", "scheduler.step", reference="scheduler", epochs=1)
def schedule_first(model, optimizer, loss_fn, loader):
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        scheduler.step()
        optimizer.step()


# ---------------------------------------------------------------------- accumulation
@wrong("accumulate-no-division", "backward", signature="train_accumulate", k=2)
def sums_a_group(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss_fn(model(x), y).backward()
        if i % accumulation_steps == accumulation_steps - 1:
            optimizer.step()
            optimizer.zero_grad()


@wrong("loss-scaled-after-backward", "accumulation_steps", signature="train_accumulate", k=2)
def divides_too_late(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        loss = loss_fn(model(x), y)
        loss.backward()
        loss = loss / accumulation_steps
        if i % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


@wrong("accumulate-divided-twice", "p.grad", signature="train_accumulate", k=3)
def divides_both(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            for p in model.parameters():
                p.grad /= accumulation_steps
            optimizer.step()
            optimizer.zero_grad()


@wrong("accumulate-wrong-divisor", "backward", signature="train_accumulate", k=3)
def divides_by_position(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (loss_fn(model(x), y) / (i % accumulation_steps + 1)).backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


@wrong("accumulate-off-by-one", "step()", signature="train_accumulate", k=4, batches=(4,) * 8)
def starts_counting_at_zero(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if not i % accumulation_steps:
            optimizer.step()
            optimizer.zero_grad()


@wrong("accumulate-condition-inverted", "step()", signature="train_accumulate", k=3)
def the_wrong_way_round(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps != 0:
            optimizer.step()
            optimizer.zero_grad()


@wrong("step-per-microbatch", "step()", signature="train_accumulate", k=3)
def steps_each_time_clears_at_the_boundary(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        optimizer.step()
        if i % accumulation_steps == 0:
            optimizer.zero_grad()


@wrong("step-per-microbatch", "step()", signature="train_accumulate", k=3)
def forgets_that_it_should_accumulate(model, optimizer, loss_fn, loader, accumulation_steps):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


@wrong("scaled-not-accumulated", "step()", signature="train_accumulate", k=3)
def only_scales(model, optimizer, loss_fn, loader, accumulation_steps):
    for x, y in loader:
        optimizer.zero_grad()
        (loss_fn(model(x), y) / accumulation_steps).backward()
        optimizer.step()


@wrong("step-in-backward-with-accumulation", "backward", signature="train_accumulate", k=2)
def hooks_step_at_once(model, optimizer, loss_fn, loader, accumulation_steps):
    own = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def hook(p):
        own[p].step()
        own[p].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(hook) for p in own]
    for x, y in loader:
        (loss_fn(model(x), y) / accumulation_steps).backward()
    for handle in handles:
        handle.remove()


@wrong("accumulate-repeats-batch", "backward", signature="train_accumulate", k=2)
def repeats_each_batch(model, optimizer, loss_fn, loader, accumulation_steps):
    for x, y in loader:
        optimizer.zero_grad()
        for _ in range(accumulation_steps):
            (loss_fn(model(x), y) / accumulation_steps).backward()
        optimizer.step()


@wrong("backward-only-at-boundary", "backward", signature="train_accumulate", k=2)
def differentiates_the_last_only(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader, 1):
        loss = loss_fn(model(x), y) / accumulation_steps
        if i % accumulation_steps == 0:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


@wrong("leftover-dropped", "backward", signature="train_accumulate", k=4, batches=(4,) * 6)
def drops_the_leftover(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader):
        if i % accumulation_steps == 0:
            optimizer.zero_grad()
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()


@wrong("leftover-dropped", "backward", signature="train_accumulate", k=5, batches=(4,) * 3)
def never_reaches_k(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i == accumulation_steps:
            optimizer.step()


@wrong("leftover-leaks", "step()", signature="train_accumulate", k=4, batches=(4,) * 6)
def leftover_waits_for_the_next_epoch(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


@wrong("leftover-wrong-scale", "step()", signature="train_accumulate", k=3, batches=(4,) * 5)
def leftover_divided_by_k(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0 or i == len(loader):
            optimizer.step()
            optimizer.zero_grad()


@wrong("accumulate-unequal-microbatches", "backward", signature="train_accumulate", k=2, batches=(1, 7, 2, 6))
def counts_microbatches_not_samples(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


@wrong("missing-zero-grad", "backward", signature="train_accumulate", k=2)
def accumulates_for_ever(model, optimizer, loss_fn, loader, accumulation_steps):
    for i, (x, y) in enumerate(loader, 1):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if i % accumulation_steps == 0:
            optimizer.step()


# ---------------------------------------------------------------------- two networks
@wrong("missing-zero-grad", "backward", signature="train_gan", batches=(4,) * 4)
def discriminator_never_cleared(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        (loss_fn(disc(real), one) + loss_fn(disc(gen(z).detach()), zero)).backward()
        opt_d.step()
        gen.zero_grad()
        disc.requires_grad_(False)
        loss_fn(disc(gen(z)), one).backward()
        disc.requires_grad_(True)
        opt_g.step()


@wrong("loss-detached", "opt_g.step", signature="train_gan", batches=(4,) * 4)
def generator_trained_on_detached_fakes(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        fake = gen(z).detach()
        opt_d.zero_grad()
        (loss_fn(disc(real), one) + loss_fn(disc(fake), zero)).backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_fn(disc(fake), one).backward()
        opt_g.step()


@wrong("generator-leaks-into-discriminator", "backward", signature="train_gan", batches=(4,) * 4)
def generator_fills_the_discriminator(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        (loss_fn(disc(real), one) + loss_fn(disc(gen(z).detach()), zero)).backward()
        opt_d.step()
        opt_d.zero_grad()
        opt_g.zero_grad()
        loss_fn(disc(gen(z)), one).backward()
        opt_g.step()


@wrong("missing-zero-grad", "backward", signature="train_gan", batches=(4,) * 4)
def generator_never_cleared(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        disc.zero_grad()
        (loss_fn(disc(real), one) + loss_fn(disc(gen(z).detach()), zero)).backward()
        opt_d.step()
        loss_fn(disc(gen(z)), one).backward()
        opt_g.step()


@wrong("zero-wrong-optimizer", "zero_grad", signature="train_gan", batches=(4,) * 4)
def clears_the_same_twice(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        one, zero = torch.ones(len(z), 1), torch.zeros(len(z), 1)
        opt_d.zero_grad()
        (loss_fn(disc(real), one) + loss_fn(disc(gen(z).detach()), zero)).backward()
        opt_d.step()
        opt_d.zero_grad()
        loss_fn(disc(gen(z)), one).backward()
        opt_g.step()


# ---------------------------------------------------------------------- tensors
@wrong("leaf-updated-in-place", "-=", signature="fit")
def in_place_while_recording(w, x, y, lr, steps):
    for _ in range(steps):
        ((x @ w - y) ** 2).mean().backward()
        w -= lr * w.grad
        w.grad = None
    return w


@wrong("leaf-replaced", None, signature="fit")
def out_of_place_under_no_grad(w, x, y, lr, steps):
    for _ in range(steps):
        ((x @ w - y) ** 2).mean().backward()
        with torch.no_grad():
            w = w - lr * w.grad
    return w


@wrong("missing-zero-grad", "backward", signature="fit")
def weight_never_cleared(w, x, y, lr, steps):
    for _ in range(steps):
        ((x @ w - y) ** 2).mean().backward()
        w.data -= lr * w.grad
    return w


@wrong("zero-on-none", "zero_", signature="fit")
def cleared_before_anything(w, x, y, lr, steps):
    for _ in range(steps):
        w.grad.data.zero_()
        ((x @ w - y) ** 2).mean().backward()
        w.data -= lr * w.grad
    return w


@wrong("requires-grad-on-integers", "requires_grad", signature="gradient")
def integers_cannot(x):
    leaf = torch.tensor([1, 2, 3, 4, 5], requires_grad=True)
    (torch.sigmoid(2 * leaf) ** 2).sum().backward()
    return leaf.grad


@wrong("non-leaf-grad-is-none", "grad", signature="gradient")
def gradient_of_a_cast(x):
    leaf = x.float().requires_grad_().double()
    (torch.sigmoid(2 * leaf) ** 2).sum().backward()
    return leaf.grad


# ---------------------------------------------------------------------- evaluation
@wrong("eval-backward-leaks-gradients", "backward", signature="evaluate")
def evaluates_with_backward(model, loss_fn, loader):
    model.eval()
    losses = []
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        losses.append(loss.item())
    model.train()
    return sum(losses) / len(losses)


@wrong("parameters-changed", "clamp_", signature="evaluate")
def evaluates_and_edits(model, loss_fn, loader):
    model.eval()
    with torch.no_grad():
        loss = sum(loss_fn(model(x), y) for x, y in loader) / len(loader)
        for p in model.parameters():
            p.clamp_(-0.1, 0.1)
    model.train()
    return loss


@wrong("eval-in-train-mode", "model(x)", signature="evaluate")
def evaluates_in_training_mode(model, loss_fn, loader):
    with torch.no_grad():
        return sum(loss_fn(model(x), y).item() for x, y in loader) / len(loader)


@wrong("no-grad-not-entered", "no_grad", signature="evaluate")
def evaluates_with_a_bare_no_grad(model, loss_fn, loader):
    torch.no_grad()
    model.eval()
    total = sum(loss_fn(model(x), y).item() for x, y in loader)
    model.train()
    return total / len(loader)


@wrong("eval-without-no-grad", "model(x)", signature="evaluate")
def evaluates_and_records(model, loss_fn, loader):
    model.eval()
    total = sum(loss_fn(model(x), y).detach() for x, y in loader)
    model.train()
    return total / len(loader)


@wrong("eval-mode-left-on", "eval()", signature="evaluate")
def evaluates_and_stays_in_eval_mode(model, loss_fn, loader):
    model.eval()
    with torch.no_grad():
        return sum(loss_fn(model(x), y) for x, y in loader) / len(loader)


@wrong("grad-mode-leaked", "set_grad_enabled", signature="evaluate")
def evaluates_and_leaves_gradients_off(model, loss_fn, loader):
    model.eval()
    torch.set_grad_enabled(False)
    total = sum(loss_fn(model(x), y) for x, y in loader)
    model.train()
    return total / len(loader)


@wrong("eval-mean-of-means", "loss_fn", signature="evaluate", batches=(6, 1, 2))
def evaluates_by_the_batch(model, loss_fn, loader):
    model.eval()
    with torch.no_grad():
        total = sum(loss_fn(model(x), y).item() for x, y in loader)
    model.train()
    return total / len(loader)
