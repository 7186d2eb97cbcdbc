"""A ledger as picture and as words, for reports."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from autograder import lab
from autograder.exercises.report import Report, pictures
from autograder.lab.grid import make_grid, row_states, wanted_steps
from autograder.lab.settings import Settings
from autograder.lab.state import draw
from autograder.loops import Task, judge, run


def train(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def train_without_clearing(model, optimizer, loss_fn, loader):
    for x, y in loader:
        loss_fn(model(x), y).backward()
        optimizer.step()


def verdict_of(function, task):
    return judge(run(function, task), task)


def test_ledger_words_tell_every_step():
    """Steps, calls, and for each step the batches that it used with their share."""
    words = lab.ledger_words(draw(Settings(7, 3)).ledger)
    assert words == (
        "6 steps by 14 backward calls; step 1 used batches 1 to 3 of epoch 1 at 0.33 each; "
        "step 2 used batches 4 to 6 of epoch 1 at 0.33 each; step 3 used batch 7 of epoch 1 at 1; "
        "step 4 used batches 1 to 3 of epoch 2 at 0.33 each; step 5 used batches 4 to 6 of epoch 2 at 0.33 each; "
        "step 6 used batch 7 of epoch 2 at 1"
    )


def test_ledger_words_stay_short():
    """A long ledger is told by its first steps and its last; one epoch alone is not numbered."""
    words = lab.ledger_words(verdict_of(train, Task(epochs=1, batches=(4,) * 12)).ledger)
    assert words.startswith("12 steps by 12 backward calls; step 1 used batch 1 at 1; ")
    assert words.endswith("step 8 used batch 8 at 1; and so on, until step 12 used batch 12 at 1")


def test_a_step_that_found_nothing_says_what_it_found():
    """A row without entries tells None from zeros."""
    for value, words in ((True, "step 1 used nothing, .grad was None"), (False, "step 1 used zeros")):
        state = draw(Settings(4, 2, "between backward and step", value))
        assert words in state.alt
        assert set(row_states(state.recording)) == {"none" if value else "zeros"}


def test_marks_stand_exactly_where_the_ledger_departs():
    """Right loops bear no mark; never clearing marks what is old; a step that was not taken is a row of its own."""
    task = Task(epochs=1, batches=(4,) * 3)
    right, wrong = (verdict_of(f, task).ledger for f in (train, train_without_clearing))
    clean = make_grid(right, wanted_steps(task))
    assert not clean.has_wrong
    assert not clean.has_missing
    marked = make_grid(wrong, wanted_steps(task))
    assert [[row.is_wrong(c) for c in range(3)] for row in marked.rows] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
    ]
    dropped = draw(Settings(7, 3, leftover=False))
    rows = make_grid(dropped.ledger, wanted_steps(Settings(7, 3).task)).rows
    assert [row.number for row in rows] == [1, 2, None, 3, 4, None]
    assert rows[2].is_missing(6)
    assert rows[3].is_wrong(6)


@pytest.mark.parametrize("task", [Task(model="rnn"), Task(clip=1.0), Task(optimizer="lbfgs"), Task("train_gan")])
def test_tasks_that_no_table_of_shares_can_say_bear_no_marks(task):
    """Where shares alone do not say what is right, nothing is marked."""
    assert wanted_steps(task) is None


def test_unequal_microbatches_are_wanted_by_their_size():
    """A group's batches are wanted by their part of its samples; with batch norm by their number."""
    sizes = (6, 2, 4)
    steps = wanted_steps(Task("train_accumulate", batches=sizes, k=2, epochs=1))
    assert [step.shares for step in steps] == [{0: 0.75, 1: 0.25}, {2: 1.0}]
    normed = wanted_steps(Task("train_accumulate", model="bn", batches=sizes, k=2, epochs=1))
    assert normed[0].shares == {0: 0.5, 1: 0.5}


def test_pictures_are_figures_that_a_notebook_shows():
    """ledger_figure and norms_figure give matplotlib figures that can be saved anywhere, cut to their content, too."""
    import io

    ledger = verdict_of(train_without_clearing, Task()).ledger
    for figure in (
        lab.ledger_figure(ledger),
        lab.ledger_figure(ledger, wanted_steps(Task())),
        lab.norms_figure(ledger.norms, [1.0] * len(ledger.norms)),
        lab.norms_figure([], []),
    ):
        assert isinstance(figure, Figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, bbox_inches="tight")
        assert buffer.getvalue().startswith(b"\x89PNG")


def test_a_picture_of_a_verdict_has_alt_text():
    """picture takes a verdict or a ledger; without a ledger there is no picture."""
    verdict = verdict_of(train_without_clearing, Task())
    drawn = lab.picture(verdict, Task())
    assert drawn.png.startswith(b"\x89PNG")
    assert drawn.alt.startswith("Ledger: 12 steps by 12 backward calls; step 1 used batch 1 of epoch 1 at 1;")
    assert f'alt="{drawn.alt[:40]}' in drawn.html
    assert drawn._repr_mimebundle_()[0]["text/plain"] == drawn.alt
    assert lab.picture(verdict.ledger).alt == drawn.alt
    assert lab.picture(verdict_of(lambda model, optimizer, loss_fn, loader: None, Task())) is None


def test_a_long_ledger_is_cut():
    """A picture shows 24 steps and calls at most, and says how many there are."""
    grid = make_grid(verdict_of(train, Task(epochs=1, batches=(2,) * 30)).ledger)
    assert (len(grid.rows), len(grid.calls), grid.left_out) == (24, 24, (6, 6))


def test_reports_of_wrong_loops_show_their_ledger():
    """The lab adds one picture to reports, for loops that are not right and have a ledger."""
    assert pictures.count(lab.ledger_of) == 1
    verdict = verdict_of(train_without_clearing, Task())
    wrong = Report("x", "Loop", 0.0, 10.0, verdict.message, kind=verdict.kind, ledger=verdict.ledger)
    assert '<img alt="Ledger: ' in lab.ledger_of(wrong)
    right = verdict_of(train, Task())
    assert lab.ledger_of(Report("x", "Loop", 10.0, 10.0, right.message, kind="none", ledger=right.ledger)) is None
    assert lab.ledger_of(Report("x", "Quiz", 0.0, 1.0, "No.", kind="no-answer")) is None
