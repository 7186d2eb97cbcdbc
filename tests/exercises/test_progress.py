"""Progress: a small file of the learner's own, that never gets in the way of a check."""

import json

import pytest

from autograder import check, progress
from autograder.exercises import progress as records
from tests.exercises.answers import never_zeroes, train


def test_the_best_is_kept(capsys):
    """A worse later answer does not lower what was reached."""
    check("03-plain-loop", train)
    check("03-plain-loop", never_zeroes)
    record = records.read()[0]["03-plain-loop"]
    assert (record["best"], record["last"], record["checks"]) == (10.0, 0.0, 2)
    progress("03")
    assert "✓ 03-plain-loop" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "{", "[]", '{"exercises": 3}', '{"exercises": [1]}', "\udc80"])
def test_a_damaged_file_is_set_aside(content, capsys):
    """What cannot be read is moved, not overwritten; the check goes on."""
    records.home().mkdir(parents=True)
    damaged = content.encode("utf-8", "surrogateescape")
    (records.home() / "progress.json").write_bytes(damaged)
    progress()
    assert "damaged" in capsys.readouterr().out
    (aside,) = records.home().glob("progress.broken-*")
    assert aside.read_bytes() == damaged
    assert check("03-plain-loop", train) == 10
    assert records.read()[0]["03-plain-loop"]["best"] == 10


def test_damaged_records_are_left_out(capsys):
    """A record that makes no sense does not take the others with it."""
    good = {"best": 3.0, "points": 10.0}
    records.home().mkdir(parents=True)
    content = {"exercises": {"03-reset": good, "03-plain-loop": "x", "03-accumulate": {"best": None}}}
    (records.home() / "progress.json").write_text(json.dumps(content))
    assert records.read() == ({"03-reset": good}, "")
    progress()
    assert "3 of 10" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_costs_nothing(monkeypatch, tmp_path, capsys):
    """Where there is no place for the file, the check still gives its points."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ZEROGRAD_HOME", str(tmp_path / "file" / "below"))
    assert check("03-plain-loop", train) == 10
    progress()
    assert "not checked yet" in capsys.readouterr().out


def test_nothing_is_written_while_grading(monkeypatch):
    """nbgrader's runs leave no progress behind."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    check("03-plain-loop", train)
    assert not records.home().exists()


@pytest.mark.parametrize(
    ("platform", "variable", "end"),
    [("linux", "XDG_DATA_HOME", "zerograd"), ("win32", "LOCALAPPDATA", "zerograd"), ("darwin", "", "Support/zerograd")],
)
def test_home_by_system(monkeypatch, platform, variable, end, tmp_path):
    """Without ZEROGRAD_HOME the folder is where the system keeps a user's data."""
    monkeypatch.delenv("ZEROGRAD_HOME")
    monkeypatch.setattr("sys.platform", platform)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
        assert records.home() == tmp_path / "zerograd"
    assert records.home().as_posix().endswith(end)
