"""A call's argument list, rewritten in the layout that it has."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from vlmend.codemods.rewriting.call_arguments import CallArguments
from vlmend.codemods.rewriting.file_view import FileView
from vlmend.codemods.rewriting.splices import MAX_COLUMNS, EditError, Splice


class ArgumentList:
    """One call's list and the change that is wanted.

    Args:
        view: the untouched file.
        change: which call, and what to add.

    Raises:
        EditError: there is no such call, or more than one.
    """

    def __init__(self, view: FileView, change: CallArguments) -> None:
        self._view = view
        self._change = change
        finder = _Calls(view, change.call_line, change.function)
        view.module.visit(finder)
        if len(finder.found) != 1:
            raise EditError(
                f"{len(finder.found)} calls of {change.function} at line "
                f"{change.call_line}"
            )
        self._call = finder.found[0]
        if not self._call.args:
            raise EditError(f"{change.function} is called without arguments")

    def splices(self) -> Sequence[Splice]:
        """Return the change of the argument list."""
        view, arguments = self._view, self._call.args
        place = self._place()
        new = [_text(view, argument) for argument in arguments]
        new[place:place] = [f"{name}={name}" for name in self._change.add]
        if self._change.unpack:
            new.append(f"**{self._change.unpack}")
        first, last = arguments[0], arguments[-1]
        start, end = view.span_of(first)[0], view.span_of(last)[1]
        top, bottom = view.lines_of(first)[0], view.lines_of(last)[1]
        if top == bottom and not isinstance(last.comma, cst.Comma):
            before = view.utf8[view.line_start(top) : start].decode()
            rest = view.utf8[end : view.line_start(top + 1)].decode()
            whole = f"{before}{', '.join(new)}{rest.rstrip()}"
            if len(whole.expandtabs(4)) <= MAX_COLUMNS:
                return (Splice(start, end, ", ".join(new)),)
            return (Splice(start, end, self._broken(new, before)),)
        return self._by_line(place)

    def _place(self) -> int:
        """Return the index that new keywords go in front of."""
        for index, argument in enumerate(self._call.args):
            if argument.star == "**":
                return index
            word = argument.keyword.value if argument.keyword is not None else ""
            if word in self._change.before:
                return index
        return len(self._call.args)

    def _broken(self, new: Sequence[str], before: str) -> str:
        """Write the list as ``ruff format`` does where it does not fit its line."""
        newline = self._view.newline
        outer = before[: len(before) - len(before.lstrip())]
        if not before.strip():  # it has a line of its own already
            return f",{newline}{outer}".join(new) + ","
        inner = outer + ("\t" if "\t" in outer else "    ")
        joined = f"{inner}{', '.join(new)}"
        if len(joined.expandtabs(4)) <= MAX_COLUMNS:
            return f"{newline}{joined}{newline}{outer}"
        body = "".join(f"{newline}{inner}{one}," for one in new)
        return f"{body}{newline}{outer}"

    def _by_line(self, place: int) -> Sequence[Splice]:
        """Add to a list that spans lines, each new argument on a line of its own."""
        keywords = [f"{name}={name}" for name in self._change.add]
        unpack = [f"**{self._change.unpack}"] if self._change.unpack else []
        end = len(self._call.args)
        if place == end:
            keywords, unpack = [*keywords, *unpack], []
        found: list[Splice] = []
        if keywords:
            found.append(self._after(place - 1, keywords))
        if unpack:
            found.append(self._after(end - 1, unpack))
        return found

    def _after(self, index: int, texts: Sequence[str]) -> Splice:
        view, arguments = self._view, self._call.args
        if index < 0:
            raise EditError(f"{self._change.function} has no argument to follow")
        anchor = arguments[index]
        line, last_line = view.lines_of(anchor)
        column = self._column(line)
        indent = f"{view.newline}{column}"
        end = view.span_of(anchor)[1]
        has_comma = isinstance(anchor.comma, cst.Comma)
        following = arguments[index + 1 : index + 2]
        if has_comma and following and view.lines_of(following[0])[0] == last_line:
            # They share the line: what follows moves to a line of its own.
            comma = view.utf8.find(b",", end) + 1
            added = "".join(f"{indent}{text}," for text in texts)
            return Splice(comma, view.span_of(following[0])[0], f"{added}{indent}")
        rest = view.utf8[end : view.line_start(last_line + 1)].strip()
        if has_comma and rest.lstrip(b",").strip()[:1] in (b"", b"#"):
            # Behind the line, with the comment that it may have.
            start = view.line_start(last_line + 1)
            added = "".join(f"{column}{text},{view.newline}" for text in texts)
            return Splice(start, start, added)
        if has_comma:
            comma = view.utf8.find(b",", end) + 1
            return Splice(comma, comma, "".join(f"{indent}{text}," for text in texts))
        if b"#" in rest:
            raise EditError(
                f"a comment stands behind what {self._change.function} gets"
            )
        return Splice(end, end, "".join(f",{indent}{text}" for text in texts))

    def _column(self, line: int) -> str:
        """Return the white space in front of the list's lines."""
        view = self._view
        opening = view.lines_of(self._call.func)[1]
        if line > opening:
            text = view.line_text(line)
            return text[: len(text) - len(text.lstrip())]
        for argument in self._call.args:
            other = view.lines_of(argument)[0]
            if other > opening:
                text = view.line_text(other)
                return text[: len(text) - len(text.lstrip())]
        return " " * view.column_of(self._call.args[0])


class _Calls(cst.CSTVisitor):
    """Finds the calls of one function that start at one line."""

    def __init__(self, view: FileView, line: int, function: str) -> None:
        self._view = view
        self._line = line
        self._function = "".join(function.split())
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - LibCST's name
        if self._view.lines_of(node)[0] != self._line:
            return
        written = self._view.module.code_for_node(node.func)
        if "".join(written.split()) == self._function:
            self.found.append(node)


def _text(view: FileView, node: cst.CSTNode) -> str:
    start, end = view.span_of(node)
    return view.utf8[start:end].decode()
