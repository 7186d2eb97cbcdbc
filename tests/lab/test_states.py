"""Every state of the accumulation lab: it draws, and it says the right thing."""

from __future__ import annotations

import io
import itertools

import pytest
from matplotlib.figure import Figure
from PIL import Image

from autograder.lab.experiment import experiment
from autograder.lab.figures import lab_figure
from autograder.lab.loop import compiled, source
from autograder.lab.panel import AccumulationLab
from autograder.lab.settings import BATCHES, CHOICES, STEPS, Settings
from autograder.lab.state import draw
from autograder.loops import judge, run

ZEROING, SET_TO_NONE, DIVIDE, LEFTOVER, OPTIMIZER = ([value for _, value in choices] for choices in CHOICES.values())
ALL_BATCHES, ALL_STEPS = range(BATCHES[0], BATCHES[1] + 1), range(STEPS[0], STEPS[1] + 1)
EDGES = (1, 2, 3, 5, 7)


def sliders():
    """Every pair of slider values with every place of zeroing; the other choices take turns."""
    turns = {z: itertools.cycle(itertools.product(SET_TO_NONE, DIVIDE, LEFTOVER, OPTIMIZER)) for z in ZEROING}
    for batches, steps, zeroing in itertools.product(ALL_BATCHES, ALL_STEPS, ZEROING):
        yield Settings(batches, steps, zeroing, *next(turns[zeroing]))


def choices():
    """Every combination of the choices, where there is a leftover."""
    for rest in itertools.product(ZEROING, SET_TO_NONE, DIVIDE, LEFTOVER, OPTIMIZER):
        yield Settings(5, 2, *rest)


@pytest.mark.slow
@pytest.mark.parametrize("states", [sliders, choices], ids=["every slider value", "every choice"])
def test_every_state_is_drawn(states, capfd):
    """Whatever the controls are set to, drawing raises nothing and prints nothing, and all parts are there."""
    for settings in states():
        state = draw(settings)
        assert state.picture.startswith(b"\x89PNG")
        assert state.alt.startswith("Ledger: ")
        assert state.words.endswith((".", "!"))
        assert len(state.norms) == state.ledger.rows
    assert capfd.readouterr() == ("", "")


def expected(settings):
    """The mistake that a setting makes, by thinking: nothing of the engine is asked."""
    n, k = settings.batches, settings.steps
    groups, short = -(-n // k), n % k
    last = short or k
    taken = groups if settings.leftover or not short else groups - 1
    dropped = bool(short) and not settings.leftover
    if not taken:
        return {"leftover-dropped"}
    if settings.zeroing == "never":
        return {"missing-zero-grad"}
    if settings.zeroing == "between backward and step":
        return {"zero-between-backward-and-step"}
    if settings.zeroing == "once an epoch" and taken > 1:
        return {"zero-once-per-epoch"}
    wrong = set()
    if dropped:
        wrong.add("leftover-dropped" if settings.zeroing == "once an epoch" else "leftover-leaks")
    if settings.divide == "nothing" and min(n, k) > 1:
        wrong.add("accumulate-no-division")
    if settings.divide == "accumulation steps" and last < k and settings.leftover:
        wrong.add("leftover-wrong-scale")
    return wrong or {"none"}


def states_worth_judging():
    for batches, steps, zeroing, leftover in itertools.product(EDGES, (1, 2, 3, 6), ZEROING, LEFTOVER):
        for divide in DIVIDE:
            yield Settings(batches, steps, zeroing, divide=divide, leftover=leftover)


@pytest.mark.slow
@pytest.mark.parametrize("zeroing", ZEROING)
def test_the_words_name_the_mistake_of_the_setting(zeroing):
    """For every number of batches and steps the grader names what a person would say is wrong with the setting."""
    told = {
        settings: run_and_judge(settings).kind for settings in states_worth_judging() if settings.zeroing == zeroing
    }
    off = {s: (kind, sorted(expected(s))) for s, kind in told.items() if kind not in expected(s)}
    assert not off, f"{len(off)} of {len(told)}, the first: {next(iter(off.items()))}"


def run_and_judge(settings):
    return judge(run(compiled(source(settings)), settings.task), settings.task)


@pytest.mark.parametrize(
    ("zeroing", "title"),
    [
        ("never", "Gradients are never cleared"),
        ("once an epoch", "Gradients are cleared once"),
        ("between backward and step", "Gradients are cleared between backward and step"),
    ],
)
def test_words_are_the_graders_own(zeroing, title):
    """A setting that breaks a rule shows the grader's title and message, word for word."""
    state = draw(Settings(6, 2, zeroing))
    assert state.words == f"{state.verdict.title}. {state.verdict.message}"
    assert state.words.startswith(title)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(6, 2), "own group of up to 2 batches"),
        (Settings(6, 1), "its own batch"),
        (Settings(2, 6, "once an epoch"), "one single group"),
        (Settings(4, 1, divide="nothing"), "nothing to divide"),
        (Settings(6, 3, leftover=False), "nothing is left over"),
    ],
)
def test_a_right_setting_says_why_it_is_right(settings, reason):
    """Also where a choice does no harm, the words say why."""
    state = draw(settings)
    assert state.verdict.right
    assert state.words.startswith("Right: ")
    assert reason in state.words


def test_the_line_spoken_of_is_a_line_of_the_loop_shown():
    """The verdict's line number is one of the shown source, and its message speaks of it."""
    state = draw(Settings(6, 2, "never"))
    lines = state.source.splitlines()
    assert state.verdict.line is not None
    assert "backward" in lines[state.verdict.line - 1]
    assert f"line {state.verdict.line}" in state.words


def pixels(picture):
    return Image.open(io.BytesIO(picture)).convert("RGB").tobytes()


def test_the_picture_follows_every_control():
    """Each control changes the picture where it changes what happens."""
    between = {"zeroing": "between backward and step", "optimizer": "momentum_wd"}
    changes = [
        ({}, {"batches": 7}),
        ({}, {"steps": 3}),
        *(({}, {"zeroing": zeroing}) for zeroing in ZEROING[1:]),
        (between, {"set_to_none": False}),
        ({"batches": 7}, {"divide": "accumulation steps"}),
        ({"batches": 7}, {"leftover": False}),
        ({}, {"optimizer": "momentum_wd"}),
    ]
    for before, change in changes:
        assert pixels(draw(Settings(**before)).picture) != pixels(draw(Settings(**(before | change))).picture), change


def test_none_and_zeros_differ_where_the_optimizer_remembers():
    """Cleared before the step: zeros are stepped under momentum and weight decay, None is skipped."""
    place = "between backward and step"
    none, zeros = (draw(Settings(6, 2, place, value, optimizer="momentum_wd")) for value in SET_TO_NONE)
    weights = [(state.recording.arrays["param/0/0"], state.recording.arrays["param/2/0"]) for state in (none, zeros)]
    moved = [not bool((before == after).all()) for before, after in weights]
    assert moved == [False, True]
    assert ".grad was None" in none.alt
    assert "used zeros" in zeros.alt


def test_the_right_loops_norms_are_drawn_where_this_loop_is_right():
    """For a right setting the norms of the steps are the reference's, at the same backward calls."""
    seen = experiment(Settings(7, 3))
    assert seen.norms.at == seen.right_norms.at == (3, 6, 7, 10, 13, 14)
    assert seen.norms.values == pytest.approx(seen.right_norms.values)
    assert seen.losses == pytest.approx(seen.right_losses)


@pytest.mark.parametrize(
    "wrong", [{"batches": 0}, {"batches": 13}, {"steps": 7}, {"zeroing": "sometimes"}, {"divide": "two"}]
)
def test_what_no_control_can_show_is_refused(wrong):
    """A setting outside the controls raises ValueError with the allowed values."""
    with pytest.raises(ValueError, match="must be"):
        AccumulationLab().draw(**wrong)


def test_drawing_leaves_matplotlib_as_it_was():
    """Backend, settings and pyplot's figures are the user's: a picture changes none of them, nor looks at them."""
    import matplotlib
    from matplotlib import pyplot

    backend, plain = matplotlib.get_backend(), pixels(draw(Settings()).picture)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9, "text.color": "red"}):
        before = dict(matplotlib.rcParams)
        figure = lab_figure(experiment(Settings()))
        draw.cache_clear()
        assert pixels(draw(Settings()).picture) == plain
        assert dict(matplotlib.rcParams) == before
    assert isinstance(figure, Figure)
    assert matplotlib.get_backend() == backend
    assert pyplot.get_fignums() == []
