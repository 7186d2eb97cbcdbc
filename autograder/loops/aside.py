"""The recorder steps aside: its own work with tensors is neither recorded nor tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from autograder.loops.recorder import Recorder


class Aside:
    """A context in which the recorder's own work with tensors is neither recorded nor tracked.

    A time limit can strike inside it, and then its end is never reached: what it changes is the recorder's own, or
    what the guard around the run puts back.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.was, self.recorder.busy = self.recorder.busy, True
        self.grad = torch.is_grad_enabled()
        if not self.was:
            self.recorder.grad_enabled = self.grad
        torch._C._set_grad_enabled(False)
        self.dispatch = torch._C.DisableTorchFunction()
        self.dispatch.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.dispatch.__exit__(None, None, None)
        torch._C._set_grad_enabled(self.grad)
        self.recorder.busy = self.was
