"""The report on screen: escaped, calm, and the same in words as in HTML."""

from html.parser import HTMLParser

from autograder.exercises import report as reports
from autograder.exercises.render import Shown, to_html, to_text
from autograder.exercises.report import Part, Report

NASTY = '<script>alert("x")</script> & <img onerror=x>'


def _report(**changes):
    fields = {
        "exercise": "03-plain-loop", "title": "The plain loop", "score": 8.0, "max_score": 10.0,
        "message": "Step 2 used two gradients.", "parts": (Part("values", 8, 8), Part("tidy", 2, 0)),
        "kind": "x", "line": 4, "text": "loss.backward()", "hints": ("Look.",), "notes": ("Warning at line 3: hm",),
        "printed": "hello",
    }  # fmt: skip
    return Report(**(fields | changes))


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def _tags(html):
    parser = _Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.tags


def test_both_forms_say_the_same():
    """Points, sentence, line, parts, notes and the way to a hint are in the text and in the HTML."""
    for shown in (to_text(_report()), to_html(_report()).replace("&quot;", '"')):
        for words in ("8 of 10 points", "Step 2 used two gradients.", "line 4: loss.backward()", "tidy"):
            assert words in shown
        assert "Warning at line 3: hm" in shown
        assert 'hint("03-plain-loop")' in shown


def test_what_comes_from_the_learner_is_escaped():
    """No text of the learner's becomes a tag, and there is no script, no style sheet and nothing from elsewhere."""
    report = _report(message=NASTY, text=NASTY, notes=(NASTY,), printed=NASTY, title=NASTY, parts=(Part(NASTY, 1, 0),))
    tags = _tags(to_html(report))
    names = {name for name, _ in tags}
    assert names <= {"div", "strong", "pre", "table", "tr", "td", "details", "summary", "ul", "li", "code"}
    assert all(not key.startswith("on") and key not in ("src", "href") for _, attrs in tags for key in attrs)


def test_no_colour_is_needed():
    """No colour is set but the reader's own: light and dark themes both work, and signs tell right from wrong."""
    html = to_html(_report())
    assert "#" not in html
    assert "rgb" not in html
    assert "✓" in html
    assert "✗" in html


def test_full_points_need_no_table_and_no_hint():
    """A right answer shows its points and its sentence."""
    text = to_text(_report(score=10.0, parts=(), line=None))
    assert "hint(" not in text
    assert text.splitlines()[0] == "✓ The plain loop: 10 of 10 points"


def test_pictures_are_added_and_may_fail(monkeypatch):
    """A registered picture stands in the HTML; one that breaks is left out."""
    monkeypatch.setattr(reports, "pictures", reports.pictures)
    for picture in (lambda report: "<svg></svg>", lambda report: 1 / 0, lambda report: None):
        reports.pictures.append(picture)
    try:
        assert "<svg></svg>" in to_html(_report())
    finally:
        del reports.pictures[-3:]


def test_long_prints_are_cut():
    """Of what an answer prints, the end is shown."""
    html = to_html(_report(printed="x" * 10_000 + "end"))
    assert len(html) < 6_000
    assert "xend" in html


def test_bundle():
    """IPython gets HTML, and text for places without HTML."""
    assert set(Shown(_report())._repr_mimebundle_()) == {"text/html", "text/plain"}
