"""Right answers in styles that no lesson shows: all, by exercise and name."""

from __future__ import annotations

from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.right_loops import ACCUMULATE, CLIPPED_LOOP, IDLE_BRANCH, PLAIN_LOOP

RESET = {
    "an-optimizer": Answer("torch.optim.SGD(parameters, lr=1.0).zero_grad(set_to_none=set_to_none)", 10),
    "match": Answer(
        """
for p in parameters:
    match (p.grad, set_to_none):
        case (None, _):
            pass
        case (_, True):
            del p.grad
        case (g, _):
            g.detach_()
            g.copy_(torch.zeros_like(g))
""",
        10,
    ),
    "lists": Answer(
        """
those = [p for p in parameters if p.grad is not None]
[p.__setattr__("grad", None) if set_to_none else p.grad.detach_().fill_(0) for p in those]
""",
        10,
    ),
}

GAN_STEP = {
    "autograd-grad": Answer(
        """
def step(network, optimizer, loss):
    for p, g in zip(network.parameters(), torch.autograd.grad(loss, list(network.parameters()))):
        p.grad = g
    optimizer.step()


def says(logits, value):
    return loss_fn(logits, torch.full_like(logits, value))


for z, real in loader:
    step(disc, opt_d, says(disc(real), 1.0) + says(disc(gen(z)), 0.0))
    step(gen, opt_g, says(disc(gen(z)), 1.0))
""",
        10,
    ),
    "frozen-disc": Answer(
        """
one = lambda t: torch.ones_like(t)
zero = lambda t: torch.zeros_like(t)
for z, real in loader:
    with torch.no_grad():
        fake = gen(z)
    opt_d.zero_grad()
    a = disc(real)
    loss_fn(a, one(a)).backward()
    b = disc(fake)
    loss_fn(b, zero(b)).backward()
    opt_d.step()

    disc.requires_grad_(False)
    opt_g.zero_grad()
    c = disc(gen(z))
    loss_fn(c, one(c)).backward()
    opt_g.step()
    disc.requires_grad_(True)
""",
        10,
    ),
    "clear-both": Answer(
        """
for z, real in loader:
    for turn, optimizer in (("d", opt_d), ("g", opt_g)):
        gen.zero_grad()
        disc.zero_grad()
        fake = disc(gen(z))
        loss = loss_fn(fake, torch.full_like(fake, float(turn == "g")))
        if turn == "d":
            right = disc(real)
            loss = loss + loss_fn(right, torch.ones_like(right))
        loss.backward()
        optimizer.step()
""",
        10,
    ),
}

DEAD_UNIT = {
    "save-and-restore": Answer(
        """
saved = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
model.zero_grad()
loss_fn(model(x), y).backward()
first = model[0]
dead = [
    unit
    for unit in range(first.out_features)
    if not first.weight.grad[unit].any() and first.bias.grad[unit] == 0
]
for p, g in zip(model.parameters(), saved):
    p.grad = g
return dead
""",
        5,
    ),
    "copy": Answer(
        """
import copy

twin = copy.deepcopy(model)
twin.zero_grad()
loss_fn(twin(x), y).backward()
alive = twin[0].weight.grad.abs().sum(1) + twin[0].bias.grad.abs()
return torch.where(alive == 0)[0]
""",
        5,
    ),
    "forward-hook": Answer(
        """
kept = []
handle = model[0].register_forward_hook(lambda module, given, made: kept.append(made))
loss = loss_fn(model(x), y)
handle.remove()
(slope,) = torch.autograd.grad(loss, kept)
return tuple(i for i, column in enumerate(slope.T) if not column.any())
""",
        5,
    ),
}

RIGHT = {
    "03-plain-loop": PLAIN_LOOP,
    "03-clipped-loop": CLIPPED_LOOP,
    "03-reset": RESET,
    "03-accumulate": ACCUMULATE,
    "03-idle-branch": IDLE_BRANCH,
    "03-gan-step": GAN_STEP,
    "03-dead-unit": DEAD_UNIT,
    "03-predict-add": {"letter": Answer('answer_predict_add = "c"', 2)},
    "03-quiz-frozen": {"capital": Answer('answer_quiz_frozen = " C "', 2)},
}
