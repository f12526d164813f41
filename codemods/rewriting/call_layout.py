"""One call, changed and laid out again as ``ruff format`` lays calls out.

A call that is spread over lines keeps its form and gets one line more. A call on one
line stays there where it fits; else the outermost call of that line is broken: its
arguments on one line of their own, or, where they do not fit either, on a line each
with a trailing comma. What is broken is decided from the outside in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from vlmend.codemods.rewriting.file_view import FileView
from vlmend.codemods.rewriting.splices import MAX_COLUMNS, EditError, Splice


@dataclass(frozen=True, slots=True)
class Group:
    """A call as text that can be broken: ``opening`` ends with its bracket."""

    opening: str
    items: tuple[Piece, ...]
    closing: str = ")"


Piece = str | Group


def flat(piece: Piece) -> str:
    """Return a piece on one line."""
    if isinstance(piece, str):
        return piece
    return f"{piece.opening}{', '.join(map(flat, piece.items))}{piece.closing}"


def laid_out(piece: Piece, indent: str, lead: str, tail: str) -> list[str]:
    """Return a piece as lines, broken only where it does not fit.

    Args:
        indent: the white space that its line starts with.
        lead: what stands before it on its line, white space included.
        tail: what follows it on its last line.
    """
    whole = f"{lead}{flat(piece)}{tail}"
    if _fits(whole) or isinstance(piece, str):
        return [whole]
    inner = indent + ("\t" if "\t" in indent else "    ")
    joined = f"{inner}{', '.join(map(flat, piece.items))}"
    last = f"{indent}{piece.closing}{tail}"
    if _fits(joined):
        return [f"{lead}{piece.opening}", joined, last]
    lines = [f"{lead}{piece.opening}"]
    # An only argument gets no trailing comma: there is nothing to set it off from.
    comma = "," if len(piece.items) > 1 else ""
    for item in piece.items:
        lines += laid_out(item, inner, inner, comma)
    return [*lines, last]


def _fits(line: str) -> bool:
    return len(line.expandtabs(4)) <= MAX_COLUMNS


class CallLayout:
    """Finds one call and changes its arguments.

    Args:
        view: the untouched file.
        function: what is called, as written without spaces.
        line: where the call starts (1-based).
        column: the same, in UTF-8 bytes (0-based).

    Raises:
        EditError: there is no such call.
    """

    def __init__(self, view: FileView, function: str, line: int, column: int) -> None:
        self._view = view
        finder = _CallsAt(view, line)
        view.module.visit(finder)
        start = view.line_start(line) + column
        wanted = "".join(function.split())
        found = [
            call
            for call in finder.found
            if view.span_of(call)[0] == start
            and "".join(view.module.code_for_node(call.func).split()) == wanted
        ]
        if len(found) != 1:
            raise EditError(f"{len(found)} calls of {function} at line {line}")
        self._call = found[0]
        self._others = finder.found
        if not self._call.args:
            raise EditError(f"{function} is called without arguments")

    def add(self, text: str) -> Sequence[Splice]:
        """Add an argument behind the others."""
        view, arguments = self._view, self._call.args
        if any(argument.star == "**" for argument in arguments):
            raise EditError("the call unpacks keywords; what it is given is not known")
        first, last = arguments[0], arguments[-1]
        opening = view.lines_of(self._call.func)[1]
        top, bottom = view.lines_of(first)[0], view.lines_of(last)[1]
        if top == bottom == opening == self._last_line(self._call):
            return self._again({self._call: (*self._items(self._call), text)})
        if isinstance(last.comma, cst.Comma):
            return (self._own_line(last, text),)
        if top == bottom and self._is_alone(first, last):
            return (self._joined(first, last, text),)
        end = view.span_of(last)[1]
        indent = self._indent(view.lines_of(last)[0])
        return (Splice(end, end, f",{view.newline}{indent}{text}"),)

    def narrow(
        self, argument: str, method: str, items: tuple[str, ...]
    ) -> Sequence[Splice]:
        """Call ``argument.method(*items)`` where the call is given ``argument``."""
        view = self._view
        given = [
            one
            for one in self._call.args
            if isinstance(one.value, cst.Name) and one.value.value == argument
        ]
        if len(given) != 1:
            raise EditError(f"{argument} is given {len(given)} times")
        text = _text(view, given[0])
        made = Group(f"{text}.{method}(", items)
        opening = view.lines_of(self._call.func)[1]
        if opening == self._last_line(self._call):
            new = tuple(
                made if one is given[0] else _text(view, one) for one in self._call.args
            )
            return self._again({self._call: new})
        line = view.lines_of(given[0])[0]
        start, end = view.span_of(given[0])
        before = view.utf8[view.line_start(line) : start].decode()
        after = view.utf8[end : view.line_start(line + 1)].decode().rstrip("\r\n")
        code = after.partition("#")[0].rstrip()
        lines = laid_out(made, self._indent(line), before, code)
        body = view.newline.join(lines)
        body = body.removeprefix(before)
        return (Splice(start, end, body[: len(body) - len(code)]),)

    # -- one line -------------------------------------------------------------------

    def _again(self, changed: dict[cst.Call, tuple[Piece, ...]]) -> Sequence[Splice]:
        """Lay the outermost call of a line out again."""
        view = self._view
        line = view.lines_of(self._call)[0]
        outer = self._call
        for other in self._others:
            is_larger = _holds(view.span_of(other), view.span_of(outer))
            if is_larger and self._last_line(other) == line:
                outer = other
        start, end = view.span_of(outer)
        before = view.utf8[view.line_start(line) : start].decode()
        after = view.utf8[end : view.line_start(line + 1)].decode().rstrip("\r\n")
        code = after.partition("#")[0].rstrip()
        piece = self._piece(outer, changed)
        lines = laid_out(piece, self._indent(line), before, code)
        body = view.newline.join(lines).removeprefix(before)
        return (Splice(start, end, body[: len(body) - len(code)]),)

    def _piece(
        self, call: cst.Call, changed: dict[cst.Call, tuple[Piece, ...]]
    ) -> Piece:
        view = self._view
        if call in changed:
            return Group(self._opening(call), changed[call])
        items: list[Piece] = []
        for argument in call.args:
            inner = next(
                (
                    other
                    for other in self._others
                    if argument.value is other
                    and any(
                        other is one or _holds(view.span_of(other), view.span_of(one))
                        for one in changed
                    )
                ),
                None,
            )
            if inner is None:
                items.append(_text(view, argument))
                continue
            start, _ = view.span_of(argument)
            lead = view.utf8[start : view.span_of(inner)[0]].decode()
            made = self._piece(inner, changed)
            assert isinstance(made, Group)
            items.append(Group(lead + made.opening, made.items, made.closing))
        if not any(isinstance(item, Group) for item in items):
            raise EditError("the call is no argument of the line's outermost call")
        return Group(self._opening(call), tuple(items))

    def _opening(self, call: cst.Call) -> str:
        start, end = self._view.span_of(call)[0], self._view.span_of(call.args[0])[0]
        return self._view.utf8[start:end].decode()

    def _items(self, call: cst.Call) -> tuple[Piece, ...]:
        return tuple(_text(self._view, argument) for argument in call.args)

    # -- several lines --------------------------------------------------------------

    def _own_line(self, last: cst.Arg, text: str) -> Splice:
        """Add a line below the last argument, whose trailing comma stays."""
        view = self._view
        _, bottom = view.lines_of(last)
        indent = self._indent(view.lines_of(last)[0])
        if self._last_line(self._call) == bottom:
            raise EditError("the list's last line holds its closing bracket")
        place = view.line_start(bottom + 1)
        return Splice(place, place, f"{indent}{text},{view.newline}")

    def _joined(self, first: cst.Arg, last: cst.Arg, text: str) -> Splice:
        """Add to arguments that share a line of their own."""
        view = self._view
        line = view.lines_of(first)[0]
        indent = self._indent(line)
        start, end = view.span_of(first)[0], view.span_of(last)[1]
        items = [*(_text(view, argument) for argument in self._call.args), text]
        if _fits(f"{indent}{', '.join(items)}"):
            return Splice(end, end, f", {text}")
        return Splice(start, end, f",{view.newline}{indent}".join(items) + ",")

    def _is_alone(self, first: cst.Arg, last: cst.Arg) -> bool:
        """Say whether arguments have their line to themselves."""
        view = self._view
        line = view.lines_of(first)[0]
        start, end = view.span_of(first)[0], view.span_of(last)[1]
        before = view.utf8[view.line_start(line) : start]
        after = view.utf8[end : view.line_start(line + 1)]
        return not before.strip() and not after.strip()

    def _last_line(self, call: cst.Call) -> int:
        return self._view.lines_of(call)[1]

    def _indent(self, line: int) -> str:
        text = self._view.line_text(line)
        return text[: len(text) - len(text.lstrip())]


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def _text(view: FileView, node: cst.CSTNode) -> str:
    start, end = view.span_of(node)
    return view.utf8[start:end].decode()


class _CallsAt(cst.CSTVisitor):
    """Finds the calls that start at one line."""

    def __init__(self, view: FileView, line: int) -> None:
        self._view = view
        self._line = line
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - LibCST's name
        if self._view.lines_of(node)[0] == self._line:
            self.found.append(node)
