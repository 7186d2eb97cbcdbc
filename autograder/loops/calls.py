"""Which library calls are worth an event, and what to note of each.

``sys.setprofile`` (Python's official hook) tells of every Python function that is entered. Looked up by
code object, a call is known whatever alias or wrapper the learner used, and none of it is patched.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

Note = Callable[[FrameType], dict[str, Any]]


def _code(function: Any) -> CodeType:
    return inspect.unwrap(function).__code__


def _nothing(frame: FrameType) -> dict[str, Any]:
    return {}


def _mode(frame: FrameType) -> dict[str, Any]:
    return {"mode": bool(frame.f_locals.get("mode", True))}


def _maximum(frame: FrameType) -> dict[str, Any]:
    return {"max_norm": float(frame.f_locals["max_norm"])}


def _which(frame: FrameType) -> dict[str, Any]:
    return {"object": id(frame.f_locals.get("self"))}


CALLS: dict[CodeType, tuple[str, Note]] = {
    _code(function): (name, note)
    for name, function, note in (
        ("zero_grad", Optimizer.zero_grad, _which),
        ("module.zero_grad", nn.Module.zero_grad, _nothing),
        ("clip", nn.utils.clip_grad_norm_, _maximum),
        ("clip", getattr(nn.utils, "clip_grads_with_norm_", nn.utils.clip_grad_norm_), _maximum),
        ("clip", nn.utils.clip_grad_value_, _nothing),
        ("scheduler.step", LRScheduler.step, _nothing),
        ("scheduler.step", torch.optim.lr_scheduler.ReduceLROnPlateau.step, _nothing),
        ("scaler.scale", GradScaler.scale, _nothing),
        ("scaler.unscale", GradScaler.unscale_, _nothing),
        ("scaler.step", GradScaler.step, _nothing),
        ("no_grad", torch.no_grad.__init__, _nothing),
        ("no_grad.decorate", torch.no_grad.__call__, _nothing),
        ("no_grad.enter", torch.no_grad.__enter__, _nothing),
        ("inference_mode.enter", torch.inference_mode.__enter__, _nothing),
        ("set_grad_enabled", torch.set_grad_enabled.__init__, _mode),
        ("set_grad_enabled.exit", torch.set_grad_enabled.__exit__, _nothing),
        ("module.train", nn.Module.train, _mode),
        ("module.train", nn.Module.eval, lambda frame: {"mode": False}),
        ("autograd.grad", torch.autograd.grad, _nothing),
    )
}
# The library calls these itself all the time: they count only when the learner's own line does it.
OWN_LINE_ONLY = frozenset(name for name, _ in CALLS.values()) - {"zero_grad", "module.zero_grad", "clip"}
BACKWARD = _code(torch.autograd.backward)
