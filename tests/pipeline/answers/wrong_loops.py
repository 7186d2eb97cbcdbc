"""Wrong answers, each with the mistake that it makes: the loops over one model."""

from __future__ import annotations

from tests.pipeline.answers.answer import Answer

PLAIN_LOOP = {
    "never-zero": Answer(
        """
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
""",
        0,
        "missing-zero-grad",
    ),
    "zero-between": Answer(
        """
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
""",
        0,
        "zero-between-backward-and-step",
    ),
    "foreign-optimizer": Answer(
        """
fresh = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
for x, y in loader:
    fresh.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
""",
        0,
        "missing-zero-grad",
    ),
    "once-per-epoch": Answer(
        """
optimizer.zero_grad()
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        0,
        "zero-once-per-epoch",
    ),
    "no-grad": Answer(
        """
with torch.no_grad():
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
""",
        0,
        "no-grad-around-training",
    ),
    "trial-run": Answer(
        """
x, y = loader[0]
loss_fn(model(x), y).backward()
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
        0,
        "stale-gradient-at-entry",
    ),
    "no-step": Answer(
        """
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
""",
        0,
        "missing-step",
    ),
}

CLIPPED_LOOP = {
    "clip-before-backward": Answer(
        """
for x, y in loader:
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    loss.backward()
    optimizer.step()
""",
        3,
        "clip-before-backward",
    ),
    "clip-after-step": Answer(
        """
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
""",
        3,
        "clip-after-step",
    ),
    "no-clip": Answer(
        """
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        3,
        "missing-clip",
    ),
    "always-scaled": Answer(
        """
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    for p in model.parameters():
        p.grad *= max_norm / norm
    optimizer.step()
""",
        0,
        "short-gradient-lengthened",
    ),
}

ACCUMULATE = {
    "no-division": Answer(
        """
for i, (x, y) in enumerate(loader):
    loss_fn(model(x), y).backward()
    if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
""",
        0,
        "accumulate-no-division",
    ),
    "off-by-one": Answer(
        """
optimizer.zero_grad()
for i, (x, y) in enumerate(loader):
    loss = loss_fn(model(x), y) / accumulation_steps
    loss.backward()
    if i % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
        0,
        "accumulate-off-by-one",
    ),
    "leftover-dropped": Answer(
        """
optimizer.zero_grad()
for i, (x, y) in enumerate(loader):
    loss = loss_fn(model(x), y) / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
optimizer.zero_grad()
""",
        8,
        "leftover-dropped",
    ),
    "equal-weights": Answer(
        """
from itertools import islice

batches = iter(loader)
while group := list(islice(batches, accumulation_steps)):
    optimizer.zero_grad()
    for x, y in group:
        (loss_fn(model(x), y) / len(group)).backward()
    optimizer.step()
""",
        12,
        "accumulate-unequal-microbatches",
    ),
    "zero-per-microbatch": Answer(
        """
for i, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y) / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
        optimizer.step()
""",
        0,
        "zero-per-microbatch",
    ),
}

IDLE_BRANCH = {
    "zeros": Answer(
        """
for x, y in loader:
    optimizer.zero_grad(set_to_none=False)
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        5,
        "frozen-parameter-moves",
    ),
    "never-zero": Answer(
        """
for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
""",
        0,
        "missing-zero-grad",
    ),
}
