"""Diffs that explain themselves and that ``git apply`` still takes.

``git apply`` skips text before a file's header, and whatever follows the second ``@@``
of a hunk's header. The reasons stand in the first, the class names in the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from vlmend.cli.console import printable
from vlmend.cli.report.words import counted, place, wrapped

if TYPE_CHECKING:
    from vlmend.codemods.codemod import Finding
    from vlmend.codemods.engine import FilePatch

COMMENT = "# "
HUNK = re.compile(r"(@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@)")


def explained(patch: FilePatch, width: int) -> Iterator[str]:
    """Yield the lines of a file's diff, headed by its findings; line ends are kept."""
    for finding in patch.findings:
        yield from (f"{COMMENT}{line}\n" for line in reason(finding, width - 2))
    lines = patch.diff().split("\n")
    ends = [int(m[2]) + int(m[3] or 1) for m in map(HUNK.match, lines) if m]
    names = iter(_names(patch, ends))
    for line in lines[:-1]:
        head = HUNK.match(line)
        yield f"{head[1]} {next(names)}\n" if head else f"{line}\n"


def _names(patch: FilePatch, ends: Sequence[int]) -> list[str]:
    """Return for each hunk, given the lines they end at, whose it is."""
    found: list[dict[str, None]] = [{} for _ in ends]
    for finding in patch.findings:
        for edit in finding.edits:
            # A change stands at the line it is anchored to, or soon after it.
            after = (i for i, end in enumerate(ends) if edit.line <= end)
            if edit.file == patch.file and ends:
                name = f"{printable(finding.class_name)}: {finding.codemod}"
                found[next(after, -1)][name] = None
    return [", ".join(names) for names in found]


def reason(finding: Finding, width: int) -> Iterator[str]:
    """Yield a finding in a few plain lines: what, where, why, who else is healed."""
    yield (
        f"{finding.status} {printable(finding.class_name)}"
        f" ({finding.codemod} {finding.fingerprint})"
    )
    yield place(finding.file, finding.line, finding.source)
    yield from wrapped(finding.message, width).splitlines()
    if finding.heirs:
        heirs = ", ".join(heir.rpartition(":")[2] for heir in finding.heirs)
        yield from wrapped(f"Also heals {heirs}.", width).splitlines()


def painted(line: str) -> str:
    """Return a line of a diff in colour, with no control character left to act."""
    text = printable(line.rstrip("\n"))
    if text.startswith(COMMENT):
        return click.style(text, fg="yellow")
    if text.startswith("@@"):
        return click.style(text, fg="cyan")
    if text.startswith(("+++", "---", "diff ")):
        return click.style(text, bold=True)
    if text.startswith("+"):
        return click.style(text, fg="green")
    if text.startswith("-"):
        return click.style(text, fg="red")
    return text


def stat(patches: Sequence[FilePatch]) -> Iterator[str]:
    """Yield one line per file and a total, the way ``git diff --stat`` counts."""
    sizes = [(printable(patch.file), *_added_and_removed(patch)) for patch in patches]
    column = max((len(file) for file, _, _ in sizes), default=0)
    for file, added, removed in sizes:
        signs = click.style("+" * added, fg="green") + click.style(
            "-" * removed, fg="red"
        )
        yield f" {file:{column}} | {added + removed} {signs}"
    added = sum(size[1] for size in sizes)
    removed = sum(size[2] for size in sizes)
    yield (
        f" {counted(len(sizes), 'file')} to change, {counted(added, 'insertion')}(+),"
        f" {counted(removed, 'deletion')}(-)"
    )


def _added_and_removed(patch: FilePatch) -> tuple[int, int]:
    body = _body(patch.diff().splitlines())
    signs = [line[:1] for line in body]
    return signs.count("+"), signs.count("-")


def _body(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        inside = inside or line.startswith("@@ ")
        if inside:
            yield line
