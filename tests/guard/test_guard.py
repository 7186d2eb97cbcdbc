"""The guard: whatever a learner's function does, it comes back as an Outcome, and the process is as it was."""

# ruff: noqa: SIM105  (learners write try, except, pass)

import builtins
import contextlib
import gc
import linecache
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy
import pytest
import torch

from autograder.guard import attempt, is_learner_code, learner_frame, neutral_state

SHORT = 0.15  # a time limit for loops that never end


# ---- the result ---------------------------------------------------------------------------------------------------


def test_value_and_print():
    """What the function returns and prints is the outcome; arguments are handed through."""

    def add(a, *, b):
        print("adding")
        return a + b

    outcome = attempt(add, 2, b=3)
    assert (outcome.value, outcome.failure, outcome.printed, outcome.notes) == (5, None, "adding\n", ())


def test_failure_names_the_learners_line():
    """A failure has the line and text of the innermost frame that is the learner's, not torch's."""

    def multiply():
        return torch.ones(2, 3) @ torch.ones(2, 3)  # shapes do not fit

    failure = attempt(multiply).failure
    assert failure.kind == "raised"
    assert failure.type == "RuntimeError"
    assert failure.text == linecache.getline(__file__, failure.line).strip()
    assert "shapes do not fit" in failure.text


def _recursive():
    return _recursive()


def _raises(error):
    def function():
        raise error

    return function


class _Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (_raises(ValueError("x")), "raised"),
        (_raises(SystemExit(3)), "exit"),
        (_raises(KeyboardInterrupt()), "raised"),
        (_raises(GeneratorExit()), "raised"),
        (_raises(MemoryError()), "memory"),
        (_raises(_Unprintable()), "raised"),
        (_raises(BaseException("odd")), "raised"),
        (_recursive, "recursion"),
        (sys.exit, "exit"),
        (lambda: exit(), "exit"),
        (lambda: input("?"), "input"),
        (lambda: sys.modules["getpass"].getpass(), "input"),
        (lambda: breakpoint(), "input"),
        (lambda: sys.modules["pdb"].Pdb().set_trace() or 1, "input"),
    ],
)
def test_every_exception_is_a_failure(function, kind):
    """Nothing that a function raises gets out, and the kinds that deserve their own words are told apart."""
    import getpass  # noqa: F401
    import pdb  # noqa: F401

    assert attempt(function).failure.kind == kind


def test_reading_stdin_finds_nothing():
    """A function that reads sys.stdin meets its end at once, and does not wait."""
    assert attempt(lambda: sys.stdin.readline()).value == ""


def test_a_learners_line_is_known_by_its_file():
    """Code of torch, Python, installed packages and ours is not the learner's; a test's and a cell's is."""
    assert is_learner_code(test_value_and_print.__code__)
    assert is_learner_code(compile("1", "/tmp/ipykernel_1/2.py", "eval"))
    assert is_learner_code(compile("1", "<ipython-input-3-abc>", "eval"))
    for function in (torch.nn.Module.__call__, os.path.join, pytest.raises, attempt):
        assert not is_learner_code(function.__code__)
    assert not is_learner_code(compile("1", "<frozen importlib._bootstrap>", "eval"))


def test_learner_frame_stops_at_the_border():
    """Looking up the stack for the learner's frame never passes the guard's own frame."""

    def inner():
        return learner_frame(sys._getframe()).f_code.co_name

    assert attempt(inner).value == "inner"
    assert attempt(sys.modules["autograder.guard.frames"].learner_frame, None).value is None


# ---- the time limit -----------------------------------------------------------------------------------------------


def swallow():
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass


def swallow_nested():
    while True:
        try:
            while True:
                try:
                    while True:
                        try:
                            x = 1  # noqa: F841
                        except BaseException:
                            pass
                except BaseException:
                    pass
        except BaseException:
            pass


def swallow_in_recursion(depth=4):
    while True:
        try:
            swallow_in_recursion(depth - 1) if depth else time.sleep(0.001)
        except BaseException:
            for _ in range(3):
                len(repr(depth))
            continue
        finally:
            depth = depth + 0


def swallow_by_suppress():
    while True:
        with contextlib.suppress(BaseException):
            while True:
                with contextlib.suppress(BaseException):
                    torch.ones(3).sum()


def swallow_in_generators():
    def inner():
        while True:
            try:
                yield 1
            except BaseException:
                pass

    def outer():
        while True:
            try:
                yield from inner()
            except BaseException:
                pass

    while True:
        try:
            for _ in outer():
                pass
        except BaseException:
            pass


def swallow_on_one_line():
    exec("while True:\n try: pass\n except: pass")


def swallow_with_log():
    while True:
        try:
            while True:
                try:
                    torch.ones(2) * 2
                except BaseException:
                    logging.exception("oops")
        except BaseException:
            print("again")


def never_ends():
    while True:
        pass


LOOPS = [
    never_ends, swallow, swallow_nested, swallow_in_recursion, swallow_by_suppress, swallow_in_generators,
    swallow_on_one_line, swallow_with_log,
]  # fmt: skip


@pytest.mark.parametrize("function", LOOPS)
def test_time_limit_ends_every_loop(function):
    """A loop that never ends is ended, in whatever nest of handlers it swallows exceptions, and its line is named."""
    started = time.perf_counter()
    outcome = attempt(function, seconds=SHORT)
    assert outcome.failure.kind == "timeout"
    assert outcome.failure.line is not None
    assert time.perf_counter() - started < SHORT + 1
    assert sys.gettrace() is None or "autograder" not in repr(sys.gettrace())


@pytest.mark.parametrize("function", [f for f in LOOPS if f is not swallow])
def test_time_limit_works_in_another_thread(function):
    """Outside the main thread, where no signal arrives, loops of Python are ended as well."""
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(attempt(function, seconds=SHORT)))
    thread.start()
    thread.join(10)
    assert outcomes[0].failure.kind == "timeout"


@pytest.mark.parametrize("function", [time.sleep, lambda seconds: subprocess.run(["sleep", str(seconds)])])
def test_time_limit_ends_waiting(function):
    """A function that waits in a system call is ended, too."""
    started = time.perf_counter()
    assert attempt(function, 1000, seconds=SHORT).failure.kind == "timeout"
    assert time.perf_counter() - started < SHORT + 1


def test_a_swallowed_limit_is_no_success():
    """A function that catches the time limit's exception and returns in good order has failed all the same."""

    def returns():
        try:
            time.sleep(10)
        except BaseException:
            return "fine"

    outcome = attempt(returns, seconds=SHORT)
    assert outcome.value is None
    assert outcome.failure.kind == "timeout"


def test_limits_that_fall_anywhere_leave_the_guard_whole():
    """However the limit meets the code, also while it ends, no exception of it gets out."""

    def work():
        for _ in range(40):
            try:
                sum(range(200))
            except BaseException:
                pass

    for number in range(300):
        outcome = attempt(work, seconds=1e-5 + number * 2e-6)
        assert outcome.failure is None or outcome.failure.kind == "timeout"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_earlier_alarm_goes_on():
    """A timer and handler that were set before the call are there again after it, with the time that is left."""
    fired = []
    handler = signal.signal(signal.SIGALRM, lambda number, frame: fired.append(number))
    before = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        attempt(time.sleep, 0.05)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 0.16
        attempt(time.sleep, 0.3)
        time.sleep(0.05)
        assert fired == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)


@pytest.mark.parametrize("function", [time.sleep, lambda seconds: swallow(), lambda seconds: swallow_nested()])
def test_the_users_interrupt_interrupts(function):
    """A real Ctrl-C raises KeyboardInterrupt in the caller, also when the function swallows it."""
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        attempt(function, 5)
    assert time.perf_counter() - started < 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- output -------------------------------------------------------------------------------------------------------


def test_nothing_reaches_the_callers_streams(capfd):
    """Prints, subprocesses, file descriptors, warnings and logs all stay inside; stderr becomes notes."""
    kept = sys.stderr
    handler = logging.StreamHandler(kept)
    logger = logging.getLogger("learner")
    logger.addHandler(handler)

    def loud():
        print("to stdout")
        print("to stderr", file=sys.stderr)
        print("to the stream of before", file=kept)
        os.write(1, b"to descriptor 1\n")
        os.write(2, b"to descriptor 2\n")
        subprocess.run("echo from a child; echo from a child, too >&2", shell=True)
        subprocess.run(["echo", "to a given stream"], stdout=sys.stdout)
        warnings.warn("a warning", stacklevel=1)
        torch.nn.functional.mse_loss(torch.ones(4, 1), torch.ones(4))
        logging.warning("a log of %s", "root")
        logger.error("a log of its own")
        sys.__stderr__.write("to the first stderr\n")

    outcome = attempt(loud)
    logger.removeHandler(handler)
    assert capfd.readouterr() == ("", "")
    assert outcome.failure is None
    for text in ("to stdout", "to descriptor 1", "from a child", "to a given stream"):
        assert text in outcome.printed
    notes = "\n".join(outcome.notes)
    texts = "to stderr", "to the stream of before", "descriptor 2", "a child, too", "a warning", "target size"
    for text in (*texts, "a log of root", "a log of its own", "first stderr"):
        assert text in notes
    assert any(note.startswith("Warning at line ") and note.endswith("a warning") for note in outcome.notes)


def test_floods_are_fast_and_bounded():
    """300,000 prints take seconds at most; head and tail are kept, and how much is missing is said."""

    def flood():
        for i in range(300_000):
            print(i)

    started = time.perf_counter()
    printed = attempt(flood, seconds=30).printed
    assert time.perf_counter() - started < 10
    assert len(printed) < 21_000
    assert printed.startswith("0\n1\n2\n")
    assert printed.endswith("299998\n299999\n")
    dropped = sum(len(f"{i}\n") for i in range(300_000)) - 20_000
    assert f"{dropped:,} characters left out" in printed


def test_floods_below_python_are_bounded():
    """A child that writes 30 MB costs its head and tail, and no more."""

    def flood():
        subprocess.run([sys.executable, "-c", "import os\nfor _ in range(300): os.write(1, b'x' * 100_000)"])
        print("end", flush=True)

    outcome = attempt(flood, seconds=30)
    assert len(outcome.printed) < 21_000
    assert "left out" in outcome.printed


def test_repeated_notes_are_kept_once():
    """A warning in a loop is one note, and a progress bar is its last state."""

    def noisy():
        for i in range(1000):
            warnings.warn("again", stacklevel=1)
            sys.stderr.write(f"\r{i}/1000")

    notes = attempt(noisy).notes
    assert len(notes) == 2
    assert notes[0].endswith("again")
    assert notes[1] == "Written to stderr: 999/1000"


def test_warnings_never_raise():
    """A filter that turns warnings into errors, as in these tests, does not fail a learner's function."""
    assert attempt(warnings.warn, "x").failure is None


def test_after_the_call_output_works_as_before(capfd):
    """Streams, descriptors, the log and the warnings are the caller's again."""
    attempt(print, "inside")
    print("out")
    os.write(2, b"err\n")
    assert capfd.readouterr() == ("out\n", "err\n")
    with pytest.warns(UserWarning, match="outside"):
        warnings.warn("outside", stacklevel=1)


# ---- state --------------------------------------------------------------------------------------------------------


def _state():
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "modes": len(torch.overrides._get_current_function_mode_stack()),
        "threads": torch.get_num_threads(),
        "anomaly": torch.is_anomaly_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "print": torch._tensor_str.PRINT_OPTS.precision,
        "rng": torch.get_rng_state().sum().item(),
        "random": hash(random.getstate()),
        "numpy": numpy.random.get_state()[1].sum(),
        "cwd": os.getcwd(),
        "environ": dict(os.environ),
        "filters": list(warnings.filters),
        "log": (logging.root.handlers[:], logging.root.level, logging.lastResort, logging.root.manager.disable),
        "streams": (sys.stdout, sys.stderr, sys.stdin),
        "hooks": (sys.gettrace(), sys.getprofile(), sys.excepthook, sys.breakpointhook),
        "recursion": sys.getrecursionlimit(),
        "gc": gc.isenabled(),
        "builtins": (builtins.print, builtins.len, builtins.input, hasattr(builtins, "mine")),
        "signals": (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)),
        "path": sys.path[:],
    }


KEPT = []


def _keep_inference_mode():
    KEPT.append(torch.inference_mode())
    KEPT[-1].__enter__()


def _replace_builtin():
    builtins.len = lambda x: 3
    builtins.mine = 1
    builtins.input = None


def _keep_function_mode():
    torch.overrides.TorchFunctionMode().__enter__()


MESSES = {
    "grad": lambda: torch.set_grad_enabled(False),
    "inference": _keep_inference_mode,
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "device": lambda: torch.set_default_device("meta"),
    "function mode": _keep_function_mode,
    "threads": lambda: torch.set_num_threads(3),
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "print options": lambda: torch.set_printoptions(precision=9),
    "seeds": lambda: (torch.manual_seed(1), random.seed(1), numpy.random.seed(1)),
    "random numbers": lambda: (torch.rand(1), random.random(), numpy.random.rand()),
    "folder": lambda: os.chdir("/"),
    "environment": lambda: os.environ.update(A_NEW_ONE="1", PATH=""),
    "warnings": lambda: warnings.simplefilter("ignore"),
    "log": lambda: (logging.basicConfig(level=10, force=True), logging.disable(50)),
    "streams": lambda: setattr(sys, "stderr", None),
    "trace": lambda: sys.settrace(lambda *a: None),
    "profile": lambda: sys.setprofile(lambda *a: None),
    "hooks": lambda: setattr(sys, "excepthook", None),
    "recursion": lambda: sys.setrecursionlimit(4000),
    "gc": gc.disable,
    "builtins": _replace_builtin,
    "signals": lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), signal.signal(signal.SIGINT, signal.SIG_IGN)),
    "path": lambda: sys.path.insert(0, "/nowhere"),
}


@pytest.mark.parametrize("mess", MESSES)
def test_state_is_as_it_was(mess):
    """What a function changes in torch, Python or the process is as before the call."""
    before = _state()
    outcome = attempt(lambda: MESSES[mess]() and None)
    assert outcome.failure is None
    assert _state() == before


def test_state_is_as_it_was_after_a_time_limit():
    """The same holds when the function is stopped in the middle."""

    def work():
        with torch.no_grad(), torch.device("meta"):
            swallow_nested()

    before = _state()
    attempt(work, seconds=SHORT)
    assert _state() == before


def test_leftovers_of_earlier_cells_do_not_count():
    """What the session has set before does not reach the function, and is there again afterwards."""

    def seen():
        x = torch.ones(2, requires_grad=True)
        return (x * 2).requires_grad, x.dtype, str(x.device), torch.get_num_threads()

    with torch.no_grad():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        try:
            assert attempt(seen).value == (True, torch.float32, "cpu", 1)
            assert not torch.is_grad_enabled()
            assert (torch.get_default_dtype(), torch.get_default_device().type) == (torch.float64, "meta")
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    with torch.inference_mode():
        assert attempt(seen).value[0]
        assert torch.is_inference_mode_enabled()


def test_seeded_state():
    """Under a seed, all three sources of random numbers give the same again, whatever was drawn before."""

    def draw():
        with neutral_state(5):
            return torch.rand(1).item(), random.random(), numpy.random.rand()

    first = draw()
    torch.rand(3), random.random(), numpy.random.rand()
    assert draw() == first


def test_figures_are_closed():
    """A figure that the function leaves open is closed, one of the caller's stays."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    mine = pyplot.figure()
    attempt(lambda: pyplot.plot([1, 2]) and pyplot.figure())
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)


def test_cost():
    """The guard adds less than 3 milliseconds to a call."""
    attempt(int)
    times = []
    for _ in range(30):
        started = time.perf_counter()
        attempt(int)
        times.append(time.perf_counter() - started)
    assert min(times) < 0.003
