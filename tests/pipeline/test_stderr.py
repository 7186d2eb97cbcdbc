"""Whatever a right answer says on stderr, its grade cell stays quiet: nbgrader gives no points to one that spoke."""

from __future__ import annotations

import pytest

from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.harmful import around
from tests.pipeline.editions import STUDENT, answered, by_grade_id, execute, notebook_of, points, read, shortened, shown

EXERCISE = "03-plain-loop"


def inside(*lines: str) -> str:
    """The right loop, with lines after its forward pass."""
    loop = around().splitlines()
    at = next(number for number, line in enumerate(loop) if "loss_fn" in line) + 1
    return "\n".join([*loop[:at], *[f"    {line}" for line in lines], *loop[at:]])


# The body of train, and what its report must note.
TRAPS = {
    "grad of a non-leaf": (inside("out = model(x)", "out.grad"), "not a leaf"),
    "shapes broadcast": (inside("nn.MSELoss()(torch.zeros(4, 1), torch.zeros(4))"), "target size"),
    "torch.tensor(tensor)": (inside("torch.tensor(loss)"), "copy construct"),
    "scheduler before optimizer": (
        around("scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000, gamma=1.0)\nscheduler.step()"),
        "lr_scheduler.step()",
    ),
    "detect_anomaly": (
        "with torch.autograd.detect_anomaly():\n    " + around().strip().replace("\n", "\n    "),
        "Anomaly Detection",
    ),
    "create_graph": (around().replace("backward()", "backward(create_graph=True)"), "create_graph"),
    "DataLoader workers": (
        around().replace("in loader", "in torch.utils.data.DataLoader(loader, batch_size=None, num_workers=5)"),
        "",
    ),
    "progress bar": (inside("import sys", "sys.stderr.write(f'\\r 50%|#####     | {loss.item():.3f}')"), "50%"),
    "logging": (inside("import logging", "logging.warning('loss %.3f', loss)"), "WARNING"),
    "logger with a handler of its own": (
        around(
            "import logging\nown = logging.getLogger('o')\nown.addHandler(logging.StreamHandler())\nown.error('heavy')"
        ),
        "heavy",
    ),
    "descriptor 2": (inside("import os", "os.write(2, b'raw bytes \\xff')"), "raw bytes"),
    "subprocess": (around("import subprocess\nsubprocess.run('echo from a child >&2', shell=True)"), "from a child"),
    "C library": (around("import ctypes\nctypes.CDLL(None).perror(b'from C')"), "from C"),
    "sys.__stderr__": (around("import sys\nprint('first stream', file=sys.__stderr__)"), "first stream"),
    "traceback": (
        around("import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()"),
        "ZeroDivisionError",
    ),
    "faulthandler": (around("import faulthandler\nfaulthandler.dump_traceback(file=2)"), ""),
    "thread that fails": (
        around("import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()"),
        "ZeroDivisionError",
    ),
    "__del__ that fails": (
        around("class Bad:\n    def __del__(self):\n        raise ValueError('in del')\n\n\nBad()"),
        "",
    ),
    "warnings as errors": (around("import warnings\nwarnings.simplefilter('ignore')\nwarnings.warn('hushed')"), ""),
    "a stream that was kept": (around("print('kept stream', file=kept)"), "kept stream"),
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Per trap its executed grade cell: all in one kernel, one after the other."""
    student = shortened(read(STUDENT))
    known = by_grade_id(student)
    student.cells = [known["03-setup"]]
    for number, (body, _) in enumerate(TRAPS.values()):
        pair = answered_pair(known, body)
        for cell in pair:
            cell.id = f"{cell.id}-{number}"
        student.cells += pair
    student.cells[0].source += "\nimport sys\nkept = sys.stderr"
    ran = execute(student, tmp_path_factory.mktemp("traps"))
    assert not ran.cells[0].outputs
    return dict(zip(TRAPS, ran.cells[2::2], strict=True))


def answered_pair(known, body):
    """The answer cell with this body, and its grade cell."""
    pair = [known[f"{EXERCISE}-answer"], known[EXERCISE]]
    return answered(notebook_of(pair), {EXERCISE: Answer(body, 10)}).cells


@pytest.mark.slow
@pytest.mark.parametrize("trap", TRAPS)
def test_stderr_costs_no_points(cells, trap):
    """A warning, a log line or any byte on stderr that a right answer causes is a note, not a lost exercise."""
    notebook = notebook_of([cells[trap]])
    assert [out for out in cells[trap].outputs if out.output_type in ("stream", "error")] == []
    assert points(notebook) == {EXERCISE: 10.0}, shown(cells[trap])


@pytest.mark.slow
@pytest.mark.parametrize("trap", [trap for trap, (_, note) in TRAPS.items() if note])
def test_stderr_becomes_a_note(cells, trap):
    """What was said is not lost: the report has it as a note."""
    notes = [line for line in shown(cells[trap]).splitlines() if "note:" in line]
    assert any(TRAPS[trap][1] in note for note in notes), notes
