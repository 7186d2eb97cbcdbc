"""The training loop that the accumulation lab runs and shows: real source text, made from the settings."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from autograder.lab.settings import Settings

HEAD = """\
def train(model, optimizer, loss_fn, loader, k):
    losses, n = [], len(loader)"""
FORWARD = """\
    for i, (x, y) in enumerate(loader):
        loss = loss_fn(model(x), y)
        losses.append(loss.item())"""
BACKWARD = {
    "group size": """\
        size = min(k, n - i + i % k)
        (loss / size).backward()""",
    "accumulation steps": """\
        (loss / k).backward()""",
    "nothing": """\
        loss.backward()""",
}
BOUNDARY = {
    True: "        if (i + 1) % k == 0 or i + 1 == n:",
    False: "        if (i + 1) % k == 0:",
}
STEP = "            optimizer.step()"
TAIL = "    return losses"


def source(settings: Settings) -> str:
    """The loop that trains for one epoch as ``settings`` say; ``k`` are the accumulation steps.

    With ``group size``, ``size`` counts the batches of the group that batch i is in: the last may be short.
    """
    clear = f"optimizer.zero_grad({'' if settings.set_to_none else 'set_to_none=False'})"
    once, early, late = f"    {clear}", f"            {clear}", f"            {clear}"
    lines = [
        HEAD,
        once if settings.zeroing == "once an epoch" else None,
        FORWARD,
        BACKWARD[settings.divide],
        BOUNDARY[settings.leftover],
        early if settings.zeroing == "between backward and step" else None,
        STEP,
        late if settings.zeroing == "each step" else None,
        TAIL,
    ]
    return "\n".join(line for line in lines if line is not None) + "\n"


@lru_cache(maxsize=128)
def compiled(text: str) -> Callable[..., list[float]]:
    """The function that ``text`` defines.

    Its file name is one that the engine takes for typed by a person, so that verdicts name its lines.
    """
    name = f"<string> accumulation lab {hash(text)}"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    return space["train"]


def remembering(function: Callable[..., list[float]]) -> Callable[..., list[float]]:
    """Returns at each call the losses of all calls so far: a recording keeps what the last call returned."""
    history: list[float] = []

    def epoch(*arguments: Any) -> list[float]:
        history.extend(function(*arguments))
        return list(history)

    return epoch
