"""Right and wrong answers to the exercises of lesson 3, as learners write them."""

import torch

# ---- right --------------------------------------------------------------------------------------------------------


def train(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def train_zero_last(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None


def train_clipped(model, optimizer, loss_fn, loader, max_norm):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


def reset(parameters, set_to_none):
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if set_to_none:
            parameter.grad = None
        else:
            parameter.grad.detach_().zero_()


def train_accumulate(model, optimizer, loss_fn, loader, accumulation_steps):
    batches = list(loader)
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        samples = sum(len(x) for x, _ in group)
        optimizer.zero_grad()
        for x, y in group:
            (loss_fn(model(x), y) * len(x) / samples).backward()
        optimizer.step()


def train_gan(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        ones, zeros = torch.ones(len(z), 1).to(z), torch.zeros(len(z), 1).to(z)
        opt_d.zero_grad()
        (loss_fn(disc(real), ones) + loss_fn(disc(gen(z).detach()), zeros)).backward()
        opt_d.step()
        opt_g.zero_grad()
        loss_fn(disc(gen(z)), ones).backward()
        opt_g.step()


def find_dead_units(model, x, y, loss_fn):
    weight, bias = model[0].weight, model[0].bias
    dw, db = torch.autograd.grad(loss_fn(model(x), y), [weight, bias])
    return [i for i in range(len(bias)) if not dw[i].any() and not db[i].any()]


def find_dead_units_by_backward(model, x, y, loss_fn):
    before = [p.grad for p in model.parameters()]
    for p in model.parameters():
        p.grad = None
    loss_fn(model(x), y).backward()
    dead = (model[0].weight.grad.abs().sum(1) + model[0].bias.grad.abs() == 0).nonzero().flatten().tolist()
    for p, grad in zip(model.parameters(), before, strict=True):
        p.grad = grad
    return dead


# ---- wrong --------------------------------------------------------------------------------------------------------


def never_zeroes(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()


def zeroes_once(model, optimizer, loss_fn, loader):
    optimizer.zero_grad()
    never_zeroes(model, optimizer, loss_fn, loader)


def only_second_call_wrong(model, optimizer, loss_fn, loader):
    for i, (x, y) in enumerate(loader):
        if i:
            optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def zeroes_to_zero(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)
        loss_fn(model(x), y).backward()
        optimizer.step()


def clips_first(model, optimizer, loss_fn, loader, max_norm):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        loss_fn(model(x), y).backward()
        optimizer.step()


def scales_always(model, optimizer, loss_fn, loader, max_norm):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in model.parameters()))
        for p in model.parameters():
            p.grad *= max_norm / norm
        optimizer.step()


def reset_new_tensors(parameters, set_to_none):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = None if set_to_none else torch.zeros_like(parameter.grad)


def reset_without_none(parameters, set_to_none):
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        else:
            parameter.grad.zero_()


def reset_the_weights(parameters, set_to_none):
    for parameter in parameters:
        parameter.data.zero_()
        parameter.grad = None


def accumulates_by_k(model, optimizer, loss_fn, loader, accumulation_steps):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        (loss_fn(model(x), y) / accumulation_steps).backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def accumulates_mean_of_means(model, optimizer, loss_fn, loader, accumulation_steps):
    batches = list(loader)
    for start in range(0, len(batches), accumulation_steps):
        group = batches[start : start + accumulation_steps]
        optimizer.zero_grad()
        for x, y in group:
            (loss_fn(model(x), y) / len(group)).backward()
        optimizer.step()


def gan_generator_never_zeroed(gen, disc, opt_g, opt_d, loss_fn, loader):
    for z, real in loader:
        ones, zeros = torch.ones(len(z), 1).to(z), torch.zeros(len(z), 1).to(z)
        opt_d.zero_grad()
        (loss_fn(disc(real), ones) + loss_fn(disc(gen(z).detach()), zeros)).backward()
        opt_d.step()
        loss_fn(disc(gen(z)), ones).backward()
        opt_g.step()


def dead_units_by_backward_only(model, x, y, loss_fn):
    model.zero_grad()
    loss_fn(model(x), y).backward()
    return (model[0].weight.grad.abs().sum(1) + model[0].bias.grad.abs() == 0).nonzero().flatten().tolist()


def stub(*arguments):
    raise NotImplementedError


def nothing(*arguments):
    pass


# exercise, answer, points
RIGHT = [
    ("03-plain-loop", train),
    ("03-plain-loop", train_zero_last),
    ("03-clipped-loop", train_clipped),
    ("03-reset", reset),
    ("03-accumulate", train_accumulate),
    ("03-idle-branch", train),
    ("03-idle-branch", train_zero_last),
    ("03-gan-step", train_gan),
    ("03-dead-unit", find_dead_units),
    ("03-dead-unit", find_dead_units_by_backward),
]
WRONG = [
    ("03-plain-loop", never_zeroes, 0),
    ("03-plain-loop", zeroes_once, 0),
    ("03-plain-loop", only_second_call_wrong, 8),
    ("03-clipped-loop", clips_first, 3),
    ("03-clipped-loop", scales_always, 0),
    ("03-reset", reset_new_tensors, 4),
    ("03-reset", reset_without_none, 8),
    ("03-reset", reset_the_weights, 0),
    ("03-accumulate", accumulates_by_k, 8),
    ("03-accumulate", accumulates_mean_of_means, 12),
    ("03-idle-branch", zeroes_to_zero, 5),
    ("03-idle-branch", never_zeroes, 0),
    ("03-gan-step", gan_generator_never_zeroed, 5),
    ("03-dead-unit", dead_units_by_backward_only, 3),
]
