"""Loops that do what no answer should: fail, never end, flood, speak to stderr, change torch's settings.

They are answers to the plain loop and to the idle branch, which take the same arguments.
"""

from __future__ import annotations

from tests.pipeline.answers.answer import Answer

LOOP = """
for x, y in loader:
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
"""
SCRIPT = "<script>document.title = 'taken'</script>"


def around(before: str = "", after: str = "") -> str:
    """The right loop with lines before and after it."""
    return f"{before}{LOOP}{after}"


def odd(name: str, text: str, after: str) -> str:
    """A whole cell whose function ends in ``after``, with an object that lies about itself."""
    return f'''
class Odd:
    __hash__ = None

    def __repr__(self):
        {text}

    def __eq__(self, other):
        return True

    def __float__(self):
        return 99.0

    def _repr_html_(self):
        return "{SCRIPT}"


def {name}(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    {after}
'''


SETTINGS = """
torch.set_grad_enabled(False)
torch.set_default_dtype(torch.float64)
torch.autograd.set_detect_anomaly(True)
torch.set_num_threads(3)
torch.manual_seed(99)


def train(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
"""

# Right loops with a side effect that must not cost a point.
HARMLESS = {
    "prints": Answer(around("for number in range(300_000):\n    print(number)"), 10),
    "script-printed": Answer(around(f'print("{SCRIPT}", "<img src=x onerror=alert(1)>")'), 10),
    "odd-object-displayed": Answer(odd("train", "return '99.0'", "display(Odd())\n    return Odd()"), 10, whole=True),
    "settings-in-the-cell": Answer(SETTINGS, 10, whole=True),
    "settings-in-the-loop": Answer(
        around(
            "torch.manual_seed(1)",
            "torch.set_default_dtype(torch.float16)\ntorch.set_num_threads(2)\ntorch.manual_seed(5)",
        ),
        10,
    ),
}
HARMLESS_IDLE = {
    "stderr": Answer(
        around("import os, sys\nprint('to stderr', file=sys.stderr)\nos.write(2, b'to descriptor 2')"), 10
    ),
    "logging": Answer(
        around("import logging\nlogging.basicConfig(level=0)\nlogging.warning('epoch %d', 1)"),
        10,
    ),
    "warnings": Answer(
        around("import warnings\nwarnings.simplefilter('always')\nwarnings.warn('old', DeprecationWarning)"),
        10,
    ),
    "tensor-returned": Answer(around(after="return loss"), 10),
    "float64-returned": Answer(around(after="import numpy as np\nreturn np.float64(1.5)"), 10),
    "false-returned": Answer(around(after="return False"), 10),
    "nan-returned": Answer(around(after="return float('nan')"), 10),
    "anomaly": Answer(around("torch.autograd.set_detect_anomaly(True)"), 10),
    "odd-object-returned": Answer(
        odd("train_two_branches", "raise SystemExit('repr')", "return Odd()"), 10, whole=True
    ),
    "figure-returned": Answer(around(after="plt.plot([1, 2])\nreturn plt.gcf()"), 10),
    "deterministic": Answer(around(after="torch.use_deterministic_algorithms(True)\nimport os\nos.chdir('/')"), 10),
}

HARMFUL = {
    "raising": Answer(
        "raise ValueError(f'no idea what to do with {len(loader)} batches')", 0, "raised", ("ValueError", "no idea")
    ),
    "for-ever": Answer("steps = 0\nwhile True:\n    steps += 1", 0, "timeout", ("seconds",), ends=False),
    "not-a-function": Answer("train = 'optimizer.step()'", 0, "no-answer", ("str", "optimizer.step()"), whole=True),
    "sys-exit": Answer(around(after="import sys\nsys.exit(0)"), 0, "exit", ("exit",)),
    "input": Answer(around("name = input('your name? ')"), 0, "input", ("input",)),
    "empty": Answer("pass", 0, "nothing-happened", ("no forward pass",)),
    "nan": Answer(
        around(after="for p in model.parameters():\n    p.data.fill_(float('nan'))"), 0, "not-a-number", ("NaN",)
    ),
    "grad-mode": Answer(around(after="torch.set_grad_enabled(False)"), 8, "grad-mode-leaked"),
}
HARMFUL_IDLE = {
    "for-ever-unstoppable": Answer(
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        0,
        "timeout",
        ("seconds",),
        ends=False,
    ),
    "a-number": Answer("train_two_branches = 10", 0, "no-answer", ("int", "10"), whole=True),
    "generator": Answer(around(after="yield loss"), 0, "no-answer", ("generator",)),
    "exit": Answer(around(after="exit()"), 0, "exit", ("exit",)),
    "recursion": Answer("train_two_branches(model, optimizer, loss_fn, loader)", 0, "recursion"),
    "syntax-of-torch": Answer(around("model.cuda_or_not()"), 0, "raised", ("AttributeError", "cuda_or_not")),
    "empty": Answer("return", 0, "nothing-happened", ("no forward pass",)),
}
