"""A change in two columns: what stands there now, and what would stand there."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from vlmend.cli.report.syntax import Line, Source, split_at

CONTEXT = 3
MAX_INDENT = 24

Kind = Literal["same", "added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Side:
    """One line of one side."""

    number: int
    line: Line

    @property
    def text(self) -> str:
        """The line without its colours."""
        return "".join(run.text for run in self.line)

    @property
    def indent(self) -> int:
        """How far the line is indented, in steps that the style sheet knows."""
        return min((len(self.text) - len(self.text.lstrip())) // 4 * 4, MAX_INDENT)


@dataclass(frozen=True, slots=True)
class Row:
    """A line on either side; None where the other side has one more."""

    before: Side | None
    after: Side | None
    kind: Kind


Hunk = tuple[Row, ...]


def hunks(before: bytes, after: bytes, context: int = CONTEXT) -> list[Hunk]:
    """Return the places where two versions of a file differ, as ``git diff`` cuts them.

    Lines are compared by what can be seen: line ends and encoding marks are kept by
    every patch, so they are no difference.
    """
    old, new = Source(before), Source(after)
    matcher = difflib.SequenceMatcher(None, _texts(old), _texts(new))
    return [
        tuple(row for opcode in group for row in _rows(old, new, opcode))
        for group in matcher.get_grouped_opcodes(context)
    ]


def _texts(source: Source) -> list[str]:
    return [source.text(number) or "" for number in range(1, len(source) + 1)]


def _rows(
    old: Source, new: Source, opcode: tuple[str, int, int, int, int]
) -> Iterator[Row]:
    tag, old_start, old_end, new_start, new_end = opcode
    sides = zip_longest(
        _sides(old, old_start, old_end), _sides(new, new_start, new_end)
    )
    for before, after in sides:
        if before is None:
            yield Row(None, after, "added")
        elif after is None:
            yield Row(before, None, "removed")
        elif tag == "equal":
            yield Row(before, after, "same")
        else:
            yield _marked(before, after)


def _sides(source: Source, start: int, end: int) -> list[Side]:
    lines = source.coloured(start + 1, end)
    return [Side(number, line) for number, line in enumerate(lines, start + 1)]


def _marked(before: Side, after: Side) -> Row:
    """Mark what differs within a line, unless hardly anything is the same."""
    old, new = before.text, after.text
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    if len((old[:head] + old[len(old) - tail :]).strip()) * 3 < len(old.strip()):
        return Row(before, after, "changed")
    return Row(
        Side(before.number, split_at(before.line, head, len(old) - tail)),
        Side(after.number, split_at(after.line, head, len(new) - tail)),
        "changed",
    )


def _alike(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
