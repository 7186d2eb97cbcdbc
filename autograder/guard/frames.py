"""Tell the learner's code from everybody else's, and point at the learner's line."""

from __future__ import annotations

import linecache
import os
import site
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import torch

# Names that code typed by a person has where it comes from no file; others in <> are made by libraries.
TYPED = ("<string>", "<stdin>", "<console>", "<unknown>", "<ipython-input")
LONGEST_LINE = 200

_known: dict[str, bool] = {}


def _libraries() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages(), *torch.__path__]
    paths += [str(Path(__file__).parents[1])]
    folders = {form for path in paths if path for form in (os.path.abspath(path), os.path.realpath(path))}
    return tuple(os.path.normcase(folder) + os.sep for folder in folders)


LIBRARIES = _libraries()
PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def call_learner(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``function``: its frame is the border below which the stack is the learner's business."""
    return function(*args, **kwargs)


BORDER = call_learner.__code__


def is_learner_code(code: CodeType) -> bool:
    """Whether ``code`` comes from a file that is neither torch's, Python's, an installed package's nor ours."""
    name = code.co_filename
    known = _known.get(name)
    if known is None:
        known = _known[name] = _is_learner_file(name)
    return known


def _is_learner_file(name: str) -> bool:
    if name.startswith("<"):
        return name.startswith(TYPED)
    path = os.path.normcase(os.path.abspath(name))
    return not path.startswith(LIBRARIES) and not any(part in path for part in PACKAGES)


def learner_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the learner's at or above ``frame``, up to the border; None where there is none."""
    while frame is not None and frame.f_code is not BORDER:
        if is_learner_code(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def in_reach(frame: FrameType | None) -> bool:
    """Whether code that runs in ``frame`` may be stopped: it is inside the border, and not our own tidying up."""
    found, first = False, frame
    while frame is not None and frame.f_code is not BORDER:
        found, first = found or is_learner_code(frame.f_code), frame
        frame = frame.f_back
    if frame is None:
        return False
    assert first is not None
    return found or first is frame or not _is_ours(first.f_code)


def _is_ours(code: CodeType) -> bool:
    return os.path.normcase(os.path.abspath(code.co_filename)).startswith(OURS)


OURS = os.path.normcase(str(Path(__file__).parents[1])) + os.sep


def learner_line(traceback: TracebackType | None) -> tuple[int | None, str]:
    """Number and text of the learner's line nearest to where the exception was raised; (None, "") if none."""
    line, text = None, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_learner_code(code) and traceback.tb_lineno:
            line, text = traceback.tb_lineno, line_text(traceback.tb_frame, traceback.tb_lineno)
        traceback = traceback.tb_next
    return line, text


def line_text(frame: FrameType, line: int) -> str:
    """The source text of a line, stripped and cut to a readable length."""
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
