"""The lines that proofs cite, with a few around each; every line is kept once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vlmend.cli.console import printable
from vlmend.cli.report import syntax
from vlmend.codemods.analysis.tree import SourceTree, TreeError
from vlmend.codemods.codemod import Evidence, Source

BEFORE: Final = 3
AFTER: Final = 4
"""How many lines are kept on either side of a cited one."""


@dataclass
class _File:
    """One cited file; ``number`` is how the page's data refers to it."""

    number: int
    source: Source
    path: str
    content: syntax.Source | None
    wanted: set[int] = field(default_factory=set)


class Excerpts:
    """Collects citations, then hands out the lines that they need.

    Args:
        trees: the bodies of code at hand; a citation of any other has no lines.
    """

    def __init__(self, trees: Mapping[Source, SourceTree]) -> None:
        self._trees = trees
        self._files: dict[tuple[Source, str], _File] = {}

    def cite(self, link: Evidence) -> int:
        """Note a citation; return the number of its file in :meth:`document`."""
        file = self._file(link.source, link.file)
        if file.content is not None and 0 < link.line <= len(file.content):
            first, last = max(1, link.line - BEFORE), link.line + AFTER
            file.wanted.update(range(first, min(last, len(file.content)) + 1))
        return file.number

    def line(self, link: Evidence) -> str | None:
        """Return the cited line, or None where its file is not at hand."""
        file = self._file(link.source, link.file)
        return file.content.text(link.line) if file.content is not None else None

    def document(self) -> list[dict[str, Any]]:
        """Return the cited files in the form that the page's script reads.

        Each block is its first line's number and then, per line, its text and the
        lengths and kinds of its runs: ``"3k1 4f"`` colours ``def main``.
        """
        return [
            {
                "path": printable(file.path),
                "source": file.source.value,
                "blocks": [
                    [first, *(_packed(line) for line in lines)]
                    for first, lines in _blocks(file)
                ],
            }
            for file in self._files.values()
        ]

    def _file(self, source: Source, path: str) -> _File:
        key = (source, path)
        if key not in self._files:
            content = self._read(source, path)
            self._files[key] = _File(len(self._files), source, path, content)
        return self._files[key]

    def _read(self, source: Source, path: str) -> syntax.Source | None:
        try:
            return syntax.Source(self._trees[source].read(path))
        except (KeyError, TreeError):
            return None


def _blocks(file: _File) -> Iterator[tuple[int, list[syntax.Line]]]:
    """Yield each stretch of lines without a gap."""
    if file.content is None:
        return
    stretches: dict[int, list[int]] = defaultdict(list)
    for index, number in enumerate(sorted(file.wanted)):
        stretches[number - index].append(number)
    for stretch in stretches.values():
        yield stretch[0], file.content.coloured(stretch[0], stretch[-1])


def _packed(line: syntax.Line) -> list[str]:
    text = "".join(run.text for run in line)
    kinds = " ".join(f"{len(run.text)}{run.kind}" for run in line)
    return [text, kinds]
