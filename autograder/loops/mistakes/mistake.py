"""One entry of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from autograder.loops.facts import Facts

Evidence = dict[str, Any]
Rule = Callable[[Facts], "Evidence | None"]


@dataclass(frozen=True)
class Mistake:
    """``says`` is a sentence with fields that ``rule`` fills from the learner's own run."""

    slug: str
    title: str
    says: str
    hints: tuple[str, ...]
    rule: Rule

    def sentence(self, evidence: Evidence) -> str:
        return self.says.format_map(evidence)


class Shelf(list[Mistake]):
    """Collects the rules of one module in the order in which they are written."""

    def mistake(self, slug: str, title: str, says: str, *hints: str) -> Callable[[Rule], Rule]:
        def keep(rule: Rule) -> Rule:
            self.append(Mistake(slug, title, says, hints, rule))
            return rule

        return keep


def find(facts: Facts, mistakes: Iterable[Mistake]) -> tuple[Mistake, Evidence] | None:
    """The first mistake whose rule answers."""
    for mistake in mistakes:
        evidence = mistake.rule(facts)
        if evidence is not None:
            return mistake, evidence
    return None


def by_slug(mistakes: Iterable[Mistake], slug: str) -> Mistake:
    """The catalogue's entry of that name. Raises KeyError."""
    for mistake in mistakes:
        if mistake.slug == slug:
            return mistake
    raise KeyError(slug)
