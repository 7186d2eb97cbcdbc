"""Quiz answers in a form that can be handed out: which choice is right, and each reason, open only by choosing.

Every choice has a key of its own, made slowly (scrypt) from the question's id, the choice and a salt. The key opens
that choice's reason, and only the right choice's key has the printed fingerprint. Nothing else about the answers is in
the file. This is a curtain and no safe: a question has a handful of choices, so whoever writes a program that tries
them all learns the answers, as whoever runs the check with each choice does.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

FORMAT = 1
COST = {"n": 2**14, "r": 8, "p": 1}
BLOCK = 64  # reasons of one question are padded to equal length, in steps of this many bytes


class QuizFault(ValueError):
    """A quiz file that cannot be sealed; the text says where and why."""


def _keys(salt: str, question: str, choice: str) -> tuple[bytes, bytes]:
    """The fingerprint and the encryption key of one choice."""
    secret = f"{question}\0{choice}".encode()
    made = hashlib.scrypt(secret, salt=bytes.fromhex(salt), dklen=64, **COST)
    return made[:32], made[32:]


def _mixed(key: bytes, text: bytes) -> bytes:
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))


def open_choice(sealed: dict[str, Any], question: str, choice: str) -> tuple[bool, str]:
    """Whether ``choice`` is right, and its reason. ``sealed`` is the question's entry of the sealed file."""
    fingerprint, key = _keys(sealed["salt"], question, choice)
    box = next(entry["reason"] for entry in sealed["choices"] if entry["key"] == choice)
    reason = _mixed(key, base64.b64decode(box)).decode().rstrip("\0")
    right = hmac.compare_digest(hashlib.sha256(fingerprint).hexdigest(), sealed["right"])
    return right, reason


def seal_question(question: dict[str, Any]) -> dict[str, Any]:
    """The entry of the sealed file for one question of a quiz file. The same question gives the same entry."""
    name, choices = question["id"], question["choice"]
    salt = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:32]
    longest = max(len(choice["reason"].encode()) for choice in choices)
    size = BLOCK * (longest // BLOCK + 1)
    entries, right = [], ""
    for choice in choices:
        fingerprint, key = _keys(salt, name, choice["key"])
        reason = choice["reason"].encode().ljust(size, b"\0")
        box = base64.b64encode(_mixed(key, reason)).decode()
        entries.append({"key": choice["key"], "text": choice["text"], "reason": box})
        if choice.get("right"):
            right = hashlib.sha256(fingerprint).hexdigest()
    sealed = {"id": name, "points": question["points"], "prompt": question["prompt"].strip()}
    if question.get("title"):
        sealed["title"] = question["title"]
    return sealed | {"salt": salt, "right": right, "choices": entries}


def seal_quiz(quiz: dict[str, Any]) -> dict[str, Any]:
    """The sealed file for the content of a quiz file. Raises QuizFault where it is not as it should be."""
    questions = quiz.get("question", [])
    names = [question.get("id") for question in questions]
    for question in questions:
        fault = _fault_in(question)
        if fault:
            raise QuizFault(f"question {question.get('id', '(without id)')}: {fault}")
        if names.count(question["id"]) > 1:
            raise QuizFault(f"question {question['id']}: the id is used twice")
    return {"format": FORMAT, "questions": [seal_question(question) for question in questions]}


def _fault_in(question: dict[str, Any]) -> str:
    missing = [name for name in ("id", "points", "prompt", "choice") if not question.get(name)]
    if missing:
        return f"it has no {missing[0]}"
    keys = [choice.get("key") for choice in question["choice"]]
    right = sum(choice.get("right") is True for choice in question["choice"])
    if any(not choice.get(name) for choice in question["choice"] for name in ("key", "text", "reason")):
        return "a choice lacks its key, text or reason"
    if len(set(keys)) < len(keys) or any(key != key.strip().lower() for key in keys):
        return "the keys of its choices must be different and in lower case"
    return "" if right == 1 else f"{right} choices are right, and one must be"


def seal_files(quizzes: Iterable[Path], folder: Path) -> list[Path]:
    """Seal each ``.../ASSIGNMENT/quiz.toml`` into ``folder/ASSIGNMENT.json``; returns the files that are there now."""
    written = []
    for quiz in quizzes:
        sealed = seal_quiz(read_toml(quiz))
        path = folder / f"{quiz.parent.name}.json"
        path.write_text(json.dumps(sealed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        written.append(path)
    return written


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises QuizFault, with the place, for what is not TOML."""
    # Python 3.10 has no tomllib of its own; what it is made of has another name.
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        content: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
        return content
    except ValueError as error:
        raise QuizFault(f"{path.name}: {error}") from error
