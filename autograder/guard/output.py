"""Catch what code writes, wherever it writes it, and keep a bounded part."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import IO, Any

from autograder.guard.frames import learner_frame

MOST_NOTES = 20
LONGEST_NOTE = 300
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


class Kept(io.RawIOBase):
    """A byte stream that keeps the first and the last half of ``most`` bytes, and counts the rest."""

    def __init__(self, most: int, descriptor: int, name: str) -> None:
        super().__init__()
        self.half, self.total = max(most // 2, 1), 0
        self.head, self.tail = bytearray(), bytearray()
        self.descriptor, self.name = descriptor, name

    def write(self, data: Any) -> int:
        """Keep what there is room for."""
        data = bytes(data)
        self.total += len(data)
        room = self.half - len(self.head)
        self.head += data[:room]
        self.tail += data[max(room, 0) :]
        if len(self.tail) > 2 * self.half:
            del self.tail[: -self.half]
        return len(data)

    def writable(self) -> bool:
        """Always: nothing here can be full."""
        return True

    def fileno(self) -> int:
        """The descriptor that a subprocess writes to; it is caught as well."""
        return self.descriptor


class Bounded(io.TextIOWrapper):
    """A text stream of which a bounded part is kept. Its ``write`` is C's: a flood of prints costs little."""

    def __init__(self, most: int, descriptor: int, name: str) -> None:
        self.kept = Kept(most, descriptor, name)
        super().__init__(io.BufferedWriter(self.kept, 1 << 16), encoding="utf-8", errors="replace")

    def text(self) -> str:
        """What was kept, with a line that says how much is missing."""
        with contextlib.suppress(ValueError):  # code may have closed it
            self.flush()
        tail = self.kept.tail[-self.kept.half :]
        dropped = self.kept.total - len(self.kept.head) - len(tail)
        head, end = (part.decode("utf-8", "ignore") for part in (self.kept.head, tail))
        return f"{head}\n… {dropped:,} characters left out …\n{end}" if dropped else head + end


class Notes:
    """Short remarks about a run, each kept once."""

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Keep ``text`` as one line of readable length."""
        line = " ".join(CONTROL.sub("", text).split())
        if len(line) > LONGEST_NOTE:  # a traceback says at its end what happened
            half = LONGEST_NOTE // 2
            line = f"{line[:half]} … {line[-half:]}"
        if line and len(self.notes) < MOST_NOTES:
            self.notes.setdefault(line)

    def warned(self, message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        """Stands in for ``warnings.showwarning``."""
        self.add(f"Warning{self._where()}: {message}")

    def logged(self, record: logging.LogRecord) -> None:
        """A message that reached the root logger."""
        try:
            self.add(f"Logged{self._where()}: {record.levelname}: {record.getMessage()}")
        except Exception as error:
            self.add(f"Logged{self._where()}: a message that cannot be formatted ({error})")

    def wrote(self, text: str) -> None:
        """Text that was written to stderr; of a progress bar, its last state."""
        lines = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n")]
        if any(line.strip() for line in lines):
            self.add(f"Written to stderr: {' '.join(lines)}")

    @staticmethod
    def _where() -> str:
        frame = learner_frame(sys._getframe(2))
        return f" at line {frame.f_lineno}" if frame else ""


class _Handler(logging.Handler):
    """Hands log records to the notes."""

    def __init__(self, notes: Notes, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self.notes = notes

    def emit(self, record: logging.LogRecord) -> None:
        self.notes.logged(record)


class Caught:
    """What a captured block wrote: ``out`` and ``err`` are bounded streams, ``notes`` the remarks."""

    def __init__(self, most: int) -> None:
        self.out, self.err, self.notes = Bounded(most, 1, "<stdout>"), Bounded(20_000, 2, "<stderr>"), Notes()

    def finish(self) -> None:
        """Turn what reached stderr into a note."""
        self.notes.wrote(self.err.text())


@contextlib.contextmanager
def captured(most: int) -> Iterator[Caught]:
    """Nothing that runs in the block reaches stdout, stderr, the log or the warnings of the caller."""
    caught = Caught(most)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_descriptors(caught))
        stack.enter_context(_streams(caught))
        stack.enter_context(_logging(caught.notes))
        stack.enter_context(_warnings(caught.notes))
        yield caught
    caught.finish()


@contextlib.contextmanager
def _streams(caught: Caught) -> Iterator[None]:
    """Python's streams, also for those who hold on to the object that ``sys.stdout`` was before."""
    before = sys.stdout, sys.stderr, sys.stdin
    undo = [_divert(before[0], caught.out), _divert(before[1], caught.err)]
    sys.stdout, sys.stderr, sys.stdin = caught.out, caught.err, io.StringIO()
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.stdin = before
        for restore in undo:
            restore()


def _divert(stream: Any, to: Bounded) -> Callable[[], None]:
    """Let the stream's ``write`` write elsewhere; IPython does the same to a cell's streams, so keep what is there."""
    mine = getattr(stream, "__dict__", {})
    before = mine.get("write")

    def restore() -> None:
        with contextlib.suppress(AttributeError):
            if before is not None:
                stream.write = before
            else:
                del stream.write

    with contextlib.suppress(AttributeError):  # a stream that has no room for it, or None
        stream.write = to.write
    return restore


@contextlib.contextmanager
def _descriptors(caught: Caught) -> Iterator[None]:
    """File descriptors 1 and 2, where C++ and subprocesses write."""
    _flush()
    files: list[tuple[int, int, IO[bytes], Bounded]] = []
    for stream in (caught.out, caught.err):
        with contextlib.suppress(OSError):  # a descriptor may be closed, as under pythonw
            file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed below, when it has been read)
            descriptor = stream.kept.descriptor
            saved = os.dup(descriptor)
            os.dup2(file.fileno(), descriptor)
            files.append((descriptor, saved, file, stream))
    try:
        yield
    finally:
        _flush()
        for descriptor, saved, file, stream in files:
            os.dup2(saved, descriptor)
            os.close(saved)
            with file:
                _take(file, stream)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


def _take(file: IO[bytes], stream: Bounded) -> None:
    """Move the file's text to the stream; of a long file only the part that can be kept."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return
    most = 8 * stream.kept.half
    file.seek(0)
    stream.write(file.read(most).decode("utf-8", "replace"))
    if size > most:
        start = max(most, size - most)
        stream.kept.total += start - most
        file.seek(start)
        stream.write(file.read(most).decode("utf-8", "replace"))


@contextlib.contextmanager
def _logging(notes: Notes) -> Iterator[None]:
    root, last, disabled = logging.root, logging.lastResort, logging.root.manager.disable
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [_Handler(notes)]
    logging.lastResort = _Handler(notes, logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.lastResort = last
        logging.disable(disabled)


@contextlib.contextmanager
def _warnings(notes: Notes) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # each place once, and never as an error
        warnings.showwarning = notes.warned  # type: ignore[assignment]
        yield
