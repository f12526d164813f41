"""Adds ``from module import name``, where isort would put it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vlmend.codemods.analysis.facts import parse
from vlmend.codemods.rewriting.splices import MAX_COLUMNS, EditError, Splice

if TYPE_CHECKING:
    from vlmend.codemods.rewriting.file_view import FileView


@dataclass(frozen=True, slots=True)
class AddImport:
    """Import a name at the top of a file.

    Attributes:
        file: POSIX path of the file.
        module: where the name comes from.
        name: what is imported.
    """

    file: str
    module: str
    name: str

    @property
    def line(self) -> int:
        """The line that the change is anchored to."""
        return 1

    def splices(self, view: FileView) -> Sequence[Splice]:
        """Return the import: joined to one of the same module, or on a new line."""
        imports = [
            node
            for node in parse(view.text).body
            if isinstance(node, ast.ImportFrom) and not node.level and node.module
        ]
        for node in imports:
            if node.module == self.module and node.names[0].name != "*":
                return (self._joined(view, node),)
        package = self.module.partition(".")[0]
        beside = [
            n for n in imports if n.module and n.module.partition(".")[0] == package
        ]
        if not beside:
            raise EditError(f"no import that one of {self.module} could stand beside")
        smaller = [n for n in beside if n.module and n.module < self.module]
        if smaller:
            line = (smaller[-1].end_lineno or smaller[-1].lineno) + 1
        else:
            line = beside[0].lineno
        start = view.line_start(line)
        text = f"from {self.module} import {self.name}{view.newline}"
        return (Splice(start, start, text),)

    def _joined(self, view: FileView, node: ast.ImportFrom) -> Splice:
        """Add to an import that is there, in isort's order of names."""
        names = [_written(alias) for alias in node.names]
        if self.name in names:
            raise EditError(f"{self.name} is imported already")
        names = sorted([*names, self.name], key=_isort_key)
        text = view.line_text(node.lineno)
        if node.end_lineno == node.lineno:
            if "(" in text or "#" in text or ";" in text:
                raise EditError(f"the import of {self.module} has a form of its own")
            line = f"from {self.module} import {', '.join(names)}"
            if len(line) > MAX_COLUMNS:
                body = "".join(f"{view.newline}    {name}," for name in names)
                line = f"from {self.module} import ({body}{view.newline})"
            start = view.line_start(node.lineno)
            return Splice(start, start + len(text.encode()), line)
        place = names.index(self.name)
        after = node.names[place - 1] if place else None
        line_of = after.lineno if after else node.lineno
        listed = view.line_text(line_of)
        if not listed.rstrip().endswith("," if after else "("):
            raise EditError(f"the import of {self.module} has a form of its own")
        start = view.line_start(line_of + 1)
        return Splice(start, start, f"    {self.name},{view.newline}")


def _written(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _isort_key(name: str) -> tuple[int, str]:
    """Order names as isort does: constants, classes, the rest."""
    word = name.partition(" ")[0]
    if word.isupper():
        return 0, word
    return (1 if word[:1].isupper() else 2), word
