"""The command line: exit status, one clear sentence on stderr, and JSON that holds the whole report."""

import json

import pytest

from autograder.cli.doctor import pins
from autograder.cli.main import main

RIGHT = """
def train(model, optimizer, loss_fn, loader):
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
"""
WRONG = RIGHT.replace("        optimizer.zero_grad()\n", "")


def _check(tmp_path, source, *more, exercise="03-plain-loop"):
    file = tmp_path / "answer.py"
    file.write_bytes(source if isinstance(source, bytes) else source.encode())
    return main(["check", str(file), "--exercise", exercise, *more])


def test_passed(tmp_path, capsys):
    """A right file exits with 0 and shows the points."""
    assert _check(tmp_path, RIGHT) == 0
    assert "10 of 10 points" in capsys.readouterr().out


def test_not_passed(tmp_path, capsys):
    """A wrong file exits with 1; the JSON holds score, kind, line and message, and stdout holds nothing else."""
    assert _check(tmp_path, WRONG, "--json") == 1
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["score"], report["max_score"], report["passed"]) == (0.0, 10.0, False)
    assert report["kind"] == "missing-zero-grad"
    assert report["text"] == "loss_fn(model(x), y).backward()"
    assert report["line"] == 4
    assert err == ""


@pytest.mark.parametrize(
    "source",
    [
        RIGHT.replace("def train", "def mine"),
        RIGHT + "\nprint('noise')\nimport warnings; warnings.warn('noise')\n",
        RIGHT + "\ndef helper(): pass\n",
        "from torch.nn import functional as F, Linear\n" + RIGHT,
        b"\xef\xbb\xbf" + RIGHT.encode(),
    ],
)
def test_the_function_is_found(tmp_path, source):
    """The function that the exercise names is taken, else the only one that the file defines."""
    assert _check(tmp_path, source) == 0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def train(:", "line 1: this is not Python"),
        ("x = 1", "defines no function"),
        ("def a(): pass\ndef b(): pass", "defines `a`, `b`"),
        ("1 / 0", "line 1: running the file failed: ZeroDivisionError"),
        ("import sys; sys.exit(0)", "end Python"),
        ("\0", "this is not Python"),
        (b"\xff\xfe", "this is not Python"),
    ],
)
def test_unusable(tmp_path, capsys, source, words):
    """A file without an answer exits with 2 and a sentence on stderr."""
    assert _check(tmp_path, source) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_no_file_and_no_exercise(tmp_path, capsys):
    """A missing file and an unknown exercise exit with 2; the nearest id is named."""
    assert main(["check", str(tmp_path / "none.py"), "--exercise", "03-plain-loop"]) == 2
    assert _check(tmp_path, RIGHT, exercise="03-plainloop") == 2
    assert "03-plain-loop" in capsys.readouterr().err


def test_corpus(tmp_path, capsys):
    """corpus judges a folder's cases and prints them as JSON; a missing folder exits with 2."""
    says = {"verdict": "wrong", "kind": "missing-zero-grad"}
    case = f'SETUP = {{"signature": "train"}}\n{WRONG}\ndef expected():\n    return {says}\n'
    (tmp_path / "001-a.py").write_text(case)
    assert main(["corpus", str(tmp_path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["cases"]
    assert (found["verdict"], found["kind"]) == ("wrong", "missing-zero-grad")
    assert main(["corpus", str(tmp_path)]) == 0
    assert main(["corpus", str(tmp_path / "nowhere")]) == 2


def test_doctor(capsys):
    """The doctor lists what is there and says what to do about what is not."""
    status = main(["doctor"])
    out = capsys.readouterr().out
    assert status == 0, out
    assert "torch" in out
    assert "All that is needed is here." in out


def test_doctor_finds_what_is_missing(monkeypatch, capsys):
    """A package that the course needs and that is not there makes the doctor exit with 1."""
    monkeypatch.setattr("autograder.cli.doctor.PACKAGES", (("zerograd-nowhere", "everything", True),))
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "✗ zerograd-nowhere" in out
    assert "pip install zerograd-nowhere" in out


def test_pins(tmp_path):
    """A constraints file can pin one package differently on several platforms."""
    file = tmp_path / "constraints.txt"
    file.write_text("a==1\na==2 ; python_version < '3.11'\n# b==3\nc>=1\n")
    assert pins(file) == {"a": {"1", "2"}}
    assert pins(tmp_path / "nowhere") == {}


def test_no_command(capsys):
    """Without a command, and with an unknown one, the usage is shown and the status is 2."""
    for arguments in ([], ["fly"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
    assert "usage: autograder" in capsys.readouterr().err
