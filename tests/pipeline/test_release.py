"""The student edition: made by nbgrader's release step, always the same bytes, and nothing of the answers in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pipeline.course import make_course, python
from tests.pipeline.editions import LESSON, ROOT, SOURCE, STUB, STUDENT, by_grade_id, marks, read

tomllib = pytest.importorskip("tomllib", reason="tomllib came with Python 3.11")

SEALED = ROOT / "autograder" / "exercises" / "sealed" / f"{LESSON}.json"
QUIZ = SOURCE.with_name("quiz.toml")
PRIVATE = re.compile(r"BEGIN SOLUTION|END SOLUTION|HIDDEN TESTS|/(?:tmp|home|root|Users)/|[A-Z]:\\\\|7041")
# Without and with a gradebook.db that is there already; then from another working directory, with no gradebook.
RELEASES = """
import os, sys
from pathlib import Path
from autograder.cli.main import main
from autograder.grading.release import release

course, other = Path.cwd(), Path(sys.argv[1])
student, sealed = course / "notebooks" / "{lesson}", course / "autograder/exercises/sealed/{lesson}.json"
for number in (1, 2):
    assert main(["release"]) == 0
    (other / f"{number}.ipynb").write_bytes((student / "{lesson}.ipynb").read_bytes())
    (other / f"{number}.json").write_bytes(sealed.read_bytes())
    (student / "{lesson}.ipynb").unlink()
os.chdir(other)
release(course, into=other / "into", gradebook=False)
""".replace("{lesson}", LESSON)


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """A course that was released three times, and the folder with what came of it."""
    course, other = make_course(tmp_path_factory.mktemp("course")), tmp_path_factory.mktemp("other")
    before = database()
    python(course, "-c", RELEASES, str(other))
    assert database() == before, "a release elsewhere touched this repository's gradebook"
    return course, other


def database() -> float | None:
    path = ROOT / "gradebook.db"
    return path.stat().st_mtime if path.exists() else None


@pytest.fixture(scope="module")
def editions():
    return read(SOURCE), read(STUDENT)


@pytest.mark.slow
@pytest.mark.parametrize("release", ["1.ipynb", "2.ipynb", f"into/{LESSON}/{LESSON}.ipynb"])
def test_student_edition_is_a_fresh_release(releases, release):
    """What is tracked in notebooks/ is what a release makes of source/, byte for byte, wherever it is run."""
    assert (releases[1] / release).read_bytes() == STUDENT.read_bytes(), "run `make release`"


@pytest.mark.slow
@pytest.mark.parametrize("release", ["1.json", "2.json"])
def test_sealed_questions_are_a_fresh_seal(releases, release):
    """The sealed questions in the package are made of quiz.toml, byte for byte."""
    assert (releases[1] / release).read_bytes() == SEALED.read_bytes(), "run `make release`"


@pytest.mark.slow
def test_release_hands_out_notebooks_only(releases):
    """Nothing lies beside a released notebook: not the quiz with its answers, not a cache."""
    course, other = releases
    assert sorted(path.name for path in (other / "into").rglob("*")) == [LESSON, f"{LESSON}.ipynb"]
    assert list((ROOT / "notebooks").rglob("*.toml")) == []
    assert not list((course / "notebooks").rglob("*.toml"))


def test_both_folders_hold_the_same_notebooks():
    """Every source notebook has its student edition, and no other is there."""
    names = [
        sorted(path.relative_to(ROOT / edition).as_posix() for path in (ROOT / edition).rglob("*.ipynb")
               if ".ipynb_checkpoints" not in path.parts)
        for edition in ("source", "notebooks")
    ]  # fmt: skip
    assert names[0] == names[1]
    assert names[0]


def test_student_edition_holds_no_answer():
    """No mark, no hidden test, no path of a machine, no output and no count of a run is in the student edition."""
    text = STUDENT.read_text(encoding="utf-8")
    assert not PRIVATE.findall(text)
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_student_edition_is_canonical():
    """nbformat 4.5, unique cell ids that are the source's own, the kernel python3, no metadata of an editor."""
    content = json.loads(STUDENT.read_text(encoding="utf-8"))
    ids = [cell["id"] for cell in content["cells"]]
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert ids == [cell.id for cell in read(SOURCE).cells]
    assert len(set(ids)) == len(ids)
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    assert {key for cell in content["cells"] for key in cell["metadata"]} <= {"nbgrader", "deletable", "editable"}


def blanked(text: str, begin: str, end: str, stub: list[str]) -> list[str]:
    """The lines of a cell with every marked region replaced by the stub."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if begin in line:
            lines, inside = lines + stub, True
        elif end in line:
            inside = False
        elif not inside:
            lines.append(line)
    return lines


def test_student_edition_differs_only_in_its_blanks(editions):
    """Every line is the source's, in its order, but for the stubs; all other cells are equal but for hidden tests."""
    for source, student in zip(*(edition.cells for edition in editions), strict=True):
        assert source.cell_type == student.cell_type
        wanted = source.source.splitlines()
        if marks(source).get("solution"):
            wanted = blanked(source.source, "### BEGIN SOLUTION", "### END SOLUTION", STUB.splitlines())
            assert wanted != source.source.splitlines()
        elif marks(source).get("grade"):
            wanted = blanked(source.source, "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS", [])
        assert student.source.splitlines() == wanted
        own = {key: value for key, value in marks(student).items() if key not in ("checksum", "cell_type")}
        assert own == dict(marks(source))


def test_no_solution_line_survives(editions):
    """No line that stands only in solutions can be read anywhere in the student edition's code cells."""
    source, student = editions
    answers = "\n".join(cell.source for cell in student.cells if marks(cell).get("solution"))
    for grade_id, cell in by_grade_id(source).items():
        if not marks(cell).get("solution"):
            continue
        region = cell.source.split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0]
        own = by_grade_id(student)[grade_id].source
        for line in filter(None, map(str.strip, region.splitlines())):
            assert line not in [text.strip() for text in own.splitlines()], grade_id
            assert not re.match(r'answer_\w+ = "', line) or line not in answers


@pytest.fixture(scope="module")
def questions():
    return tomllib.loads(QUIZ.read_text(encoding="utf-8"))["question"]


def handed_out() -> dict[str, str]:
    """The text of every file that learners get: the student edition and the package."""
    files = [*(ROOT / "notebooks").rglob("*"), *(ROOT / "autograder").rglob("*")]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.is_file() and path.suffix != ".pyc"
    }


def test_reasons_are_nowhere_in_clear(questions):
    """No reason of a choice, which would give the answer away, is in a file that learners get."""
    texts = handed_out()
    for question in questions:
        for choice in question["choice"]:
            for form in (
                choice["reason"],
                json.dumps(choice["reason"])[1:-1],
                json.dumps(choice["reason"], ensure_ascii=False)[1:-1],
            ):
                assert [name for name, text in texts.items() if form in text] == [], question["id"]


def test_right_choices_are_nowhere_in_clear(questions):
    """No file that learners get says which choice is right, beside a question's id or in its answer's name."""
    texts, keys = handed_out(), re.compile(r'"right": (?:true|"[a-d]")|right = (?:true|"[a-d]")')
    assert [name for name, text in texts.items() if keys.search(text)] == []
    for question in questions:
        (right,) = [choice["key"] for choice in question["choice"] if choice["right"]]
        variable = "answer_" + question["id"].split("-", 1)[1].replace("-", "_")
        told = re.compile(rf'{variable}\s*=\s*"{right}"|{question["id"]}"?\s*[:,=]\s*"{right}"')
        assert [name for name, text in texts.items() if told.search(text)] == []


def test_sealed_order_and_length_tell_nothing(questions):
    """Of one question all sealed reasons are equally long, and its choices stand in the quiz file's order."""
    for question, sealed in zip(questions, json.loads(SEALED.read_text(encoding="utf-8"))["questions"], strict=True):
        assert len({len(choice["reason"]) for choice in sealed["choices"]}) == 1
        assert [choice["key"] for choice in sealed["choices"]] == [choice["key"] for choice in question["choice"]]
        assert {frozenset(choice) for choice in sealed["choices"]} == {frozenset({"key", "text", "reason"})}


def test_package_holds_sealed_questions_and_no_others():
    """What a wheel is made of has the sealed questions and neither quiz.toml nor the lessons' sources."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "autograder"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert SEALED.relative_to(ROOT).as_posix() in listed
    assert [name for name in listed if Path(name).suffix in {".toml", ".ipynb"}] == []
