"""Set the course up in .venv and start it: python bootstrap.py lab, or test, setup, run.

Standard library only, and old syntax only (Python 3.6), so that an old Python gets a sentence and not a
SyntaxError.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 10)
TRIED_ON_PATH = ("python3.13", "python3.12", "python3.11", "python3.10")
COURSE = ("lab", "grading")
TESTS = ("lab", "grading", "cluster", "dev")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "zerograd-setup.json"
LOG = VENV / "zerograd-setup.log"
WINDOWS = os.name == "nt"
BIN = VENV / ("Scripts" if WINDOWS else "bin")
PYTHON = BIN / ("python.exe" if WINDOWS else "python")

# Each of these would make Python or pip look or install outside of .venv.
FOREIGN = {"PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIREMENT", "PIP_REQUIRE_VIRTUALENV"}

NO_SPACE = re.compile(r"No space left on device|Errno 28\b|WinError 112\b|not enough space on the disk")
NO_ACCESS = re.compile(r"Permission denied|Errno 13\b|WinError 5\b|Read-only file system")
NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|ConnectionError|ConnectionReset|ProxyError|SSLError"
    r"|Name or service not known|name resolution|Could not fetch URL"
)
NO_BUILD = re.compile(r"No matching distribution found for torch")
NOTHING_FOUND = re.compile(r"\(from versions: none\)")


NOT_YOURS = "{} cannot be written to: copy the course to a folder of your own and start it there."


class Trouble(Exception):
    """What stops the set-up, in one sentence that says what to do."""


def say(text):
    print(text, flush=True)


# ---- which Python ------------------------------------------------------------------------------------------


def works(python):
    """Whether this starts a Python that is new enough: a pyenv shim is on PATH and may start nothing."""
    question = "import sys; print(sys.version_info[:2] >= {!r})".format(OLDEST)
    return output_of([python, "-c", question]) == "True"


def output_of(command):
    """What the command prints, or None if it cannot be run, fails or hangs."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def newer_python():
    found = (shutil.which(name) for name in TRIED_ON_PATH)
    return next((python for python in found if python and works(python)), None)


def require_python(arguments, version=None):
    """Go on under a newer Python from PATH if this one is too old."""
    version = tuple(version or sys.version_info[:3])
    if version[:2] >= OLDEST:
        return
    name = "Python " + ".".join(map(str, version))
    python = newer_python()
    if python is None:
        raise Trouble(
            "This course needs Python 3.10 or newer and this is {}: install Python 3.13, then run the same "
            "command again.".format(name)
        )
    say("This is {}, which is too old: going on with {}.".format(name, python))
    become([python, str(ROOT / "bootstrap.py"), *arguments], os.environ)


def require_torch_platform():
    if platform.system() == "Darwin" and platform.machine() == "x86_64":
        raise Trouble(
            "PyTorch no longer comes for Intel Macs or Intel builds of Python: on an Apple silicon Mac "
            "install the arm64 build of Python, on an Intel Mac use Colab (README.md says how)."
        )


def become(command, environment):
    """Replace this process by the command, so that signals and the exit status are the command's own."""
    if not WINDOWS:
        os.execve(command[0], command, dict(environment))
    child = subprocess.Popen(command, env=dict(environment))
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:
            continue  # Windows sends Ctrl-C to the child as well: wait for it to end in its own way.


# ---- the environment ---------------------------------------------------------------------------------------


def environment():
    """The caller's variables, with .venv first on PATH: nbgrader calls the alembic that it finds there."""
    variables = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    if variables.get("BROWSER") == "no":
        del variables["BROWSER"]  # make passes its own BROWSER=no on; webbrowser would take it for a program.
    variables["PATH"] = os.pathsep.join([str(BIN), variables.get("PATH", os.defpath)])
    variables["VIRTUAL_ENV"] = str(VENV)
    return variables


def venv_version():
    """The version of .venv's Python, such as "3.11"; None where .venv is missing, broken or too old."""
    if not (VENV / "pyvenv.cfg").exists() or not works(str(PYTHON)):
        return None
    return output_of([str(PYTHON), "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])


def wanted_key(version):
    """Stands for all that decides what the environment holds, the extras aside."""
    files = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([*files, version.encode()])).hexdigest()


def read_stamp():
    try:
        return dict(json.loads(STAMP.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def write_stamp(key, extras):
    stamp = {"root": str(ROOT), "key": key, "extras": sorted(extras)}
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")


def set_up(extras):
    """Make .venv hold the course with these extras; instant and without the network if it does already."""
    stamp, version = read_stamp(), venv_version()
    present = set(stamp.get("extras", ()))
    # The programs in .venv/bin name their Python by its full path: they do not survive a move.
    moved = stamp.get("root", str(ROOT)) != str(ROOT)
    if version and not moved and present >= set(extras) and stamp.get("key") == wanted_key(version):
        return
    require_torch_platform()
    require_space()
    if moved or not version or output_of([str(PYTHON), "-m", "pip", "--version"]) is None:
        version, present = make_venv(), set()
    extras = present | set(extras)
    write_stamp("unfinished", present)
    install(extras)
    write_stamp(wanted_key(version), extras)
    say("Done. The next start takes a second and no network.")


def require_space():
    needed, free = needed_gb(), shutil.disk_usage(str(ROOT)).free / 1e9
    if free < needed:
        raise Trouble(
            "The set-up needs {:.3g} GB of free disk and {} has {:.1f} GB: free some space, then run the "
            "same command again (ZEROGRAD_NEED_GB=2 lowers the figure at your own risk).".format(needed, ROOT, free)
        )


def needed_gb():
    """A plain torch brings CUDA on Linux; an environment that has torch already needs little."""
    asked = os.environ.get("ZEROGRAD_NEED_GB", "")
    if re.match(r"[0-9.]*[0-9]$", asked):
        return float(asked)
    if any(VENV.glob("[Ll]ib/**/site-packages/torch/version.py")):
        return 1
    cpu_only = "cpu" in os.environ.get("PIP_EXTRA_INDEX_URL", "") + os.environ.get("PIP_INDEX_URL", "")
    return 3 if cpu_only or not sys.platform.startswith("linux") else 8


def make_venv():
    if VENV.exists():
        say("Remaking .venv, which is broken, unfinished or from another folder.")
        shutil.rmtree(str(VENV))
    else:
        say("Making a Python environment in .venv.")
    failed, log = run_venv()
    version = venv_version()
    if failed or not version:
        raise Trouble(why_venv_failed(log))
    return version


def run_venv():
    command = [sys.executable, "-m", "venv", str(VENV)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment())
    return done.returncode, done.stdout.decode(errors="replace")


def why_venv_failed(log):
    if NO_SPACE.search(log):
        return "The disk is full: free some space, then run the same command again."
    if NO_ACCESS.search(log):
        return NOT_YOURS.format(ROOT)
    if "ensurepip" in log or "No module named venv" in log:
        return (
            "This Python cannot make environments: on Debian or Ubuntu run `sudo apt install "
            "python{}.{}-venv`, elsewhere install Python 3.13, then run the same command again."
        ).format(*sys.version_info[:2])
    return "python -m venv failed ({}): run the same command with another Python.".format(last_line(log))


# ---- pip ---------------------------------------------------------------------------------------------------


def install(extras):
    drop_unfinished_packages()
    say("Installing the course ({}). The first time takes some minutes.".format(", ".join(sorted(extras))))
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar=off", "--retries=2", "-c", "constraints.txt"]
    command += ["-e", ".[{}]".format(",".join(sorted(extras)))]
    log = run_pip(command)
    if log is not None:
        raise Trouble(why_pip_failed(log))
    if "lab" in extras:
        switch_off_news()


def drop_unfinished_packages():
    """pip writes INSTALLER when a package is whole, and takes one without it for installed all the same."""
    for info in VENV.glob("[Ll]ib/**/site-packages/*.dist-info"):
        if not (info / "INSTALLER").exists():
            shutil.rmtree(str(info))
    for leftover in VENV.glob("[Ll]ib/**/site-packages/~*"):
        shutil.rmtree(str(leftover), ignore_errors=True)


def run_pip(command):
    """None if pip succeeds, else what it printed. Shows what it downloads while it runs."""
    lines, show = [], Progress()
    pip = subprocess.Popen(command, cwd=str(ROOT), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for raw in pip.stdout:
            lines.append(raw.decode(errors="replace"))
            show.line(lines[-1])
        failed = pip.wait()
    finally:
        if pip.poll() is None:
            pip.terminate()
            pip.wait()
        pip.stdout.close()
        show.end()
        LOG.write_text("".join(lines), encoding="utf-8")
    return "".join(lines) if failed else None


class Progress:
    """One line that changes on a terminal; in a log file a line for each large download."""

    DOWNLOAD = re.compile(r"\s*Downloading (\S+?)(-\S+)? \(([\d.]+) ([kMG])B\)")

    def __init__(self):
        self.terminal = sys.stdout.isatty()

    def line(self, text):
        download = self.DOWNLOAD.match(text)
        if download:
            name, _, size, unit = download.groups()
            large = unit == "G" or (unit == "M" and float(size) >= 20)
            self.show("downloading {} ({} {}B)".format(name, size, unit), large)
        elif text.startswith("Installing collected packages:"):
            self.show("unpacking {} packages".format(text.count(",") + 1), True)

    def show(self, text, important):
        if self.terminal:
            print("\r  {:<70.70}".format(text), end="", flush=True)
        elif important:
            say("  " + text)

    def end(self):
        if self.terminal:
            print("\r{:<72}\r".format(""), end="", flush=True)


def why_pip_failed(log):
    """In this order: without a network or a disk, pip also says that it found no matching distribution."""
    again = "then run the same command again: it goes on where it stopped."
    if NO_SPACE.search(log):
        return "The disk is full (TMPDIR can name a folder on a larger one): free some space, " + again
    if NO_ACCESS.search(log):
        return NOT_YOURS.format(ROOT)
    if NO_NETWORK.search(log):
        return "pip cannot reach the package index: check the network (and your proxy, if any), " + again
    if NO_BUILD.search(log):
        return (
            "PyTorch has no build for this Python ({}) on this computer: install Python 3.13, then run "
            "`make clean` and the same command again."
        ).format(platform.python_version())
    if NOTHING_FOUND.search(log):
        return "pip finds no packages where it looks: check the network and pip's index settings, " + again
    return "pip failed ({}): the whole log is in {}.".format(last_line(log), LOG.relative_to(ROOT))


def last_line(log):
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[-1][:300]


def switch_off_news():
    """JupyterLab asks at its first start whether it may fetch news; learners need not decide that."""
    plugin = "@jupyterlab/apputils-extension:announcements"
    output_of([str(PYTHON), "-m", "jupyter", "labextension", "disable", "--level=sys_prefix", plugin])


# ---- commands ----------------------------------------------------------------------------------------------


def require_port(text):
    """The port as a number, if it is one and nothing listens on it."""
    if not re.match(r"[0-9]{1,5}$", text) or not 1 <= int(text) <= 65535:
        raise Trouble("{!r} is not a port: give a number, as in `make lab PORT=9999`.".format(text))
    with socket.socket() as probe:
        if not WINDOWS:  # There SO_REUSEADDR would let the probe share a port that is taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(text)))
        except PermissionError:
            raise Trouble("Port {} is reserved on this computer: choose one above 1023.".format(text))
        except OSError:
            raise Trouble(
                "Port {} is taken by another program: stop that one, or choose another, as in "
                "`make lab PORT={}`.".format(text, int(text) + 1 if int(text) < 65535 else 8888)
            )
    return int(text)


def lab_command(port, browser):
    command = [str(PYTHON), "-m", "jupyterlab"]
    # nbgrader's formgrader wants the course as root; learners want to see the lessons.
    command += ["--ServerApp.root_dir=" + str(ROOT), "--FileContentsManager.preferred_dir=notebooks"]
    # A workspace of its own, or JupyterLab would restore the folder and tabs of the learner's last project.
    command += ["--LabApp.workspaces_dir=" + str(VENV / "workspaces")]
    # The other kinds of extension manager ask a package index for news of extensions.
    command += ["--LabApp.extension_manager=readonly"]
    if port is not None:
        command += ["--ServerApp.port={}".format(port), "--ServerApp.port_retries=0"]
    if not browser:
        command += ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command += ["--allow-root"]  # Containers and cloud machines run as root; Jupyter would refuse.
    return command


def lab(options):
    port = None if options.port is None else require_port(options.port)
    set_up(COURSE)
    say("Starting JupyterLab. Open 03-zero-grad to begin; Ctrl-C here stops it.")
    (ROOT / "notebooks").mkdir(exist_ok=True)
    start(lab_command(port, options.browser))


def test(options):
    set_up(TESTS)
    start([str(PYTHON), "-m", "pytest", *options.arguments])


def setup(options):
    set_up(COURSE + tuple(options.extra))


def run(options):
    set_up(TESTS if options.dev else COURSE)
    program = shutil.which(options.program, path=environment()["PATH"])
    if program is None:
        raise Trouble("There is no program {} in .venv.".format(options.program))
    start([program, *options.arguments])


def start(command):
    os.chdir(str(ROOT))  # nbgrader reads nbgrader_config.py from here.
    become(command, environment())


def parse(arguments):
    about = "Set the course up in .venv and start it."
    parser = argparse.ArgumentParser(prog="bootstrap.py", description=about)
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.required = True
    opened = commands.add_parser("lab", help="set up, then open the course in JupyterLab")
    opened.add_argument("--port", help="default: the first free one from 8888")
    opened.add_argument("--no-browser", dest="browser", action="store_false", help="only print the address")
    opened.set_defaults(do=lab)
    tested = commands.add_parser("test", help="set up, then run pytest with the arguments that follow")
    tested.set_defaults(do=test)
    only = commands.add_parser("setup", help="set up and stop")
    only.add_argument("--extra", action="append", default=[], help="one more extra of pyproject.toml")
    only.set_defaults(do=setup)
    other = commands.add_parser("run", help="set up, then run a program of the environment")
    other.add_argument("--dev", action="store_true", help="with the tools for tests and lint")
    other.add_argument("program")
    other.set_defaults(do=run)
    # argparse would claim the other program's options: what follows `test` or the program's name is not ours.
    ours, theirs = split(arguments)
    options = parser.parse_args(ours)
    options.arguments = theirs
    return options


def split(arguments):
    """Our arguments, and those for pytest or for the program that `run` starts."""
    if arguments[:1] == ["test"]:
        return arguments[:1], arguments[1:]
    if arguments[:1] == ["run"]:
        words = (i for i, word in enumerate(arguments[1:], 2) if not word.startswith("-"))
        end = next(words, len(arguments))
        return arguments[:end], arguments[end:]
    return arguments, []


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        require_python(arguments)
        options = parse(arguments)
        options.do(options)
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 1
    except OSError as error:
        print(why_system_failed(error), file=sys.stderr)
        return 1
    return 0


def why_system_failed(error):
    if NO_SPACE.search(str(error)):
        return "The disk is full: free some space, then run the same command again."
    return "{}: check that you may write to {}, then run the same command again.".format(error, ROOT)


if __name__ == "__main__":
    sys.exit(main())
