"""Measure the speeds that the project promises, each beside what it is compared with, in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LESSON = Path("source/03-zero-grad/03-zero-grad.ipynb")


@dataclass(frozen=True)
class Measurement:
    """``value`` beside ``beside``, both in seconds, and what was promised."""

    what: str
    value: float
    against: str
    beside: float
    promise: str
    kept: bool

    def row(self) -> str:
        mark = "yes" if self.kept else "NO"
        return (
            f"{self.what:<48}{1000 * self.value:>10.1f} ms   {self.against:<34}{1000 * self.beside:>10.1f} ms"
            f"   {self.promise:<26}{mark}"
        )


def median(action: Callable[[], Any], times: int = 7) -> float:
    """The median of some runs, in seconds, after one that is not counted."""
    action()
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def imports() -> Measurement:
    """What importing the package adds to importing torch, in fresh processes that take turns."""

    def fresh(statement: str) -> float:
        code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    fresh("import torch, autograder")
    rounds = [(fresh("import torch"), fresh("import torch, autograder")) for _ in range(5)]
    alone, both = (statistics.median(column) for column in zip(*rounds, strict=True))
    added = statistics.median(with_us - without for without, with_us in rounds)
    return Measurement(
        "import autograder, added", added, "import torch", alone, "under 100 ms added", added < 0.1 and both > 0
    )


def plain_loop(model: Any, optimizer: Any, loss_fn: Any, loader: Any) -> None:
    """The loop that the checks are measured on."""
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


def checks() -> Iterator[Measurement]:
    """A whole check with its report, and one task run and judged, against the bare loop."""
    from autograder.exercises import catalogue
    from autograder.loops import Task, build, judge, run

    task = Task()
    exercise = catalogue.find("03-plain-loop")

    def bare() -> None:
        material = build(task)
        for _ in range(task.epochs):
            plain_loop(*material.arguments)

    loop, one = median(bare), median(lambda: judge(run(plain_loop, task), task))
    yield Measurement("one task run and judged", one, "the bare loop", loop, "", True)
    whole = median(lambda: exercise.judge(exercise.run(plain_loop, 0), 0))
    yield Measurement("the plain loop's check, all tasks", whole, "the bare loop", loop, "under 1 s", whole < 1)


def picture() -> Measurement:
    """A slider's new picture that was not drawn before: the slowest of some states, beside the first one."""
    from autograder.lab import bench

    times = bench()
    slowest = max(times.values()) / 1000
    start = times["start"] / 1000
    return Measurement(
        "a slider's new picture, slowest", slowest, "the first picture", start, "under 150 ms", slowest < 0.15
    )


def notebook(path: Path = LESSON) -> Measurement:
    """All cells of the solution edition in a warm kernel, against starting the kernel."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    begin = time.perf_counter()
    with client.setup_kernel():
        client.execute_cell(
            nbformat.v4.new_code_cell("import torch, matplotlib.pyplot, autograder.lab"), 0, store_history=False
        )
        started = time.perf_counter()
        for index, cell in enumerate(book.cells):
            client.execute_cell(cell, index)
        ended = time.perf_counter()
    spent = ended - started
    return Measurement(
        "lesson 3, solution edition, all cells", spent, "kernel and imports", started - begin, "under 20 s", spent < 20
    )


def measure(source: Path | None = LESSON) -> Iterator[Measurement]:
    """Everything that can be measured here."""
    import torch

    torch.set_num_threads(1)  # tiny tensors: threads only get in each other's way
    yield imports()
    yield from checks()
    yield picture()
    if source is not None and source.exists():
        yield notebook(source)


def main(given: Namespace) -> int:
    """Print the table; exit status 1 if a promise is not kept."""
    measurements = []
    for measurement in measure():
        measurements.append(measurement)
        if not given.json:
            print(measurement.row(), flush=True)
    if given.json:
        print(json.dumps({"measurements": [asdict(m) for m in measurements]}))
    return 0 if all(m.kept for m in measurements) else 1
