"""What a clone holds: nothing of the machine it was written on, nothing of a class's work."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Split, so that this file does not hold them itself.
FORBIDDEN = ["/wo" + "rk/", "sha" + "red/", "/ho" + "me/", "/Us" + "ers/"]


def tracked():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git clone")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_private_path():
    """No file of the repository names a folder of the machine on which it was written."""
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in tracked()
        for word in FORBIDDEN
        if word.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize(
    "name",
    [
        ".venv/pyvenv.cfg",
        "gradebook.db",
        "submitted/ada/03-zero-grad/03-zero-grad.ipynb",
        "autograded/ada/03-zero-grad/03-zero-grad.ipynb",
        "feedback/ada/03-zero-grad/03-zero-grad.html",
        "notebooks/03-zero-grad/.ipynb_checkpoints/03-zero-grad-checkpoint.ipynb",
        "tests/artefacts/page.png",
    ],
)
def test_work_of_a_class_is_ignored(name):
    """git never offers to commit grades, submissions or caches."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("edition", ["source", "notebooks"])
def test_lessons_are_not_ignored(edition):
    """Both editions of a lesson are tracked."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    name = f"{edition}/03-zero-grad/03-zero-grad.ipynb"
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT).returncode == 1
