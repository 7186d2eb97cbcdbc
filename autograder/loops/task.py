"""What a loop is asked to do: a small, seeded training problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

SIGNATURES = {
    "train": ("model", "optimizer", "loss_fn", "loader"),
    "train_accumulate": ("model", "optimizer", "loss_fn", "loader", "accumulation_steps"),
    "evaluate": ("model", "loss_fn", "loader"),
    "train_gan": ("gen", "disc", "opt_g", "opt_d", "loss_fn", "loader"),
    "fit": ("w", "x", "y", "lr", "steps"),
    "gradient": ("x",),
}
REFERENCES = {"train": "plain", "train_accumulate": "accumulate", "train_gan": "gan_d_first"}


@dataclass(frozen=True)
class Task:
    """One training problem, made anew from a seed each time it is used.

    ``batches`` are the batch sizes, ``epochs`` how often the function is called on the same model,
    ``k`` the accumulation steps, ``clip`` the maximum norm that the loop is meant to apply, and
    ``reference`` what the loop is meant to compute (by default what its signature says).
    """

    signature: str = "train"
    model: str = "mlp"
    optimizer: str = "sgd"
    epochs: int = 2
    batches: tuple[int, ...] = (4,) * 6
    k: int = 3
    clip: float | None = None
    reference: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (
            ("signature", self.signature, SIGNATURES),
            ("model", self.model, MODELS),
            ("optimizer", self.optimizer, OPTIMIZERS),
        ):
            if value not in known:
                raise ValueError(f"unknown {name} {value!r}: use one of {', '.join(known)}")
        if self.signature in ("fit", "gradient", "evaluate"):
            object.__setattr__(self, "epochs", 1)
        if self.signature == "evaluate" and self.model == "mlp":
            object.__setattr__(self, "model", "bn")  # without it the two modes would not differ
        if not self.reference:
            object.__setattr__(self, "reference", REFERENCES.get(self.signature, self.signature))

    @classmethod
    def from_setup(cls, setup: Mapping[str, Any]) -> Task:
        """A task from a case file's ``SETUP``; keys that are not a task's are left aside."""
        known = {f.name for f in fields(cls)} & set(setup)
        values = {name: setup[name] for name in known if setup[name] is not None}
        if "batches" in values:
            values["batches"] = tuple(values["batches"])
        return cls(**values)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.model == "mlp32" else torch.float64

    @property
    def accumulates(self) -> bool:
        return self.signature == "train_accumulate"

    def groups(self) -> list[list[int]]:
        """Batch numbers that belong to one optimizer step each, in one call."""
        k = self.k if self.accumulates else 1
        numbers = list(range(len(self.batches)))
        return [numbers[i : i + k] for i in range(0, len(numbers), k)]


class Batches(list):
    """A loader of (x, y) pairs: a list, whose iteration can be listened to."""

    listener: Callable[[int | None], None] | None = None

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for number, batch in enumerate(super().__iter__()):
            if self.listener:
                self.listener(number)
            yield batch
        if self.listener:
            self.listener(None)


@dataclass
class Material:
    """Everything one run needs: fresh networks, optimizers, data, and the arguments to call with."""

    modules: dict[str, nn.Module]
    optimizers: dict[str, Optimizer]
    loss_fn: nn.Module
    loader: Batches
    arguments: tuple[Any, ...]
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def parameters(self) -> dict[str, Tensor]:
        """Name to parameter; a network's name comes first where there are several."""
        prefix = len(self.modules) > 1
        named = {
            f"{title}.{name}" if prefix else name: parameter
            for title, module in self.modules.items()
            for name, parameter in module.named_parameters()
        }
        return named | self.tensors


class Recurrent(nn.Module):
    """A small RNN that takes and returns its hidden state."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.RNN(4, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out, h = self.rnn(x, h)
        return self.head(out), h


class Branches(nn.Module):
    """Two branches on one body; the sign of the batch's first column says which one is used."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.left, self.right = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        branch = self.left if float(x.detach()[:, 0].mean()) > 0 else self.right
        return branch(torch.tanh(self.body(x)))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)),
    "mlp32": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)),
    "column": lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)),
    "bn": lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2)),
    "rnn": Recurrent,
    "branches": Branches,
}


def _head(model: nn.Module) -> list[nn.Parameter]:
    return list(list(model.children())[-1].parameters())


OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "sgd": lambda m: SGD(m.parameters(), lr=0.1),
    "momentum": lambda m: SGD(m.parameters(), lr=0.1, momentum=0.9),
    "momentum_wd": lambda m: SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=0.05),
    "adam": lambda m: Adam(m.parameters(), lr=0.05, foreach=False),
    "adam_foreach": lambda m: Adam(m.parameters(), lr=0.05, foreach=True),
    "adam_fused": lambda m: Adam(m.parameters(), lr=0.05, fused=True),
    "lbfgs": lambda m: torch.optim.LBFGS(m.parameters(), lr=0.05, max_iter=4),
    "head_sgd": lambda m: SGD(_head(m), lr=0.1),
}


def build(task: Task, seed: int = 0) -> Material:
    """Make the networks, optimizers and data of ``task``; the same seed gives the same values.

    The caller's random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1000 + seed)
        if task.signature == "train_gan":
            return _gan(task)
        if task.signature in ("fit", "gradient"):
            return _tensors(task)
        model = MODELS[task.model]().to(task.dtype)
        loader = Batches(_batches(task))
        if task.signature == "evaluate":
            return _evaluation(model, loader)
    optimizer, loss_fn = OPTIMIZERS[task.optimizer](model), nn.MSELoss()
    arguments: tuple[Any, ...] = (model, optimizer, loss_fn, loader)
    if task.accumulates:
        arguments += (task.k,)
    return Material({"model": model}, {"optimizer": optimizer}, loss_fn, loader, arguments)


def _evaluation(model: nn.Module, loader: Batches) -> Material:
    """The model has seen data, so that its running statistics say something, and is in training mode."""
    with torch.no_grad():
        for x, _ in list.__iter__(loader):
            if len(x) > 1:
                model(x)
    loss_fn = nn.MSELoss()
    return Material({"model": model}, {}, loss_fn, loader, (model, loss_fn, loader))


def _batches(task: Task) -> list[tuple[Tensor, Tensor]]:
    outputs = 1 if task.model == "column" else 2
    mix = torch.randn(4, outputs, dtype=torch.float64)
    out = []
    for number, size in enumerate(task.batches):
        shape = (size, 3, 4) if task.model == "rnn" else (size, 4)
        x = torch.randn(*shape, dtype=torch.float64)
        if task.model == "branches":  # runs of one, two and three batches on either branch
            x[:, 0] = x[:, 0].abs() * (1 if number % 5 in (0, 2, 3) else -1)
        y = 2 * torch.sin(x @ mix) + 0.3 * torch.randn(*shape[:-1], outputs, dtype=torch.float64)
        out.append((x.to(task.dtype), y.to(task.dtype)))
    return out


def _gan(task: Task) -> Material:
    def network(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(inputs, 5), nn.Tanh(), nn.Linear(5, outputs)).to(task.dtype)

    gen, disc = network(3, 4), network(4, 1)
    loader = Batches(
        (torch.randn(size, 3, dtype=task.dtype), torch.randn(size, 4, dtype=task.dtype) + 1) for size in task.batches
    )
    make, loss_fn = OPTIMIZERS[task.optimizer], nn.BCEWithLogitsLoss()
    opt_g, opt_d = make(gen), make(disc)
    return Material(
        {"gen": gen, "disc": disc},
        {"opt_g": opt_g, "opt_d": opt_d},
        loss_fn,
        loader,
        (gen, disc, opt_g, opt_d, loss_fn, loader),
    )


def _tensors(task: Task) -> Material:
    if task.signature == "gradient":
        return Material({}, {}, nn.MSELoss(), Batches(), (torch.randn(5, dtype=task.dtype),))
    x, y = torch.randn(8, 3, dtype=task.dtype), torch.randn(8, dtype=task.dtype)
    w = torch.zeros(3, dtype=task.dtype, requires_grad=True)
    return Material({}, {}, nn.MSELoss(), Batches(), (w, x, y, 0.1, 5), {"w": w})
