"""What a reading notes: the attributes set, the methods run, the calls made."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from vlmend.codemods.analysis.guards import covers
from vlmend.codemods.analysis.values import (
    Arguments,
    ClassRef,
    Guard,
    Site,
    Value,
)


class Context(NamedTuple):
    """A ``with`` block that a statement stands in: the method called and its lines."""

    name: str
    line: int
    end_line: int
    function: str
    file: str


@dataclass(frozen=True, slots=True)
class Write:
    """``self.attribute = value``.

    Attributes:
        site: the statement.
        guards: conditions it stands under, outermost first.
        contexts: ``with`` blocks of ``self`` that it stands in.
        init: the class whose ``__init__`` the statement stands in, or whose
            ``__init__`` calls the helper that it stands in.
    """

    attribute: str
    value: Value
    site: Site
    guards: tuple[Guard, ...]
    contexts: tuple[Context, ...]
    init: ClassRef | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One ``__init__`` (or other method) that ran, and the line that called it."""

    owner: ClassRef
    function: str
    line: int
    file: str
    called_from: Site | None


@dataclass(frozen=True, slots=True)
class Event:
    """A call that was evaluated, with what it stands for and what it passes."""

    value: Value
    function: Value
    arguments: Arguments
    site: Site
    guards: tuple[Guard, ...]
    contexts: tuple[Context, ...]
    node: ast.Call = field(compare=False, repr=False)


@dataclass(slots=True)
class Trace:
    """All that one reading noted, in program order.

    ``returns`` holds the values of the first function's ``return`` statements with
    their guards; ``gaps`` says, for a person, what could not be followed.
    """

    writes: list[Write] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    returns: list[tuple[Value, tuple[Guard, ...]]] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def writes_to(self, attribute: str) -> list[Write]:
        """Return the writes to one attribute, in order."""
        return [write for write in self.writes if write.attribute == attribute]


def last_writes(writes: Sequence[Write], guards: Sequence[Guard]) -> list[Write]:
    """Return the writes whose value may still stand, seen from under ``guards``."""
    held = set(guards)
    found: list[Write] = []
    for write in reversed(writes):
        if any(g._replace(positive=not g.positive) in held for g in write.guards):
            continue
        found.append(write)
        if covers([tuple(g for g in w.guards if g not in held) for w in found]):
            break
    return list(reversed(found))
