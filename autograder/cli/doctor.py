"""autograder doctor: what this computer has, what is missing, and how to mend it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

OLDEST = (3, 10)
# Distribution, what it is for, and whether the course runs without it.
PACKAGES = (
    ("torch", "the lessons", True),
    ("numpy", "the lessons", True),
    ("matplotlib", "the labs' pictures", True),
    ("ipywidgets", "the labs' sliders", True),
    ("ipython", "notebooks", True),
    ("ipykernel", "notebooks", True),
    ("jupyterlab", "make lab", False),
    ("nbclient", "check_notebook", False),
    ("nbformat", "check_notebook", False),
    ("nbgrader", "release and grading", False),
    ("setuptools", "nbgrader, which does not require it by itself", False),
)


@dataclass(frozen=True)
class Finding:
    """One line of the report: ``needed`` findings that are not ``good`` make the doctor unhappy."""

    name: str
    state: str
    good: bool = True
    needed: bool = True
    mend: str = ""


def main(given: Namespace) -> int:
    """Print the findings. Exit 0 if everything that is needed is there, else 1."""
    findings = [_python(), *_packages(pins(Path.cwd() / "constraints.txt")), _import_time(), _box()]
    for finding in findings:
        sign = "✓" if finding.good else "✗" if finding.needed else "·"
        print(f"{sign} {finding.name:<14} {finding.state}")
        if finding.mend and not finding.good:
            print(f"    {finding.mend}")
    ill = [finding for finding in findings if finding.needed and not finding.good]
    print("All that is needed is here." if not ill else f"To mend: {', '.join(finding.name for finding in ill)}.")
    return 1 if ill else 0


def pins(file: Path) -> dict[str, set[str]]:
    """The versions that a constraints file pins, by name; a name can have one per platform."""
    found: dict[str, set[str]] = {}
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            match = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
            if match:
                found.setdefault(match[1].lower(), set()).add(match[2])
    return found


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info[:2] >= OLDEST
    return Finding("Python", f"{version} at {sys.executable}", good, mend="Install Python 3.10 or newer.")


def _packages(pinned: dict[str, set[str]]) -> list[Finding]:
    return [_package(name, use, needed, pinned.get(name, set())) for name, use, needed in PACKAGES]


def _package(name: str, use: str, needed: bool, wanted: set[str]) -> Finding:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(
            name, f"missing; it is for {use}", False, needed, f"make lab installs it, or: pip install {name}"
        )
    public = version.split("+")[0]
    if wanted and public not in wanted:
        return Finding(name, f"{version}; tested with {' or '.join(sorted(wanted))}", True)
    return Finding(name, version)


def _import_time() -> Finding:
    """Whether the package can be imported in a new Python; a broken install shows here."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import autograder.exercises.checking"], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("autograder", f"cannot be started: {error}", False)
    if done.returncode == 0:
        return Finding("autograder", "imports")
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return Finding("autograder", f"cannot be imported: {last}", False, mend="make clean, then make lab")


def _box() -> Finding:
    """bubblewrap, in which submissions are graded."""
    path = shutil.which("bwrap")
    if path is None:
        return Finding("bubblewrap", "missing; grading others' notebooks is not boxed without it", False, False,
                       "Debian and Ubuntu: sudo apt install bubblewrap")  # fmt: skip
    try:
        done = subprocess.run([path, "--ro-bind", "/", "/", "--unshare-net", "true"], capture_output=True, timeout=10)
        works = done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    state = f"works, at {path}" if works else f"at {path}, but this system forbids user namespaces"
    return Finding("bubblewrap", state, works, False, "Grade on a system that allows unprivileged user namespaces.")
