"""Lend the learner's code a known state of Python and torch, and take back what was there before."""

from __future__ import annotations

import builtins
import contextlib
import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import torch
from torch import overrides

Undo = Callable[[], None]


@contextlib.contextmanager
def neutral_state(seed: int | None = None) -> Iterator[None]:
    """Run a block under torch's own defaults, whatever was set before, and restore it all afterwards.

    Inside: gradients are recorded, the default dtype is float32, the default device the CPU, torch has one thread
    (exercises are too small for more), and anomaly mode, autocast and deterministic algorithms are off. ``seed``
    seeds torch, Python and NumPy for the block.
    """
    undos = [save() for save in SAVED]
    mode = torch.inference_mode(False)
    mode.__enter__()
    try:
        _set_defaults()
        if seed is not None:
            _seed(seed)
        yield
    finally:
        for undo in reversed(undos):
            with contextlib.suppress(Exception):  # one that fails must not keep the others from restoring
                undo()
        mode.__exit__(None, None, None)


def _set_defaults() -> None:
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)
    if torch.get_default_device() != torch.device("cpu"):
        torch.set_default_device(None)
    if torch.is_anomaly_enabled():
        torch.set_anomaly_enabled(False)
    if torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(False)
    if torch.is_autocast_enabled("cpu"):
        torch.set_autocast_enabled("cpu", False)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


# ---- one function for each thing that is saved; it returns what restores it ----------------------------------------


def _torch_settings() -> Undo:
    dtype, anomaly = torch.get_default_dtype(), (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    autocast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def undo() -> None:
        torch.set_default_dtype(dtype)
        torch.set_anomaly_enabled(*anomaly)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if torch.are_deterministic_algorithms_enabled() != deterministic:
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_autocast_enabled("cpu", autocast[0])
        torch.set_autocast_dtype("cpu", autocast[1])

    return undo


def _torch_modes() -> Undo:
    """Function modes, of which a default device is one, and the grad mode.

    Inference mode is left to the guard of ``neutral_state``, which puts the state back that it found.
    """
    dispatch = torch._C.DisableTorchFunction()  # remembers whether functions were dispatched to modes
    dispatch.__enter__()
    dispatch.__exit__(None, None, None)
    device, grad = torch.get_default_device(), torch.is_grad_enabled()
    depth = len(overrides._get_current_function_mode_stack())
    inference = torch.is_inference_mode_enabled()

    def undo() -> None:
        dispatch.__exit__(None, None, None)
        while len(overrides._get_current_function_mode_stack()) > depth:
            overrides._pop_mode()
        if torch.get_default_device() != device:
            torch.set_default_device(None if device == torch.device("cpu") else device)
        if not inference:
            torch.set_grad_enabled(grad)

    return undo


def _random_states() -> Undo:
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None

    def undo() -> None:
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)

    return undo


def _print_options() -> Undo:
    options = getattr(getattr(torch, "_tensor_str", None), "PRINT_OPTS", None)
    before = dict(vars(options)) if options is not None else {}

    def undo() -> None:
        for name, value in before.items():
            setattr(options, name, value)

    return undo


def _builtins() -> Undo:
    before = dict(vars(builtins))

    def undo() -> None:
        now = vars(builtins)
        for name in [name for name in now if name not in before]:
            del now[name]
        for name, value in before.items():
            if now.get(name) is not value:
                now[name] = value

    return undo


def _process() -> Undo:
    """The working folder and the environment variables."""
    folder, variables = os.getcwd(), os.environ.copy()

    def undo() -> None:
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        os.chdir(folder)

    return undo


def _interpreter() -> Undo:
    """What ``sys`` and ``gc`` can be told."""
    names = "excepthook", "unraisablehook", "displayhook", "breakpointhook"
    hooks = [(name, getattr(sys, name)) for name in names]
    trace, profile, limit = sys.gettrace(), sys.getprofile(), sys.getrecursionlimit()
    collecting, path = gc.isenabled(), sys.path[:]

    def undo() -> None:
        for name, hook in hooks:
            setattr(sys, name, hook)
        if sys.gettrace() is not trace:
            sys.settrace(trace)
        if sys.getprofile() is not profile:
            sys.setprofile(profile)
        sys.setrecursionlimit(limit)
        sys.path[:] = path
        (gc.enable if collecting else gc.disable)()

    return undo


# A reader of SIGCHLD that torch's DataLoader sets once, and for good, is not the learner's.
SIGNALS = [s for s in signal.valid_signals() if s not in {getattr(signal, "SIGCHLD", None)}]


def _signals() -> Undo:
    before = [(number, signal.getsignal(number)) for number in SIGNALS]

    def undo() -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # no other thread can have changed one
        for number, handler in before:
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)

    return undo


def _figures() -> Undo:
    """Figures that pyplot would draw below the cell."""
    module = sys.modules.get("matplotlib.pyplot")
    before = set(module.get_fignums()) if module else set()

    def undo() -> None:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot:
            for number in set(pyplot.get_fignums()) - before:
                pyplot.close(number)

    return undo


SAVED: tuple[Callable[[], Undo], ...] = (
    _builtins,
    _signals,
    _interpreter,
    _process,
    _random_states,
    _figures,
    _print_options,
    _torch_settings,
    _torch_modes,
)
