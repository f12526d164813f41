"""Adds ``target = value`` to the body of a function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.codemods.rewriting.splices import MAX_COLUMNS, EditError, Splice

if TYPE_CHECKING:
    import libcst as cst

    from vlmend.codemods.rewriting.file_view import FileView


@dataclass(frozen=True, slots=True)
class InsertAssignment:
    """Add an assignment as a statement of its own, set off by empty lines.

    Attributes:
        file: POSIX path of the file.
        function: name of the function that gets the statement.
        function_line: line of its ``def``.
        after_line: first line of the statement of the function's body that it follows.
        target: left side.
        value: right side; put in parentheses on a line of its own where the statement
            is longer than a line, as ``ruff format`` does.
    """

    file: str
    function: str
    function_line: int
    after_line: int
    target: str
    value: str

    @property
    def line(self) -> int:
        """The line that the change is anchored to."""
        return self.after_line

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return the one insertion."""
        import libcst as cst

        function = view.find_function(self.function, self.function_line)
        if not isinstance(function.body, cst.IndentedBlock):
            raise EditError(f"{self.function} has no body of its own lines")
        body = function.body.body
        index = self._index(view, body)
        anchor = body[index]
        first, last = view.lines_of(anchor)
        text = view.line_text(first)
        # A form feed starts the indentation anew.
        indent = text[: len(text) - len(text.lstrip(" \t\f"))].rpartition("\f")[2]
        # A statement's end may be the start of the next line.
        while last > self.after_line and not view.line_text(last).strip():
            last -= 1
        following = view.line_text(last + 1) if last < view.line_count else ""
        lines = ["", *self.render(indent)]
        is_inside = index + 1 < len(body) or following.lstrip().startswith("#")
        if is_inside and following.strip():
            lines.append("")
        text = "".join(line + view.newline for line in lines)
        start = view.line_start(last + 1)
        if start == len(view.utf8) and not view.text.endswith(("\n", "\r")):
            text = view.newline + text.removesuffix(view.newline)
        return (Splice(start, start, text),)

    def _index(self, view: FileView, body: Sequence[cst.BaseStatement]) -> int:
        import libcst as cst

        for position, statement in enumerate(body):
            first, last = view.lines_of(statement)
            if first == self.after_line:
                return position
            # ``a = (`` / ``...); b = c``: one line of statements to LibCST.
            is_joined = isinstance(statement, cst.SimpleStatementLine)
            if is_joined and first < self.after_line <= last:
                return position
        raise EditError(
            f"no statement of {self.function} starts at line {self.after_line}"
        )

    def render(self, indent: str) -> list[str]:
        """Return the statement's lines at an indentation."""
        single = f"{indent}{self.target} = {self.value}"
        if len(single.expandtabs(4)) <= MAX_COLUMNS:
            return [single]
        step = "\t" if "\t" in indent else "    "
        return [
            f"{indent}{self.target} = (",
            f"{indent}{step}{self.value}",
            f"{indent})",
        ]
