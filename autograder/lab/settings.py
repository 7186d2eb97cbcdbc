"""What can be chosen in the accumulation lab."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autograder.loops import Task

BATCHES, STEPS = (1, 10), (1, 6)  # smallest and largest
CHOICES: dict[str, tuple[tuple[str, object], ...]] = {
    "zeroing": tuple((w, w) for w in ("each step", "never", "once an epoch", "between backward and step")),
    "set_to_none": (("None", True), ("zeros", False)),
    "divide": tuple((w, w) for w in ("group size", "accumulation steps", "nothing")),
    "leftover": (("stepped, too", True), ("not stepped", False)),
    "optimizer": (("plain SGD", "sgd"), ("SGD, momentum and weight decay", "momentum_wd")),
}
SIZE = 4  # rows in a batch


@dataclass(frozen=True)
class Settings:
    """One state of the controls. ``divide`` is what each batch's loss is divided by before backward.

    Raises ValueError for what the controls cannot show.
    """

    batches: int = 6
    steps: int = 2
    zeroing: str = "each step"
    set_to_none: bool = True
    divide: str = "group size"
    leftover: bool = True
    optimizer: str = "sgd"

    def __post_init__(self) -> None:
        for name, (low, high) in {"batches": BATCHES, "steps": STEPS}.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high}, not {getattr(self, name)}")
        for name, choices in CHOICES.items():
            values = [value for _, value in choices]
            if getattr(self, name) not in values:
                raise ValueError(f"{name} must be one of {values}, not {getattr(self, name)!r}")

    @property
    def task(self) -> Task:
        """What the engine is asked to run: two epochs, so that old gradients can reach the second."""
        return Task(
            "train_accumulate", optimizer=self.optimizer, epochs=2, batches=(SIZE,) * self.batches, k=self.steps
        )

    @property
    def right(self) -> Settings:
        """The right loop for as many batches and accumulation steps."""
        return replace(Settings(), batches=self.batches, steps=self.steps, optimizer=self.optimizer)
