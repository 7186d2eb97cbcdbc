"""The accumulation lab in a notebook's cell: what moves when a control is moved, and what stands in for it."""

from __future__ import annotations

import builtins
import subprocess
import sys
from html import escape

import pytest

from autograder.lab import panel
from autograder.lab.panel import VIEW, AccumulationLab

ipywidgets = pytest.importorskip("ipywidgets", reason="ipywidgets is not installed")


@pytest.fixture
def lab():
    return AccumulationLab()


def test_controls_change_the_panel_in_place(lab, capfd):
    """Setting a control's value changes the values of the same widgets; nothing is added, printed or displayed."""
    parts, top = lab.widget.children, lab.widget.children[0].children
    seen = set()
    for name, value in (
        ("zeroing", "never"), ("batches", 7), ("steps", 3), ("zeroing", "each step"), ("leftover", False),
        ("divide", "nothing"), ("set_to_none", False), ("optimizer", "momentum_wd"),
    ):  # fmt: skip
        lab.controls[name].value = value
        assert getattr(lab.state.settings, name) == value
        assert escape(lab.state.words) in lab.words.value
        seen.add((lab.words.value, lab.loop.value, lab.picture.value))
    assert len(seen) == 8
    assert lab.widget.children == parts
    assert lab.widget.children[0].children == top
    assert capfd.readouterr() == ("", "")


def test_controls_have_plain_labels(lab):
    """Every setting has a control with a label of words, and starts at the right loop."""
    assert list(lab.controls) == list(panel.LABELS)
    assert all(control.description and "_" not in control.description for control in lab.controls.values())
    assert lab.state.verdict.right


def test_an_exception_is_shown_in_the_words(lab, monkeypatch):
    """What goes wrong in a callback stands in the line of words; the lab goes on with the next state."""
    real = panel.draw

    def broken(settings):
        raise RuntimeError("the <engine> is tired")

    monkeypatch.setattr(panel, "draw", broken)
    lab.controls["steps"].value = 4
    assert "RuntimeError: the &lt;engine&gt; is tired" in lab.words.value
    monkeypatch.setattr(panel, "draw", real)
    lab.controls["steps"].value = 5
    assert "tired" not in lab.words.value
    with pytest.raises(ValueError, match="must be"):
        lab.draw(batches=99)


def test_the_picture_has_alt_text(lab):
    """The picture's alt text tells ledger, norms and losses in words, and follows the state."""
    assert (
        'alt="Ledger: 6 steps by 12 backward calls; step 1 used batches 1 to 2 of epoch 1 at 0.5 each;'
        in lab.picture.value
    )
    lab.controls["batches"].value = 4
    assert 'alt="Ledger: 4 steps by 8 backward calls;' in lab.picture.value


def test_the_words_are_announced(lab):
    """A screen reader is told the new line of words."""
    assert 'role="status"' in lab.words.value


def test_the_picture_stands_beside_the_widget_for_viewers_without(lab):
    """The cell's output holds the live view and, for plain viewers, the picture of the state with alt text."""
    bundle, metadata = lab._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == lab.widget.model_id
    assert bundle["image/png"].startswith("iVBORw0KGgo")
    assert 'alt="Ledger: ' in bundle["text/html"]
    assert metadata["image/png"]["alt"].startswith("Right: ")
    assert bundle["text/plain"] == lab.state.words


def test_a_page_that_nbgrader_makes_gets_the_picture_alone(lab, monkeypatch):
    """Under nbgrader no control will ever be moved: a widget would only be a hole in the feedback."""
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert set(lab._repr_mimebundle_()[0]) == {"text/html", "image/png", "text/plain"}


def test_without_ipywidgets_the_picture_stands_in(monkeypatch):
    """Where ipywidgets cannot be imported the lab still draws any state, and shows the first."""
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == "ipywidgets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    lab = panel.accumulation()
    assert lab.widget is None
    assert not lab.draw(6, 2, zeroing="never").verdict.right
    assert set(lab._repr_mimebundle_()[0]) == {"text/html", "image/png", "text/plain"}


@pytest.mark.slow
def test_html_export_shows_the_picture(lab):
    """A notebook saved without widget state shows the picture in nbconvert's page, with its alt text."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    bundle, metadata = lab._repr_mimebundle_()
    cell = nbformat.v4.new_code_cell("lab.accumulation()")
    cell.outputs = [nbformat.v4.new_output("execute_result", bundle, metadata=metadata, execution_count=1)]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    assert page.count('alt="Ledger: ') == 1


@pytest.mark.slow
def test_importing_the_lab_imports_nothing_heavy():
    """`from autograder import lab` loads neither matplotlib nor ipywidgets, and drawing never loads pyplot."""
    code = (
        "import sys; from autograder import lab; heavy = {'matplotlib', 'ipywidgets', 'IPython'} & set(sys.modules); "
        "assert not heavy, heavy; lab.accumulation(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_lab_is_what_the_package_says():
    """Every public name of the lab is there."""
    from autograder import lab

    assert all(getattr(lab, name) is not None for name in lab.__all__)
    assert {"accumulation", "picture", "ledger_figure", "norms_figure", "ledger_words", "bench"} <= set(dir(lab))
