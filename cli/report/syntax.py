"""Python's syntax colours: a line of source as runs of text, each of one kind.

Colours are worked out when a page is made, for the lines that it shows and no others:
colouring whole files would take longer than judging the tree.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from vlmend.cli.console import printable

if TYPE_CHECKING:
    from pygments.lexers.python import PythonLexer

MAX_COLUMNS: Final = 300
"""What stands further right on a line is left out; such lines are data, not code."""


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a line.

    Attributes:
        text: what stands there; every character of it can be shown.
        kind: a class name of the page's style sheet; empty for plain text.
        changed: the piece is what differs from the other side of a diff.
    """

    text: str
    kind: str = ""
    changed: bool = False


Line = tuple[Run, ...]


class Source:
    """A file's lines, as ``ast`` counts them, and the colours of any of them."""

    def __init__(self, content: bytes) -> None:
        # bytes.splitlines() breaks where Python's parser does; str's breaks elsewhere.
        lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
        self._text = [_shown(line.decode("utf-8", "replace")) for line in lines]

    def __len__(self) -> int:
        return len(self._text)

    def text(self, line: int) -> str | None:
        """Return one line as it can be shown; None where there is no such line."""
        return self._text[line - 1] if 0 < line <= len(self) else None

    def coloured(self, first: int, last: int) -> list[Line]:
        """Return lines ``first`` to ``last`` (from 1, both included) in colour."""
        first, last = max(first, 1), min(last, len(self))
        if first > last:
            return []
        # A range may begin inside a docstring; its lines are text, not code.
        start = self._string_start(first)
        lines = list(_lines("\n".join(self._text[start - 1 : last])))
        return lines[first - start :]

    def _string_start(self, line: int) -> int:
        """Return the line where the string that ``line`` begins in was opened."""
        index = bisect_right(self._long_strings, (line, 0)) - 1
        if index >= 0:
            start, end = self._long_strings[index]
            if start < line <= end:
                return start
        return line

    @cached_property
    def _long_strings(self) -> list[tuple[int, int]]:
        starts = [0, *accumulate(len(line) + 1 for line in self._text)]
        text = "\n".join(self._text)
        return [
            (bisect_right(starts, m.start()), bisect_right(starts, m.end() - 1))
            for m in _QUOTED.finditer(text)
            if "\n" in m[0]
        ]


_QUOTED: Final = re.compile(
    r"""
    \#[^\n]*
    | \"\"\"[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:\"\"\"|\Z)
    | '''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:'''|\Z)
    | "(?:[^"\\\n]|\\.)*+"?
    | '(?:[^'\\\n]|\\.)*+'?
    """,
    re.VERBOSE | re.DOTALL,
)
"""Comments and strings: whatever can hide a quotation mark from the others."""


def _shown(line: str) -> str:
    if len(line) > MAX_COLUMNS:
        line = f"{line[:MAX_COLUMNS]}…"
    return printable(line).replace("\t", "    ").replace("\n", " ")


def _lines(text: str) -> Iterator[Line]:
    """Yield the lines of ``text`` in colour."""
    line: list[Run] = []
    for _, token, value in _lexer().get_tokens_unprocessed(text):
        kind = _kind(token)
        for number, part in enumerate(value.split("\n")):
            if number:
                yield tuple(line)
                line = []
            if not part:
                continue
            if line and (line[-1].kind == kind or not part.strip()):
                line[-1] = Run(line[-1].text + part, line[-1].kind)
            else:
                line.append(Run(part, kind))
    yield tuple(line)


@cache
def _kind(token: object) -> str:
    name = str(token).removeprefix("Token.").removeprefix("Literal.")
    return next((kind for lead, kind in _KINDS if name.startswith(lead)), "")


@cache
def _lexer() -> PythonLexer:
    from pygments.lexers.python import PythonLexer

    return PythonLexer()


_KINDS: Final = (
    ("Comment", "c"),
    ("String", "s"),
    ("Number", "m"),
    ("Keyword", "k"),
    ("Operator.Word", "k"),
    ("Name.Function", "f"),
    ("Name.Class", "f"),
    ("Name.Decorator", "d"),
    ("Name.Builtin", "b"),
)
"""Pygments' token types, by how their names begin, and our class names for them."""


def split_at(line: Line, start: int, end: int) -> Line:
    """Return the line with characters ``start`` to ``end`` marked as changed."""
    marked: list[Run] = []
    column = 0
    for run in line:
        cuts = [min(max(edge - column, 0), len(run.text)) for edge in (start, end)]
        pieces = (
            (run.text[: cuts[0]], False),
            (run.text[cuts[0] : cuts[1]], True),
            (run.text[cuts[1] :], False),
        )
        marked += [Run(text, run.kind, flag) for text, flag in pieces if text]
        column += len(run.text)
    return tuple(marked)
