"""Run a learner's function and write down what happened to every parameter and every .grad."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

from autograder.loops.calls import BACKWARD, CALLS, OWN_LINE_ONLY
from autograder.loops.graph import Tags, every_tensor
from autograder.loops.guard import is_learner_code, learner_frame
from autograder.loops.recording import Event
from autograder.loops.task import Material

SCALINGS = frozenset(("div", "__truediv__", "true_divide", "__itruediv__", "div_", "mul", "__mul__", "mul_"))


def mutates(name: str, keywords: dict[str, Any]) -> bool:
    """Whether a torch function may change a tensor in place, by torch's own naming rules."""
    if name.startswith("__"):
        return name.startswith("__i") or name in ("__set__", "__delete__", "__setitem__")
    return name.endswith("_") or "out" in keywords


def plain_rate(material: Material) -> float | None:
    """The learning rate where a step must be ``p -= lr * gradient`` and nothing else."""
    if material.tensors:
        return float(material.arguments[3])
    groups = [group for optimizer in material.optimizers.values() for group in optimizer.param_groups]
    plain = all(type(o) is torch.optim.SGD for o in material.optimizers.values())
    if plain and groups and not any(g["momentum"] or g["weight_decay"] for g in groups):
        return float(groups[0]["lr"])
    return None


def address(tensor: Tensor) -> int | None:
    """Where a tensor's memory begins; None for tensors that have none of their own (torch.func's wrappers)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return None


def state_of(grad: Tensor | None) -> str:
    """The state of a .grad: ``none``, ``zeros`` or ``values``."""
    return "none" if grad is None else "values" if bool(grad.any()) else "zeros"


class Recorder(TorchFunctionMode):
    """A context in which everything that reaches a parameter or its .grad becomes an event.

    Three official doors: a TorchFunctionMode (every operation, in any style), hooks on tensors, networks and
    optimizers (backward, forward, step), and ``sys.setprofile`` (calls that leave no trace in a tensor).
    It changes no value and takes all its hooks away when it is left.
    """

    def __init__(self, material: Material) -> None:
        super().__init__()
        named = material.parameters()
        self.material, self.names, self.params = material, tuple(named), list(named.values())
        self.number = {id(p): i for i, p in enumerate(self.params)}
        self.events: list[Event] = []
        self.arrays: dict[str, Tensor] = {}
        self.lines: dict[int, str] = {}
        self.troubles: list[str] = []
        self.call, self.columns, self.rows, self.forwards = 0, 0, 0, 0
        self.batch: int | None = None
        self.tags = Tags()
        self.busy, self.grad_enabled = False, True
        self.column: Event | None = None
        self.row: Event | None = None
        self.stepping = 0
        self.stale_row = False
        self.seen_grads: list[Tensor | None] = [None] * len(self.params)
        self.seen_params = [p.detach().clone() for p in self.params]
        self.where = {address(tensor): i for i, pair in enumerate(list.__iter__(material.loader)) for tensor in pair}
        self.before: dict[int, Tensor | None] = {}
        self.plain_rate = plain_rate(material)
        self.undo: list[Callable[[], None]] = []

    # ------------------------------------------------------------------ entering and leaving
    def __enter__(self) -> Recorder:
        self.material.loader.listener = self.on_fetch
        for i, parameter in enumerate(self.params):
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
        self.material.loader.listener = None
        for undo in self.undo:
            undo()

    def start_call(self, number: int) -> None:
        """Note that the learner's function is about to be called for the ``number``-th time."""
        self.call, self.batch = number, None
        if number == 0:
            self.keep_parameters("param/0")
        self.note("enter", grad_enabled=torch.is_grad_enabled(), grads=self.grad_states())

    def end_call(self) -> None:
        """Note how the function left the parameters, .grad and the modes."""
        with self.looking():
            self.look()
            self.close_row()
            training = {title: module.training for title, module in self.material.modules.items()}
            self.note("exit", grad_enabled=self.grad_enabled, training=training, grads=self.grad_states())
            self.keep_parameters(f"param/{self.call + 1}")

    # ------------------------------------------------------------------ writing down
    def frame(self) -> FrameType | None:
        return learner_frame(sys._getframe(2))

    def line(self) -> int | None:
        """The learner's line that is being executed now."""
        frame = self.frame()
        if frame is None:
            return None
        number = frame.f_lineno
        if number not in self.lines:
            self.lines[number] = linecache.getline(frame.f_code.co_filename, number, frame.f_globals).strip()
        return number

    def note(self, what: str, **data: Any) -> Event:
        event = Event(what, self.line(), self.call, data)
        self.events.append(event)
        return event

    def keep(self, name: str, tensor: Tensor | None) -> None:
        if tensor is not None:
            self.arrays[name] = tensor.detach().clone()

    def keep_parameters(self, prefix: str) -> None:
        for i, parameter in enumerate(self.params):
            self.keep(f"{prefix}/{i}", parameter)

    def grad_states(self) -> list[str]:
        return [state_of(p.grad) for p in self.params]

    def looking(self) -> _Busy:
        return _Busy(self)

    # ------------------------------------------------------------------ the mode: every torch function
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.busy:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        finished = name in SCALINGS and self.tags.finished(args[0])
        result = func(*args, **kwargs)
        with self.looking():
            if mutates(name, kwargs):
                self.look()
            elif name == "__get__" and getattr(func, "__self__", None) is torch.Tensor.grad:
                self.on_read(args[0], sys._getframe(1))
            if finished:
                self.note("late-scaling")
        return result

    def on_read(self, tensor: Tensor, caller: FrameType) -> None:
        i = self.number.get(id(tensor))
        if is_learner_code(caller.f_code):
            state = state_of(tensor.grad) if i is not None or tensor.is_leaf else "non-leaf"
            last = self.events[-1] if self.events else None
            if last and last.what == "read" and last.line == caller.f_lineno:
                last.data["states"].append(state)
            else:
                self.note("read", states=[state])

    # ------------------------------------------------------------------ looking at .grad and parameters
    def look(self) -> None:
        """Compare every .grad and parameter with what was last seen, and note what changed."""
        for i, parameter in enumerate(self.params):
            grad, seen = parameter.grad, self.seen_grads[i]
            if (grad is None) != (seen is None) or (grad is not None and not _same(grad, seen)):
                self.grad_changed(i, seen, grad)
            if not _same(parameter, self.seen_params[i]):
                self.parameter_changed(i)

    def grad_changed(self, i: int, old: Tensor | None, new: Tensor | None) -> None:
        self.seen_grads[i] = None if new is None else new.detach().clone()
        if new is None or not bool(new.any()):
            self.merge("clear", i, to="none" if new is None else "zeros")
            return
        factor = _ratio(new, old) if old is not None and new.shape == old.shape else None
        if factor is None:
            self.merge("edit", i)
            self.keep(f"edit/{len(self.events) - 1}/{i}", new)
        else:
            self.merge("scale", i).data.setdefault("factors", []).append(factor)

    def merge(self, what: str, i: int, **data: Any) -> Event:
        """Note a change of .grad; a run of the same change over several parameters is one event."""
        last, line = (self.events[-1] if self.events else None), self.line()
        same = last and last.what == what and last.line == line and all(last.data[k] == v for k, v in data.items())
        if last is None or not same or i in last.data["parameters"]:
            last = self.note(what, parameters=[], **data, inside_backward=self.column is not None)
        last.data["parameters"].append(i)
        return last

    def parameter_changed(self, i: int) -> None:
        self.seen_params[i] = self.params[i].detach().clone()
        if self.stepping:
            if self.stale_row and self.row:  # the closure ran inside step(): its gradients are the ones used
                self.stale_row = False
                for j in self.row.data["parameters"]:
                    self.capture(self.row, j)
            return
        row = self.open_row([i], by="manual", lr=self.plain_rate)
        row.data["moved"] = True

    # ------------------------------------------------------------------ rows: updates of the parameters
    def open_row(self, numbers: list[int], by: str, lr: float | None, optimizer: int | None = None) -> Event:
        """The row that these parameters' update belongs to; a parameter updated again begins a new one."""
        row = self.row
        if row is not None and by == "manual" and numbers[0] in row.data["parameters"] and row.data["by"] == "manual":
            return row  # several operations of one update by hand
        if row is None or set(numbers) & set(row.data["parameters"]) or not (numbers or row.data["parameters"]):
            self.close_row()
            row = self.row = self.note(
                "update", row=self.rows, by=by, parameters=[], lr=lr, moved=False,
                inside_backward=self.column is not None, batch=self.batch, optimizers=[], columns=self.columns,
            )  # fmt: skip
            self.before_row = [p.clone() for p in self.seen_params]
            self.rows += 1
        for i in numbers:
            row.data["parameters"].append(i)
            self.capture(row, i)
        if optimizer is not None and optimizer not in row.data["optimizers"]:
            row.data["optimizers"].append(optimizer)
        return row

    def capture(self, row: Event, i: int) -> None:
        grad = self.params[i].grad
        self.arrays.pop(f"grad/{row.row}/{i}", None)
        self.keep(f"grad/{row.row}/{i}", grad)

    def close_row(self) -> None:
        if self.row is not None:
            row, self.row = self.row, None
            self.keep_parameters(f"at/{row.row}")
            moved = [i for i, p in enumerate(self.params) if not _same(p, self.before_row[i])]
            row.data["moved"] = bool(moved)
            row.data["frozen"] = [i for i in moved if not self.params[i].requires_grad]

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with self.looking():
            self.look()
            self.stepping += 1
            groups = [p for group in optimizer.param_groups for p in group["params"]]
            numbers = [self.number[id(p)] for p in groups if id(p) in self.number]
            self.open_row(numbers, "optimizer", float(optimizer.param_groups[0]["lr"]), id(optimizer))

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        with self.looking():
            self.look()
            self.stepping = max(0, self.stepping - 1)
            self.stale_row = False

    # ------------------------------------------------------------------ columns: backward calls
    def start_backward(self, frame: FrameType | None) -> None:
        self.look()
        if self.stepping:
            self.stale_row = True
        else:
            self.close_row()
        given = frame.f_locals if frame else {}
        roots = every_tensor(given.get("tensors"))
        weights = every_tensor(given.get("grad_tensors"))
        reached = self.tags.reached(roots)
        batches = sorted({b for n in reached if (b := self.tags.batch_of[n]) is not None})
        if not batches:  # on a single weight every round is one "batch"
            batches = [self.columns] if self.material.tensors else [] if self.batch is None else [self.batch]
        self.column = self.note(
            "backward", column=self.columns, batches=batches, forwards=reached, added=[],
            root=self.tags.finish(roots), loss=_number(roots), retain=bool(given.get("retain_graph")),
            weight=_number(weights), leaf=bool(roots) and all(r.grad_fn is None for r in roots),
            tracked=any(r.requires_grad for r in roots), inside_step=bool(self.stepping),
        )  # fmt: skip
        self.columns += 1

    def before_adding(self, i: int) -> Callable[[Tensor], None]:
        def hook(incoming: Tensor) -> None:
            grad = self.params[i].grad
            with self.looking():
                self.before[i] = None if grad is None else grad.detach().clone()

        return hook

    def after_adding(self, i: int) -> Callable[[Tensor], None]:
        def hook(parameter: Tensor) -> None:
            with self.looking():
                if self.column is None:  # a backward that no profile call announced
                    self.start_backward(None)
                assert self.column is not None
                assert parameter.grad is not None
                grad, before = parameter.grad.detach(), self.before.pop(i, None)
                self.column.data["added"].append(i)
                self.keep(f"add/{self.column.column}/{i}", grad if before is None else grad - before)
                self.seen_grads[i] = grad.clone()

        return hook

    # ------------------------------------------------------------------ batches, networks, losses, calls
    def on_fetch(self, number: int | None) -> None:
        with self.looking():
            self.look()
            self.close_row()
            self.batch = number if number is not None else self.batch
            self.note("fetch", batch=number)

    def after_forward(self, title: str) -> Callable[[Any, Any, Any], None]:
        def hook(module: torch.nn.Module, args: Any, output: Any) -> None:
            with self.looking():
                self.look()
                if not self.stepping:
                    self.close_row()
                outputs = every_tensor(output)
                batch = next(iter(self.batches_of(args)), self.batch)
                self.tags.tag(outputs, self.forwards, batch)
                self.note(
                    "forward", module=title, batch=batch, forward=self.forwards, training=module.training,
                    grad_enabled=self.grad_enabled, inference=torch.is_inference_mode_enabled(),
                    tracked=any(t.requires_grad for t in outputs), inside_step=bool(self.stepping),
                )  # fmt: skip
                self.forwards += 1

        return hook

    def after_loss(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        with self.looking():
            batch = next(iter(self.batches_of(args)), self.batch)
            self.note("loss", batch=batch, loss=_number(every_tensor(output)), tracked=output.requires_grad)

    def batches_of(self, value: Any) -> Iterator[int]:
        """The batches whose memory the tensors in ``value`` share."""
        for tensor in every_tensor(value):
            number = self.where.get(address(tensor))
            if number is not None:
                yield number

    def listen_to_lookups(self, optimizer: Optimizer) -> None:
        """Note when the learner's line looks up ``zero_grad`` or ``step``, called or not."""
        original = type(optimizer)

        def lookup(this: Any, name: str) -> Any:
            if name in ("zero_grad", "step") and is_learner_code(sys._getframe(1).f_code):
                self.note("fetched", name=name)
            return original.__getattribute__(this, name)

        optimizer.__class__ = type(original.__name__, (original,), {"__getattribute__": lookup})

        def restore() -> None:
            optimizer.__class__ = original

        self.undo.append(restore)

    def on_profile(self, frame: FrameType, event: str, value: Any) -> None:
        known = CALLS.get(frame.f_code) if event in ("call", "return") else None
        if self.busy or (known is None and frame.f_code is not BACKWARD):
            return
        try:
            with self.looking():
                if frame.f_code is BACKWARD:
                    if event == "call":
                        self.start_backward(frame)
                    elif event == "return":
                        self.look()
                        self.column = None
                elif known:
                    self.on_call(frame, event, value, *known)
        except Exception as error:  # the learner must never see a fault of the recorder's
            self.troubles.append(f"{type(error).__name__}: {error}")

    def on_call(self, frame: FrameType, event: str, value: Any, name: str, describe: Any) -> None:
        if event == "call":
            caller = frame.f_back
            if name not in OWN_LINE_ONLY or (caller and is_learner_code(caller.f_code)):
                if name == "autograd.grad" and not self.stepping:
                    self.close_row()
                self.note("call", name=name, grads=self.grad_states(), **describe(frame))
        elif name == "clip":
            found = [e for e in self.events[-50:] if e.what == "call" and e.name == "clip"]
            if found:
                found[-1].data["norm"] = _number(every_tensor(value))


class _Busy:
    """While the recorder itself works with tensors, it does not listen to itself."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.was, self.recorder.busy = self.recorder.busy, True
        self.grad = torch.is_grad_enabled()
        if not self.was:
            self.recorder.grad_enabled = self.grad
        torch._C._set_grad_enabled(False)
        self.plain = torch._C.DisableTorchFunction()
        self.plain.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.plain.__exit__(None, None, None)
        torch._C._set_grad_enabled(self.grad)
        self.recorder.busy = self.was


def _same(a: Tensor, b: Tensor | None) -> bool:
    return (
        b is not None and a.shape == b.shape and bool(torch.equal(a, b) or torch.equal(a.nan_to_num(), b.nan_to_num()))
    )


def _ratio(new: Tensor, old: Tensor) -> float | None:
    """c where new = c * old up to rounding; None where there is no such number."""
    square = float((old * old).sum())
    if not square:
        return None
    c = float((new * old).sum()) / square
    room = 1e-9 if new.dtype is torch.float64 else 1e-5
    return c if float((new - c * old).norm()) <= room * float(new.norm()) else None


def _number(tensors: list[Tensor]) -> float | None:
    return float(tensors[0]) if len(tensors) == 1 and tensors[0].numel() == 1 else None
