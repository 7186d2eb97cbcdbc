"""bootstrap.py: every way in which a set-up can stop, and what it then says."""

import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course folder without an environment, for calls in this process."""
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    at = {
        "ROOT": tmp_path,
        "VENV": tmp_path / ".venv",
        "STAMP": tmp_path / ".venv" / "zerograd-setup.json",
        "LOG": tmp_path / ".venv" / "zerograd-setup.log",
        "BIN": tmp_path / ".venv" / "bin",
        "PYTHON": tmp_path / ".venv" / "bin" / "python",
    }
    for name, path in at.items():
        monkeypatch.setattr(bootstrap, name, path)
    return tmp_path


@pytest.fixture(scope="module")
def empty_venv(tmp_path_factory):
    """An environment with pip alone: made once, as making one takes seconds."""
    made = tmp_path_factory.mktemp("venv") / "made"
    subprocess.run([sys.executable, "-m", "venv", made], check=True)
    return made


@pytest.fixture
def installs(course, monkeypatch, empty_venv):
    """Environments are real but without packages; what pip would install is written down."""
    asked = []

    def copy_venv():
        shutil.copytree(empty_venv, bootstrap.VENV, symlinks=True)
        return 0, ""

    monkeypatch.setattr(bootstrap, "run_venv", copy_venv)
    monkeypatch.setattr(bootstrap, "require_space", lambda: None)
    monkeypatch.setattr(bootstrap, "install", lambda extras: asked.append(sorted(extras)))
    return asked


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def run_bootstrap(folder, *arguments, **variables):
    shutil.copy(ROOT / "bootstrap.py", folder)
    return subprocess.run(
        [sys.executable, "bootstrap.py", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=200,
    )


def assert_one_sentence(process, *words):
    """The status is 1, and stderr holds one line with these words and no traceback."""
    assert process.returncode == 1, process.stdout + process.stderr
    assert process.stderr.count("\n") == 1
    assert "Traceback" not in process.stderr
    for word in words:
        assert word in process.stderr


# ---- which Python ------------------------------------------------------------------------------------------


def test_old_python_without_a_newer_one(monkeypatch):
    """An old Python is named, and the sentence says which to install."""
    monkeypatch.setattr(bootstrap, "newer_python", lambda: None)
    sentence = r"needs Python 3\.10 or newer and this is Python 3\.8\.18: install Python 3\.13"
    with pytest.raises(bootstrap.Trouble, match=sentence):
        bootstrap.require_python(["lab"], version=(3, 8, 18))


def test_old_python_with_a_newer_one_on_path(monkeypatch):
    """A newer Python on PATH takes over, with the same arguments."""
    became = []
    monkeypatch.setattr(bootstrap, "newer_python", lambda: "/opt/python3.12")
    monkeypatch.setattr(bootstrap, "become", lambda command, environment: became.append(command))
    bootstrap.require_python(["lab", "--port", "9999"], version=(3, 9, 1))
    assert became == [["/opt/python3.12", str(bootstrap.ROOT / "bootstrap.py"), "lab", "--port", "9999"]]


def test_a_python_on_path_that_does_not_start_is_passed_over(tmp_path, monkeypatch):
    """A shim that names no installed Python is not taken for one."""
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    (tmp_path / "python3.12").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bootstrap.newer_python() == str(tmp_path / "python3.12")


def test_syntax_is_old_enough_to_say_so():
    """An old Python can parse the file, or it could not say that it is too old."""
    import ast

    ast.parse((ROOT / "bootstrap.py").read_text(encoding="utf-8"), feature_version=(3, 6))


def test_intel_mac(monkeypatch):
    """Where PyTorch has no builds, the sentence says so before anything is downloaded."""
    monkeypatch.setattr(bootstrap.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(bootstrap.platform, "machine", lambda: "x86_64")
    with pytest.raises(bootstrap.Trouble, match="Intel"):
        bootstrap.require_torch_platform()


# ---- the environment ---------------------------------------------------------------------------------------


def test_second_set_up_does_nothing(installs):
    """A finished environment is not touched again, and no network is needed."""
    bootstrap.set_up(["lab"])
    bootstrap.set_up(["lab"])
    assert installs == [["lab"]]


def test_fewer_extras_need_nothing_and_more_are_added(installs):
    """make lab after make test installs nothing; make test after make lab adds to what is there."""
    bootstrap.set_up(["lab", "grading"])
    bootstrap.set_up(["lab"])
    bootstrap.set_up(["dev"])
    assert installs == [["grading", "lab"], ["dev", "grading", "lab"]]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed(installs, course, name):
    """A pulled change of requirements or pins reaches the environment at the next start."""
    bootstrap.set_up(["lab"])
    with (course / name).open("a") as file:
        file.write("# changed\n")
    bootstrap.set_up(["lab"])
    assert installs == [["lab"], ["lab"]]


def test_interrupted_install_is_completed(installs, monkeypatch):
    """An install that Ctrl-C ended counts as not done, and keeps the environment it had begun."""
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "install", lambda extras: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            bootstrap.set_up(["lab"])
    made = (bootstrap.VENV / "pyvenv.cfg").stat().st_mtime_ns
    bootstrap.set_up(["lab"])
    assert installs == [["lab"]]
    assert (bootstrap.VENV / "pyvenv.cfg").stat().st_mtime_ns == made


def test_package_left_half_written_is_installed_anew(course):
    """pip would take a package that it left half written for installed: it is removed before pip looks."""
    packages = bootstrap.VENV / "lib" / "python3.11" / "site-packages"
    for name, files in {
        "whole-1.0.dist-info": ["METADATA", "RECORD", "INSTALLER"],
        "half-1.0.dist-info": ["METADATA", "RECORD"],
    }.items():
        (packages / name).mkdir(parents=True)
        for file in files:
            (packages / name / file).touch()
    (packages / "~orch").mkdir()
    bootstrap.drop_unfinished_packages()
    assert [path.name for path in packages.iterdir()] == ["whole-1.0.dist-info"]


@pytest.mark.parametrize("damage", ["no python", "no pyvenv.cfg", "no pip", "empty", "moved"])
def test_broken_environment_is_remade(installs, damage):
    """Whatever is wrong with .venv, the next start mends it without being asked."""
    bootstrap.set_up(["lab"])
    if damage == "no python":
        bootstrap.PYTHON.unlink()
    elif damage == "no pyvenv.cfg":
        (bootstrap.VENV / "pyvenv.cfg").unlink()
    elif damage == "no pip":
        bootstrap.STAMP.unlink()
        for pip in bootstrap.VENV.glob("lib/*/site-packages/pip"):
            shutil.rmtree(pip)
    elif damage == "empty":
        shutil.rmtree(bootstrap.VENV)
        bootstrap.VENV.mkdir()
    else:
        bootstrap.STAMP.write_text(bootstrap.STAMP.read_text().replace(str(bootstrap.ROOT), "/elsewhere"))
    bootstrap.set_up(["lab"])
    assert installs == [["lab"], ["lab"]]
    assert bootstrap.venv_version()


def test_python_without_venv(course, monkeypatch):
    """On Debian without python3-venv the sentence names the package to install."""
    log = "The virtual environment was not created successfully because ensurepip is not available."
    monkeypatch.setattr(bootstrap, "run_venv", lambda: (1, log))
    with pytest.raises(bootstrap.Trouble, match=r"sudo apt install python3\.\d+-venv"):
        bootstrap.make_venv()


def test_too_little_disk(course, monkeypatch):
    """Too little free disk is said before the download, with both figures."""
    nearly_full = shutil._ntuple_diskusage(total=10**10, used=9 * 10**9, free=10**9)
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda _: nearly_full)
    monkeypatch.setenv("ZEROGRAD_NEED_GB", "6")
    with pytest.raises(bootstrap.Trouble, match=r"needs 6 GB of free disk and .* has 1\.0 GB: free some"):
        bootstrap.set_up(["lab"])
    assert not bootstrap.VENV.exists()


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_cuda_is_reckoned_with_on_linux_only(course, monkeypatch, platform):
    """A plain torch brings CUDA on Linux; not elsewhere, and not from the CPU index."""
    monkeypatch.delenv("ZEROGRAD_NEED_GB", raising=False)
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setattr(bootstrap.sys, "platform", platform)
    assert bootstrap.needed_gb() == (8 if platform == "linux" else 3)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://index.invalid/cpu")
    assert bootstrap.needed_gb() == 3


# ---- pip ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("Retrying (Retry(total=0)) after connection broken by 'NewConnectionError()'", "check the network"),
        ("ProxyError()\nERROR: No matching distribution found for torch==2.13.0", "check the network"),
        ("ERROR: Could not install: [Errno 28] No space left on device", "The disk is full"),
        ("ERROR: [WinError 112] There is not enough space on the disk", "The disk is full"),
        ("ERROR: Could not install: [Errno 13] Permission denied", "cannot be written to"),
        (
            "(from versions: none)\nERROR: No matching distribution found for torch==2.13.0",
            "PyTorch has no build",
        ),
        (
            "ERROR: No requirement hatchling (from versions: none)",
            "check the network and pip's index settings",
        ),
        ("building\nERROR: Resolution impossible\n", "pip failed (Resolution impossible)"),
        ("", "pip failed (it said nothing)"),
    ],
)
def test_what_pip_says_becomes_one_sentence(log, sentence):
    """pip's page of output becomes the one thing that the learner can do."""
    said = bootstrap.why_pip_failed(log)
    assert sentence in said
    assert "\n" not in said


def test_failed_pip_keeps_its_log(course):
    """What pip printed stays in a file for whoever helps."""
    bootstrap.VENV.mkdir()
    failed = [sys.executable, "-c", "print('ERROR: no'); raise SystemExit(1)"]
    assert bootstrap.run_pip(failed).strip() == "ERROR: no"
    assert bootstrap.LOG.read_text().strip() == "ERROR: no"


def test_large_downloads_are_shown(capsys):
    """Where the output is a file, only the downloads that take long get a line."""
    show = bootstrap.Progress()
    show.line("  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (526.8 MB)\n")
    show.line("  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)\n")
    show.line("Installing collected packages: six, torch\n")
    assert capsys.readouterr().out == "  downloading torch (526.8 MB)\n  unpacking 2 packages\n"


@pytest.mark.slow
def test_no_network(tmp_path):
    """Without the network the set-up stops with one sentence, for real."""
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(nothing), "ZEROGRAD_NEED_GB": "0.1"}
    assert_one_sentence(run_bootstrap(tmp_path, "setup", **offline), "check the network")


# ---- the port ----------------------------------------------------------------------------------------------


def test_taken_port(tmp_path, taken_port):
    """A port that is taken is said before anything is installed."""
    started = run_bootstrap(tmp_path, "lab", "--port", str(taken_port))
    assert_one_sentence(started, f"Port {taken_port} is taken")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "99999999", "८०८०"])
def test_what_is_no_port(tmp_path, port):
    """What is not a port number is quoted, and a right one shown."""
    assert_one_sentence(run_bootstrap(tmp_path, "lab", f"--port={port}"), "is not a port", "PORT=9999")


def test_free_port():
    """A free port is taken as it is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert bootstrap.require_port(str(port)) == port


# ---- everything else ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyboardInterrupt(), "Stopped. The same command goes on from here."),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "/course/.venv"), "check that you may write"),
        (bootstrap.Trouble("Do this."), "Do this."),
    ],
)
def test_no_traceback(monkeypatch, capsys, error, sentence):
    """Whatever stops it, the learner sees one line and the shell sees 1."""

    def stop(extras):
        raise error

    monkeypatch.setattr(bootstrap, "set_up", stop)
    assert bootstrap.main(["setup"]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_arguments_after_test_and_run_are_not_ours():
    """pytest's options and those of a program reach it unread, also those that look like ours."""
    assert bootstrap.parse(["test", "-k", "port", "--help"]).arguments == ["-k", "port", "--help"]
    options = bootstrap.parse(["run", "--dev", "ruff", "check", "--dev", "."])
    assert (options.dev, options.program, options.arguments) == (True, "ruff", ["check", "--dev", "."])


def test_environment_puts_its_programs_first_on_path(monkeypatch):
    """nbgrader calls the alembic that PATH names: it must be the environment's."""
    monkeypatch.setenv("BROWSER", "no")
    monkeypatch.setenv("PIP_USER", "1")
    variables = bootstrap.environment()
    assert variables["PATH"].split(os.pathsep)[0] == str(bootstrap.BIN)
    assert "BROWSER" not in variables
    assert "PIP_USER" not in variables


def test_lab_opens_the_lessons():
    """JupyterLab's root is the course, its file browser starts in notebooks/, and it fetches nothing."""
    command = bootstrap.lab_command(9999, browser=False)
    assert f"--ServerApp.root_dir={bootstrap.ROOT}" in command
    assert "--FileContentsManager.preferred_dir=notebooks" in command
    assert {"--ServerApp.port=9999", "--ServerApp.port_retries=0", "--no-browser"} <= set(command)
    assert "--no-browser" not in bootstrap.lab_command(None, browser=True)
