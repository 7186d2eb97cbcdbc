"""Lesson 3's notebook: its structure, and that what its text says is what its cells and PyTorch do."""

import contextlib
import copy
import io
import re
from pathlib import Path

import matplotlib
import nbformat
import pytest
import torch
from torch import nn

from autograder import tried

tomllib = pytest.importorskip("tomllib", reason="tomllib came with Python 3.11")

FOLDER = Path(__file__).parents[2] / "source" / "03-zero-grad"
NOTEBOOK = nbformat.read(FOLDER / "03-zero-grad.ipynb", as_version=4)
CELLS = {cell.id: cell for cell in NOTEBOOK.cells}
QUESTIONS = {
    question["id"]: question
    for question in tomllib.loads((FOLDER / "quiz.toml").read_text(encoding="utf-8"))["question"]
}
PROSE = "\n\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown")

EXERCISES = {
    "03-plain-loop": 10,
    "03-clipped-loop": 10,
    "03-reset": 10,
    "03-accumulate": 15,
    "03-idle-branch": 10,
    "03-gan-step": 10,
    "03-dead-unit": 5,
}
SOLUTION = re.compile(r"^ *### BEGIN SOLUTION\n.*?### END SOLUTION$", re.DOTALL | re.MULTILINE)
STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()"


def graded(key):
    """The cells that nbgrader knows and that have this flag, by grade_id."""
    nbgrader = ((cell.metadata.get("nbgrader", {}), cell) for cell in NOTEBOOK.cells)
    return {data["grade_id"]: cell for data, cell in nbgrader if data.get(key)}


GRADES, ANSWERS = graded("grade"), graded("solution")


def execute(source_of):
    """Run the ungraded cells from top to bottom: what each prints, and the names they leave."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = {"torch": torch, "nn": nn, "plt": plt, "tried": tried}
    exec("from contextlib import suppress\nfrom time import perf_counter\nplt.show = plt.close", names)
    printed = {}
    for cell in NOTEBOOK.cells:
        needs_package = cell.id in {"setup", "lab", "check-all", "progress"}
        if cell.cell_type == "code" and cell not in GRADES.values() and not needs_package:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(source_of(cell), cell.id, "exec"), names)
            printed[cell.id] = out.getvalue()
    return printed, names


@pytest.fixture(scope="module")
def run():
    """The solution edition, executed."""
    return execute(lambda cell: cell.source)


@pytest.fixture
def printed(run):
    return run[0]


@pytest.fixture
def names(run):
    return run[1]


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


# ---- structure


def test_points():
    """The lesson has 100 points: 70 for exercises, 10 each for predictions, spot the bug and the quick
    check."""
    points = {grade_id: cell.metadata.nbgrader.points for grade_id, cell in GRADES.items()}
    assert {i: p for i, p in points.items() if i in EXERCISES} == EXERCISES
    assert {i: p for i, p in points.items() if i not in EXERCISES} == {
        i: question["points"] for i, question in QUESTIONS.items()
    }
    for kind, total in (("predict", 10), ("spot", 10), ("quiz", 10)):
        assert sum(p for i, p in points.items() if i.startswith(f"03-{kind}-")) == total
    assert sum(points.values()) == 100


def test_grade_cells_check_their_own_id():
    """A grade cell checks the exercise whose id it carries, and nothing else."""
    for grade_id, cell in GRADES.items():
        assert set(re.findall(r'check\("([^"]+)"', cell.source)) == {grade_id}


def test_grade_cells_are_locked_and_end_in_the_points():
    """The value of a grade cell's last line is the points, and the learner cannot edit the cell."""
    for cell in GRADES.values():
        assert cell.metadata.nbgrader.locked
        last = cell.source.splitlines()[-1]
        assert last == "points" or last.startswith("check(")


@pytest.mark.parametrize("grade_id", EXERCISES)
def test_exercises_have_hidden_tests(grade_id):
    """An exercise is checked once in sight and once hidden, with another seed; the lower result counts."""
    source = GRADES[grade_id].source
    hidden = re.search(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", source, re.DOTALL)
    assert hidden
    assert "again = check(" in hidden[1]
    assert "seed=" in hidden[1]
    assert "seed=" not in source.replace(hidden[1], "")


@pytest.mark.parametrize("grade_id", [*EXERCISES, *QUESTIONS])
def test_student_edition_is_unanswered(grade_id):
    """Without its solution region, an answer cell runs, and leaves a function that is not written or a
    choice of None."""
    cell = ANSWERS[grade_id + "-answer"]
    assert not cell.metadata.nbgrader.locked
    stub, regions = SOLUTION.subn(STUB, cell.source)
    assert regions == 1
    names = {"suppress": contextlib.suppress}
    exec(stub, names)
    if grade_id in EXERCISES:
        (function,) = (
            value
            for value in names.values()
            if getattr(value, "__doc__", None) and hasattr(value, "__code__")
        )
        with pytest.raises(NotImplementedError):
            function(*[None] * function.__code__.co_argcount)
    else:
        (choice,) = (name for name in names if name.startswith("answer_"))
        assert names[choice] is None
        assert f'check("{grade_id}", {choice})' in GRADES[grade_id].source


def test_untouched_student_edition_runs_through():
    """Run All reaches the end of a notebook without an answer; the cells for trying stay silent."""
    printed, _ = execute(lambda cell: SOLUTION.sub(STUB, cell.source))
    assert printed["sec8-more"]
    assert not printed["ex2-try"]


def test_prompts_are_read_only():
    """What an exercise or a question asks stands in a locked cell."""
    locked = {i for i, cell in graded("locked").items() if cell.cell_type == "markdown"}
    assert locked == {f"{i}-prompt" for i in (*EXERCISES, *QUESTIONS)}


def test_each_exercise_shows_its_terms():
    """A prompt names points, minutes, difficulty and the id that hint() takes."""
    prompts = graded("locked")
    for grade_id, points in EXERCISES.items():
        terms = rf"\*{points} points · \d+ minutes · (easy|medium|hard) · `{grade_id}`\*"
        assert re.search(terms, prompts[grade_id + "-prompt"].source)


def test_minutes():
    """No part is over ten minutes, and the lesson stays within ninety."""
    parts = [int(m) for m in re.findall(r"^\*(?:\d+ points · )?(\d+) minutes · ", PROSE, re.MULTILINE)]
    assert len(parts) == 8 + 1 + len(EXERCISES) + 2
    assert max(parts) <= 10
    assert 45 <= sum(parts) <= 90
    assert PROSE.count("minute)") == len(QUESTIONS)


def test_file_is_clean():
    """Source notebooks are nbformat 4.5 for the kernel python3, with readable unique ids and no outputs."""
    nbformat.validate(NOTEBOOK)
    assert (NOTEBOOK.nbformat, NOTEBOOK.nbformat_minor) == (4, 5)
    assert NOTEBOOK.metadata.kernelspec.name == "python3"
    assert len(CELLS) == len(NOTEBOOK.cells)
    assert all(re.fullmatch(r"[a-z0-9-]{3,30}", cell_id) for cell_id in CELLS)
    for cell in NOTEBOOK.cells:
        if cell.cell_type == "code":
            assert not cell.outputs
            assert cell.execution_count is None


def test_no_private_paths():
    """A source notebook names no folder of anybody's computer."""
    for file in FOLDER.iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"/(?:home|root|tmp|work|Users|content)/|[A-Z]:\\\\", text)


def test_grade_ids_are_unique():
    """nbgrader finds a cell by its grade_id, so no two cells share one, and each has all of schema 3's
    keys."""
    data = [cell.metadata.nbgrader for cell in NOTEBOOK.cells if "nbgrader" in cell.metadata]
    assert len({d.grade_id for d in data}) == len(data)
    assert all({"grade", "grade_id", "locked", "schema_version", "solution"} <= d.keys() for d in data)
    assert all(d.schema_version == 3 for d in data)


def test_every_prediction_comes_before_its_experiment():
    """A learner predicts before the cell runs that shows the answer."""
    order = list(CELLS)
    for section in (1, 2, 3, 4, 6):
        parts = [f"sec{section}-{part}" for part in ("question", "answer", "check", "run", "explain")]
        assert sorted(parts, key=order.index) == parts
        assert order.index(parts[3]) == order.index(parts[2]) + 1


# ---- the quiz


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=list(QUESTIONS))
def test_questions(question):
    """A question has the choices a to d, one of them right, each with a reason that names no key."""
    choices = question["choice"]
    assert [choice["key"] for choice in choices] == ["a", "b", "c", "d"]
    assert [choice["right"] for choice in choices].count(True) == 1
    for choice in choices:
        assert len(choice["reason"]) > 40
        assert not re.search(r"\b(?:choice|answer|option) [a-d]\b", choice["reason"], re.IGNORECASE)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=list(QUESTIONS))
def test_questions_stand_in_the_notebook(question):
    """The notebook shows the same prompt and choices as the quiz file, and the solution edition chooses the
    right one."""
    source = graded("locked")[question["id"] + "-prompt"].source
    assert question["prompt"].strip() in source
    assert source.startswith(f"**{question['title']}** ")
    for choice in question["choice"]:
        assert f"- **{choice['key']}** · {choice['text']}" in source
    (right,) = (choice["key"] for choice in question["choice"] if choice["right"])
    assert f'= "{right}"' in ANSWERS[question["id"] + "-answer"].source


def test_right_choices_are_spread():
    """No key is right so often, or so seldom, that guessing it pays."""
    right = [c["key"] for q in QUESTIONS.values() for c in q["choice"] if c["right"]]
    assert all(2 <= right.count(key) <= 5 for key in "abcd")


# ---- what the experiments print, and what the text says about it


def test_backward_adds(printed):
    """Section 1: None, then 5, 10, 15."""
    assert printed["sec1-run"].splitlines()[0].endswith("None")
    assert numbers(printed["sec1-run"]) == [5.0, 10.0, 15.0]


def test_forgetting_is_momentum_one(printed):
    """Section 1: never clearing equals momentum 1.0 exactly, and shoots past the valley at 3."""
    highest, _, over, _, _, gap = numbers(printed["sec1-forget"])
    assert highest < 3 < 5.9 < over
    assert gap == 0.0


def test_smoke_script(printed):
    """Section 2: the figures of the first steps, to four places."""
    empty = [line.endswith("None") for line in printed["sec2-run"].splitlines()]
    assert empty == [True, True, False, False, True, True, False, False, False, False]
    assert numbers(printed["sec2-run"]) == [
        *(3.0538, -3.8573, 1.2983, -1.2983),
        *(2.3521, -2.9601, 0.8466, -0.8466),
        *(0.0, 0.0, 0.0, 0.0),
    ]
    for figure in ("3.0538", "2.3521", "−1.2983"):
        assert figure in CELLS["sec2-explain"].source
    assert numbers(printed["sec2-nudge"])[0] == pytest.approx(-1.2983, abs=0.01)


def test_places(printed):
    """Section 3: three places agree, between backward and step nothing moves, never is best after three
    epochs, not four."""
    table = {
        line[:27].strip(): (numbers(line), line.split()[-1]) for line in printed["sec3-run"].splitlines()[2:]
    }
    start = numbers(printed["sec3-run"].splitlines()[0])[0]
    for place in ("before forward", "before backward", "after step"):
        assert table[place][1] == "first"
    assert table["between backward and step"] == ([start, start], "unmoved")
    assert table["never"][1] == table["once an epoch"][1] == "others"
    assert table["never"][0][0] == min(losses[0] for losses, _ in table.values())
    assert table["never"][0][1] > start


def test_none_or_zeros(printed):
    """Section 4: None is skipped by all; zeros are stepped by all but plain SGD."""
    rows = {line[:18].strip(): numbers(line[18:]) for line in printed["sec4-run"].splitlines()[1:]}
    assert len(rows) == 5
    for name, (with_none, with_zeros) in rows.items():
        assert with_none == 0.0
        assert (with_zeros == 0.0) is (name == "SGD")


def test_cost(printed):
    """Section 4: zeros hold four bytes for each weight, None holds nothing."""
    held = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) bytes", printed["sec4-cost"])]
    assert held == [0, 4 * (2000 * 2000 + 2000)]


def test_reading_after_clearing(printed):
    """Section 4: zero_ on None fails, zeros appear in a kept tensor, after zero_grad() there is None; 0 is
    refused."""
    assert "'NoneType' object has no attribute 'zero_'" in printed["sec4-reading"]
    assert "kept: tensor([[0., 0.]])" in printed["sec4-reading"]
    assert printed["sec4-reading"].strip().endswith("None")
    assert "a plain 0:" in printed["sec4-manual"]


def test_whose_gradients(printed):
    """Section 5: what is not held piles up to 3; a frozen parameter stays only with None; one backward
    fills two networks."""
    assert numbers(printed["sec5-run"]) == [3.0, 1.0, 1.0, 3.0]
    old, zeros, none = numbers(printed["sec5-frozen"])
    assert old
    assert zeros
    assert none == 0.0
    assert re.findall("True|False", printed["sec5-two"]) == ["True", "True", "False", "True"]


def test_accumulating(printed):
    """Section 6: clearing for each microbatch leaves a quarter of the last; shares match the big batch,
    means of means not."""
    assert numbers(printed["sec6-run"]) == [-1.0, -2.5]
    lines = printed["sec6-table"].splitlines()
    assert [line.endswith("True") for line in lines] == [False, True, False, True]
    assert numbers(lines[0])[-1] == 4.0


def test_accumulation_traps(printed):
    """Section 6: Adam hides a missing division, SGD does not; leftovers leak into the next epoch; batch
    norm differs."""
    sgd, adam, *leftovers = printed["sec6-traps"].splitlines()
    assert numbers(sgd)[-2] != pytest.approx(numbers(sgd)[-1], rel=0.5)
    assert numbers(adam)[-2] == pytest.approx(numbers(adam)[-1], abs=1e-3)
    assert numbers("\n".join(leftovers)) == [1.0, 1.5, 0.5]
    assert re.findall("True|False", printed["sec6-batchnorm"]) == ["True", "False"]


def test_clipping(printed):
    """Section 7: only backward, clip, step bounds the step; clipping each microbatch turns the gradient;
    unscale first."""
    assert numbers(printed["sec7-run"]) == pytest.approx([1, 5, 5, 0.6, 0.8, 0.2425, 0.9701], abs=1e-3)
    assert numbers(printed["sec7-scaler"]) == [5120.0, 5.0]


def test_clipping_in_between_changes_more_than_length(names):
    """Section 7: the cell's last clip does not make up for the earlier one."""
    assert names["direction"](True)[0] / names["direction"](True)[1] == pytest.approx(0.25, abs=1e-3)


def test_reading_gradients(printed):
    """Section 8: None for unused, zeros for dead, huge for steep, NaN for broken, though the loss is
    finite; clipping spreads NaN."""
    rows = dict(line.split(maxsplit=1) for line in printed["sec8-run"].splitlines()[:-1])
    assert rows["unused.weight"] == rows["unused.bias"] == "None"
    assert rows["dead.weight"] == rows["dead.bias"] == "exact zeros"
    assert float(rows["steep.weight"].split()[-1]) > 1e6 > float(rows["healthy.weight"].split()[-1])
    assert rows["broken.weight"] == "NaN"
    assert "loss finite: True" in printed["sec8-run"]
    before, after, hidden, replaced = printed["sec8-more"].splitlines()
    assert "norm" in before
    assert after.endswith("NaN")
    assert numbers(hidden) == [4.0]
    assert numbers(replaced) == [1.0, 1.0]


def test_tries_show_what_they_announce(printed):
    """With the solutions, each cell for trying shows what its comment says."""
    losses = numbers(printed["ex1-try"])
    assert sorted(losses, reverse=True) == losses
    assert max(numbers(printed["ex2-try"])) <= 0.5
    assert "used.grad: tensor([0., 0.])   idle.grad: None" in printed["ex3-try"]
    assert float(printed["ex4-try"].split()[-1]) < 1e-12
    moves = [numbers(line) for line in printed["ex5-try"].splitlines()]
    assert [[bool(move) for move in line] for line in moves] == [
        [True, False],
        [True, False],
        [False, True],
        [True, False],
    ]
    assert numbers(printed["ex6-try"])[-1] == pytest.approx(4, abs=1)
    assert printed["ex7-try"].splitlines() == ["[1, 3]", "every .grad still None: True"]


# ---- the loops of spot the bug


def trained(loop, batches=5, calls=1, **settings):
    """The parameters after loop has run on a small task, as one vector."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1).double()
    x, y = torch.randn(4 * batches, 2).double(), torch.randn(4 * batches, 1).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **settings)
    for _ in range(calls):
        loop(model, optimizer, nn.MSELoss(), list(zip(x.split(4), y.split(4), strict=True)))
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_innocent_loops(names):
    """Zeroing last, and model.zero_grad() in the middle, give the plain loop's weights."""
    for loop, settings in ((names["loop_one"], {}), (names["loop_two"], {"momentum": 0.9})):
        assert trained(loop, calls=2, **settings).equal(trained(names["train"], calls=2, **settings))


def test_leftover_loop(names):
    """Loop three is right where groups come out even; over two epochs of five, the fifth leaks into the
    second epoch."""

    def pairs(model, optimizer, loss_fn, loader):
        names["train_accumulate"](model, optimizer, loss_fn, loader, 2)

    def only_whole_pairs(model, optimizer, loss_fn, loader):
        pairs(model, optimizer, loss_fn, loader[: len(loader) // 2 * 2])

    three = names["loop_three"]
    assert trained(three, batches=4, calls=2).allclose(trained(pairs, batches=4, calls=2))
    assert trained(three).allclose(trained(only_whole_pairs))
    assert not trained(three, calls=2).allclose(trained(only_whole_pairs, calls=2))


def test_trial_run_loop(names):
    """Loop four's first step uses the first batch's gradient twice; after it, everything is right."""
    four, one = names["loop_four"], names["loop_one"]

    def doubled_first(model, optimizer, loss_fn, loader):
        one(model, optimizer, lambda output, target: 2 * loss_fn(output, target), loader[:1])
        one(model, optimizer, loss_fn, loader[1:])

    assert trained(four).allclose(trained(doubled_first))
    assert not trained(four).allclose(trained(one))


# ---- what the text says and no cell shows


def test_zeros_between_backward_and_step_drift():
    """Section 4: zeros written between backward and step leave weight decay at work; None leaves nothing."""
    for set_to_none, drifts in ((False, True), (True, False)):
        p = nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([p], lr=0.1, weight_decay=0.1)
        (3 * p).sum().backward()
        optimizer.zero_grad(set_to_none=set_to_none)
        optimizer.step()
        assert (p.item() != 1.0) is drifts


def test_unused_embedding_row_moves_under_adam():
    """Section 4: a row that the batch did not use has zeros in a full gradient, and Adam moves it."""
    table = nn.Embedding(3, 2)
    optimizer = torch.optim.Adam(table.parameters(), lr=0.1)
    table(torch.tensor([0])).sum().backward()
    optimizer.step()
    before = table.weight[0].detach().clone()
    optimizer.zero_grad()
    table(torch.tensor([1])).sum().backward()
    assert not table.weight.grad[0].any()
    optimizer.step()
    assert not table.weight[0].equal(before)


def test_uncleared_body_enters_the_clip():
    """Section 5 and the quick check: a body that the optimizer does not hold grows in the norm over the
    whole model."""
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    optimizer = torch.optim.SGD(net[1].parameters(), lr=0.0)
    norms = []
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(1, 1)).sum().backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), float("inf")).item())
    assert norms[0] < norms[1] < norms[2]


def test_frozen_body_is_moved_by_its_old_gradient():
    """Quick check: head.zero_grad() leaves the frozen body's gradient, and the optimizer goes on using it."""
    body, head = nn.Linear(1, 1), nn.Linear(1, 1)
    net = nn.Sequential(body, head)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 1)).sum().backward()
    body.requires_grad_(False)
    old, before = body.weight.grad.clone(), body.weight.detach().clone()
    for _ in range(2):
        head.zero_grad()
        net(torch.ones(1, 1)).sum().backward()
        optimizer.step()
    assert body.weight.grad.equal(old)
    assert body.weight.allclose(before - 2 * 0.1 * old)


def test_frozen_batch_norm_needs_eval():
    """Frequent questions: running statistics of a frozen layer change in training mode and stand still in
    eval mode."""
    norm = nn.BatchNorm1d(2).requires_grad_(False)
    before = norm.running_mean.clone()
    norm.eval()(torch.randn(8, 2) + 3)
    assert norm.running_mean.equal(before)
    norm.train()(torch.randn(8, 2) + 3)
    assert not norm.running_mean.equal(before)


def test_detach_in_the_discriminators_turn_saves_work_only(names):
    """Frequent questions: without detach the result is the same, if each optimizer clears before its own
    backward."""

    def without_detach(gen, disc, opt_g, opt_d, loss_fn, loader):
        for z, real in loader:
            opt_d.zero_grad()
            says_real, says_fake = disc(real), disc(gen(z))
            (
                loss_fn(says_real, torch.ones_like(says_real))
                + loss_fn(says_fake, torch.zeros_like(says_fake))
            ).backward()
            opt_d.step()
            opt_g.zero_grad()
            says_fake = disc(gen(z))
            loss_fn(says_fake, torch.ones_like(says_fake)).backward()
            opt_g.step()

    torch.manual_seed(0)
    players = nn.Linear(1, 1).double(), nn.Linear(1, 1).double()
    loader = [(torch.randn(4, 1).double(), torch.randn(4, 1).double()) for _ in range(3)]
    ends = []
    for loop in (names["train_gan"], without_detach):
        gen, disc = copy.deepcopy(players)
        optimizers = (torch.optim.SGD(player.parameters(), lr=0.1) for player in (gen, disc))
        loop(gen, disc, *optimizers, nn.BCEWithLogitsLoss(), loader)
        ends.append(nn.utils.parameters_to_vector([*gen.parameters(), *disc.parameters()]))
    assert ends[0].allclose(ends[1])


def test_dividing_grad_at_the_end_and_one_backward_on_the_sum(names):
    """Frequent questions: for equal microbatches, dividing .grad once or summing the losses gives the big
    batch's gradient."""
    net, loss_fn = nn.Linear(3, 1), nn.MSELoss()
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    loss_fn(net(x), y).backward()
    whole = net.weight.grad
    net.zero_grad()
    parts = list(zip(x.split(2), y.split(2), strict=True))
    for a, b in parts:
        loss_fn(net(a), b).backward()
    assert (net.weight.grad / 4).allclose(whole, atol=1e-6)
    net.zero_grad()
    (sum(loss_fn(net(a), b) for a, b in parts) / 4).backward()
    assert net.weight.grad.allclose(whole, atol=1e-6)


def test_retain_grad():
    """Frequent questions: after backward it is too late, on a leaf it changes nothing, without
    requires_grad it is refused."""
    leaf = torch.ones(1, requires_grad=True)
    leaf.retain_grad()
    hidden = 2 * leaf
    (hidden**2).sum().backward()
    hidden.retain_grad()
    assert hidden.grad is None
    assert leaf.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        torch.ones(1).retain_grad()


def test_error_if_nonfinite():
    """Section 8: clip_grad_norm_ can stop at a NaN instead of spreading it."""
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.tensor([float("nan")])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_clipping_too_early_is_silent():
    """Quick check: clipping before the first backward changes nothing and says nothing (here, a warning is
    an error)."""
    p = nn.Parameter(torch.ones(1))
    assert nn.utils.clip_grad_norm_([p], 1.0) == 0.0
    assert p.grad is None


def test_accumulated_weights_are_the_shares_of_the_samples():
    """Exercise 4: a group of 6 and 2 samples weights its mean losses by 6/8 and 2/8."""
    assert "6/8 and 2/8" in CELLS["ex4-prompt"].source
    net, loss_fn = nn.Linear(3, 1).double(), nn.MSELoss()
    x, y = torch.randn(8, 3).double(), torch.randn(8, 1).double()
    whole = loss_fn(net(x), y)
    shares = loss_fn(net(x[:6]), y[:6]) * 6 / 8 + loss_fn(net(x[6:]), y[6:]) * 2 / 8
    assert whole.allclose(shares)
