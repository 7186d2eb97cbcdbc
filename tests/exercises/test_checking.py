"""check: whatever the answer does, it returns points, says one sentence, and leaves everything as it was."""

# ruff: noqa: SIM105  (learners write try, except, pass)

import asyncio
import functools
import logging
import math
import os
import subprocess
import sys
import time
import warnings

import pytest
import torch

import autograder
from autograder.exercises import checking
from autograder.exercises.catalogue import UnknownExercise, find
from tests.exercises.answers import never_zeroes, train


def prints_much(model, optimizer, loss_fn, loader):
    for i in range(60_000):
        print(i)
    train(model, optimizer, loss_fn, loader)


def warns(model, optimizer, loss_fn, loader):
    warnings.warn("mind the gap", stacklevel=1)
    logging.warning("mind the step")
    sys.stderr.write("mind the stream\n")
    os.write(2, b"mind the descriptor\n")
    subprocess.run("echo mind the child >&2", shell=True)
    train(model, optimizer, loss_fn, loader)


def changes_globals(model, optimizer, loss_fn, loader):
    train(model, optimizer, loss_fn, loader)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(True)
    torch.set_num_threads(2)
    os.chdir("/")


def draws_random_numbers(model, optimizer, loss_fn, loader):
    torch.rand(17)
    train(model, optimizer, loss_fn, loader)


def raises(model, optimizer, loss_fn, loader):
    for _ in loader:
        undefined_name  # noqa: B018, F821


def leaves(model, optimizer, loss_fn, loader):
    sys.exit(1)


def leaves_by_exit(model, optimizer, loss_fn, loader):
    exit()


def asks(model, optimizer, loss_fn, loader):
    input("learning rate? ")


def never_ends(model, optimizer, loss_fn, loader):
    while True:
        try:
            while True:
                try:
                    never_zeroes(model, optimizer, loss_fn, loader)
                except BaseException:
                    pass
        except BaseException:
            pass


def recursive(model, optimizer, loss_fn, loader):
    recursive(model, optimizer, loss_fn, loader)


async def coroutine(model, optimizer, loss_fn, loader):
    await asyncio.sleep(0)


def generator(model, optimizer, loss_fn, loader):
    yield


class Trainer:
    def __call__(self, model, optimizer, loss_fn, loader):
        train(model, optimizer, loss_fn, loader)

    def method(self, model, optimizer, loss_fn, loader):
        train(model, optimizer, loss_fn, loader)


def with_lr(model, optimizer, loss_fn, loader, unused):
    train(model, optimizer, loss_fn, loader)


ANSWERS = [
    (train, 10, "Right"),
    (functools.partial(with_lr, unused=3), 10, "Right"),
    (Trainer(), 10, "Right"),
    (Trainer().method, 10, "Right"),
    (prints_much, 10, "Right"),
    (warns, 10, "Right"),
    (changes_globals, 10, "Right"),
    (draws_random_numbers, 10, "Right"),
    (never_zeroes, 0, "batch"),
    (raises, 0, "undefined_name"),
    (leaves, 0, "end Python"),
    (leaves_by_exit, 0, "end Python"),
    (asks, 0, "input"),
    (never_ends, 0, "still running"),
    (recursive, 0, "called itself"),
    (coroutine, 0, "async def"),
    (generator, 0, "yield"),
    (None, 0, "no answer yet"),
    (..., 0, "no answer yet"),
    (3, 0, "int"),
    ("train", 0, "str"),
    (torch.ones(3), 0, "Tensor"),
    (lambda model: None, 0, "is called as"),
    (print, 0, ""),
]


@pytest.mark.parametrize(("answer", "points", "words"), ANSWERS)
def test_answers_of_every_kind(answer, points, words, capfd):
    """Points are one finite float, stderr stays empty, a sentence says what is wrong, the next check is right."""
    score = autograder.check("03-plain-loop", answer)
    out, err = capfd.readouterr()
    assert type(score) is float
    assert math.isfinite(score)
    assert score == points
    assert err == ""
    assert words in out
    assert len(out) < 5_000
    assert autograder.check("03-plain-loop", train) == 10


def test_notes_cost_nothing(capfd):
    """Warnings, logs and stderr at both levels are shown as notes with the learner's line."""
    report = checking.examine(find("03-plain-loop"), warns)
    notes = "\n".join(report.notes)
    for what in ("gap", "step", "stream", "descriptor", "child"):
        assert f"mind the {what}" in notes
    assert report.score == 10
    assert capfd.readouterr() == ("", "")


def test_an_endless_answer_costs_one_time_limit():
    """An answer that never ends is tried once, not once for every task, and its report does not take longer than it."""
    started = time.perf_counter()
    report = checking.examine(find("03-plain-loop"), never_ends)
    assert time.perf_counter() - started < 15
    assert report.line is not None
    assert report.text


@pytest.mark.parametrize("mess", ["dtype", "grad", "inference", "device"])
def test_what_was_set_before_does_not_count(mess):
    """Points do not depend on what earlier cells left behind."""
    contexts = {
        "dtype": lambda: torch.set_default_dtype(torch.float16),
        "grad": lambda: torch.set_grad_enabled(False),
        "device": lambda: torch.set_default_device("meta"),
        "inference": lambda: None,
    }
    try:
        contexts[mess]()
        with torch.inference_mode(mess == "inference"):
            assert autograder.check("03-plain-loop", train) == 10
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        torch.set_default_device(None)


def test_unknown_exercise_names_the_nearest():
    """An id that does not exist raises, and the text offers those that are meant."""
    with pytest.raises(UnknownExercise, match="03-plain-loop"):
        autograder.check("03-plainloop", train)
    with pytest.raises(LookupError, match="There is no exercise 7"):
        autograder.check(7, train)


def test_a_fault_of_ours_costs_no_notebook(monkeypatch, capsys):
    """If the checker itself breaks, the cell still ends with points, and says whose fault it is."""
    monkeypatch.setattr("autograder.exercises.loop.judge", lambda *a: 1 / 0)
    assert autograder.check("03-plain-loop", train) == 0.0
    assert "tell your instructor" in capsys.readouterr().out


def test_hints_come_one_at_a_time(capsys):
    """hint gives the next hint of the mistake that was shown last; a new mistake begins anew; done means done."""
    checking._last.clear()
    checking._given.clear()
    autograder.hint("03-plain-loop")
    assert "Hint 1 of 2" in capsys.readouterr().out
    autograder.check("03-plain-loop", never_zeroes)
    capsys.readouterr()
    said = []
    for _ in range(4):
        autograder.hint("03-plain-loop")
        said.append(capsys.readouterr().out)
    assert said[0].startswith("Hint 1 of")
    assert said[1].startswith("Hint 2 of")
    assert said[3].startswith("Those were all")
    autograder.check("03-plain-loop", train)
    autograder.hint("03-plain-loop")
    assert "all points are there" in capsys.readouterr().out


def test_import_is_light():
    """import autograder imports neither torch nor IPython nor anything else of weight."""
    code = "import sys, autograder; print([m for m in ('torch', 'IPython', 'numpy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_face():
    """Every name that the package promises can be had, and others raise AttributeError."""
    for name in autograder.__all__:
        assert getattr(autograder, name) is not None
        assert name in dir(autograder)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        autograder.nothing  # noqa: B018
