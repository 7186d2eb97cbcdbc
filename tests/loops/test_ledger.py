"""The ledger says how much of each backward call's gradient was in .grad when each step was taken."""

from __future__ import annotations

import pytest
import torch

from autograder.loops import Recording, Task, judge, make_ledger, run
from tests.loops.right_loops import RIGHT
from tests.loops.wrong_loops import WRONG

LOOPS = {f.__name__: (f, t) for f, t in RIGHT} | {f.__name__: (f, t) for f, t, _, _ in WRONG}


def ledger_of(name, **changes):
    function, task = LOOPS[name]
    return make_ledger(run(function, task))


def test_the_plain_loop_is_the_identity():
    """Each step uses its own backward call's gradient, once and whole."""
    assert torch.allclose(ledger_of("zero_first").whole(), torch.eye(6, dtype=torch.float64), atol=1e-8)


def test_never_zeroing_fills_the_lower_triangle():
    """Every step uses all gradients so far."""
    whole = ledger_of("never_clears").whole()
    assert torch.allclose(whole, torch.ones(12, 12, dtype=torch.float64).tril(), atol=1e-8)


def test_zeroing_between_backward_and_step_leaves_empty_rows():
    """Nothing is in .grad when the step is taken."""
    assert not ledger_of("clears_before_the_step").whole().any()


def test_accumulating_gives_blocks_of_one_over_k():
    """A loss divided by k enters with 1/k, measured against the whole gradient of its batch."""
    whole = ledger_of("starts_counting_at_zero").whole()
    assert whole[1, 1:5].tolist() == pytest.approx([0.25] * 4)
    assert whole[1, 5:].abs().max() == 0


def test_a_doubled_backward_shows_twice():
    """Two backward calls on one loss are two columns with the same gradient."""
    assert ledger_of("calls_backward_twice").whole()[0, :2].tolist() == pytest.approx([1.0, 1.0])


def test_clipping_scales_a_row():
    """A clipped gradient enters with the clip's factor."""
    ledger = ledger_of("clipped_by_hand_without_epsilon")
    assert 0 < ledger.whole()[0, 0] < 1
    assert ledger.norms[0] == pytest.approx(0.05)


def test_partial_zeroing_shows_per_parameter():
    """The parameters that are cleared have the identity, the others the triangle."""
    ledger = ledger_of("clears_the_first_layer_only")
    cleared, kept = ledger.weights[0], ledger.weights[ledger.parameters.index("2.weight")]
    assert cleared[1, 0] == 0
    assert kept[1, 0] == pytest.approx(1.0)


def test_gradients_from_own_buffers_are_fitted():
    """What was never in .grad by backward is explained by nothing that was not there."""
    assert not ledger_of("accumulate_in_own_buffers").weights.any()
    assert ledger_of("the_change_is_what_counts").whole().diag().tolist() == pytest.approx([1.0] * 12)


def test_what_no_backward_explains_is_residual():
    """Noise added to .grad by hand is told apart from gradients."""

    def noisy(model, optimizer, loss_fn, loader):
        for x, y in loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            for p in model.parameters():
                p.grad += torch.randn_like(p)
            optimizer.step()

    ledger = make_ledger(run(noisy, Task()))
    assert (ledger.residual > 0.1).all()


def test_the_rows_are_exact_to_rounding():
    """Shares times recorded contributions give the gradient that was used."""
    recording = run(*LOOPS["never_clears"])
    ledger = make_ledger(recording)
    assert ledger.residual.max() == 0
    for i in range(len(recording.parameters)):
        total = sum(recording.arrays[f"add/{c}/{i}"] for c in range(12))
        assert torch.allclose(total, recording.arrays[f"grad/11/{i}"], atol=1e-12)


def test_the_text_form_has_a_line_per_step():
    """Terminals get the ledger too: steps down, backward calls across."""
    lines = ledger_of("calls_backward_twice").text().splitlines()
    assert len(lines) == 13
    assert lines[1].split()[:3] == ["1", "1.00", "1.00"]


@pytest.mark.parametrize(
    "name", ["zero_first", "never_clears", "sums_a_group", "item_then_backward", "fit_by_autograd_grad"]
)
def test_a_recording_survives_the_way_through_text(name):
    """run and judge may sit in two processes: what crosses is JSON text, and the verdict stays the same."""
    function, task = LOOPS[name]
    recording = run(function, task)
    again = Recording.loads(recording.dumps())
    before, after = judge(recording, task), judge(again, task)
    assert (before.kind, before.line, before.message) == (after.kind, after.line, after.message)
    assert all(torch.equal(again.arrays[key], value) for key, value in recording.arrays.items())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99}', "null", '{"format": 1, "task": {}}'])
def test_what_is_no_recording_is_refused(text):
    """Anything else than a recording's text is a ValueError, never another exception."""
    with pytest.raises(ValueError, match="not a recording"):
        Recording.loads(text)


def test_the_recorder_leaves_nothing_behind():
    """After a run no hook, mode or profile function of the recorder is left, however it ended."""
    import sys

    from torch.optim import optimizer as hooks

    def never_ends(model, optimizer, loss_fn, loader):
        while True:
            try:
                optimizer.step()
            except BaseException:
                continue

    loops = [LOOPS["zero_first"], LOOPS["item_then_backward"], *[(never_ends, Task())] * 5]
    for function, task in loops:
        run(function, task, seconds=0.2 if function is never_ends else 5.0)
        assert sys.getprofile() is None
        assert not torch.overrides._get_current_function_mode_stack()
        assert not hooks._global_optimizer_pre_hooks
        assert not hooks._global_optimizer_post_hooks
        again, its_task = LOOPS["sets_none_before_the_step"]  # seen only by what listens to every operation
        assert judge(run(again, its_task), its_task).kind == "zero-between-backward-and-step"


def test_the_same_seed_gives_the_same_recording():
    """A run depends on the task, the seed and the function alone, not on the caller's random state."""
    torch.manual_seed(1)
    first = run(*LOOPS["zero_first"], 5)
    torch.manual_seed(2)
    second = run(*LOOPS["zero_first"], 5)
    assert all(torch.equal(second.arrays[key], value) for key, value in first.arrays.items())
