"""The coverage table for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from vlmend.cli.console import printable
from vlmend.cli.report.text import contract, describe, heading
from vlmend.cli.report.words import STYLES, counted, faint, strong

if TYPE_CHECKING:
    from vlmend.cli.judge import Judged
    from vlmend.cli.report.coverage import Cell, Changes, Coverage
    from vlmend.cli.targets import Target

YES = "yes"
NO = "-"


def coverage_report(judged: Judged, table: Coverage, width: int) -> Iterator[str]:
    """Yield the table with its legend and its counts."""
    yield from heading(judged)
    yield from contract(judged.result.contract, width)
    yield ""
    titles = short_titles(table.codemods)
    names = _names(table)
    name_width = max((len(name) for name in names), default=5)
    widths = [
        max(len(title), *(len(row.cells[i].label) for row in table.rows), 0)
        for i, title in enumerate(titles)
    ]
    columns = "  ".join(title.ljust(w) for title, w in zip(titles, widths, strict=True))
    yield strong(f"{'class':{name_width}}  {'MM':3}  {'PP':3}  {columns}".rstrip())
    for name, row in zip(names, table.rows, strict=True):
        mm = YES if row.model.multimodal else NO
        pp = YES if row.model.pipeline_parallel else NO
        cells = _padded(row.cells, widths)
        yield f"{name:{name_width}}  {mm:3}  {pp:3}  {cells}"
    yield ""
    yield faint("MM: multimodal; PP: claims pipeline parallelism; -: not judged")
    for title, codemod in zip(titles, table.codemods, strict=True):
        yield f"{strong(title)}  {codemod}: {count_line(table, codemod)}"


def _names(table: Coverage) -> list[str]:
    """Return the class names; those of vendor copies, which repeat, with the module."""
    times = Counter(row.model.class_name for row in table.rows)
    return [
        printable(
            f"{row.model.class_name} ({row.model.module})"
            if times[row.model.class_name] > 1
            else row.model.class_name
        )
        for row in table.rows
    ]


def count_line(table: Coverage, codemod: str) -> str:
    """Return the counts of one column in words."""
    words = {"through_base": "broken through a base", "not_judged": "not judged"}
    parts = (
        f"{n} {words.get(name, name)}" for name, n in table.counts(codemod).items()
    )
    return ", ".join(parts) or "no class"


def short_titles(codemods: Sequence[str]) -> list[str]:
    """Return column titles: the first word of each id, or all where that is taken."""
    firsts = [codemod.partition("-")[0] for codemod in codemods]
    return [
        first if firsts.count(first) == 1 else codemod
        for first, codemod in zip(firsts, codemods, strict=True)
    ]


def changes_report(changes: Changes, before: Target, after: Target) -> Iterator[str]:
    """Yield what differs between two trees."""
    yield strong(f"From {describe(before)} to {describe(after)}:")
    if not changes:
        yield "  the same classes, the same verdicts"
    for title, models in (("new", changes.added), ("gone", changes.removed)):
        if models:
            yield f"  {counted(len(models), 'class', 'classes')} {title}"
            for model in models:
                yield f"    {printable(model.key)}"
    if changes.moved:
        yield f"  {counted(len(changes.moved), 'class', 'classes')} moved"
        for was, now in changes.moved:
            yield f"    {printable(was.key)} -> {printable(now.key)}"
    if changes.changed:
        yield f"  {counted(len(changes.changed), 'verdict')} changed"
        for change in changes.changed:
            yield (
                f"    {printable(change.model.key)}  {change.codemod}:"
                f" {_painted(change.before)} -> {_painted(change.after)}"
            )


def _painted(cell: Cell) -> str:
    if cell.status is None:
        return faint(cell.label)
    return click.style(cell.label, **STYLES[cell.status])


def _padded(cells: Iterable[Cell], widths: Sequence[int]) -> str:
    """Return the cells of a row in columns, with no blanks at the end of the line."""
    line = gap = ""
    for cell, width in zip(cells, widths, strict=True):
        line += gap + _painted(cell)
        gap = " " * (width - len(cell.label) + 2)
    return line
