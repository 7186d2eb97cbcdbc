"""Show a question with its choices to click on; the graded answer stays in the learner's cell."""

from __future__ import annotations

from autograder.exercises.catalogue import find
from autograder.exercises.choice import ChoiceExercise


def ask(exercise_id: str) -> None:
    """Show a question. Clicking says which letter to write; it writes nothing itself."""
    question = find(exercise_id)
    if not isinstance(question, ChoiceExercise):
        print(f"{exercise_id} is answered with code: see the text above its cell.")
        return
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        print("\n".join([question.prompt, *(f"  {key}: {text}" for key, text in question.choices.items())]))
        return
    options = [(f"{key}: {text}", key) for key, text in question.choices.items()]
    buttons = ipywidgets.RadioButtons(options=options, value=None, layout={"width": "auto"})
    says = ipywidgets.Label("")

    variable = "answer_" + exercise_id.partition("-")[2].replace("-", "_")

    def chosen(change: dict[str, str]) -> None:
        says.value = f'To answer, write {variable} = "{change["new"]}" in the cell below.'

    buttons.observe(chosen, names="value")
    display(ipywidgets.VBox([ipywidgets.Label(question.prompt), buttons, says]))
