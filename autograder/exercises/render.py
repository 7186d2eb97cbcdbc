"""A report as HTML and as plain text: calm, readable without colour, on light and dark ground."""

from __future__ import annotations

import contextlib
import sys
from html import escape
from typing import Any

from autograder.exercises.progress import grading
from autograder.exercises.report import Part, Report, pictures

MOST_PRINTED = 2_000


def number(value: float) -> str:
    """Points without a needless .0."""
    return f"{value:g}"


def mark(got: float, points: float) -> str:
    """A sign that needs no colour."""
    return "✓" if got >= points else "~" if got > 0 else "✗"


def headline(report: Report) -> str:
    """The points in one line."""
    points = f"{number(report.score)} of {number(report.max_score)} points"
    return f"{mark(report.score, report.max_score)} {report.title}: {points}"


def quoted(report: Report) -> str:
    """The learner's line, with its number; "" if the report speaks of none."""
    if report.line is None or not report.text:
        return ""
    return f"line {report.line}: {report.text}"


def hint_line(report: Report) -> str:
    """How to get a hint, where there is one and somebody is there to ask for it."""
    return f'hint("{report.exercise}")' if report.hints and not report.passed and not grading() else ""


def first_hint(report: Report) -> str:
    """The first hint, for a page on which nobody can ask for one."""
    return report.hints[0] if report.hints and not report.passed and grading() else ""


def printed(report: Report) -> str:
    """The end of what the answer printed."""
    text = report.printed.rstrip()
    return text if len(text) <= MOST_PRINTED else "…" + text[-MOST_PRINTED:]


def _points_of(part: Part) -> str:
    points = f"{number(part.got)} of {number(part.points)}"
    return f"{points} ({part.message})" if part.message else points


def to_text(report: Report) -> str:
    """The report for a terminal, and for places that show no HTML."""
    lines = [headline(report), report.message]
    if quoted(report):
        lines.append(f"    {quoted(report)}")
    lines += [f"  {mark(p.got, p.points)} {p.name}: {_points_of(p)}" for p in report.parts]
    lines += [f"  note: {note}" for note in report.notes]
    if hint_line(report):
        lines.append(f"For a hint, run {hint_line(report)}")
    return "\n".join(lines)


def to_html(report: Report) -> str:
    """The report for a notebook's cell. Everything that comes from the learner is escaped."""
    parts = [
        f"<div><strong>{escape(headline(report))}</strong></div>",
        f'<div style="margin:.4em 0">{escape(report.message)}</div>',
        _code(quoted(report)) if quoted(report) else "",
        _table(report),
        *_drawn(report),
        _folded("Printed", _code(printed(report))) if printed(report) else "",
        _folded("Notes that cost nothing", _list(report.notes)) if report.notes else "",
        f"<div>Hint: run {_inline(hint_line(report))}</div>" if hint_line(report) else "",
        f"<div>Hint: {escape(first_hint(report))}</div>" if first_hint(report) else "",
    ]
    style = "border-left:4px solid currentColor;padding:.2em .8em;margin:.4em 0;max-width:60em;line-height:1.45"
    return f'<div style="{style}" role="status">{"".join(parts)}</div>'


def _inline(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _code(text: str) -> str:
    style = "margin:.4em 0;padding:0;background:none;color:inherit;white-space:pre-wrap;max-height:20em;overflow:auto"
    return f'<pre style="{style}">{escape(text)}</pre>'


def _table(report: Report) -> str:
    rows = "".join(
        f'<tr><td style="{CELL}">{mark(part.got, part.points)}</td><td style="{CELL}">{escape(part.name)}</td>'
        f'<td style="{CELL}">{number(part.got)} of {number(part.points)}</td>'
        f'<td style="{CELL};opacity:.75">{escape(part.message)}</td></tr>'
        for part in report.parts
    )
    return f'<table style="border-collapse:collapse;margin:.4em 0;color:inherit">{rows}</table>' if rows else ""


CELL = "text-align:left;padding:.1em .8em .1em 0;background:none;color:inherit;border:0"


def _list(items: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def _folded(title: str, content: str) -> str:
    # nbgrader's pages take the triangle away, and with it what says that there is something to open.
    style = "display:list-item;cursor:pointer"
    return f'<details><summary style="{style}">{escape(title)}</summary>{content}</details>'


def _drawn(report: Report) -> list[str]:
    drawn: list[str] = []
    for picture in pictures:
        with contextlib.suppress(Exception):  # a report without its picture is better than none
            drawn.append(picture(report) or "")
    return drawn


class Shown:
    """A report as IPython displays it."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": to_html(self.report), "text/plain": to_text(self.report)}


def show(report: Report) -> None:
    """Display the report in a notebook, print it elsewhere."""
    shell = _shell()
    if shell is None:
        print(to_text(report))
    else:
        shell.display_pub.publish(Shown(report)._repr_mimebundle_())


def _shell() -> Any:
    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None
