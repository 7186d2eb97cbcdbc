"""Sample students: each hands in some answers; what is not named stays the stub."""

from __future__ import annotations

from tests.pipeline.answers import harmful
from tests.pipeline.answers.answer import Answer
from tests.pipeline.answers.right import RIGHT
from tests.pipeline.answers.wrong import WRONG

HARM = {
    "03-plain-loop": harmful.HARMLESS | harmful.HARMFUL,
    "03-idle-branch": harmful.HARMLESS_IDLE | harmful.HARMFUL_IDLE,
}
ANSWERS: dict[str, dict[str, Answer]] = {
    exercise: RIGHT.get(exercise, {}) | WRONG.get(exercise, {}) | HARM.get(exercise, {})
    for exercise in {**RIGHT, **WRONG, **HARM}
}
ORDER = ("plain-loop", "clipped-loop", "reset", "accumulate", "idle-branch", "gan-step", "dead-unit")

# Plain loop, clipped loop, reset, accumulate, idle branch, GAN step, dead unit; "-" is unanswered.
TABLE = """
autograd-grad        foreach              an-optimizer     own-buffers         autograd-grad        autograd-grad   save-and-restore
class                autograd-grad        match            divide-at-the-end   by-hand              frozen-disc     copy
closure              step-hook            lists            gradient-argument   zeros-to-none        clear-both      forward-hook
functional           clip-before-backward none-only        no-division         by-hand              leak            leaves-grads
foreach              clip-after-step      new-zeros        off-by-one          zeros                frozen-disc     mask
hooks                no-clip              no-test-for-none leftover-dropped    never-zero           wrong-optimizer forward-hook
own-buffers          always-scaled        values-too       equal-weights       stderr               -               feature-instead-of-unit
decorated            step-hook            -                zero-per-microbatch logging              generator-never-cleared false
never-zero           foreach              match            own-buffers         float64-returned     -               lying-object
zero-between         -                    lists            -                   false-returned       clear-both      lying-list
foreign-optimizer    step-hook            -                gradient-argument   nan-returned         -               float64
once-per-epoch       -                    an-optimizer     -                   anomaly              leak            matrix
no-grad              autograd-grad        -                divide-at-the-end   odd-object-returned  -               nothing
trial-run            -                    match            -                   figure-returned      autograd-grad   copy
no-step              foreach              -                off-by-one          deterministic        -               forward-hook
prints               -                    lists            -                   warnings             -               mask
script-printed       no-clip              -                -                   for-ever-unstoppable -               forward-hook
odd-object-displayed clip-after-step      new-zeros        -                   a-number             -               forward-hook
settings-in-the-cell foreach              match            own-buffers         by-hand              frozen-disc     save-and-restore
settings-in-the-loop -                    lists            no-division         generator            -               copy
raising              autograd-grad        -                -                   exit                 -               forward-hook
for-ever             -                    match            -                   tensor-returned      -               save-and-restore
not-a-function       step-hook            -                leftover-dropped    zeros-to-none        -               -
sys-exit             -                    an-optimizer     equal-weights       recursion            -               copy
input                foreach              -                -                   syntax-of-torch      leak            -
empty                -                    lists            -                   empty                autograd-grad   forward-hook
nan                  step-hook            match            -                   by-hand              -               save-and-restore
grad-mode            autograd-grad        lists            own-buffers         zeros-to-none        clear-both      copy
"""  # noqa: E501
QUESTIONS = {
    1: {"03-predict-add": "letter", "03-quiz-frozen": "capital"},
    4: {"03-predict-add": "other-letter"},
    5: {"03-predict-add": "number"},
    6: {"03-predict-add": "far-letter"},
    7: {"03-predict-add": "tensor"},
}


def _sheets() -> dict[str, dict[str, str]]:
    sheets = {}
    for number, line in enumerate(TABLE.strip().splitlines(), start=1):
        chosen = zip(ORDER, line.split(), strict=True)
        names = {f"03-{exercise}": name for exercise, name in chosen if name != "-"}
        sheets[f"student-{number:02}"] = names | QUESTIONS.get(number, {})
    return sheets


SHEETS = _sheets()


def answers_of(student: str) -> dict[str, Answer]:
    """What a student hands in, by exercise."""
    return {exercise: ANSWERS[exercise][name] for exercise, name in SHEETS[student].items()}
