"""Right answers in styles that no lesson shows: the loops over one model."""

from __future__ import annotations

from tests.pipeline.answers.answer import Answer

PLAIN_LOOP = {
    "autograd-grad": Answer(
        """
parameters = list(model.parameters())
for x, y in loader:
    grads = torch.autograd.grad(loss_fn(model(x), y), parameters)
    for p, g in zip(parameters, grads):
        p.grad = g
    optimizer.step()
""",
        10,
    ),
    "class": Answer(
        """
class Trainer:
    def __init__(self):
        self.losses = []

    def __call__(self, model, optimizer, loss_fn, loader):
        for batch in loader:
            self.one(model, optimizer, loss_fn, *batch)

    def one(self, model, optimizer, loss_fn, x, y):
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        for p in model.parameters():
            p.grad = None
        self.losses.append(loss.item())


train = Trainer()
""",
        10,
        whole=True,
    ),
    "closure": Answer(
        """
for x, y in loader:

    def closure():
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
""",
        10,
    ),
    "functional": Answer(
        """
from torch.func import functional_call, grad

named = dict(model.named_parameters())


def loss_of(parameters, x, y):
    return loss_fn(functional_call(model, parameters, (x,)), y)


for x, y in loader:
    grads = grad(loss_of)({name: p.detach() for name, p in named.items()}, x, y)
    for name, p in named.items():
        p.grad = grads[name]
    optimizer.step()
""",
        10,
    ),
    "foreach": Answer(
        """
parameters = [p for group in optimizer.param_groups for p in group["params"]]
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    torch._foreach_zero_([p.grad for p in parameters])
""",
        10,
    ),
    "hooks": Answer(
        """
seen = {}
handles = [p.register_hook(lambda g, p=p: seen.__setitem__(p, g.clone())) for p in model.parameters()]
for x, y in loader:
    loss_fn(model(x), y).backward()
    for p, g in seen.items():
        p.grad = g
    optimizer.step()
for handle in handles:
    handle.remove()
optimizer.zero_grad()
""",
        10,
    ),
    "own-buffers": Answer(
        """
buffers = {p: torch.zeros_like(p) for p in model.parameters()}
for x, y in loader:
    for p, buffer in buffers.items():
        buffer.zero_()
        p.grad = buffer
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        10,
    ),
    "decorated": Answer(
        """
from functools import partial, wraps


def timed(function):
    @wraps(function)
    def inner(*arguments, **named):
        start = perf_counter()
        result = function(*arguments, **named)
        print(f"{perf_counter() - start:.1f} s")
        return result

    return inner


@timed
def _train(model, optimizer, loss_fn, loader, *, say):
    total = 0.0
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        say(number, total)


train = partial(_train, say=print)
""",
        10,
        whole=True,
    ),
}

CLIPPED_LOOP = {
    "foreach": Answer(
        """
parameters = list(model.parameters())
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    grads = [p.grad for p in parameters]
    norm = torch.stack(torch._foreach_norm(grads)).norm()
    if norm > max_norm:
        torch._foreach_mul_(grads, max_norm / norm)
    optimizer.step()
""",
        10,
    ),
    "autograd-grad": Answer(
        """
parameters = list(model.parameters())
for x, y in loader:
    grads = torch.autograd.grad(loss_fn(model(x), y), parameters)
    norm = sum(g.square().sum() for g in grads).sqrt()
    for p, g in zip(parameters, grads):
        p.grad = g * min(1.0, float(max_norm / norm))
    optimizer.step()
""",
        10,
    ),
    "step-hook": Answer(
        """
handle = optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(model.parameters(), max_norm) and None)
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
handle.remove()
""",
        10,
    ),
}

ACCUMULATE = {
    "own-buffers": Answer(
        """
parameters = list(model.parameters())
batches = list(loader)
for start in range(0, len(batches), accumulation_steps):
    group = batches[start : start + accumulation_steps]
    sums = [torch.zeros_like(p) for p in parameters]
    for x, y in group:
        for total, g in zip(sums, torch.autograd.grad(loss_fn(model(x), y), parameters)):
            total += len(x) * g
    for p, total in zip(parameters, sums):
        p.grad = total / sum(len(x) for x, _ in group)
    optimizer.step()
""",
        15,
    ),
    "divide-at-the-end": Answer(
        """
def finish(samples):
    for p in model.parameters():
        p.grad /= samples
    optimizer.step()
    optimizer.zero_grad()


samples = waiting = 0
for x, y in loader:
    (loss_fn(model(x), y) * len(x)).backward()
    samples, waiting = samples + len(x), waiting + 1
    if waiting == accumulation_steps:
        finish(samples)
        samples = waiting = 0
if waiting:
    finish(samples)
""",
        15,
    ),
    "gradient-argument": Answer(
        """
def groups():
    group = []
    for batch in loader:
        group.append(batch)
        if len(group) == accumulation_steps:
            yield group
            group = []
    if group:
        yield group


for group in groups():
    model.zero_grad()
    samples = sum(x.shape[0] for x, _ in group)
    for x, y in group:
        loss = loss_fn(model(x), y)
        loss.backward(gradient=torch.full_like(loss, x.shape[0] / samples))
    optimizer.step()
""",
        15,
    ),
}

IDLE_BRANCH = {
    "autograd-grad": Answer(
        """
parameters = list(model.parameters())
for x, y in loader:
    for p, g in zip(parameters, torch.autograd.grad(loss_fn(model(x), y), parameters, allow_unused=True)):
        p.grad = g
    optimizer.step()
""",
        10,
    ),
    "by-hand": Answer(
        """
def forget(module):
    for p in module.parameters():
        p.grad = None


for x, y in loader:
    forget(model)
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        10,
    ),
    "zeros-to-none": Answer(
        """
for x, y in loader:
    optimizer.zero_grad(set_to_none=False)
    loss_fn(model(x), y).backward()
    for p in model.parameters():
        if p.grad is not None and not p.grad.any():
            p.grad = None
    optimizer.step()
""",
        10,
    ),
}
