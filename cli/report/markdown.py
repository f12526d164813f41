"""The coverage table as Markdown: for a wiki, an issue or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vlmend.cli.console import printable
from vlmend.cli.report.coverage_text import NO, YES, count_line
from vlmend.cli.report.text import describe
from vlmend.cli.report.words import counted

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.cli.report.coverage import Changes, Coverage
    from vlmend.cli.targets import Target


def coverage_markdown(judged: Judged, table: Coverage) -> Iterator[str]:
    """Yield the table, the counts above it."""
    yield f"# Model contracts in {escaped(describe(judged.target))}"
    yield ""
    yield f"{counted(len(table.rows), 'model class', 'model classes')}."
    yield ""
    for codemod in table.codemods:
        yield f"- `{codemod}`: {count_line(table, codemod)}"
    for note in judged.result.contract:
        yield f"- {escaped(note.name)}: {escaped(note.statement)}"
    yield ""
    yield _row("class", "module", "MM", "PP", *(f"`{c}`" for c in table.codemods))
    yield _row(*("---" for _ in range(4 + len(table.codemods))))
    for row in table.rows:
        model = row.model
        yield _row(
            f"**{escaped(model.class_name)}**",
            escaped(model.module),
            YES if model.multimodal else NO,
            YES if model.pipeline_parallel else NO,
            *(escaped(cell.label) for cell in row.cells),
        )


def changes_markdown(changes: Changes, before: Target, after: Target) -> Iterator[str]:
    """Yield what differs between two trees."""
    yield f"## From {escaped(describe(before))} to {escaped(describe(after))}"
    yield ""
    if not changes:
        yield "The same classes, the same verdicts."
    for model in changes.added:
        yield f"- new: {escaped(model.key)}"
    for model in changes.removed:
        yield f"- gone: {escaped(model.key)}"
    for was, now in changes.moved:
        yield f"- moved: {escaped(was.key)} to {escaped(now.key)}"
    for change in changes.changed:
        yield (
            f"- {escaped(change.model.key)}, `{change.codemod}`:"
            f" {escaped(change.before.label)} to {escaped(change.after.label)}"
        )


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: it comes from the tree, not from us."""
    flat = " ".join(printable(text).split())
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", flat)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
