"""The house's layers: imports go down only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "autograder"
LAYERS = ("guard", "loops", "exercises", "lab", "grading", "cli")
# What a layer may import of the package besides itself.
BELOW = {
    "guard": set(),
    "loops": {"guard"},
    "exercises": {"guard", "loops"},
    "lab": {"guard", "loops", "exercises"},
    "grading": {"guard", "loops", "exercises"},
    "cli": {"guard", "loops", "exercises", "lab", "grading"},
}
STANDARD_AND_TORCH_ONLY = ("guard", "loops")
HEAVY = {
    "IPython",
    "ipywidgets",
    "jupyter_client",
    "matplotlib",
    "nbclient",
    "nbformat",
    "nbgrader",
    "numpy",
    "traitlets",
}


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else ast.walk(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "autograder"}
    return found


MODULES = [path for layer in LAYERS for path in sorted((PACKAGE / layer).rglob("*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    """A module imports only its own layer and those below it."""
    layer = path.relative_to(PACKAGE).parts[0]
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("autograder.")}
    assert rooms & set(LAYERS) <= BELOW[layer] | {layer}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_the_core_needs_torch_alone(path):
    """loops/ and guard/ import nothing at their top but torch and the standard library."""
    if path.relative_to(PACKAGE).parts[0] in STANDARD_AND_TORCH_ONLY:
        assert not {name.split(".")[0] for name in imports(path, top_level_only=True)} & HEAVY
