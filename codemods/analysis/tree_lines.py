"""Reads single functions of vLLM's own code, without reading the whole file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vlmend.codemods.analysis import facts
from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.analysis.tree import TreeError
from vlmend.codemods.codemod import Evidence, Source


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of vLLM's tree, by lines; made by :func:`open_file`."""

    source: Source
    path: str
    lines: tuple[str, ...]

    def cite(self, line: int, statement: str) -> Evidence:
        """Return a line as evidence."""
        return Evidence(self.source, self.path, line, statement)

    def find(self, pattern: str, statement: str) -> Evidence | None:
        """Return the first line in which a pattern is found, as evidence."""
        wanted = re.compile(pattern)
        for number, text in enumerate(self.lines, 1):
            if wanted.search(text):
                return self.cite(number, statement)
        return None

    def function(self, name: str, owner: str = "") -> facts.FunctionNode | None:
        """Parse one function or method, with the file's positions.

        Args:
            name: its name.
            owner: the class that it stands in; empty takes the file's first one.
        """
        start = self._line_of(rf"class {owner}\b") if owner else 0
        if start is None:
            return None
        header = re.compile(rf"(\s*)def {name}\(")
        for number in range(start, len(self.lines)):
            found = header.match(self.lines[number])
            if found is None:
                continue
            indent = len(found.group(1))
            end = self._end(number, indent)
            node = facts.parse_span(self.lines, number + 1, end, indent)
            return node if isinstance(node, ast.FunctionDef) else None
        return None

    def _line_of(self, pattern: str) -> int | None:
        wanted = re.compile(pattern)
        for number, text in enumerate(self.lines):
            if wanted.match(text):
                return number
        return None

    def _end(self, start: int, indent: int) -> int:
        """Return the last line of the block that starts at a line (0-based)."""
        for number in range(start + 1, len(self.lines)):
            text = self.lines[number]
            bare = text.lstrip()
            if not bare or bare.startswith("#"):
                continue
            # A signature over several lines ends with its own closing bracket.
            if len(text) - len(bare) <= indent and not bare.startswith(")"):
                return number
        return len(self.lines)


def open_file(index: ModelIndex, paths: Iterable[str], word: str) -> TreeFile | None:
    """Return the first of some files of vLLM's tree that contains a word.

    vLLM has moved its config classes between files (``config.py``, then
    ``config/__init__.py``, then ``config/vllm.py``); the word says which one is meant.
    """
    for found in open_files(index, paths):
        if any(word in line for line in found.lines):
            return found
    return None


def open_files(index: ModelIndex, paths: Iterable[str]) -> Iterator[TreeFile]:
    """Yield those files of vLLM's tree that are there and can be read."""
    root = index.roots[-1]
    for path in paths:
        if not root.tree.exists(path):
            continue
        try:
            lines = facts.source_lines(index.source_of(root, path))
        except (TreeError, SyntaxError, UnicodeDecodeError):
            continue
        yield TreeFile(root.source, path, tuple(lines))
