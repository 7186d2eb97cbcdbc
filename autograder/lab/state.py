"""One drawn state of the accumulation lab."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from statistics import median
from time import perf_counter

from autograder.lab.experiment import KEPT, Experiment, experiment, forget
from autograder.lab.figures import HEIGHT, WIDTH, lab_figure
from autograder.lab.settings import BATCHES, Settings
from autograder.lab.style import png
from autograder.lab.words import grid_words, series_words
from autograder.loops import Ledger, Recording, Verdict


@dataclass(frozen=True)
class State:
    """What the lab shows of one setting: the loop, what the engine saw, one line of words, and the picture.

    ``norms`` are the norms of the gradients that the steps used; ``picture`` is a PNG, ``alt`` says it in words.
    """

    settings: Settings
    source: str
    recording: Recording
    verdict: Verdict
    norms: tuple[float, ...]
    words: str
    picture: bytes
    alt: str

    @property
    def ledger(self) -> Ledger:
        assert self.verdict.ledger is not None
        return self.verdict.ledger


@lru_cache(maxsize=KEPT)
def draw(settings: Settings) -> State:
    """Run, judge and draw ``settings``; raises whatever goes wrong on the way."""
    seen = experiment(settings)
    picture = png(lab_figure(seen))
    return State(settings, seen.source, seen.recording, seen.verdict, seen.norms.values, seen.words, picture, alt(seen))


def alt(seen: Experiment) -> str:
    """The picture in words."""
    parts = (
        f"Ledger: {grid_words(seen.grid)}",
        series_words("Norm of the gradient that each step used", seen.norms.values),
        series_words("The right loop's", seen.right_norms.values),
        series_words("Loss of each batch", seen.losses),
        series_words("The right loop's", seen.right_losses),
    )
    return ". ".join(parts) + "."


def picture_html(picture: bytes, words: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    """An ``<img>`` that keeps its place while the next picture is decoded, so that nothing jumps or flickers."""
    data = base64.b64encode(picture).decode()
    size = f"width:100%;max-width:{round(width * 96)}px;aspect-ratio:{width:g}/{height:g}"
    style = f"{size};display:block;background:white"
    return f'<img alt="{escape(words)}" decoding="sync" style="{style}" src="data:image/png;base64,{data}">'


def bench(rounds: int = 3) -> dict[str, float]:
    """Milliseconds from a slider to its new picture, nothing kept from before: the usual states and the largest."""
    states = {
        "start": Settings(),
        "7 batches by 3": Settings(batches=7, steps=3),
        "never cleared": Settings(zeroing="never"),
        "never cleared, 7 by 3": Settings(batches=7, steps=3, zeroing="never"),
        "largest": Settings(batches=BATCHES[1], steps=1, zeroing="never"),
    }
    draw(Settings())  # imports and fonts
    times: dict[str, list[float]] = {name: [] for name in states}
    for _ in range(rounds):
        for name, settings in states.items():
            draw.cache_clear()
            forget()
            started = perf_counter()
            draw(settings)
            times[name].append(1000 * (perf_counter() - started))
    return {name: round(median(values), 1) for name, values in times.items()}
