"""A scan as Markdown, for the summary of a CI job: counts first, findings folded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

from vlmend.cli.console import printable
from vlmend.cli.report.markdown import escaped
from vlmend.cli.report.text import describe, tally
from vlmend.cli.report.words import ORDER, counted
from vlmend.codemods.codemod import Finding

ROOM: Final = 1_000_000
"""Bytes that a summary by itself may take: GitHub drops one of more than 1 MiB, and
other steps of the job may have said something before."""

_KINDS: Final = {"class": "classes", "note": "notes"}
_CUT_LINE: Final = 200
"""Bytes that are kept free for the line that says what is left out."""

if TYPE_CHECKING:
    from vlmend.cli.guard import Guard
    from vlmend.cli.judge import Judged


def scan_markdown(
    judged: Judged,
    shown: Sequence[Finding],
    guard: Guard | None = None,
    room: int | None = None,
    elsewhere: str = "The page and the SARIF file have",
) -> Iterator[str]:
    """Yield the lines of the summary.

    Args:
        judged: the tree.
        shown: the findings that are listed.
        guard: what they were compared with.
        room: bytes that the lines may take, line ends included; what does not fit is
            left out whole, the last first, and a line says so.
        elsewhere: what has all of it then, with its verb.
    """
    head = list(_head(judged, shown, guard))
    yield from head
    # What was not judged comes first: whatever is left out, that must be known.
    blocks = [([line], "note") for line in _unread(judged)]
    if blocks:
        blocks[-1][0].append("")
    blocks += [
        (list(_class(judged, list(group))), "class")
        for _, group in groupby(
            sorted(shown, key=lambda f: (ORDER.index(f.status), f.key)),
            lambda f: f.key,
        )
    ]
    blocks += [([line], "note") for line in _unused(judged)]
    left = None if room is None else room - _size(head) - _CUT_LINE
    for position, (lines, _) in enumerate(blocks):
        if left is not None:
            left -= _size(lines)
            if left < 0:
                yield ""
                yield _cut([kind for _, kind in blocks[position:]], elsewhere)
                return
        yield from lines


def _cut(kinds: Sequence[str], elsewhere: str) -> str:
    """Say what is left out; the numbers are above, and the rest is elsewhere."""
    counts = Counter(kinds)
    told = [counted(counts[k], k, p) for k, p in _KINDS.items() if counts[k]]
    return (
        f"**Left out here, to keep within what GitHub shows: {' and '.join(told)}.**"
        f" {elsewhere} all of it."
    )


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)


def _head(
    judged: Judged, shown: Sequence[Finding], guard: Guard | None
) -> Iterator[str]:
    yield f"# vlmend: {escaped(describe(judged.target))}"
    yield ""
    models = counted(len(judged.result.models), "model class", "model classes")
    yield f"{models} judged; {tally(f.status for f in shown) or 'nothing wrong'}."
    if guard is not None and guard.compared is not None:
        change = guard.compared.change
        touched = counted(len(guard.compared.touched), "class", "classes")
        yield (
            f"Compared with {_code(change.base)} ({change.commit[:12]}):"
            f" {counted(len(change.files), 'changed file')}, {touched} touched."
        )
    yield ""
    yield from _coverage(judged)
    for note in judged.result.contract:
        yield f"- {escaped(note.name)}: {escaped(note.statement)}"
    if judged.result.contract:
        yield ""


def _coverage(judged: Judged) -> Iterator[str]:
    """Yield the counts of all that was judged, a row for each codemod."""
    counts = {
        codemod.id: Counter(
            f.status for f in judged.result.findings if f.codemod == codemod.id
        )
        for codemod in judged.codemods
    }
    columns = [s for s in ORDER if any(found[s] for found in counts.values())]
    if not columns:
        return
    yield f"| contract | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for codemod, found in counts.items():
        cells = " | ".join(str(found[s] or "") for s in columns)
        yield f"| {_code(codemod)} | {cells} |"
    yield ""


def _class(judged: Judged, findings: list[Finding]) -> Iterator[str]:
    name = escape(printable(findings[0].class_name))
    status = ", ".join(dict.fromkeys(f.status.value for f in findings))
    yield f"<details><summary><b>{name}</b>: {status}</summary>"
    for finding in findings:
        yield ""
        yield f"**{finding.status}** by {_code(finding.codemod)}"
        yield f"at {_code(f'{finding.file}:{finding.line}')}"
        yield f"({_code(finding.fingerprint)})"
        yield ""
        yield escaped(finding.message)
        yield ""
        for number, link in enumerate(finding.evidence, start=1):
            where = _code(f"{link.file}:{link.line}")
            yield f"{number}. {escaped(link.statement)} ({where})"
        if finding.heirs:
            yield ""
            healed = ", ".join(map(_code, finding.heirs))
            yield f"The same fix heals {healed}."
        diff = judged.diff(finding)
        if diff:
            yield ""
            yield from _fenced(diff)
    yield ""
    yield "</details>"
    yield ""


def _unread(judged: Judged) -> Iterator[str]:
    for error in judged.errors:
        lead = f"{_code(error.file)}: " if error.file else ""
        yield f"- **not judged**: {lead}{escaped(error.message)}"


def _unused(judged: Judged) -> Iterator[str]:
    for one in judged.unused:
        where = f"{one.file}:{one.line}" if one.line else one.file
        yield f"- unused suppression, {_code(where)}: {escaped(one.reason)}"


def _code(text: str) -> str:
    """Return text in a code span that no backtick of its own can end."""
    flat = " ".join(printable(text).split())
    runs = [len(run) for run in re.findall(r"`+", flat)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _fenced(diff: str) -> Iterator[str]:
    runs = [len(run) for run in re.findall(r"`+", diff)]
    fence = "`" * max(3, max(runs, default=0) + 1)
    yield f"{fence}diff"
    yield from (printable(line) for line in diff.splitlines())
    yield fence
