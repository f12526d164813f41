"""``# vlmend: ignore[codemod-id] reason`` on the line of a class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vlmend.codemods.analysis.model_index import ModelIndex
from vlmend.codemods.codemod import Finding, Status, UnusedSuppression

_MARK = b"vlmend:"
_COMMENT = re.compile(r"#\s*vlmend:\s*ignore\[([\w\-, ]+)\]\s*(.*)$")

SUPPRESSIBLE = (Status.FIXABLE, Status.REVIEW, Status.BLOCKED, Status.UNPROVEN)
"""The statuses that somebody can ask not to see."""


class _Comment(NamedTuple):
    file: str
    line: int
    codemods: tuple[str, ...]
    reason: str
    class_names: tuple[str, ...]
    """The class that is declared on this line; empty where none is."""


def suppress(
    index: ModelIndex, findings: Iterable[Finding], codemods: Sequence[str]
) -> tuple[list[Finding], tuple[UnusedSuppression, ...]]:
    """Mark the findings that the tree's authors asked not to see.

    Args:
        findings: all that was found, sound classes included.
        codemods: ids of those that ran.

    Returns:
        The findings, and the comments that had none to mark.
    """
    comments = {(c.file, c.line): c for c in _comments(index)}
    used: set[tuple[str, int, str]] = set()
    told: list[Finding] = []
    verdicts: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        comment = comments.get((finding.file, finding.class_line))
        if comment is None or finding.codemod not in comment.codemods:
            told.append(finding)
            continue
        place = (comment.file, comment.line, finding.codemod)
        verdicts[place] = finding
        if finding.status not in SUPPRESSIBLE:
            told.append(finding)
            continue
        used.add(place)
        reason = comment.reason or "no reason given"
        message = f"Suppressed where {finding.class_name} is declared: {reason}."
        told.append(finding.suppressed("comment", comment.reason, message))
    unused = tuple(
        UnusedSuppression(c.file, c.line, codemod, _why(c, codemod, verdicts, codemods))
        for c in comments.values()
        for codemod in c.codemods
        if (c.file, c.line, codemod) not in used
    )
    return told, unused


def _why(
    comment: _Comment,
    codemod: str,
    verdicts: dict[tuple[str, int, str], Finding],
    ran: Sequence[str],
) -> str:
    if not comment.class_names:
        return "it stands on no class line, and only there it counts"
    name = comment.class_names[0]
    if codemod not in ran:
        return f"{codemod} did not run"
    finding = verdicts.get((comment.file, comment.line, codemod))
    if finding is None:
        return f"{codemod} has nothing to say about {name}"
    return f"{codemod} finds {name} {finding.status}"


def _comments(index: ModelIndex) -> Iterator[_Comment]:
    """Yield every comment of this kind in the target's model files."""
    for name in index.own_modules:
        if not index.mentions(name, _MARK):
            continue
        module = index.module(name)
        if module is None:
            continue
        declared = {
            statement.line: statement_name
            for statement_name, statements in module.classes.items()
            for statement in statements
        }
        for number, text in enumerate(index.lines(module), start=1):
            found = _COMMENT.search(text)
            if found is None:
                continue
            ids = tuple(i for i in re.split(r"[,\s]+", found.group(1)) if i)
            names = (declared[number],) if number in declared else ()
            yield _Comment(module.file, number, ids, found.group(2).strip(), names)
