"""What a run leaves behind: plain data, so that it can cross from the untrusted half to the trusted one."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.guard import Failure
from autograder.loops.task import Task

FORMAT = 1


@dataclass(frozen=True)
class Event:
    """One thing that happened, in order: ``what`` it was, on which line, in which call of the function.

    fetch      a batch was taken from the loader (``batch``; None at the loader's end)
    forward    the network ran (``batch``, ``grad_enabled``, ``training``, ``tracked``)
    backward   gradients were added (``column``, ``batches``, ``forwards``, ``root``, ...)
    clear      .grad became None or zeros (``parameters``, ``to``)
    fill       .grad was None and became zeros (``parameters``)
    scale      .grad was multiplied by a number (``factors``: parameter to factor)
    edit       .grad was given another value (``parameters``)
    read       the learner's own code read .grad (``states``)
    update     parameters changed (``row``, ``by``, ``parameters``)
    call       a function worth knowing was entered (``name``, ...)
    fetched    a method was looked up on the optimizer and not called (``name``)
    enter/exit the learner's function started or ended (modes, state of .grad)
    """

    what: str
    line: int | None
    call: int
    data: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.data.get(name)


@dataclass(frozen=True)
class Recording:
    """A run of a learner's function on one task.

    ``arrays`` holds, by name: ``param/N/I`` parameter I after call N (N = 0 before the first),
    ``at/R/I`` parameter I after update R, ``grad/R/I`` the gradient that update R used (absent: None),
    ``add/C/I`` what backward call C added to parameter I, ``buffer/N/NAME`` a network's buffer after call N,
    ``returned`` a returned tensor (or an evaluation's number).
    """

    task: Task
    seed: int
    parameters: tuple[str, ...]
    events: tuple[Event, ...]
    arrays: dict[str, Tensor]
    failure: Failure | None = None
    printed: str = ""
    notes: tuple[str, ...] = ()
    returned: dict[str, Any] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)
    kept: int = 0
    seconds: float = 0.0

    @property
    def exit(self) -> dict[str, str]:
        """State of each parameter's .grad when the last call ended: none, zeros or values."""
        last = [e for e in self.events if e.what == "exit"]
        return dict(zip(self.parameters, last[-1].grads, strict=True)) if last else {}

    def dumps(self) -> str:
        """The recording as JSON text; arrays as base64 of their bytes. Never pickled."""
        plain = asdict(self) | {"arrays": {k: _pack(v) for k, v in self.arrays.items()}, "format": FORMAT}
        return json.dumps(plain)

    @classmethod
    def loads(cls, text: str) -> Recording:
        """Read what ``dumps`` wrote. Raises ValueError for anything else."""
        try:
            plain = json.loads(text)
            if plain.pop("format") != FORMAT:
                raise ValueError("another format")
            plain["task"] = Task.from_setup(plain["task"])
            plain["events"] = tuple(Event(**event) for event in plain["events"])
            plain["arrays"] = {k: _unpack(v) for k, v in plain["arrays"].items()}
            plain["failure"] = plain["failure"] and Failure(**plain["failure"])
            plain["lines"] = {int(k): str(v) for k, v in plain["lines"].items()}
            plain |= {k: tuple(plain[k]) for k in ("parameters", "notes")}
            return cls(**plain)
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise ValueError(f"not a recording: {error}") from error


_DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


def _pack(tensor: Tensor) -> dict[str, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    raw = bytes(flat.tolist())
    return {"dtype": name, "shape": list(tensor.shape), "data": base64.b64encode(raw).decode()}


def _unpack(packed: dict[str, Any]) -> Tensor:
    raw = bytearray(base64.b64decode(packed["data"], validate=True))
    dtype = _DTYPES[packed["dtype"]]
    if not raw:
        return torch.empty(packed["shape"], dtype=dtype)
    return torch.frombuffer(raw, dtype=dtype).reshape(packed["shape"])
