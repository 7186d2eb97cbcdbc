"""The accumulation lab as a notebook shows it: controls, the loop, one line of words, the picture."""

from __future__ import annotations

import base64
import os
from html import escape
from typing import Any

from autograder.lab.settings import BATCHES, CHOICES, STEPS, Settings
from autograder.lab.state import State, draw, picture_html

LABELS = {
    "batches": "Batches in an epoch",
    "steps": "Accumulation steps",
    "zeroing": "Zeroing",
    "set_to_none": "Zeroing leaves",
    "divide": "Loss divided by",
    "leftover": "Last, short group is",
    "optimizer": "Optimizer",
}
Bundle = tuple[dict[str, Any], dict[str, Any]]  # what IPython shows, and its metadata
VIEW = "application/vnd.jupyter.widget-view+json"
LONGEST_LOOP = 11  # lines: what is below stays where it is when the loop gets shorter
SLIDERS = {"batches": BATCHES, "steps": STEPS}


class AccumulationLab:
    """The lab. ``widget`` is what a notebook shows, None where there is no ipywidgets; then the picture stands in.

    ``draw`` gives any state without a browser, and raises what goes wrong; the controls show it in the line of words.
    """

    def __init__(self) -> None:
        self.state: State | None = None
        self.controls: dict[str, Any] = {}
        self.widget: Any = None
        widgets = _ipywidgets()
        if widgets is not None:
            self.widget = self._build(widgets)
            self.redraw()

    def draw(
        self, batches: int = 6, steps: int = 2, zeroing: str = "each step", set_to_none: bool = True, **more: Any
    ) -> State:
        """The state of these settings; ``more`` are ``divide``, ``leftover`` and ``optimizer``. Raises ValueError."""
        return draw(Settings(batches, steps, zeroing, set_to_none, **more))

    def redraw(self, change: object = None) -> None:
        """Bring words, loop and picture up to the controls. An exception is shown, not lost."""
        try:
            values = {name: control.value for name, control in self.controls.items()}
            self.state = draw(Settings(**values))
        except Exception as error:
            self.words.value = words_html("!", f"This state could not be drawn: {type(error).__name__}: {error}")
            return
        self.words.value = words_html("✓" if self.state.verdict.right else "✗", self.state.words)
        self.loop.value = loop_html(self.state.source, self.state.verdict.line)
        self.picture.value = picture_html(self.state.picture, self.state.alt)

    def _build(self, widgets: Any) -> Any:
        for name, label in LABELS.items():
            self.controls[name] = _control(widgets, name, label)
            self.controls[name].observe(self.redraw, names="value")
        self.words, self.loop, self.picture = (widgets.HTML(layout=widgets.Layout(margin="0")) for _ in range(3))
        self.loop.layout.margin = "0 0 0 24px"
        left = widgets.VBox(list(self.controls.values()))
        top = widgets.HBox([left, self.loop], layout=widgets.Layout(flex_flow="row wrap", align_items="flex-start"))
        return widgets.VBox([top, self.words, self.picture])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        """The widget, and for viewers that have none the picture and the words of its state.

        Twice: pages made by nbconvert take alt text from HTML alone, and other viewers drop HTML and keep the PNG.
        """
        state = self.state or draw(Settings())
        mark = "✓" if state.verdict.right else "✗"
        bundle: dict[str, Any] = {
            "text/html": words_html(mark, state.words) + picture_html(state.picture, state.alt),
            "image/png": base64.b64encode(state.picture).decode(),
            "text/plain": state.words,
        }
        if self.widget is not None and not _printed():
            bundle[VIEW] = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return bundle, {"image/png": {"alt": f"{state.words} {state.alt}"}}


def accumulation() -> AccumulationLab:
    """The accumulation lab: what stands in .grad at each step, for any place of zero_grad and any grouping."""
    return AccumulationLab()


def _ipywidgets() -> Any:
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets


def _printed() -> bool:
    """Whether the notebook is being run for a page, as nbgrader does, where no control would ever be moved."""
    return bool(os.environ.get("NBGRADER_EXECUTION"))


def _control(widgets: Any, name: str, label: str) -> Any:
    style, layout = {"description_width": "150px"}, widgets.Layout(width="430px", max_width="100%")
    value = getattr(Settings(), name)
    if name in SLIDERS:
        low, high = SLIDERS[name]
        return widgets.IntSlider(value=value, min=low, max=high, description=label, style=style, layout=layout)
    return widgets.Dropdown(options=CHOICES[name], value=value, description=label, style=style, layout=layout)


# ---------------------------------------------------------------------- words and loop as HTML, on any ground
def words_html(mark: str, words: str) -> str:
    """The line of words; its mark says right, wrong or failed without colour."""
    colour = {"✓": "#0072B2", "✗": "#D55E00"}.get(mark, "currentColor")
    style = f"border-left:4px solid {colour};padding:.3em .8em;margin:.5em 0;max-width:74em;line-height:1.45"
    style += ";min-height:2.9em"  # two lines: what is below stays where it is
    return f'<div role="status" style="{style}"><strong>{mark}</strong> {escape(words)}</div>'


def loop_html(source: str, line: int | None) -> str:
    """The loop with its line numbers; the line that the words speak of is marked."""
    rows = []
    for number, text in enumerate(source.splitlines(), 1):
        here = number == line
        shown = f"{'▸' if here else ' '}{number:>2}  {escape(text)}"
        rows.append(f"<strong>{shown}</strong>" if here else shown)
    style = (
        "margin:0;padding:.6em .9em;line-height:1.45;font-size:12.5px;background:rgba(127,127,127,.12);"
        f"color:inherit;border-radius:4px;overflow-x:auto;min-width:30em;min-height:{1.45 * LONGEST_LOOP:g}em"
    )
    caption = "Called twice: an epoch each time. k is the number of accumulation steps."
    text = "\n".join(rows)
    return f'<div style="opacity:.75;margin:.2em 0 .4em">{caption}</div><pre style="{style}">{text}</pre>'
