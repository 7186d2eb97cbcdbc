"""Run a learner's function and write down what happened to every parameter and every .grad."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from autograder.guard import is_learner_code
from autograder.loops.aside import Aside
from autograder.loops.backwards import Backwards, number_of
from autograder.loops.calls import BACKWARD, CALLS, OWN_LINE_ONLY
from autograder.loops.graph import every_tensor
from autograder.loops.journal import Journal, state_of
from autograder.loops.looking import Looker
from autograder.loops.task import Material
from autograder.loops.updates import Updates, plain_rate

SCALINGS = frozenset(("div", "__truediv__", "true_divide", "__itruediv__", "div_", "mul", "__mul__", "mul_"))


def mutates(name: str, keywords: dict[str, Any]) -> bool:
    """Whether a torch function may change a tensor in place, by torch's own naming rules."""
    if name.startswith("__"):
        return name.startswith("__i") or name in ("__set__", "__delete__", "__setitem__")
    return name.endswith("_") or "out" in keywords


def address(tensor: Tensor) -> int | None:
    """Where a tensor's memory begins; None for tensors that have none of their own (torch.func's wrappers)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return None


class Recorder(TorchFunctionMode):
    """A context in which everything that reaches a parameter or its .grad becomes an event.

    Three official doors: a TorchFunctionMode (every operation, in any style), hooks on tensors, networks and
    optimizers (backward, forward, step), and ``sys.setprofile`` (calls that leave no trace in a tensor).
    It changes no value and takes all its hooks away when it is left.
    """

    def __init__(self, material: Material) -> None:
        super().__init__()
        self.material = material
        self.journal = Journal(material.parameters())
        self.updates = Updates(self.journal, plain_rate(material))
        self.looker = Looker(self.journal, self.updates.changed)
        self.backwards = Backwards(self.journal, self.looker.expect)
        self.where = {address(t): i for i, pair in enumerate(list.__iter__(material.loader)) for t in pair}
        self.batch: int | None = None
        self.forwards = 0
        self.busy, self.grad_enabled = False, True
        self.troubles: list[str] = []
        self.undo: list[Callable[[], None]] = []

    # ------------------------------------------------------------------ entering and leaving
    def __enter__(self) -> Recorder:
        self.material.loader.listener = self.on_fetch
        for i, parameter in enumerate(self.journal.params):
            self.undo.append(parameter.register_hook(self.before_adding(i)).remove)
            self.undo.append(parameter.register_post_accumulate_grad_hook(self.after_adding(i)).remove)
        for title, module in self.material.modules.items():
            self.undo.append(module.register_forward_hook(self.after_forward(title)).remove)
        self.undo.append(self.material.loss_fn.register_forward_hook(self.after_loss).remove)
        self.undo.append(register_optimizer_step_pre_hook(self.before_step).remove)
        self.undo.append(register_optimizer_step_post_hook(self.after_step).remove)
        for optimizer in self.material.optimizers.values():
            self.listen_to_lookups(optimizer)
        super().__enter__()
        self.previous_profile = sys.getprofile()
        sys.setprofile(self.on_profile)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setprofile(self.previous_profile)
        super().__exit__(kind, value, trace)
        self.close()

    def close(self) -> None:
        """Take every hook away. May be called again: a time limit can strike in the middle of it."""
        self.material.loader.listener = None
        while self.undo:
            self.undo[-1]()
            self.undo.pop()

    def start_call(self, number: int) -> None:
        """Note that the learner's function is about to be called for the ``number``-th time."""
        self.journal.call, self.batch = number, None
        if number == 0:
            self.journal.keep_parameters("param/0")
            self.keep_buffers("buffer/0")
        self.journal.note("enter", grad_enabled=torch.is_grad_enabled(), grads=self.journal.grad_states())

    def end_call(self) -> None:
        """Note how the function left the parameters, .grad and the modes."""
        with self.aside():
            self.look(ends_row=True)
            training = {title: module.training for title, module in self.material.modules.items()}
            self.journal.note(
                "exit", grad_enabled=self.grad_enabled, training=training, grads=self.journal.grad_states()
            )
            self.journal.keep_parameters(f"param/{self.journal.call + 1}")
            self.keep_buffers(f"buffer/{self.journal.call + 1}")

    def keep_buffers(self, prefix: str) -> None:
        """Keep a copy of what the networks hold besides parameters: running statistics."""
        for module in self.material.modules.values():
            for name, buffer in module.named_buffers():
                if buffer.is_floating_point():
                    self.journal.keep(f"{prefix}/{name}", buffer)

    def aside(self) -> Aside:
        """While the recorder itself works with tensors, it does not listen to itself."""
        return Aside(self)

    def look(self, ends_row: bool) -> None:
        """See what changed; ``ends_row`` where what comes now is no part of the update before."""
        column = self.backwards.column
        self.updates.where = {
            "batch": self.batch, "inside_backward": column is not None, "columns": self.backwards.columns
        }  # fmt: skip
        self.looker.look()
        if ends_row and not self.updates.stepping:
            self.updates.close()

    # ------------------------------------------------------------------ the mode: every torch function
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.busy:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        late = name in SCALINGS and self.backwards.tags.finished(args[0])
        result = func(*args, **kwargs)
        with self.aside():
            if mutates(name, kwargs):
                self.look(ends_row=False)
            elif name == "__get__" and getattr(func, "__self__", None) is torch.Tensor.grad:
                self.on_read(args[0], sys._getframe(1))
            if late:
                self.journal.note("late-scaling")
        return result

    def on_read(self, tensor: Tensor, caller: FrameType) -> None:
        """The learner's own line reads a .grad."""
        if not is_learner_code(caller.f_code):
            return
        state = state_of(tensor.grad) if tensor.is_leaf else "non-leaf"
        last = self.journal.events[-1] if self.journal.events else None
        if last is not None and last.what == "read" and last.line == caller.f_lineno:
            last.data["states"].append(state)
        else:
            self.journal.note("read", states=[state])

    # ------------------------------------------------------------------ hooks: step, backward, forward
    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with self.aside():
            self.look(ends_row=False)
            self.updates.begin_step(optimizer)

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with self.aside():
            self.look(ends_row=False)
            self.updates.end_step()

    def begin_backward(self, frame: FrameType | None) -> None:
        self.look(ends_row=True)
        self.updates.recapture = bool(self.updates.stepping)
        # On a single weight there are no batches: every backward call is a round of its own.
        batch = self.backwards.columns if self.material.tensors else self.batch
        self.backwards.begin(frame, batch, bool(self.updates.stepping))

    def before_adding(self, i: int) -> Callable[[Tensor], None]:
        def hook(incoming: Tensor) -> None:
            with self.aside():
                self.backwards.before_adding(i)

        return hook

    def after_adding(self, i: int) -> Callable[[Tensor], None]:
        def hook(parameter: Tensor) -> None:
            with self.aside():
                if self.backwards.column is None:  # a backward that no profile call announced
                    self.begin_backward(None)
                self.backwards.after_adding(i)

        return hook

    def on_fetch(self, number: int | None) -> None:
        with self.aside():
            self.look(ends_row=True)
            self.batch = number if number is not None else self.batch
            self.journal.note("fetch", batch=number)

    def after_forward(self, title: str) -> Callable[[Any, Any, Any], None]:
        def hook(module: torch.nn.Module, args: Any, output: Any) -> None:
            with self.aside():
                self.look(ends_row=True)
                outputs = every_tensor(output)
                batch = next(self.batches_of(args), self.batch)
                self.backwards.tags.tag(outputs, self.forwards, batch)
                self.journal.note(
                    "forward", module=title, batch=batch, forward=self.forwards, training=module.training,
                    grad_enabled=self.grad_enabled, tracked=any(t.requires_grad for t in outputs),
                    inside_step=bool(self.updates.stepping), carried=any(t.grad_fn for t in every_tensor(args)),
                )  # fmt: skip
                self.forwards += 1

        return hook

    def after_loss(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        with self.aside():
            batch = next(self.batches_of(args), self.batch)
            self.journal.note("loss", batch=batch, loss=number_of(every_tensor(output)), tracked=output.requires_grad)

    def batches_of(self, value: Any) -> Iterator[int]:
        """The batches whose memory the tensors in ``value`` share."""
        for tensor in every_tensor(value):
            number = self.where.get(address(tensor))
            if number is not None:
                yield number

    # ------------------------------------------------------------------ lookups and calls
    def listen_to_lookups(self, optimizer: Optimizer) -> None:
        """Note when the learner's line looks up ``zero_grad`` or ``step``, called or not."""
        original = type(optimizer)

        def lookup(this: Any, name: str) -> Any:
            if name in ("zero_grad", "step") and is_learner_code(sys._getframe(1).f_code):
                self.journal.note("fetched", name=name)
            return original.__getattribute__(this, name)

        optimizer.__class__ = type(original.__name__, (original,), {"__getattribute__": lookup})

        def restore() -> None:
            optimizer.__class__ = original

        self.undo.append(restore)

    def on_profile(self, frame: FrameType, event: str, value: Any) -> None:
        """Python entered or left a function."""
        if self.busy or event not in ("call", "return"):
            return
        known = CALLS.get(frame.f_code)
        if known is None and frame.f_code is not BACKWARD:
            return
        try:
            with self.aside():
                if known is not None:
                    self.on_call(frame, event, value, *known)
                elif event == "call":
                    self.begin_backward(frame)
                else:
                    self.look(ends_row=False)
                    self.backwards.end()
        except Exception as error:  # the learner must never see a fault of the recorder's
            self.troubles.append(f"{type(error).__name__}: {error}")

    def on_call(self, frame: FrameType, event: str, value: Any, name: str, describe: Any) -> None:
        """A library function worth knowing was entered, or has returned ``value``."""
        if event == "call":
            caller = frame.f_back
            if name in OWN_LINE_ONLY and not (caller and is_learner_code(caller.f_code)):
                return
            if name == "autograd.grad":
                self.look(ends_row=True)
            self.journal.note("call", name=name, grads=self.journal.grad_states(), **describe(frame))
        elif name == "clip":
            clips = [e for e in self.journal.events[-50:] if e.what == "call" and e.name == "clip"]
            if clips:
                clips[-1].data["norm"] = number_of(every_tensor(value))
