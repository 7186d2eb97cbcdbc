"""nbgrader's settings, for its commands when run in this folder and for JupyterLab's formgrader."""

from pathlib import Path

c = get_config()  # noqa: F821  (traitlets puts get_config here)

# This file's own folder: a command must not make a second gradebook wherever it happens to be run.
course = Path(__file__).resolve().parent

c.CourseDirectory.course_id = "zerograd"
c.CourseDirectory.root = str(course)
c.CourseDirectory.db_url = f"sqlite:///{(course / 'gradebook.db').as_posix()}"
# The folders are {step}/{student}/{assignment}; a release has the student ".": notebooks/./03-zero-grad.
c.CourseDirectory.source_directory = "source"
c.CourseDirectory.release_directory = "notebooks"
# The quiz's right answers stay on the instructor's side: releasing copies a folder's other files.
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache", "quiz.toml"]
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

# A submission may name a kernel of the student's own computer.
c.ExecutePreprocessor.kernel_name = "python3"
# A loop that never ends costs its cell, not the notebook: the cell is interrupted and the next one runs.
c.ExecutePreprocessor.timeout = 120
c.ExecutePreprocessor.interrupt_on_timeout = True
