"""One file opened for editing: its syntax tree, positions, and byte-exact splices."""

from __future__ import annotations

import codecs
import io
import tokenize
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

import libcst as cst
from libcst.metadata import (
    ByteSpanPositionProvider,
    CodeRange,
    MetadataWrapper,
    PositionProvider,
)

from vlmend.codemods.rewriting.splices import EditError, Splice


class FileView:
    """The untouched text of one file, parsed.

    Args:
        source: the file's bytes, in whatever encoding it declares.

    Raises:
        EditError: LibCST cannot parse it.
    """

    def __init__(self, source: bytes) -> None:
        self.bom = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
        self.encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        if self.encoding == "utf-8-sig":
            self.encoding = "utf-8"
        self.text = source[len(self.bom) :].decode(self.encoding)
        self.utf8 = self.text.encode()
        if self._encoded(self.text) != source:
            raise EditError(f"{self.encoding} does not give the same bytes again")
        try:
            parsed = cst.parse_module(self.text)
        except cst.ParserSyntaxError as error:
            raise EditError(f"LibCST cannot parse the file: {error}") from error
        self._wrapper = MetadataWrapper(parsed, unsafe_skip_copy=True)
        self.module = self._wrapper.module

    @cached_property
    def _positions(self) -> dict[cst.CSTNode, CodeRange]:
        return dict(self._wrapper.resolve(PositionProvider))

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, tuple[int, int]]:
        found = self._wrapper.resolve(ByteSpanPositionProvider)
        return {n: (s.start, s.start + s.length) for n, s in found.items()}

    @cached_property
    def newline(self) -> str:
        """The line end that new lines get."""
        return self.module.default_newline

    def lines_of(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return a node's first and last line (1-based)."""
        found = self._positions[node]
        return found.start.line, found.end.line

    def column_of(self, node: cst.CSTNode) -> int:
        """Return the column of a node's first character (0-based)."""
        return self._positions[node].start.column

    def span_of(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return a node's start and end in the UTF-8 text."""
        return self._spans[node]

    def line_start(self, line: int) -> int:
        """Return where a line (1-based) starts in the UTF-8 text.

        One past the last line is the end of the text.
        """
        starts = self._line_starts
        return starts[line - 1] if line <= len(starts) else len(self.utf8)

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, position, data = [0], 0, self.utf8
        while position < len(data):
            byte = data[position]
            position += 1
            if byte == 0x0D and data[position : position + 1] == b"\n":
                position += 1
            if byte in (0x0A, 0x0D):
                starts.append(position)
        return starts

    def lines_between(self, start: int, end: int) -> tuple[int, int]:
        """Return the lines (1-based) that a span of the UTF-8 text touches.

        An empty span at the start of line ``n`` touches none: ``(n, n - 1)``.
        """
        first = bisect_right(self._line_starts, start)
        if start == end == self._line_starts[first - 1]:
            return first, first - 1
        return first, bisect_right(self._line_starts, max(start, end - 1))

    def line_text(self, line: int) -> str:
        """Return a line without its line end."""
        part = self.utf8[self.line_start(line) : self.line_start(line + 1)]
        return part.decode().rstrip("\r\n")

    @property
    def line_count(self) -> int:
        """Number of lines, a last empty one not counted."""
        count = len(self._line_starts)
        return count - 1 if self._line_starts[-1] == len(self.utf8) else count

    def find_class(self, name: str, line: int) -> cst.ClassDef:
        """Find a class by name and the line of its ``class`` keyword.

        Raises:
            EditError: no such class stands there.
        """
        for node in self._definitions:
            if isinstance(node, cst.ClassDef) and self._is_at(node.name, name, line):
                return node
        raise EditError(f"no class {name} at line {line}")

    def find_function(self, name: str, line: int) -> cst.FunctionDef:
        """Find a function by name and the line of its ``def`` keyword.

        Raises:
            EditError: no such function stands there.
        """
        for node in self._definitions:
            if isinstance(node, cst.FunctionDef) and self._is_at(node.name, name, line):
                return node
        raise EditError(f"no function {name} at line {line}")

    def _is_at(self, node: cst.Name, name: str, line: int) -> bool:
        return node.value == name and self._positions[node].start.line == line

    @cached_property
    def _definitions(self) -> list[cst.ClassDef | cst.FunctionDef]:
        finder = _Definitions()
        self.module.visit(finder)
        return finder.found

    def splice(self, splices: Sequence[Splice]) -> bytes:
        """Return the file with the splices made, in its own encoding.

        Raises:
            EditError: two splices touch the same text, or the new text does not exist
                in the file's encoding.
        """
        result, position = bytearray(), 0
        for one in sorted(splices, key=lambda s: (s.start, s.end)):
            if one.start < position:
                raise EditError("two edits change the same text")
            result += self.utf8[position : one.start]
            result += one.text.encode()
            position = one.end
        result += self.utf8[position:]
        return self._encoded(result.decode())

    def _encoded(self, text: str) -> bytes:
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeError as error:
            raise EditError(f"the text does not exist in {self.encoding}") from error


class _Definitions(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[cst.ClassDef | cst.FunctionDef] = []

    def visit_ClassDef(self, node: cst.ClassDef) -> None:  # noqa: N802 - LibCST's name
        self.found.append(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: N802
        self.found.append(node)
