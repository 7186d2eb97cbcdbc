"""pyproject.toml's ranges, constraints.txt's pins and environment.yml hold together."""

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.lstrip().startswith("#")
]
RANGES = [Requirement(text) for text in sum(EXTRAS.values(), PROJECT["dependencies"])]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


def pins_of(name, python):
    environment = {"python_version": python, "python_full_version": python + ".9"}
    return [
        next(iter(pin.specifier)).version
        for pin in PINS
        if canonicalize_name(pin.name) == canonicalize_name(name)
        and (pin.marker is None or pin.marker.evaluate(environment))
    ]


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("required", RANGES, ids=str)
def test_every_requirement_has_one_pin_in_its_range(required, python):
    """On each Python, what pyproject.toml asks for is pinned once, and the pin is in the range."""
    (pin,) = pins_of(required.name, python)
    assert required.specifier.contains(pin)


def test_pins_are_exact():
    """constraints.txt has exact versions only, no addresses and no files."""
    for pin in PINS:
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin
        assert pin.url is None


def test_constraints_say_how_they_are_made():
    """The top of constraints.txt names the command that makes it."""
    assert "make lock" in (ROOT / "constraints.txt").read_text(encoding="utf-8")[:300]


def test_torch_is_the_one_that_the_tests_run_on():
    """torch's pin moves by hand only."""
    assert {pins_of("torch", python)[0] for python in PYTHONS} == {"2.13.0"}


def test_what_colab_has_is_not_upgraded():
    """The package alone asks for nothing that Colab lacks, and for nothing newer than Colab has."""
    colab = {
        "torch": "2.4.0",
        "numpy": "1.26.4",
        "matplotlib": "3.7.1",
        "ipywidgets": "7.7.1",
        "ipython": "7.34.0",
    }
    required = {needed.name: needed.specifier for needed in map(Requirement, PROJECT["dependencies"])}
    assert required.keys() == colab.keys()
    assert all(required[name].contains(version) for name, version in colab.items())


def test_conda_installs_the_same():
    """environment.yml pins nothing itself: it takes this package, known extras and constraints.txt."""
    *plain, through_pip = CONDA["dependencies"]
    constraint, package = through_pip["pip"]
    assert constraint == "-c constraints.txt"
    extras = re.fullmatch(r"-e \.\[([a-z,]+)\]", package)[1].split(",")
    assert set(extras) <= EXTRAS.keys()
    assert {"lab", "grading"} <= set(extras)
    python = next(text for text in plain if text.startswith("python="))
    assert python.removeprefix("python=") in PYTHONS


def test_version_stands_in_one_place():
    """The version is written in autograder/__init__.py, and the package is built with it."""
    written = re.findall(r'^__version__ = "(.+)"$', (ROOT / "autograder/__init__.py").read_text(), re.MULTILINE)
    assert written == [importlib.metadata.version("zerograd")]
    assert "version" not in PROJECT
