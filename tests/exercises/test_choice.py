"""Questions: sealed so that a reason can be read only by choosing, and judged by the choice alone."""

import json

import pytest
import tomllib

from autograder import ask, check
from autograder.exercises import catalogue
from autograder.exercises.checking import examine
from autograder.exercises.sealing import QuizFault, open_choice, read_toml, seal_files, seal_quiz

QUIZ = """
[[question]]
id = "03-predict-sum"
points = 2
prompt = "After two backward calls, what is in .grad?"

[[question.choice]]
key = "a"
text = "the last gradient"
reason = "A gradient that is there is added to."

[[question.choice]]
key = "b"
text = "the sum"
reason = "backward adds: ∇L₁ + ∇L₂."
right = true
"""


@pytest.fixture
def sealed():
    return seal_quiz(tomllib.loads(QUIZ))


def test_reasons_open_by_choosing(sealed):
    """Each choice opens its own reason, and tells whether it is right."""
    (entry,) = sealed["questions"]
    assert open_choice(entry, "03-predict-sum", "a") == (False, "A gradient that is there is added to.")
    assert open_choice(entry, "03-predict-sum", "b") == (True, "backward adds: ∇L₁ + ∇L₂.")


def test_nothing_is_there_in_clear(sealed):
    """The file holds prompts and choices, and neither reasons nor the right key; the boxes are of one size."""
    text = json.dumps(sealed, ensure_ascii=False)
    assert "the sum" in text
    for secret in ("added to", "backward adds", "true"):
        assert secret not in text
    assert len({len(choice["reason"]) for choice in sealed["questions"][0]["choices"]}) == 1


def test_sealing_is_repeatable(tmp_path):
    """The same quiz file gives the same sealed file, byte for byte."""
    quiz = tmp_path / "03-zero-grad" / "quiz.toml"
    quiz.parent.mkdir()
    quiz.write_text(QUIZ, encoding="utf-8")
    first = seal_files([quiz], tmp_path)[0].read_bytes()
    assert seal_files([quiz], tmp_path)[0].read_bytes() == first
    assert (tmp_path / "03-zero-grad.json").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "03-predict-sum"\n', "", "without id"),
        ("right = true", "", "0 choices are right"),
        ('key = "b"', 'key = "a"', "different"),
        ('key = "b"', 'key = "B"', "lower case"),
        ('text = "the sum"\n', "", "lacks"),
        ("points = 2\n", "", "no points"),
    ],
)
def test_faulty_quizzes_are_named(old, new, words):
    """A quiz file that cannot be graded is refused with its question and the reason."""
    with pytest.raises(QuizFault, match=words):
        seal_quiz(tomllib.loads(QUIZ.replace(old, new)))


def test_not_toml(tmp_path):
    """A file that is not TOML is refused with the place."""
    file = tmp_path / "quiz.toml"
    file.write_text("[[question]\n")
    with pytest.raises(QuizFault, match="line 1"):
        read_toml(file)


@pytest.mark.parametrize(
    ("answer", "points", "words"),
    [
        ("b", 2, "Right: backward adds"),
        (" B ", 2, "Right"),
        ("a", 0, "Not this one: A gradient"),
        ("c", 0, "no choice"),
        ("", 0, "Not answered yet"),
        (None, 0, "Not answered yet"),
        (..., 0, "Not answered yet"),
        (2, 0, "letter in quotes"),
        (["b"], 0, "letter in quotes"),
    ],
)
def test_judged_by_choice(sealed, answer, points, words):
    """The right letter gets all points; another letter, none and its reason; no answer, none and a word."""
    report = examine(catalogue.question(sealed["questions"][0]), answer)
    assert report.score == points
    assert words in report.message


def test_every_shipped_question_has_one_right_choice():
    """Each sealed question in the package opens with exactly one of its choices."""
    for exercise in catalogue.exercises().values():
        choices = getattr(exercise, "choices", {})
        results = [examine(exercise, key).score for key in choices]
        assert sorted(results)[:-1] == [0.0] * (len(results) - 1) if choices else True
        assert not choices or max(results) == exercise.points


def test_ask_shows_and_writes_nothing(sealed, capsys, monkeypatch):
    """ask shows a question's choices; clicking says what to write; code exercises are pointed out."""
    question = catalogue.question(sealed["questions"][0])
    monkeypatch.setattr("autograder.exercises.asking.find", lambda name: question)
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    ask("03-predict-sum")
    _, buttons, says = shown[0].children
    for key in question.choices:
        buttons.value = key
        assert f'"{key}"' in says.value
    monkeypatch.undo()
    ask("03-plain-loop")
    assert "with code" in capsys.readouterr().out
    assert check("03-plain-loop", None) == 0
