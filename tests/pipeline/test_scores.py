"""The whole lesson through nbgrader's own commands: release, hand in, autograde, feedback."""

from __future__ import annotations

import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from nbgrader.api import Gradebook

from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.harmful import HARMLESS, SCRIPT, around
from tests.pipeline.answers.wrong import WRONG
from tests.pipeline.course import autograded, gradebook, make_course, nbgrader, submit
from tests.pipeline.editions import LESSON, ROOT, SOURCE, STUDENT, answered, read

SOLVED, UNTOUCHED, MIXED = "student-01", "student-02", "student-03"
IMAGE = "<img src=x onerror=\"document.title='taken'\">"
SHEET = {
    "03-plain-loop": WRONG["03-plain-loop"]["zero-between"],
    "03-clipped-loop": Answer(f'raise ValueError("{SCRIPT}")', 0),
    "03-reset": WRONG["03-reset"]["new-zeros"],
    "03-accumulate": WRONG["03-accumulate"]["equal-weights"],
    "03-idle-branch": Answer(around(f"print({SCRIPT!r}, {IMAGE!r})"), 10),
    "03-gan-step": WRONG["03-gan-step"]["leak"],
    "03-dead-unit": Answer(f'class Odd:\n    def _repr_html_(self):\n        return "{SCRIPT}"\n\n\nreturn Odd()', 0),
    "03-predict-add": Answer(f"answer_predict_add = {IMAGE!r}", 0),
}
MESSAGES = (
    "line 6 cleared it again before line 7 stepped",
    "is another tensor than before",
    "samples of small microbatches count more",
    "used its own gradient and the generator",
    "something of type Odd",
)
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Elements of a page with their attributes, and its text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.within = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.within = tag if tag not in VOID else self.within

    def handle_endtag(self, tag):
        self.within = ""

    def handle_data(self, data):
        (self.scripts if self.within == "script" else [] if self.within == "style" else self.words).append(data)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The lesson, handed in as the solution edition, untouched, and with wrong answers; graded, with feedback."""
    course = make_course(tmp_path_factory.mktemp("course"))
    nbgrader(course, "generate_assignment")
    submit(course, SOLVED, read(SOURCE))
    submit(course, UNTOUCHED, read(STUDENT))
    submit(course, MIXED, answered(read(STUDENT), SHEET))
    nbgrader(course, "autograde")
    nbgrader(course, "generate_feedback")
    return course


@pytest.fixture(scope="module")
def page(course):
    return Page((course / "feedback" / MIXED / LESSON / f"{LESSON}.html").read_text(encoding="utf-8"))


pytestmark = pytest.mark.slow


def test_solution_scores_all_and_untouched_nothing(course):
    """The solution edition has 100 of 100 points and the untouched student edition 0; no cell waits for a person."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        for student, score in ((SOLVED, 100), (UNTOUCHED, 0)):
            submission = book.find_submission(LESSON, student)
            assert (submission.score, submission.max_score) == (score, 100)
            assert not submission.needs_manual_grade
            assert all(not notebook.failed_tests for notebook in submission.notebooks if student == SOLVED)


def test_wrong_answers_score_in_part(course):
    """A sheet in the whole notebook scores as it does in the short one: the demonstrations around it change nothing."""
    scores = gradebook(course)[MIXED]
    assert {exercise: scores[exercise] for exercise in SHEET} == {name: answer.points for name, answer in SHEET.items()}
    assert sum(scores.values()) == sum(answer.points for answer in SHEET.values())


def test_nbgraders_own_release_keeps_the_quiz_back(course):
    """An instructor who calls nbgrader itself, or its formgrader, does not hand out the quiz's answers either."""
    assert (course / "source" / LESSON / "quiz.toml").is_file()
    assert [path.name for path in (course / "notebooks" / LESSON).iterdir()] == [SOURCE.name]


def test_no_cell_of_the_solution_writes_to_stderr(course):
    """Run all of the solution edition raises nothing and leaves nothing on stderr."""
    for cell in autograded(course, SOLVED).cells:
        for out in cell.get("outputs", []):
            assert out.output_type != "error"
            assert out.get("name") != "stderr", (cell.id, out)


def test_every_student_has_a_feedback_page(course):
    """generate_feedback makes one page for each student, with the score on it."""
    for student, score in ((SOLVED, "100.0"), (UNTOUCHED, "0.0"), (MIXED, "31.0")):
        text = (course / "feedback" / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
        assert f"Score: {score} / 100.0" in text


@pytest.mark.parametrize("message", MESSAGES)
def test_feedback_says_what_is_wrong(page, message):
    """The report of a wrong answer stands on the feedback page, with the learner's own line."""
    assert message in " ".join(" ".join(page.words).split())


def test_feedback_holds_no_html_of_the_learner(page):
    """What a learner prints, raises, returns or answers is text on the page: no element of theirs is in it."""
    assert not [script for script in page.scripts if "taken" in script]
    assert not [element for element in page.elements if "onerror" in element[1]]
    assert "document.title" in " ".join(page.words)


def test_feedback_shows_learners_own_lines(page):
    """The quoted line of the mistake is there, to be found without counting."""
    assert "line 6: optimizer.zero_grad()" in " ".join(" ".join(page.words).split())


def test_feedback_contradicts_no_score(course):
    """No line of the page says that a graded exercise was not checked, or that there are no points."""
    text = (course / "feedback" / SOLVED / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "not checked yet" not in text
    assert "0 of 100 points" not in text.replace("100 of 100", "")


@pytest.mark.browser
def test_browser_runs_nothing_of_the_learner(course):
    """In Chromium the page keeps its own title: no script or handler of the learner ran."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium")
    path = course / "feedback" / MIXED / LESSON / f"{LESSON}.html"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={course / 'profile'}"]
    done = subprocess.run([*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120)
    assert "<title>taken</title>" not in done.stdout
    assert f"<title>{LESSON}</title>" in done.stdout


def test_nothing_is_left_in_the_repository(course):
    """Grading in another folder writes no gradebook and no submission here."""
    assert course.is_relative_to(ROOT) is False
    for name in ("submitted", "autograded", "feedback"):
        assert not (ROOT / name / MIXED).exists()


def test_harmless_answers_are_on_the_sheet():
    """The page is tried with a script that is printed; the sheets have the same answer."""
    assert SCRIPT in HARMLESS["script-printed"].source


def test_report_counts_the_class(course):
    """`autograder report` says for each graded cell how many got all, some and no points."""
    from autograder.grading.classroom import class_results

    results = {r.cell: r for r in class_results(f"sqlite:///{course / 'gradebook.db'}", [LESSON])}
    assert sum(r.max_score for r in results.values()) == 100
    plain = results["03-plain-loop"]
    assert (plain.full, plain.partial, plain.none, plain.ungraded) == (1, 0, 2, 0)
    assert plain.mean == pytest.approx(10 / 3)
    with pytest.raises(LookupError, match="it has 03-zero-grad"):
        class_results(f"sqlite:///{course / 'gradebook.db'}", ["09-nowhere"])
