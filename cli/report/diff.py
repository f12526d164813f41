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
HUNK = re.compile(r"^(@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@)(.*)$", re.DOTALL)


def explained(patch: FilePatch, width: int) -> Iterator[str]:
    """Yield the lines of a file's diff, headed by its findings; line ends are kept."""
    for finding in patch.findings:
        yield from (f"{COMMENT}{line}\n" for line in reason(finding, width - 2))
    for line in patch.diff().splitlines(keepends=True):
        yield _named_hunk(line, patch)


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


def _named_hunk(line: str, patch: FilePatch) -> str:
    match = HUNK.match(line)
    if match is None:
        return line
    head, start, length, rest = match.groups()
    first = int(start)
    last = first + int(length or 1)
    names = dict.fromkeys(
        f"{printable(finding.class_name)}: {finding.codemod}"
        for finding in patch.findings
        for edit in finding.edits
        if edit.file == patch.file and first <= edit.line <= last
    )
    return f"{head} {', '.join(names)}\n" if names else f"{head}{rest}"


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
