"""The exercises of lesson 3, reading and zeroing .grad. The questions of the lesson are in its sealed file."""

from __future__ import annotations

from autograder.exercises.dead_unit import DEAD_UNIT
from autograder.exercises.exercise import Exercise
from autograder.exercises.loop import LoopExercise, Rule, Trial, with_max_norm
from autograder.exercises.reset import RESET
from autograder.loops import Task

TWICE = "runs twice in a row and leaves modes as they were"

PLAIN_LOOP = LoopExercise(
    id="03-plain-loop",
    title="The plain loop",
    function="train",
    trials={
        "plain": Trial(Task(epochs=1)),
        "momentum": Trial(Task(optimizer="momentum_wd", epochs=1), "with momentum and weight decay"),
        "unequal": Trial(Task(batches=(4, 2, 3, 1), epochs=1), "with batches of 4, 2, 3 and 1 samples"),
        "single": Trial(Task(batches=(4,), epochs=1), "with a single batch"),
        "column": Trial(Task(model="column", epochs=1), "with a model of one output"),
        "twice": Trial(Task(optimizer="momentum_wd", epochs=2), "when it is called twice in a row"),
    },
    rules=(
        Rule("every step is right", 8, ("plain", "momentum", "unequal", "single", "column")),
        Rule(TWICE, 2, ("plain", "twice"), tidy=True, after="every step is right"),
    ),
    hints=(
        "For one batch: what has to be empty before backward adds to it, and what uses it afterwards?",
        "Five things happen for each batch: clear, predict, loss, backward, step.",
    ),
)

CLIPPED_LOOP = LoopExercise(
    id="03-clipped-loop",
    title="The loop that clips",
    function="train_clipped",
    adapt=with_max_norm,
    extra=("max_norm",),
    trials={
        "bites": Trial(Task(clip=0.1, epochs=1), "with a max_norm that every gradient exceeds"),
        "loose": Trial(Task(clip=1e6, epochs=1), "with a max_norm that no gradient reaches"),
        "momentum": Trial(Task(clip=0.1, optimizer="momentum_wd", epochs=1), "with momentum and weight decay"),
        "twice": Trial(Task(clip=0.1, optimizer="momentum_wd", epochs=2), "when it is called twice in a row"),
    },
    rules=(
        Rule("small gradients stay as they are", 3, ("loose",)),
        Rule(
            "large gradients are scaled to max_norm", 5, ("bites", "momentum"), after="small gradients stay as they are"
        ),
        Rule(TWICE, 2, ("bites", "twice"), tidy=True, after="large gradients are scaled to max_norm"),
    ),
    hints=(
        "Clipping changes .grad: between which two lines of the plain loop is .grad complete and not yet used?",
        "torch.nn.utils.clip_grad_norm_ looks at all parameters together: give it all of them in one call.",
    ),
)

ACCUMULATE = LoopExercise(
    id="03-accumulate",
    title="Accumulate",
    function="train_accumulate",
    trials={
        "full": Trial(Task("train_accumulate", k=3)),
        "momentum": Trial(Task("train_accumulate", optimizer="momentum_wd", k=2), "with momentum and weight decay"),
        "one": Trial(Task("train_accumulate", k=1, batches=(4,) * 3), "with accumulation_steps=1"),
        "leftover": Trial(Task("train_accumulate", k=3, batches=(4,) * 5), "with 5 batches and accumulation_steps=3"),
        "short": Trial(Task("train_accumulate", k=5, batches=(4,) * 2), "with 2 batches and accumulation_steps=5"),
        "unequal": Trial(
            Task("train_accumulate", k=3, batches=(4, 2, 1, 2, 4, 4)), "with batches of 4, 2, 1, 2, 4 and 4 samples"
        ),
    },
    rules=(
        Rule("full groups", 8, ("full", "momentum", "one")),
        Rule("the group that is left over", 4, ("leftover", "short"), after="full groups"),
        Rule("microbatches of unequal size", 3, ("unequal",), after="full groups"),
    ),
    hints=(
        "The big batch's gradient is a weighted sum of the microbatches' gradients: with which weights?",
        "The last group can be shorter than accumulation_steps: it deserves its step as well.",
        "To weigh a microbatch you must know how many samples its whole group has: collect the group first.",
    ),
)

IDLE_BRANCH = LoopExercise(
    id="03-idle-branch",
    title="Leave the idle branch alone",
    function="train_two_branches",
    trials={
        "one": Trial(Task(model="branches", optimizer="momentum_wd", batches=(4,)), "with one branch in use"),
        "both": Trial(Task(model="branches", optimizer="momentum_wd"), "with batches that change between the branches"),
    },
    rules=(
        Rule("used parameters are right", 5, ("one",), prefix=("body.", "left.")),
        Rule("the idle branch stays still", 5, ("both",), after="used parameters are right"),
    ),
    hints=(
        "Which parameters does optimizer.step() skip, and which does it move although their gradient is zero?",
        "Print the .grad of the idle branch just before the step: is it None or zeros?",
    ),
)  # fmt: skip

GAN_STEP = LoopExercise(
    id="03-gan-step",
    title="Two optimizers",
    function="train_gan",
    trials={
        "single": Trial(Task("train_gan", batches=(4,), epochs=1)),
        "two": Trial(Task("train_gan", batches=(4, 4), epochs=1), "with two batches"),
        "many": Trial(Task("train_gan"), "with six batches, twice"),
    },
    rules=(
        Rule("the discriminator's steps", 5, ("single", "two"), prefix="disc."),
        Rule("the generator's steps", 5, ("single", "two", "many"), prefix="gen.",
             despite=frozenset({"generator-leaks-into-discriminator"})),
    ),
    hints=(
        "The generator's loss flows through the discriminator: whose .grad does that backward fill?",
        "Each network needs a clean .grad right before its own backward.",
        "The discriminator's step should not reach into the generator: which method cuts a tensor off its graph?",
    ),
)  # fmt: skip

EXERCISES: tuple[Exercise, ...] = (
    PLAIN_LOOP,
    CLIPPED_LOOP,
    RESET,
    ACCUMULATE,
    IDLE_BRANCH,
    GAN_STEP,
    DEAD_UNIT,
)
