"""What an answer of a sample student is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """``source`` is put where the stub's last two lines stand; with ``whole`` it takes the place of the whole cell.

    ``points`` and ``kind`` are what it deserves; ``says`` are words that its message must hold.
    """

    source: str
    points: float
    kind: str = "none"
    says: tuple[str, ...] = ()
    whole: bool = False
    ends: bool = True  # False: it is stopped by the time limit
